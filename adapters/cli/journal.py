"""``mnemoscope journal``: writes waiting for a store, parked writes, and their fate."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ...memory.errors import ConfigurationError
from .exit_codes import INCOMPLETE, USAGE, CommandError, say
from .options import Json, Limit
from .output import print_answer, print_json

if TYPE_CHECKING:
    from ...memory.journal.inspection import Inspection, KeptWrite, WriteSelection

Journal = Annotated[
    Path | None,
    typer.Option("--journal", metavar="FILE", help="The journal. Default: MNEMOSCOPE_JOURNAL."),
]
DatabaseName = Annotated[
    str | None,
    typer.Option("--database", metavar="NAME", help="Only writes for this one, as list names it."),
]
Seqs = Annotated[
    list[int] | None, typer.Argument(metavar="SEQ", help="Their places, as list has them.")
]
AllParked = Annotated[
    bool, typer.Option("--all-parked", help="Instead: all writes that were set aside.")
]


def list_(
    database: DatabaseName = None,
    parked: Annotated[
        bool, typer.Option("--parked", help="Only writes that were set aside.")
    ] = False,
    limit: Limit = 20,
    path: Journal = None,
    json: Json = False,
) -> None:
    """
    List what waits for each database, and what was set aside and why.

    In doubt: the store may have taken it already. Shadowed: a deletion since may have covered it.
    The first of each database are shown, without content. Sets aside what belonged to a process
    that has ended, in memory.
    """
    from .journal_screen import Listing, list_document, list_screen

    found = _inspected(path)
    with Console(stderr=True).status("reading the journal"):
        totals = found.totals(database)
        writes = [
            write
            for each in totals
            for write in found.writes(database=each.database, parked=parked, limit=limit)
        ]
    listing = Listing(
        path=str(found.path), totals=totals, writes=writes, parked=parked, now_ns=time.time_ns()
    )
    print_answer(list_document(listing), list_screen(listing), json=json)


def show(
    seq: Annotated[int, typer.Argument(metavar="SEQ", help="Its place, as list has it.")],
    path: Journal = None,
    json: Json = False,
) -> None:
    """
    Show one write whole, with its arguments, redacted, as they are stored.

    Needs the key of the application: MNEMOSCOPE_AUDIT_PSEUDONYM_KEY or its file.
    """
    from .journal_screen import show_document, show_screen

    write = _inspected(path).write(seq)
    # Listed all the same: that it waits is no secret, and somebody has to decide what becomes of
    # it.
    if write.write is None:
        raise CommandError(
            f"write {seq} cannot be opened: it is damaged, or was sealed under another key than "
            "that of the settings; pass the application's, as MNEMOSCOPE_AUDIT_PSEUDONYM_KEY"
        )
    if json:
        Console().print_json(data=show_document(write), ensure_ascii=True)
    else:
        Console().print(show_screen(write))


def retry(
    seqs: Seqs = None,
    all_parked: AllParked = False,
    database: DatabaseName = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also those that a deletion since may have covered.")
    ] = False,
    path: Journal = None,
    json: Json = False,
) -> None:
    """
    Have writes that were set aside wait again, at their places in the order.

    Applications make them again by themselves. One gives way to a later write of its record, as
    far as that is known, and else overwrites it. Exits with 3 if one was left as it is, and says
    why.
    """
    from .journal_screen import change_lines, document, refusal_lines

    choice = _choice(seqs, database, all_parked=all_parked)
    outcome = _inspected(path).retry(choice, force=force)
    if json:
        refused = [{**document(each.write), "reason": each.reason} for each in outcome.refused]
        waiting = [document(each) for each in outcome.writes]
        print_json({"retried": waiting, "refused": refused})
    else:
        _tell(change_lines("waits again:", outcome.writes))
        for line in refusal_lines(outcome.refused):
            say(line)
    raise typer.Exit(INCOMPLETE if outcome.refused else 0)


def drop(
    seqs: Seqs = None,
    all_parked: AllParked = False,
    database: DatabaseName = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do drop more than one.")] = False,
    path: Journal = None,
    json: Json = False,
) -> None:
    """
    Delete writes from the journal for good.

    No store will have them. It cannot be undone.

    What was dropped is printed, and a line of MNEMOSCOPE_LOG_FILE tells of it, else one on standard
    error; there is no event of it.
    """
    from .journal_screen import change_lines, document

    choice = _choice(seqs, database, all_parked=all_parked)
    # One is named by its place; of several nobody knows each.
    if not yes and (all_parked or len(choice.seqs) > 1):
        raise CommandError("pass --yes to drop more than one write. Nothing was changed.", USAGE)
    found = _inspected(path)
    dropped = found.drop(choice)
    if json:
        print_json({"dropped": [document(each) for each in dropped]})
    else:
        _tell(change_lines("dropped", dropped))
    if dropped:
        _log(found.path, dropped)


def _choice(seqs: list[int] | None, database: str | None, *, all_parked: bool) -> WriteSelection:
    # Neither would be everything that waits, and both leave open which is meant.
    if bool(seqs) == all_parked:
        raise ConfigurationError("pass the places of writes, or --all-parked")
    from ...memory.journal.inspection import WriteSelection

    return WriteSelection(seqs=tuple(seqs or ()), all_parked=all_parked, database=database)


def _tell(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)  # noqa: T201 - the answer, for scripts too


def _log(journal_path: Path, dropped: Sequence[KeptWrite]) -> None:
    """Tell of what was *dropped* where the application's events are told."""
    from ...memory.settings import load_settings
    from ...telemetry.logs.file import LogFile
    from ...telemetry.text import json_text, utc_text

    seqs = [each.seq for each in dropped]
    message = f"{len(seqs):,} dropped by hand from the journal {journal_path}"
    line = {
        "time": utc_text(time.time_ns() // 1_000),
        "level": "WARNING",
        "message": message,
        "seqs": seqs,
    }
    settings = load_settings()
    path = settings.log_file
    # A file of OCSF events is read by what knows those alone, and this is no event.
    if path is None or settings.log_format != "json":
        say(message)
        return
    # As the application writes it: under the file's lock, with its mode, and moved aside when full.
    file = LogFile(path, most_bytes=settings.log_file_bytes, kept=settings.log_files_kept)
    try:
        file.append(json_text(line) + "\n")
    except OSError as exc:
        say(f"{message}; {path} could not be told: {(exc.strerror or '').lower()}")


def _inspected(path: Path | None) -> Inspection:
    """Return a look at the journal at *path*, or the configured one."""
    from ...memory.building.opening import configured_keys
    from ...memory.journal.inspection import Inspection
    from ...memory.settings import load_settings

    settings = load_settings()
    chosen = path or settings.journal
    if chosen is None:
        raise ConfigurationError(
            "MNEMOSCOPE_JOURNAL is not set, so no write is kept: set it as the application has it, "
            "or pass --journal FILE"
        )
    keys = configured_keys(settings)
    return Inspection(chosen, key=None if keys is None else keys.key("journal"))
