"""``mnemoscope audit verify``."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from ....audit.verification.report import FindingKind, Verification
from ..exit_codes import INCOMPLETE, LOSS, TAMPERED, USAGE, CommandError, say
from ..options import AuditUrl, Json, Roots
from ..output import fields, minute, print_json
from ..progress import progress_bar

if TYPE_CHECKING:
    from ....audit.log import AuditLog

_CODES = {
    "ok": 0,
    "empty": 0,
    FindingKind.TAMPERED: TAMPERED,
    FindingKind.LOSS: LOSS,
    FindingKind.UNVERIFIABLE: INCOMPLETE,
}
_WORDS = {
    "ok": "OK",
    "empty": "EMPTY",
    FindingKind.TAMPERED: "TAMPERED",
    FindingKind.LOSS: "LOSS DECLARED",
    FindingKind.UNVERIFIABLE: "UNVERIFIABLE",
}
_SHOWN = 10
"""Findings of one kind that are printed; ``--json`` has all that are kept."""


def verify(
    from_event: Annotated[
        int, typer.Option(metavar="N", min=0, help="Check only events from number N on.")
    ] = 0,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A checkpoint kept elsewhere. May be repeated."),
    ] = None,
    roots: Roots = None,
    headers_only: Annotated[
        bool, typer.Option("--headers-only", help="Skip the encrypted details: faster.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes. Default: one per core.")
    ] = None,
    bundle: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Check an export instead: a zip file or its folder."),
    ] = None,
    copy: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="Check a copy instead: see `audit stream`."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="With --bundle or --from: the key that signed it."),
    ] = None,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Check every hash and signature of the audit trail, or of an export or copy of it.

    Exits with 0 if all of it holds, 1 if something was changed, 2 if events were lost and the log
    declares it, 3 if something cannot be verified or there is no trail, 4 for wrong usage.
    """
    if bundle is not None:
        if from_event or checkpoint or headers_only or audit_url or jobs or copy:
            raise CommandError("--bundle takes no other option than --key and --json", USAGE)
        raise typer.Exit(_verify_bundle(bundle, key, json=json))
    if copy is None and key is not None:
        raise CommandError("--key needs --bundle or --from", USAGE)
    if copy is not None and (from_event or headers_only or audit_url or jobs):
        raise CommandError("--from takes --key, --checkpoint and --json alone", USAGE)
    from ....audit.database.errors import AuditError, TamperedError
    from ..scope import open_trail

    how: dict[str, Any] = {
        "since": from_event,
        "checkpoints": [_checkpoint(path) for path in checkpoint or ()],
        "with_details": not headers_only,
        "jobs": jobs or _cores(),
    }
    try:
        log = None if copy is not None else open_trail(audit_url, needs_key=False)
        if log is not None and len(log.shards) > 1:
            raise typer.Exit(_verify_shards(log, how, roots, json=json))
        found = (
            _verify_copy(str(copy), key, how["checkpoints"])
            if log is None
            else _verify_trail(log, **how)
        )
    except TamperedError as exc:
        found = Verification()
        found.tampered(exc.what)
    except AuditError as exc:
        raise CommandError(" ".join(str(exc).split()), INCOMPLETE) from exc
    except ValueError as exc:
        raise CommandError(str(exc), USAGE) from exc
    _check_stamps(how["checkpoints"], roots, found)
    if json:
        print_json(found.as_document())
    else:
        _show(found)
    raise typer.Exit(_CODES[found.state])


def _check_stamps(notes: list[str], roots: Path | None, found: Verification) -> None:
    from ....audit.timestamps import check_stamps

    try:
        check_stamps(notes, b"" if roots is None else roots.read_bytes(), found)
    except (OSError, ValueError) as exc:
        raise CommandError(f"{roots} is not a file with certificates, PEM", USAGE) from exc


def _verify_shards(trail: AuditLog, how: dict[str, Any], roots: Path | None, *, json: bool) -> int:
    """Verify all shards, and return the gravest code."""
    from ....audit.shards.verification import verify_shards

    reports, notes = verify_shards(trail, **how)
    _check_stamps(how["checkpoints"], roots, reports[0])
    if json:
        shards = [each.as_document() for each in reports]
        print_json({"shards": shards, "checkpoints_over_shards": notes})
    for number, each in enumerate(() if json else reports):
        print(f"shard {number}: ", end="")  # noqa: T201 - the answer, for scripts too
        _show(each)
    say(f"{notes:,} checkpoints over all shards")
    kinds = (FindingKind.TAMPERED, FindingKind.UNVERIFIABLE, FindingKind.LOSS)
    return next((_CODES[each] for each in kinds if any(one.counts[each] for one in reports)), 0)


def _checkpoint(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as exc:
        raise CommandError(f"{path} cannot be read as a checkpoint", USAGE) from exc


def _verify_trail(
    log: AuditLog, *, since: int, checkpoints: list[str], with_details: bool, jobs: int
) -> Verification:
    from ....audit.verification.whole import verify as verify_log

    with log.reading(as_it_is=True) as snapshot:
        events = max(0, snapshot.size - since)
    # Hashes, and then details: each event is counted twice.
    total = events * (2 if with_details else 1)
    reasons: list[str] = []
    with progress_bar(Console(stderr=True), "verifying", total) as advance:
        found = verify_log(
            log,
            since=since,
            checkpoints=checkpoints,
            with_details=with_details,
            progress=advance,
            jobs=jobs,
            said=reasons.append,
        )
    for each in reasons:
        _tell(each)
    return found


def _verify_copy(url: str, key: str | None, checkpoints: list[str]) -> Verification:
    from ....audit.stream import open_copy, verify_copy

    with progress_bar(Console(stderr=True), "reading", None) as advance:
        now_us = time.time_ns() // 1_000
        return verify_copy(
            open_copy(url), now_us, key=key, checkpoints=checkpoints, progress=advance
        )


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        # Fewer than the machine has, in a container or under `taskset`.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _show(found: Verification) -> None:
    print(f"{_WORDS[found.state]}: {found.verdict()}")  # noqa: T201 - the answer, for scripts too
    for kind in (FindingKind.TAMPERED, FindingKind.UNVERIFIABLE, FindingKind.LOSS):
        for each in found.findings[kind][:_SHOWN]:
            _tell(f"{kind.value}: {each}")
        more = found.counts[kind] - _SHOWN
        if more > 0:
            _tell(f"{kind.value}: and {more:,} more; see --json")
    for removal in found.removals[-_SHOWN:]:
        say(_removed(removal))
    if len(found.removals) > _SHOWN:
        say(f"removed: {len(found.removals) - _SHOWN:,} times more before; see --json")
    for each in found.covered_less:
        say(f"covered less: {each}")
    for each in found.stamped:
        say(f"stamped: {each}")
    # With every answer: "OK" is read as more than was checked.
    for each in found.not_covered:
        say(f"not covered: {each}")


def _tell(line: str) -> None:
    """Print *line* on standard error, broken between words where a person reads it."""
    error = Console(stderr=True, highlight=False)
    error.print(line, markup=False, soft_wrap=not error.is_terminal)


def _removed(removal: dict[str, Any]) -> str:
    at = f"{minute(removal['recorded_us'])} UTC"
    what = f"{removal['details']:,} details"
    if removal["events"]:
        what = f"{removal['events']:,} events with {what}"
    if "kept_days" in removal:
        what = f"{what}, kept {removal['kept_days']:,} days ({removal['reason']})"
    by = f"{removal['name']}, event {removal['seq']:,}"
    return f"removed: {what}, {at}, by process {removal['writer']} ({by})"


def _verify_bundle(path: Path, key: str | None, *, json: bool) -> int:
    from ....audit.bundle.verify import check

    if not path.exists():
        raise CommandError(f"there is no {path}", USAGE)
    with progress_bar(Console(stderr=True), "verifying", None) as advance:
        report = check(path, key, advance)
    if json:
        document = fields(report, "code problem files events withheld complete")
        more = {"key": report.key or None, "log_size": report.size, "loss": report.losses}
        print_json({"verdict": report.verdict(), **document, **more})
        return report.code
    print(report.verdict())  # noqa: T201 - the answer, for scripts too
    if report.key:
        say(f"signed by {report.key}")
    return report.code
