"""The dashboard mnemoscope itself: added latency, delivery of events, internal errors."""

from __future__ import annotations

from boards import JOB, STORE, Board, Row
from panels import BAD, GOOD, ODD, About, AnyPanel, Query, lines, timeline

from mnemoscope.alerting.promql import counted

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
            Row(title="Does the relay keep up, where there is one?", panels=_relay()),
            Row(title="Does it fail itself?", panels=_faults()),
            Row(title="What do other packages measure?", panels=_features()),
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
                shows="Seconds before the store is called: tenancy, redaction, queueing. p50, p95.",
                act="long texts take long to redact: compare with redactions. p95 far above p50 "
                "means that the process lacks CPU.",
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
                shows="Seconds to deliver the queued events at the current rate, by sink. "
                "An exit waits at most 2 s for all sinks together.",
                act="above 2 s an exit now loses events (the audit trail keeps them on disk): find "
                "the slow sink.",
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
                act="down: the sink's back end does not answer. Agents are not affected; events "
                "wait, then the oldest are dropped. `mnemoscope doctor` shows the address.",
                unit="none",
            ),
            Query(expr=f"max by (sink) (mnemoscope_sink_down{{{JOB}}})", legend="{{sink}}"),
            {0: ("up", GOOD), 1: ("down", BAD)},
        ),
        lines(
            About(
                title="Events delivered",
                shows="Events per second, by sink. The lines coincide if all sinks keep up.",
                act="a line below the others is a sink that does not keep up.",
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
                act="overflow: the back end is too slow or down. Refused: the back end rejects "
                "them, check credentials and limits. Error: the sink itself fails.",
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
                act="a flat line at the top is a full queue: each new event drops the oldest.",
                unit="short",
                span=12,
            ),
            Query(expr=f"sum by (sink) (mnemoscope_sink_queue_events{{{JOB}}})", legend="{{sink}}"),
        ),
        lines(
            About(
                title="Queued bytes",
                shows="Size of the queued events. Sinks share events: each is in memory once.",
                act="at 8 MiB the queue is full: the sink is too slow and loses the oldest events.",
                unit="bytes",
                span=12,
            ),
            Query(expr=f"sum by (sink) (mnemoscope_sink_queue_bytes{{{JOB}}})", legend="{{sink}}"),
        ),
    )


def _relay() -> tuple[AnyPanel, ...]:
    beat = f"mnemoscope_relay_beat_timestamp_seconds{{{JOB}}}"
    return (
        lines(
            About(
                title="Relay: oldest event that waits",
                shows="Age of the oldest event that each sink was given and has not taken.",
                act="a sink that only grows is away, or slower than the agents: see Sinks.",
                unit="s",
                steps={60: ODD, 600: BAD},
            ),
            Query(expr=f"max by (sink) (mnemoscope_relay_lag_seconds{{{JOB}}})", legend="{{sink}}"),
        ),
        lines(
            About(
                title="Relay: waiting in files",
                shows="Bytes of events that wait for each sink.",
                act="at MNEMOSCOPE_RELAY_MAX_BYTES of a process its events find no room.",
                unit="bytes",
            ),
            Query(
                expr=f"sum by (sink) (mnemoscope_relay_behind_bytes{{{JOB}}})", legend="{{sink}}"
            ),
        ),
        lines(
            About(
                title="Relay: sign of life",
                shows="Seconds since the relay's latest sign of life, as it and the processes that "
                "append see it.",
                act="above 10 s nothing is delivered: start the relay again.",
                unit="s",
                steps={10: ODD, 60: BAD},
            ),
            Query(expr=f"time() - max by (job) ({beat})", legend="{{job}}"),
            Query(
                expr=f"max by (job) (mnemoscope_relay_silent_seconds{{{JOB}}})",
                legend="{{job}}, as seen by its processes",
            ),
        ),
        lines(
            About(
                title="Relay: left out",
                shows="In the last 10 minutes: events that a sink did not get, to make room for "
                "others, and places in files that could not be read. Now: files that cannot be "
                "read with this key.",
                act="skipped: the sink is away for too long. Damaged: look at the disk. "
                "Unreadable: the relay and a process have different keys, or releases.",
                unit="short",
                span=12,
                steps={1: BAD},
            ),
            Query(
                expr=counted(f"mnemoscope_relay_skipped_total{{{JOB}}}", "10m", by="sink"),
                legend="skipped {{sink}}",
            ),
            Query(
                expr=counted(f"mnemoscope_relay_damaged_total{{{JOB}}}", "10m", by="job"),
                legend="damaged",
            ),
            Query(
                expr=f"sum(mnemoscope_relay_unreadable_files{{{JOB}}})", legend="unreadable files"
            ),
        ),
        lines(
            About(
                title="Relay: processes",
                shows="Processes whose files are read.",
                act="more than there are workers: files of processes that ended wait for a sink.",
                unit="short",
                span=12,
            ),
            Query(expr=f"sum by (job) (mnemoscope_relay_writers{{{JOB}}})", legend="{{job}}"),
        ),
    )


def _faults() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Errors of our own",
                shows="Errors of mnemoscope's own code in the last 15 minutes, by place. None of "
                "them reached a caller.",
                act="each lost an event or one of its fields. Report it, with the place and the "
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
                title="Incomplete scrapes",
                shows="Scrapes in the last 15 minutes in which live figures (queues, breakers, "
                "calls in flight) were missing.",
                act="panels that show them have gaps. Report it.",
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


def _features() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Features of other packages",
                shows="What their parts of events have measured in the last 10 minutes, by part "
                "and name. Nothing, without such packages.",
                act="ask the package that the part is named after: mnemoscope only adds it up.",
                unit="short",
                span=24,
            ),
            Query(
                expr=counted(
                    f"mnemoscope_event_part_total{{{JOB}}}", "10m", by="part, measurement"
                ),
                legend="{{part}} {{measurement}}",
            ),
        ),
    )
