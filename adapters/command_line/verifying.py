"""``mnemoscope audit verify``: what was found, in a line, and the exit code."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from ...audit.bundle import verify as bundles
from ...audit.errors import AuditError
from ...audit.log import AuditLog
from ...audit.verification.report import Kind, Verification
from ...audit.verification.whole import verify
from ...memory.front_door import open_audit
from .counting import counting
from .outcome import INCOMPLETE, LOSS, TAMPERED, USAGE, CommandError, say

CODES = {"ok": 0, Kind.TAMPERED: TAMPERED, Kind.LOSS: LOSS, Kind.UNVERIFIABLE: INCOMPLETE}
_WORDS = {
    "ok": "OK",
    Kind.TAMPERED: "TAMPERED",
    Kind.LOSS: "LOSS DECLARED",
    Kind.UNVERIFIABLE: "UNVERIFIABLE",
}
_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """What the command line was given; see `audit_verify`."""

    since: int = 0
    checkpoints: tuple[Path, ...] = ()
    with_details: bool = True
    audit_url: str | None = None
    jobs: int | None = None


def verified(options: VerifyOptions, console: Console, *, json: bool) -> int:
    """
    Verify the trail, print what was found, and return the exit code.

    Raises:
        ConfigurationError: A setting makes no sense.
        CommandError: The trail cannot be read, or there is no such event or checkpoint.
    """
    given = {"audit_url": options.audit_url} if options.audit_url else {}
    notes = [_note(path) for path in options.checkpoints]
    try:
        found = _verified(open_audit(**given), options, notes, console)
    except AuditError as exc:
        raise CommandError(" ".join(str(exc).split()), INCOMPLETE) from exc
    except ValueError as exc:
        raise CommandError(str(exc), USAGE) from exc
    if json:
        Console().print_json(data=found.as_document())
    else:
        _show(found)
    return CODES[found.state]


def _note(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as exc:
        raise CommandError(f"{path} cannot be read as a checkpoint", USAGE) from exc


def _verified(
    log: AuditLog, options: VerifyOptions, notes: list[str], console: Console
) -> Verification:
    with log.reading() as snapshot:
        events = max(0, snapshot.size - options.since)
    total = events * (2 if options.with_details else 1)
    with counting(console, "verifying", total) as progress:
        return verify(
            log,
            since=options.since,
            checkpoints=notes,
            with_details=options.with_details,
            progress=progress,
            jobs=options.jobs or _cores(),
        )


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _show(found: Verification) -> None:
    print(f"{_WORDS[found.state]}: {found.verdict()}")  # noqa: T201 - the answer, for scripts too
    for kind in (Kind.TAMPERED, Kind.UNVERIFIABLE, Kind.LOSS):
        for each in found.findings[kind][:_SHOWN]:
            say(f"{kind.value}: {each}")
        more = found.counts[kind] - _SHOWN
        if more > 0:
            say(f"{kind.value}: and {more:,} more; see --json")


def verified_bundle(path: Path, key: str | None, console: Console, *, json: bool) -> int:
    """
    Verify an export, print what was found, and return the exit code.

    Raises:
        CommandError: There is none at *path*.
    """
    if not path.exists():
        raise CommandError(f"there is no {path}", USAGE)
    with counting(console, "verifying", None) as progress:
        report = bundles.check(path, key, progress)
    if json:
        Console().print_json(data=_bundle_document(report))
        return report.code
    print(report.verdict())  # noqa: T201 - the answer, for scripts too
    if report.key:
        say(f"signed by {report.key}")
    return report.code


def _bundle_document(report: bundles.Report) -> dict[str, Any]:
    return {
        "verdict": report.verdict(),
        "code": report.code,
        "problem": report.problem,
        "key": report.key or None,
        "files": report.files,
        "events": report.events,
        "withheld": report.withheld,
        "log_size": report.size,
        "complete": report.complete,
        "loss": report.losses,
    }
