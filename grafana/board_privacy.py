"""Privacy and audit: what was kept from whom, and can it be proved?"""

from __future__ import annotations

from boards import JOB, STORE, Board, Row
from panels import BAD, GOOD, ODD, About, AnyPanel, Query, figure, lines, timeline
from promql import counted


def privacy() -> Board:
    """Return the dashboard for whoever answers for people's data."""
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
                shows="Pieces of personal data replaced before the store, a second, by kind.",
                act="a kind that vanishes is a recognizer or a model that is gone: run "
                "`mnemoscope doctor`. A new kind is a source that nobody told you of.",
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
                act="a type that the redactor does not know, or a redactor that fails: the log "
                "line has the type of the error. Nothing leaked; something was not remembered.",
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
                shows="Results in the last 15 minutes that belong to somebody other than the "
                "customer they were asked for.",
                act="treat it as an incident: find the operation in the audit trail, stop the "
                "agent that asked, set MNEMOSCOPE_TENANCY=enforce.",
                unit="short",
                steps={1: BAD},
            ),
            Query(
                expr=counted(f"mnemoscope_tenant_tripwire_total{{{STORE}}}", "15m", by="store"),
                legend="{{store}}",
            ),
        ),
    )


def _trail() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Audit lag",
                shows="Age of the oldest event that is not in the audit trail yet.",
                act="the audit database is slow or away: events wait on disk and are not lost. "
                "Look at the spool beside.",
                unit="s",
                steps={60: ODD, 600: BAD},
            ),
            Query(expr=f"max by (job) (mnemoscope_audit_lag_seconds{{{JOB}}})", legend="{{job}}"),
        ),
        lines(
            About(
                title="Spool: events",
                shows="Events that wait on disk for the audit trail.",
                act="as long as it only grows nothing reaches the trail: mend the database.",
                unit="short",
                span=4,
            ),
            Query(expr=f"sum by (job) (mnemoscope_audit_spool_events{{{JOB}}})", legend="{{job}}"),
        ),
        lines(
            About(
                title="Spool: size",
                shows="Size of the files they wait in.",
                act="see that the disk has room until the database is back.",
                unit="bytes",
                span=4,
            ),
            Query(expr=f"sum by (job) (mnemoscope_audit_spool_bytes{{{JOB}}})", legend="{{job}}"),
        ),
        lines(
            About(
                title="Events recorded",
                shows="Events a second that reached the trail.",
                act="compare with operations: the trail must keep up with them.",
                unit="ops",
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
                act="`mnemoscope audit verify` says which writer, which numbers, and why. "
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
                "events or not.",
                act="what is newer than the checkpoint is not sealed yet: look at the key beside, "
                "and at the process that signs.",
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
                act="smaller than before is another database, or one that was put back: verify "
                "against the last checkpoint that you hold.",
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
                act="generated: copy the key somewhere safe. Missing: pseudonyms of the past "
                "cannot be matched; put the key back before anybody is exported or erased.",
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
