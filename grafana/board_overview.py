"""The dashboard Memory overview: latency, results and failures of each store."""

from __future__ import annotations

from boards import JOB, MEMORY, RECORDED, STORE, Board, Row
from panels import BAD, GOOD, ODD, About, AnyPanel, Query, figure, heat, lines, timeline

from mnemoscope.alerting.promql import counted

_BUCKET = "mnemoscope_operation_duration_seconds_bucket"
_BURN = "store:mnemoscope_slow_operations:burn"
_COUNT = "mnemoscope_operation_duration_seconds_count"
BREAKER = {0: ("closed", GOOD), 1: ("half open", ODD), 2: ("open", BAD)}


def overview() -> Board:
    """Return the dashboard that alerts about a store link to."""
    return Board(
        name="overview",
        title="Memory overview",
        about="Which store is slow, failing or forgetting, and since when.",
        rows=(
            Row(title="Which store is to blame?", panels=_blame()),
            Row(title="How fast is each operation?", panels=_latency()),
            Row(title="What did callers get?", panels=_answers()),
            Row(title="What do recalls find?", panels=_recalls()),
            Row(title="What happened to writes that a store did not take?", panels=_writes()),
            Row(title="How do the stores grow?", panels=_growth()),
            Row(title="What of it is junk?", panels=_junk()),
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
                shows="The store that callers waited for most in this window, and its share. "
                "Time of an operation inside another counts for the inner one only.",
                act="read that store's row in the next panels, then its breaker and calls in "
                "flight below. A high share of a short wait is no problem: look at p95 first.",
                unit="percentunit",
                steps={0.5: ODD, 0.8: BAD},
            ),
            Query(expr=f"topk(1, {share})", legend="{{store}}"),
            named=True,
        ),
        lines(
            About(
                title="Seconds waited, by store",
                shows="Seconds per second that callers wait for each store, without operations of "
                "other stores inside. 1 s/s is one caller that always waits.",
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
                title="Time inside another operation",
                shows="Seconds per second in a store that another store's client calls, as mem0 "
                "calls Qdrant. Both are slow then; this is the inner store's part.",
                act="look at the inner store: it makes the outer one slow.",
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
                shows="Operations per second, by store and operation.",
                act="a drop to zero is the agent or its traffic, not the store. A jump can explain "
                "a slow store: find the feature that makes more calls.",
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
                shows="Operations per second by duration, one panel for each store.",
                act="a second band above the first means that some calls wait, for example "
                "for a lock, a retry or a cold cache. Dots link to traces.",
                unit="s",
                span=24,
            ),
            Query(
                # Model calls have other buckets: over both the sums would be of nothing.
                expr=f'sum by (le) (rate({_BUCKET}{{{STORE},class!="model"}}[$__rate_interval]))',
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
            act="compare stores: if one line rises, it is that store; if all rise, it is this "
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
            shows="Answers per second that are neutral because the store failed (degraded) or was "
            "not called (rejected): the agent works without its memory.",
            act="the breaker timeline shows since when; the store's own logs show why.",
        ),
        _by_status(
            "timeout",
            title="Timeouts",
            shows="Operations per second that exceeded their deadline.",
            act="if p95 was near the deadline before, the store is overloaded; if it was not, it "
            "hangs: look at calls in flight.",
        ),
        _by_status(
            "error|refused|denied|cancelled",
            title="Errors, refusals, cancelled calls",
            shows="Operations per second that raised, by store and status: an error of the caller "
            "or of a store that fails closed, a write that could not be redacted, a missing "
            "scope, a cancelled call.",
            act="the log line of each has the error's type and the trace. Denied: an agent asks "
            "for another customer's data.",
        ),
        lines(
            About(
                title="Why they were not answered",
                shows="Operations per second that were not answered, by store and kind of error: "
                "timeout, unreachable, overloaded, credentials, answer, database, value, "
                "not_called, not_redacted, out_of_scope, other.",
                act="unreachable, overloaded, timeout: the store. credentials, answer: the "
                "deployment. value: the code of a call, or a record that the store chokes on. The "
                "log line has the exception's type.",
                unit="ops",
            ),
            Query(
                expr="sum by (store, error) "
                f"(rate(mnemoscope_errors_total{{{STORE}}}[$__rate_interval]))",
                legend="{{store}} {{error}}",
            ),
        ),
        timeline(
            About(
                title="Circuit breakers",
                shows="By store and class of operation: closed (called), half open (tried), open "
                "(not called, because it failed).",
                act="open means that calls fail fast on purpose. Repair the store; the breaker "
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
                shows="Calls that each store has not answered yet, including those that hang.",
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
                title="Late answers",
                shows="Calls per second that ended after their caller had stopped waiting.",
                act="the store works in vain: raise the deadline, or make the store faster. "
                "A late write may have been stored.",
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
                title="Burn of the latency objectives",
                shows="Rate at which the 30-day budget of slow or failed operations is used, by "
                "store and class, over 5 minutes and an hour. At 1 it lasts exactly 30 days.",
                act="above 14 for an hour the alert pages. The culprit panel names the store, "
                "the runbook says what to do.",
                unit="none",
                span=16,
                steps={1: ODD, 14.4: BAD},
            ),
            Query(expr=f"{_BURN}5m{{{RECORDED}}}", legend="{{store}} {{class}} 5 minutes"),
            Query(expr=f"{_BURN}1h{{{RECORDED}}}", legend="{{store}} {{class}} 1 hour"),
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
                act="a jump after a deployment is a changed filter, collection or embedding "
                "model; a slow rise means that memories are not written.",
                unit="percentunit",
            ),
            Query(expr=f"{empty} / ({every} > 0)", legend="{{store}}"),
        ),
        lines(
            About(
                title="Score of the best result",
                shows="Mean score of the first result, on the store's own scale: compare a store "
                "with itself only.",
                act="a step is another embedding model or distance; a drift means that memories "
                "match the queries less and less.",
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
                shows="Recalls per second by number of results.",
                act="all at one value is a limit; all at zero is an empty store or a wrong filter.",
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
                shows="Writes per second that a failing store did not take: lost, or appended to "
                "the journal and replayed from it.",
                act="lost: configure MNEMOSCOPE_JOURNAL. Appended without replayed: the store is "
                "still down.",
                unit="ops",
                span=12,
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
                title="Journal: waiting writes",
                shows="Writes that wait for their store, and the age of the oldest in seconds. All "
                "processes of a machine share a journal: each tells the same.",
                act="it empties by itself once the store is back. Old and not shrinking: find the "
                "refused write in the log, or its process with mnemoscope journal list.",
                unit="short",
                span=12,
            ),
            Query(
                expr=f"max by (store) (mnemoscope_journal_waiting{{{STORE}}})",
                legend="{{store}} writes",
            ),
            Query(
                expr=f"max(mnemoscope_journal_oldest_seconds{{{JOB}}})", legend="oldest, seconds"
            ),
        ),
        lines(
            About(
                title="Journal: set aside",
                shows="Writes that failed by themselves, again and again or with an answer that "
                "was not understood. The others went on; these wait for somebody to decide.",
                act="mnemoscope journal list --parked says why, show has the content; then journal "
                "retry, or journal drop.",
                unit="short",
                span=12,
                steps={1: ODD},
            ),
            Query(
                expr=f"max by (store) (mnemoscope_journal_parked{{{STORE}}})", legend="{{store}}"
            ),
        ),
        lines(
            About(
                title="Checkpoints: conflicts",
                shows="Threads of a degraded checkpointer that somebody else changed while writes "
                "to them waited in a process.",
                act="the thread is theirs, and what waited is given up: its events have the error "
                "ThreadChangedError. The warning in the log says how many writes.",
                unit="short",
                span=12,
                steps={1: ODD},
            ),
            Query(
                expr="sum by (store) "
                f"(increase(mnemoscope_checkpoint_conflicts_total{{{STORE}}}[1h])) or vector(0)",
                legend="{{store}} in an hour",
            ),
        ),
        lines(
            About(
                title="Journal: space used",
                shows="Used share of the journal's file; 1 if the file could not be opened.",
                act="at 100 % further writes are lost: raise MNEMOSCOPE_JOURNAL_MAX_BYTES, or "
                "repair the store. Not opened: check that the process may write to its folder.",
                unit="percentunit",
                span=12,
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


def _growth() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Records by store and class",
                shows="Rows that each store holds, measured every MNEMOSCOPE_GROWTH_EVERY_S.",
                act="threads that are done, or a purpose that is over: have them go by "
                "retention.yaml.",
                unit="short",
                span=8,
            ),
            Query(
                expr=f"sum by (store, class) (mnemoscope_store_rows{{{STORE}}})",
                legend="{{store}} {{class}}",
            ),
        ),
        lines(
            About(
                title="Bytes by store and purpose",
                shows="Size by the purpose of the writes, as the audit trail sealed it.",
                act="unknown: writes outside of `context(purpose=...)`, or of before the trail.",
                unit="bytes",
                span=8,
            ),
            Query(
                expr=f"sum by (store, purpose) (mnemoscope_store_bytes{{{STORE}}})",
                legend="{{store}} {{purpose}}",
            ),
        ),
        lines(
            About(
                title="Days to full",
                shows="Days until a store's room is used, by a straight line through its sizes; "
                "nothing until there are enough of a day at least.",
                act="below 14: make room, or see what `mnemoscope retention plan` would remove.",
                unit="short",
                span=8,
                steps={0: BAD, 14: ODD, 60: GOOD},
            ),
            Query(
                expr=f"min by (store) (mnemoscope_store_days_to_full{{{STORE}}})",
                legend="{{store}}",
            ),
        ),
    )


def _junk() -> tuple[AnyPanel, ...]:
    parts = f'mnemoscope_event_part_total{{{JOB},part="hygiene"}}'
    partial = f'{_COUNT}{{{STORE},status="partial"}}'
    return (
        lines(
            About(
                title="Memories that repeat something",
                shows="Memories written in the last 10 minutes; echoes of what the same run had "
                "recalled; repeats of what the same customer's memories have. Nothing without "
                "MNEMOSCOPE_FEATURES=hygiene. Partial writes, by store, are there without it.",
                act="`mnemoscope memory doctor` names the memories, and lists which of them "
                "others supersede.",
                unit="short",
                span=24,
            ),
            Query(expr=counted(parts, "10m", by="measurement"), legend="{{measurement}}"),
            Query(
                expr=f"{counted(partial, '10m', by='store')} "
                f"or sum by (store) (0 * {_COUNT}{{{STORE}}})",
                legend="partial, {{store}}",
            ),
        ),
    )
