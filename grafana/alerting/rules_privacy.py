"""The alerts about redaction, tenancy and the audit trail."""

from __future__ import annotations

from .promql import ORIGIN, WHOLE, RuleSpeed, counted
from .rule import Alert, RuleGroup


def privacy(pace: RuleSpeed) -> RuleGroup:
    """Return the rules about redaction, tenancy and the audit trail."""
    return RuleGroup(
        name="privacy",
        rules=[
            _refused(pace),
            _tripwire(pace),
            _integrity(pace),
            _lag(pace),
            _filling(pace),
            _gap(pace),
            _stale(pace),
            _key(pace),
        ],
    )


def _refused(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeWritesRefused",
        expr=counted("mnemoscope_writes_refused_total", pace("15m"), by=f"{ORIGIN}, store")
        + " > 0\n",
        severity="warning",
        summary="Writes to {{ $labels.store }} are refused: they could not be redacted",
        description=WHOLE + " writes in the last 15 minutes were not made because "
        "the redactor failed on them. Nothing leaked; the memories were not written.",
        board="privacy",
    )


def _tripwire(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeTenantTripwire",
        expr=counted("mnemoscope_tenant_tripwire_total", pace("15m"), by=f"{ORIGIN}, store")
        + " > 0\n",
        severity="critical",
        summary="{{ $labels.store }} returned another customer's memories",
        description=WHOLE + " results in the last 15 minutes belong to another "
        "customer than the one they were requested for.",
        board="privacy",
    )


def _integrity(pace: RuleSpeed) -> Alert:
    found = 'mnemoscope_event_part_total{part="mnemoscope.integrity",measurement!="unknown"}'
    return Alert(
        name="MnemoscopeIntegrityViolation",
        expr=counted(found, pace("15m"), by=f"{ORIGIN}, measurement") + " > 0\n",
        severity="critical",
        summary="What agents read is not what was written: {{ $labels.measurement }}",
        description=WHOLE + " values that were read in the last 15 minutes are not what was "
        "written there last: {{ $labels.measurement }}.",
        board="privacy",
    )


def _lag(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeAuditLag",
        expr=f"max by ({ORIGIN}) (mnemoscope_audit_lag_seconds) > 60\n",
        wait=pace("5m"),
        severity="warning",
        summary="The audit trail is behind",
        description="The oldest event that is not in the audit trail has waited for "
        "{{ $value | humanizeDuration }}.",
        board="privacy",
    )


def _filling(pace: RuleSpeed) -> Alert:
    full = "mnemoscope_audit_spool_full_ratio"
    # What it held before it was emptied would go on for a while, as if it were filling.
    soon = f"{full} > 0 and predict_linear({full}[{pace('10m')}], {pace.seconds('1h')}) > 1"
    return Alert(
        name="MnemoscopeAuditSpoolFilling",
        expr=f"100 * max by ({ORIGIN}) ({full} > 0.5 or {soon})\n",
        wait=pace("5m"),
        severity="critical",
        summary="The audit spool will be full",
        description="The spool is " + WHOLE + " % full, and will be full within the hour if more "
        "than half of it is left. Agents are not affected; once it is full, events are lost.",
        board="privacy",
    )


def _gap(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeAuditGap",
        expr=counted("mnemoscope_audit_gap_events_total", pace("1h"), by=ORIGIN) + " > 0\n",
        severity="critical",
        summary="Events are missing from the audit trail",
        description=WHOLE + " events of the last hour are declared missing.",
        board="privacy",
    )


def _stale(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeAuditCheckpointStale",
        # 0 is a trail that was never sealed, which is not an age.
        expr=f"time() - max by ({ORIGIN}) "
        "(mnemoscope_audit_checkpoint_timestamp_seconds > 0) > 900\n",
        wait=pace("5m"),
        severity="warning",
        summary="The audit trail is not being sealed",
        description="The last signed checkpoint is {{ $value | humanizeDuration }} old. One is "
        "made every minute, with or without new events.",
        board="privacy",
    )


def _key(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeAuditKeyMissing",
        expr=f'max by ({ORIGIN}) (mnemoscope_audit_key_state{{state="missing"}}) == 1\n',
        wait=pace("2m"),
        severity="critical",
        summary="An audit key is missing",
        description="Earlier customers cannot be found by their id, and the trail cannot be "
        "sealed, until the key is restored.",
        board="privacy",
    )
