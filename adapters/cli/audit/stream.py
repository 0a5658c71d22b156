"""``mnemoscope audit stream``."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from ..exit_codes import INCOMPLETE, LOSS, TAMPERED, USAGE, CommandError, say
from ..options import AuditUrl, Json
from ..progress import progress_bar

if TYPE_CHECKING:
    from ....audit.log import AuditLog
    from ....audit.stream import Shipped

_LOOK_EVERY_S, _TRY_AGAIN_S = 1, 5


def stream(
    to: Annotated[str, typer.Option(metavar="URL", help="kafka://, clickhouse:// or file://")],
    follow: Annotated[bool, typer.Option("--follow", help="Go on as the trail grows.")] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Send the encrypted details, too.")
    ] = False,
    audit_url: AuditUrl = None,
    json: Json = False,
) -> None:
    """
    Copy the audit trail elsewhere, with what it takes to verify the copy there.

    Goes on where the copy ends. Exits with 0 if all of it is there, 1 if the trail was put back or
    misses events, 2 if some were set aside or removed before they could be sent, 3 if the trail or
    the target cannot be reached, 4 for wrong usage.
    """
    from ....audit.database.errors import AuditError, TamperedError
    from ..scope import open_trail

    log = open_trail(audit_url, needs_key=False)
    with progress_bar(Console(stderr=True), "sending", None) as advance:
        while True:
            try:
                done = _ship(log, to, advance, follow=follow, details=details)
                break
            except TamperedError as exc:
                raise CommandError(f"TAMPERED: {exc.what}", TAMPERED) from exc
            except ValueError as exc:
                raise CommandError(str(exc), USAGE) from exc
            except AuditError as exc:
                if not follow:
                    raise CommandError(" ".join(str(exc).split()), INCOMPLETE) from exc
                say(f"{exc}: tried again in {_TRY_AGAIN_S} s")
                time.sleep(_TRY_AGAIN_S)
    if json:
        Console().print_json(data=done._asdict())
    else:
        print(f"copied: {done.at:,} events")  # noqa: T201 - the answer, for scripts too
    if done.removed:
        say(f"not in the copy: {done.removed:,} events that retention had removed before")
    if done.set_aside:
        say(f"set aside: {done.set_aside:,} events that do not fit the schema")
    raise typer.Exit(LOSS if done.set_aside or done.removed else 0)


def _ship(
    log: AuditLog, to: str, advance: Callable[[int], object], *, follow: bool, details: bool
) -> Shipped:
    from ....audit.stream import open_target, ship

    with closing(open_target(to)) as target:
        at = 0
        for done in ship(log, target, with_details=details):
            advance(done.at - at)
            at = done.at
            if at < done.size:
                continue
            if not follow:
                return done
            time.sleep(_LOOK_EVERY_S)
    raise AssertionError
