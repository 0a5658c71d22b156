"""The alerts about sinks, dropped events and internal errors."""

from __future__ import annotations

from .promql import ORIGIN, WHOLE, RuleSpeed, counted
from .rule import Alert, RuleGroup


def sinks(pace: RuleSpeed) -> RuleGroup:
    """Return the rules about mnemoscope itself."""
    return RuleGroup(
        name="sinks",
        rules=[_down(pace), _dropped(pace), _behind(pace), _silent(pace), _errors(pace)],
    )


def _down(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeSinkDown",
        expr=f"100 * max by ({ORIGIN}, sink) "
        f"(avg_over_time(mnemoscope_sink_down[{pace('10m')}])) > 50\n",
        wait=pace("5m"),
        hold=pace("5m"),
        severity="warning",
        summary="The {{ $labels.sink }} sink's back end takes no events",
        description="The {{ $labels.sink }} sink was down for " + WHOLE + " % "
        "of the last 10 minutes. Agents are not affected; events wait, and the oldest are dropped.",
        board="self",
    )


def _dropped(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeEventsDropped",
        expr=counted("mnemoscope_sink_dropped_total", pace("10m"), by=f"{ORIGIN}, sink, reason")
        + " > 0\n",
        severity="warning",
        summary="Events do not reach the {{ $labels.sink }} sink ({{ $labels.reason }})",
        description=WHOLE + " events in the last 10 minutes were dropped on their "
        "way to {{ $labels.sink }}: {{ $labels.reason }}.",
        board="self",
    )


def _behind(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeRelayBehind",
        expr=f"max by ({ORIGIN}, sink) (mnemoscope_relay_lag_seconds) > 60\n",
        wait=pace("5m"),
        severity="warning",
        summary="The relay is behind with {{ $labels.sink }}",
        description="An event has waited for {{ $labels.sink }} for {{ $value | humanizeDuration "
        "}}. Agents are not affected; events wait in files, and are lost when those are full.",
        board="self",
    )


def _silent(pace: RuleSpeed) -> Alert:
    # The applications see it where they show their own figures; else its own last sign is asked.
    last = f"max_over_time(mnemoscope_relay_beat_timestamp_seconds[{pace('1h')}])"
    return Alert(
        name="MnemoscopeRelaySilent",
        expr=f"(max by ({ORIGIN}) (mnemoscope_relay_silent_seconds) or "
        f"time() - max by ({ORIGIN}) ({last})) > 60\n",
        wait=pace("2m"),
        severity="critical",
        summary="The relay gives no sign of life",
        description="Nothing is delivered for {{ $value | humanizeDuration }}. Agents are not "
        "affected; events wait in files, and are lost when those are full.",
        board="self",
    )


def _errors(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeInternalErrors",
        expr=counted("mnemoscope_internal_errors_total", pace("15m"), by=f"{ORIGIN}, site")
        + " > 0\n",
        severity="warning",
        summary="mnemoscope's own code fails at {{ $labels.site }}",
        description=WHOLE + " errors of mnemoscope's own at {{ $labels.site }} in "
        "the last 15 minutes. None reached a caller; each lost an event or one of its fields.",
        board="self",
    )
