"""mnemoscope itself: what it costs, and whether everything that happened is told."""

from __future__ import annotations

from boards import JOB, STORE, Board, Row
from panels import BAD, GOOD, ODD, About, AnyPanel, Query, lines, timeline
from promql import counted

_DELIVERED = f"sum by (sink) (rate(mnemoscope_sink_events_total{{{JOB}}}[$__rate_interval]))"


def itself() -> Board:
    """Return the dashboard about the library, not about the stores."""
    return Board(
        name="self",
        title="mnemoscope itself",
        about="Queues, drops, sinks, and the time that mnemoscope adds to each call.",
        rows=(
            Row(title="What does it cost the caller?", panels=_cost()),
            Row(title="Does everything reach its sink?", panels=_sinks()),
            Row(title="Is it well?", panels=_faults()),
        ),
    )


def _cost() -> tuple[AnyPanel, ...]:
    bucket = f"mnemoscope_operation_waited_seconds_bucket{{{STORE}}}"

    def quantile(of: float) -> str:
        return f"histogram_quantile({of}, sum by (store, le) (rate({bucket}[$__rate_interval])))"

    return (
        lines(
            About(
                title="Added latency",
                shows="Seconds before the store is asked: tenancy, redaction, queueing. p50, p95.",
                act="long texts take long to redact: compare with redactions. p95 far above p50 is "
                "a process short of CPU.",
                unit="s",
                span=12,
                steps={0.01: ODD, 0.1: BAD},
            ),
            Query(expr=quantile(0.5), legend="{{store}} p50"),
            Query(expr=quantile(0.95), legend="{{store}} p95"),
        ),
        lines(
            About(
                title="What an exit would take now",
                shows="Seconds to deliver what is queued, at the pace of just now, by sink. "
                "An exit waits 2 s for all sinks together, and no longer.",
                act="above 2 s an exit now loses events (the audit trail keeps them on disk): see "
                "which sink is slow.",
                unit="s",
                span=12,
                steps={2: BAD},
            ),
            Query(
                expr=f"sum by (sink) (mnemoscope_sink_queue_events{{{JOB}}}) / ({_DELIVERED} > 0)",
                legend="{{sink}}",
            ),
        ),
    )


def _sinks() -> tuple[AnyPanel, ...]:
    return (
        timeline(
            About(
                title="Sinks",
                shows="Whether each sink's back end takes events.",
                act="down: its own back end is away. The agent does not notice; events wait, then "
                "the oldest are dropped. `mnemoscope doctor` says what does not answer.",
                unit="none",
            ),
            Query(expr=f"max by (sink) (mnemoscope_sink_down{{{JOB}}})", legend="{{sink}}"),
            {0: ("up", GOOD), 1: ("down", BAD)},
        ),
        lines(
            About(
                title="Events delivered",
                shows="Events a second, by sink. All lines are one where all sinks keep up.",
                act="a line below the others is a sink that falls behind.",
                unit="ops",
            ),
            Query(
                expr=_DELIVERED,
                legend="{{sink}}",
            ),
        ),
        lines(
            About(
                title="Events dropped",
                shows="Events in the last 10 minutes that never reach their sink, by reason.",
                act="overflow: the back end is too slow or away. Refused: it does not want them, "
                "look at credentials and limits. Error: the sink itself fails.",
                unit="short",
                steps={1: BAD},
            ),
            Query(
                expr=counted(f"mnemoscope_sink_dropped_total{{{JOB}}}", "10m", by="sink, reason"),
                legend="{{sink}} {{reason}}",
            ),
        ),
        lines(
            About(
                title="Queued events",
                shows="Events that wait for each sink.",
                act="flat at the top is a full queue: the next event pushes out the oldest.",
                unit="short",
                span=12,
            ),
            Query(expr=f"sum by (sink) (mnemoscope_sink_queue_events{{{JOB}}})", legend="{{sink}}"),
        ),
        lines(
            About(
                title="Queued bytes",
                shows="What they weigh. Sinks share events: memory holds each but once.",
                act="8 MiB is full: the sink is too slow for the load, and loses the oldest.",
                unit="bytes",
                span=12,
            ),
            Query(expr=f"sum by (sink) (mnemoscope_sink_queue_bytes{{{JOB}}})", legend="{{sink}}"),
        ),
    )


def _faults() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Errors of our own",
                shows="Errors of mnemoscope's own code in the last 15 minutes, by place. None of "
                "them reached a caller.",
                act="each cost an event a field, or an event. Report it, with the place and the "
                "version.",
                unit="short",
                span=12,
                steps={1: ODD},
            ),
            Query(
                expr=counted(f"mnemoscope_internal_errors_total{{{JOB}}}", "15m", by="site"),
                legend="{{site}}",
            ),
        ),
        lines(
            About(
                title="Figures that could not be read",
                shows="Scrapes in the last 15 minutes in which live figures (queues, breakers, "
                "calls in flight) were missing.",
                act="panels that show them have holes then. Report it.",
                unit="short",
                span=12,
                steps={1: ODD},
            ),
            Query(
                expr=counted(f"mnemoscope_live_read_errors_total{{{JOB}}}", "15m", by="job"),
                legend="{{job}}",
            ),
        ),
    )
