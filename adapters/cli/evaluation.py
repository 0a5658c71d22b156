"""``mnemoscope evaluation``: sets of recalls that a human has approved."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .exit_codes import INCOMPLETE, USAGE, CommandError, say
from .options import AuditUrl, MostRecalls, Since
from .recorded_recalls import PURPOSE, recorded_recalls
from .times import time_us
from .written import write_files

if TYPE_CHECKING:
    from ...audit.log import AuditLog
    from ...memory.golden_recall import GoldenCase, ReviewSeals

File = Annotated[Path, typer.Argument(metavar="FILE", help="The set, one recall a line.")]
NONE_APPROVED = "a human has not approved it as it is"


class _Choice(StrEnum):
    """A reviewer's answer about one recall."""

    APPROVE = "y"
    REJECT = "n"
    SKIP = "s"
    QUIT = "q"


def collect(
    file: File,
    since: Since = "24h",
    most: MostRecalls = 1_000,
    audit_url: AuditUrl = None,
) -> None:
    """
    Write recalls of the audit trail into a file, for a human to review.

    They are redacted as they were stored. A file that is there gets those that it lacks, and keeps
    its reviews. Exits with 3 if there is none.
    """
    from .scope import open_trail

    log = open_trail(audit_url)
    found, left_out = recorded_recalls(
        log, time_us(since, "--since", time.time_ns() // 1_000), most
    )
    known = {each.id: each for each in _read(file)} if file.exists() else {}
    # What is in the file wins: it may have a review, and ids of what is relevant.
    _write(file, ({each.id: each for each in found} | known).values())
    for why, count in left_out.most_common():
        say(f"not in it: {count:,}: {why}")
    new = len({each.id for each in found} - known.keys())
    typer.echo(f"wrote {file}: {len(known) + new:,} recalls, {new:,} of them new")
    raise typer.Exit(0 if found or known else INCOMPLETE)


def review(
    file: File,
    by: Annotated[
        str, typer.Option("--approved-by", metavar="WHO", help="The reviewer, for the file.")
    ],
    audit_url: AuditUrl = None,
) -> None:
    """
    Show each recall that is not reviewed, and approve or reject it.

    Needs a terminal, and the key of the audit trail: a review is sealed, and a recall that was
    changed after it counts no more. The trail, if there is one, has an event of each session.
    """
    from ...telemetry.text import json_text
    from .scope import open_trail

    if not sys.stdin.isatty():
        raise CommandError("there is no terminal to ask. Nothing was reviewed.", USAGE)
    log = open_trail(audit_url)
    seals, cases = _seals(log), {each.id: each for each in _read(file)}
    waiting = [each for each in cases.values() if each.review is None]
    made: Counter[_Choice] = Counter()
    for number, case in enumerate(waiting, 1):
        typer.echo(f"\n{number} of {len(waiting)}: {case.id}, {case.store} {case.method}")
        typer.echo(json_text(case.content))
        for rank, memory_id in enumerate(case.found, 1):
            typer.echo(f"  {rank:>3} {memory_id}")
        choice = _asked()
        if choice is _Choice.QUIT:
            break
        made[choice] += 1
        if choice is not _Choice.SKIP:
            at = datetime.now(UTC).isoformat(timespec="seconds")
            approved = choice is _Choice.APPROVE
            cases[case.id] = seals.reviewed(case, approved=approved, by=by, at=at)
            # After each: a reviewer who is interrupted has not worked in vain.
            _write(file, cases.values())
    taken, refused = made[_Choice.APPROVE], made[_Choice.REJECT]
    if taken or refused:
        _note(log, file, taken, refused)
    left = len(waiting) - taken - refused
    typer.echo(f"approved {taken:,}, rejected {refused:,}, left {left:,}")


def export(
    file: File,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write them.")],
    k: Annotated[int, typer.Option("--k", metavar="N", min=1, help="N memories count.")] = 10,
    audit_url: AuditUrl = None,
) -> None:
    """
    Write the approved recalls of a set as TREC's qrels and run, and BEIR's queries.

    Exits with 3 if none is approved.
    """
    from ...memory.golden_recall import trec_files
    from ...telemetry.files.permissions import create_private
    from .scope import open_trail

    cases, left_out = approved_cases(open_trail(audit_url), file)
    for why, count in left_out.items():
        say(f"left out: {count:,}: {why}")
    if not cases:
        raise typer.Exit(INCOMPLETE)
    files = trec_files(cases, k)
    for name in files:
        # Queries are content: their owner's alone to read, as the set is.
        create_private(folder / name)
    write_files(folder, files)


def approved_cases(log: AuditLog, file: Path) -> tuple[list[GoldenCase], Counter[str]]:
    """
    Return the approved cases in a file, and the number of others by why.

    Raises:
        CommandError: It is no such file.
        OSError: It cannot be read.
    """
    seals, cases = _seals(log), _read(file)
    approved = [each for each in cases if seals.counts(each)]
    rejected = sum(each.review is not None and not each.review.approved for each in cases)
    others = {
        "a human has rejected it": rejected,
        NONE_APPROVED: len(cases) - len(approved) - rejected,
    }
    return approved, Counter({why: count for why, count in others.items() if count})


def _asked() -> _Choice:
    while True:
        text = typer.prompt("does this answer count: (y)es, (n)o, (s)kip or (q)uit", default="s")
        if text in tuple(_Choice):
            return _Choice(text)


def _note(log: AuditLog, file: Path, approved: int, rejected: int) -> None:
    """Record a session of reviews: how many, and the hash of the file as it is now."""
    digest = sha256(file.read_bytes()).hexdigest()
    said = {"approved": approved, "rejected": rejected, "set_sha256": digest}
    seq = log.append_log_event("evaluation.reviewed", said)
    say(f"event {seq} of the audit trail")


def _seals(log: AuditLog) -> ReviewSeals:
    from ...memory.golden_recall import ReviewSeals

    return ReviewSeals(log.ring.current.key(PURPOSE))


def _read(file: Path) -> list[GoldenCase]:
    from ...memory.golden_recall import CaseFileError, read_cases

    try:
        return read_cases(file)
    except CaseFileError as exc:
        raise CommandError(f"{file}: {exc}") from None


def _write(file: Path, cases: Iterable[GoldenCase]) -> None:
    from ...memory.golden_recall import case_lines
    from ...telemetry.files.permissions import create_private

    # Beside it first: a review that was made is not lost with the next one.
    written = file.with_name(f"{file.name}.new")
    create_private(written)
    written.write_text("".join(case_lines(cases)), encoding="utf-8")
    written.replace(file)
