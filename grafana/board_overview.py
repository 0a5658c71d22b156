"""Memory overview: when this recall is slow, which store is to blame?"""

from __future__ import annotations

from boards import JOB, MEMORY, STORE, Board, Row
from panels import BAD, GOOD, ODD, About, AnyPanel, Query, figure, heat, lines, timeline

_BUCKET = "mnemoscope_operation_duration_seconds_bucket"
_COUNT = "mnemoscope_operation_duration_seconds_count"
BREAKER = {0: ("closed", GOOD), 1: ("half open", ODD), 2: ("open", BAD)}


def overview() -> Board:
    """Return the dashboard that an alert about a store leads to."""
    return Board(
        name="overview",
        title="Memory overview",
        about="Which store is slow, failing or forgetting, and since when.",
        rows=(
            Row(title="Which store is to blame?", panels=_blame()),
            Row(title="How fast is each operation?", panels=_latency()),
            Row(title="What did callers get?", panels=_answers()),
            Row(title="What do recalls find?", panels=_recalls()),
            Row(title="What became of writes that a store did not take?", panels=_writes()),
        ),
    )


def _blame() -> tuple[AnyPanel, ...]:
    own = "mnemoscope_own_seconds_total"
    share = (
        f"sum by (store) (increase({own}{{{MEMORY}}}[$__range]))"
        f" / on() group_left() sum(increase({own}{{{MEMORY}}}[$__range]))"
    )
    return (
        figure(
            About(
                title="The culprit of this window",
                shows="The store that most of the waiting in this window was for, and its share. "
                "Seconds of an operation inside another count for the inner one alone.",
                act="read that store's row in the panels beside; then its breaker and in-flight "
                "below. A high share of a short wait is no problem: look at p95 first.",
                unit="percentunit",
                steps={0.5: ODD, 0.8: BAD},
            ),
            Query(expr=f"topk(1, {share})", legend="{{store}}"),
            named=True,
        ),
        lines(
            About(
                title="Seconds waited, by store",
                shows="Seconds that callers spend waiting for each store, each second, without "
                "what ran inside. 1 s/s is one caller who always waits.",
                act="the band that grew is the store to look at.",
                unit="s",
            ),
            Query(
                expr=f"sum by (store) (rate({own}{{{MEMORY}}}[$__rate_interval]))",
                legend="{{store}}",
            ),
            stacked=True,
        ),
        lines(
            About(
                title="Waited inside another operation",
                shows="Seconds a second in a store that was asked by another store's client, as "
                "mem0 asks Qdrant. Both are slow then; this is the part that is the inner one's.",
                act="look at the inner store: the outer one only passes its slowness on.",
                unit="s",
            ),
            Query(
                expr="sum by (store) "
                f"(rate(mnemoscope_nested_seconds_total{{{STORE}}}[$__rate_interval]))",
                legend="{{store}}",
            ),
        ),
    )


def _latency() -> tuple[AnyPanel, ...]:
    return (
        *(_quantile(quantile) for quantile in (0.5, 0.95, 0.99)),
        lines(
            About(
                title="Operations",
                shows="Operations a second, by store and operation.",
                act="a fall to nothing is the agent or its traffic, not the store. A jump explains "
                "a slow store: find the feature that asks more.",
                unit="ops",
                span=24,
            ),
            Query(
                expr=f"sum by (store, operation) (rate({_COUNT}{{{MEMORY}}}[$__rate_interval]))",
                legend="{{store}} {{operation}}",
            ),
        ),
        heat(
            About(
                title="Durations, $store",
                shows="How many operations a second took how long, one panel for each store.",
                act="a second band above the first is a part of the calls that waits for "
                "something: a lock, a retry, a cold cache. Dots above lead to traces.",
                unit="s",
                span=24,
            ),
            Query(
                expr=f"sum by (le) (rate({_BUCKET}{{{STORE}}}[$__rate_interval]))",
                legend="{{le}}",
            ),
        )
        .repeat("store")
        .repeat_direction("h"),
    )


def _quantile(quantile: float) -> AnyPanel:
    part = f"{quantile:.0%}".removesuffix("%")
    return lines(
        About(
            title=f"p{part} by store and operation",
            shows=f"{part} % of operations are faster than this. Dots are single operations: "
            "click one for its trace.",
            act="compare stores: one line that rises is that store; all lines that rise are this "
            "machine or its network.",
            unit="s",
        ),
        Query(
            expr=f"histogram_quantile({quantile}, sum by (store, operation, le) "
            f"(rate({_BUCKET}{{{MEMORY}}}[$__rate_interval])))",
            legend="{{store}} {{operation}}",
            exemplars=True,
        ),
    )


def _answers() -> tuple[AnyPanel, ...]:
    return (
        _by_status(
            "degraded|rejected",
            title="Degraded answers",
            shows="Answers a second that are neutral because the store failed (degraded) or was "
            "not asked (rejected): the agent works without its memory.",
            act="see the breaker timeline for since when, and that store's own logs for why.",
        ),
        _by_status(
            "timeout",
            title="Timeouts",
            shows="Operations a second that ran into their deadline.",
            act="if p95 was near the deadline before, the store is overloaded; if it was not, it "
            "hangs: look at calls in flight.",
        ),
        _by_status(
            "error|refused|denied|cancelled",
            title="Errors, refusals, cancelled calls",
            shows="Operations a second that raised, by store and how: an error of the caller or of "
            "a store that fails closed, a write that could not be redacted, a scope that is "
            "missing, a caller who went away.",
            act="the log line of each has the type of the error and the trace. Denied: an agent "
            "asks for what is not its customer's.",
        ),
        timeline(
            About(
                title="Circuit breakers",
                shows="By store and class of operation: closed (asked), half open (tried), open "
                "(not asked, since it failed).",
                act="open means that calls fail fast on purpose. Mend the store; the breaker "
                "closes by itself.",
                unit="none",
            ),
            Query(
                expr=f"max by (store, class) (mnemoscope_breaker_state{{{STORE}}})",
                legend="{{store}} {{class}}",
            ),
            BREAKER,
        ),
        lines(
            About(
                title="Calls in flight",
                shows="Calls inside each store now, hung ones included.",
                act="a line that climbs and does not come down is a store that hangs: at the "
                "bulkhead's limit, further calls are rejected.",
                unit="short",
            ),
            Query(
                expr=f"sum by (store, class) (mnemoscope_operations_in_flight{{{STORE}}})",
                legend="{{store}} {{class}}",
            ),
        ),
        lines(
            About(
                title="Answers that came too late",
                shows="Calls a second that ended after their caller had gone.",
                act="the store does the work and nobody waits for it: raise the deadline, or make "
                "the store faster. A write that was late may have landed.",
                unit="ops",
            ),
            Query(
                expr="sum by (store) "
                f"(rate(mnemoscope_late_results_total{{{STORE}}}[$__rate_interval]))",
                legend="{{store}}",
            ),
        ),
        lines(
            About(
                title="Burn of the latency objective",
                shows="How many times faster than allowed the 30 days' budget of slow or failed "
                "reads is being used, over 5 minutes and an hour. 1 uses it up just in time.",
                act="above 14 for an hour somebody is paged. The culprit panel says which store "
                "it is and the runbook what to do.",
                unit="none",
                span=24,
                steps={1: ODD, 14.4: BAD},
            ),
            Query(
                expr=f"store:mnemoscope_slow_reads:burn5m{{{STORE}}}", legend="{{store}} 5 minutes"
            ),
            Query(expr=f"store:mnemoscope_slow_reads:burn1h{{{STORE}}}", legend="{{store}} 1 hour"),
        ),
    )


def _by_status(status: str, *, title: str, shows: str, act: str) -> AnyPanel:
    return lines(
        About(title=title, shows=shows, act=act, unit="ops"),
        Query(
            expr="sum by (store, status) "
            f'(rate({_COUNT}{{{MEMORY},status=~"{status}"}}[$__rate_interval]))',
            legend="{{store}} {{status}}",
        ),
    )


def _recalls() -> tuple[AnyPanel, ...]:
    bucket, score = "mnemoscope_recall_results_bucket", "mnemoscope_recall_top_score"
    empty = f'sum by (store) (rate({bucket}{{{STORE},le="0.0"}}[$__rate_interval]))'
    every = f'sum by (store) (rate({bucket}{{{STORE},le="+Inf"}}[$__rate_interval]))'
    return (
        lines(
            About(
                title="Recalls that found nothing",
                shows="Share of answered recalls with no result.",
                act="a jump after a deployment is a filter, a collection or an embedding model "
                "that changed; a slow climb is memories that are not written.",
                unit="percentunit",
            ),
            Query(expr=f"{empty} / ({every} > 0)", legend="{{store}}"),
        ),
        lines(
            About(
                title="Score of the best result",
                shows="Mean score of the first result, in the store's own measure: compare a store "
                "with itself only.",
                act="a step is another embedding model or distance; a drift is memories that no "
                "longer fit what is asked.",
                unit="none",
            ),
            Query(
                expr=f"sum by (store) (rate({score}_sum{{{STORE}}}[$__rate_interval])) / "
                f"(sum by (store) (rate({score}_count{{{STORE}}}[$__rate_interval])) > 0)",
                legend="{{store}}",
            ),
        ),
        heat(
            About(
                title="Results of a recall",
                shows="How many recalls a second had how many results.",
                act="all at one value is a limit that cuts; all at zero is a store that forgot.",
                unit="short",
            ),
            Query(
                expr=f"sum by (le) (rate({bucket}{{{STORE}}}[$__rate_interval]))", legend="{{le}}"
            ),
        ),
    )


def _writes() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Writes lost, kept, replayed",
                shows="Writes a second that a failing store did not take: lost; or appended to the "
                "journal, and replayed from it.",
                act="lost: configure MNEMOSCOPE_JOURNAL. Appended without replayed: the store is "
                "still down.",
                unit="ops",
            ),
            Query(
                expr="sum by (store) "
                f"(rate(mnemoscope_writes_lost_total{{{STORE}}}[$__rate_interval]))",
                legend="{{store}} lost",
            ),
            Query(
                expr="sum by (store, outcome) "
                f"(rate(mnemoscope_journal_writes_total{{{STORE}}}[$__rate_interval]))",
                legend="{{store}} {{outcome}}",
            ),
        ),
        lines(
            About(
                title="Journal: what waits",
                shows="Writes that wait for their store, for how many seconds the oldest has, and "
                "parts of the file that could not be read and were put aside.",
                act="it empties by itself once the store is back. Old and not shrinking: read the "
                "log for the write that is refused. What was put aside is beside the file.",
                unit="short",
            ),
            Query(
                expr=f"sum by (store) (mnemoscope_journal_waiting{{{STORE}}})",
                legend="{{store}} writes",
            ),
            Query(
                expr=f"max(mnemoscope_journal_oldest_seconds{{{JOB}}})", legend="oldest, seconds"
            ),
            Query(expr=f"sum(mnemoscope_journal_quarantined_total{{{JOB}}})", legend="put aside"),
        ),
        lines(
            About(
                title="Journal: room",
                shows="Share of the journal's file that is used; 1 where it could not be opened.",
                act="at 100 % further writes are lost: raise MNEMOSCOPE_JOURNAL_MAX_BYTES, or mend "
                "the store. Not open: see that the process may write to its folder.",
                unit="percentunit",
                steps={0.8: ODD, 1: BAD},
            ),
            Query(
                expr=f"max(mnemoscope_journal_bytes{{{JOB}}} / "
                f"mnemoscope_journal_limit_bytes{{{JOB}}})",
                legend="used",
            ),
            Query(expr=f"1 - min(mnemoscope_journal_open{{{JOB}}})", legend="not open"),
        ),
    )
