"""The dashboard Privacy and audit: redaction, tenancy and the audit trail."""

from __future__ import annotations

from boards import JOB, STORE, Board, Row
from panels import BAD, GOOD, ODD, About, AnyPanel, Query, figure, lines, timeline

from mnemoscope.alerting.promql import counted


def privacy() -> Board:
    """Return the dashboard for those responsible for personal data."""
    return Board(
        name="privacy",
        title="Privacy and audit",
        about="What was redacted, refused and given to the wrong customer, and whether the audit "
        "trail is whole.",
        since="now-6h",
        rows=(
            Row(title="Is personal data kept out?", panels=_redaction()),
            Row(title="Is the audit trail up to date?", panels=_trail()),
            Row(title="Can it be proved?", panels=_proof()),
        ),
    )


def _redaction() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Redactions by entity",
                shows="Personal data replaced before the store, per second, by entity.",
                act="an entity that disappears means a missing recognizer or model: run "
                "`mnemoscope doctor`. A new entity means a new source of personal data.",
                unit="ops",
            ),
            Query(
                expr="sum by (entity) "
                f"(rate(mnemoscope_redactions_total{{{JOB}}}[$__rate_interval]))",
                legend="{{entity}}",
            ),
            stacked=True,
        ),
        lines(
            About(
                title="Writes refused",
                shows="Writes in the last 15 minutes that could not be redacted and were not made.",
                act="the redactor does not know a type, or fails: the log line has the error's "
                "type. Nothing leaked; the memories were not written.",
                unit="short",
                steps={1: BAD},
            ),
            Query(
                expr=counted(f"mnemoscope_writes_refused_total{{{STORE}}}", "15m", by="store"),
                legend="{{store}}",
            ),
        ),
        lines(
            About(
                title="Tenancy tripwire",
                shows="Results in the last 15 minutes that belong to another customer than the "
                "one they were requested for.",
                act="treat it as an incident: find the operation in the audit trail, stop that "
                "agent, set MNEMOSCOPE_TENANCY=enforce.",
                unit="short",
                steps={1: BAD},
            ),
            Query(
                expr=counted(f"mnemoscope_tenant_tripwire_total{{{STORE}}}", "15m", by="store"),
                legend="{{store}}",
            ),
        ),
        lines(
            About(
                title="Integrity of what is read",
                shows="Values in the last 15 minutes that are not what was written there last, by "
                "kind; unknown: they could not be compared. Nothing, without "
                "MNEMOSCOPE_INTEGRITY.",
                act="treat all but unknown as an incident: find the reads in the audit trail, and "
                "who can write to that store. A restored backup is older.",
                unit="short",
                steps={1: ODD},
            ),
            Query(
                expr=counted(
                    f'mnemoscope_event_part_total{{{JOB},part="mnemoscope.integrity"}}',
                    "15m",
                    by="measurement",
                ),
                legend="{{measurement}}",
            ),
        ),
        lines(
            About(
                title="Spans of other libraries",
                shows="Spans that went through `scope.redacting_exporter`, per second: clean, "
                "masked, with a value that could not be redacted, or refused.",
                act="failed and refused spans are those that the redactor could not read: nothing "
                "of them left. The log line has the error's type.",
                unit="ops",
            ),
            Query(
                expr="sum by (outcome) "
                f"(rate(mnemoscope_redacted_spans_total{{{JOB}}}[$__rate_interval]))",
                legend="{{outcome}}",
            ),
            stacked=True,
        ),
    )


def _trail() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Audit lag",
                shows="Age of the oldest event that is not in the audit trail yet.",
                act="the audit database is slow or down: events wait on disk and are not lost. "
                "Look at the spool.",
                unit="s",
                span=6,
                steps={60: ODD, 600: BAD},
            ),
            Query(expr=f"max by (job) (mnemoscope_audit_lag_seconds{{{JOB}}})", legend="{{job}}"),
        ),
        lines(
            About(
                title="Spool: events",
                shows="Events that wait on disk for the audit trail.",
                act="while it only grows, nothing reaches the trail: repair the database.",
                unit="short",
                span=4,
            ),
            Query(expr=f"sum by (job) (mnemoscope_audit_spool_events{{{JOB}}})", legend="{{job}}"),
        ),
        lines(
            About(
                title="Spool: size",
                shows="Size of the spool's files.",
                act="check that the disk has space until the database is back.",
                unit="bytes",
                span=4,
            ),
            Query(expr=f"sum by (job) (mnemoscope_audit_spool_bytes{{{JOB}}})", legend="{{job}}"),
        ),
        lines(
            About(
                title="Spool: how full",
                shows="The fullest file of the spool, as a share of what it may hold. At 100 % "
                "events are lost.",
                act="repair the database before it is full, or raise "
                "MNEMOSCOPE_AUDIT_SPOOL_MAX_BYTES.",
                unit="percentunit",
                span=4,
                steps={0.25: ODD, 0.5: BAD},
            ),
            Query(
                expr=f"max by (job) (mnemoscope_audit_spool_full_ratio{{{JOB}}})", legend="{{job}}"
            ),
        ),
        lines(
            About(
                title="Events recorded",
                shows="Events per second that reached the trail.",
                act="compare with operations: the trail must keep up with them.",
                unit="ops",
                span=6,
            ),
            Query(
                expr="sum by (job) "
                f"(rate(mnemoscope_audit_events_total{{{JOB}}}[$__rate_interval]))",
                legend="{{job}}",
            ),
        ),
    )


def _proof() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Events missing",
                shows="Events in the last hour that are declared missing from the trail.",
                act="`mnemoscope audit verify` lists the writers, numbers and reasons. "
                "An export of that time says that it is incomplete.",
                unit="short",
                span=6,
                steps={1: BAD},
            ),
            Query(
                expr=counted(f"mnemoscope_audit_gap_events_total{{{JOB}}}", "1h", by="job"),
                legend="{{job}}",
            ),
        ),
        lines(
            About(
                title="Age of the signed checkpoint",
                shows="Time since the trail's tree was last signed. It is signed every minute, "
                "with or without new events.",
                act="events after the checkpoint are not sealed yet: check the key in the next "
                "panels, and the process that signs.",
                unit="s",
                span=6,
                steps={300: ODD, 900: BAD},
            ),
            Query(
                expr="time() - max by (job) "
                f"(mnemoscope_audit_checkpoint_timestamp_seconds{{{JOB}}} > 0)",
                legend="{{job}}",
            ),
        ),
        figure(
            About(
                title="Sealed events",
                shows="Size of the trail's Merkle tree. It never shrinks.",
                act="a smaller size means another database or a restored copy: verify against "
                "the last checkpoint that you keep.",
                unit="short",
                span=4,
            ),
            Query(expr=f"max by (job) (mnemoscope_audit_tree_size{{{JOB}}})", legend="{{job}}"),
        ),
        timeline(
            About(
                title="Keys",
                shows="Whether the audit keys are the ones you keep (ok), were made on first use "
                "(generated), or are missing.",
                act="generated: copy the key to a safe place. Missing: earlier pseudonyms cannot "
                "be matched; restore the key before you export or erase a customer.",
                unit="none",
                span=8,
            ),
            Query(
                expr=f'max by (job) (mnemoscope_audit_key_state{{{JOB},state="missing"}} * 2 '
                f'or mnemoscope_audit_key_state{{{JOB},state="generated"}} '
                f'or mnemoscope_audit_key_state{{{JOB},state="ok"}} * 0)',
                legend="{{job}}",
            ),
            {0: ("ok", GOOD), 1: ("generated", ODD), 2: ("missing", BAD)},
        ),
    )
