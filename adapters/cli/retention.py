"""``mnemoscope retention``: what goes by age and purpose, and what is held."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from .exit_codes import INCOMPLETE, NOBODY_KNOWN, USAGE, CommandError, say
from .options import Json, ScopeAddress, Yes, check_can_ask, confirm, needed_scope
from .output import print_answer, print_json

if TYPE_CHECKING:
    from ...memory.retention.holds import Hold
    from ...memory.retention.scoped import ScopedRetention

Most = Annotated[int, typer.Option(metavar="N", min=1, help="Remove N records at most.")]
Customer = Annotated[str | None, typer.Option(metavar="ID", help="The customer.")]
Thread = Annotated[str | None, typer.Option(metavar="ID", help="The thread.")]
Case = Annotated[
    str | None, typer.Option(metavar="NAME", help="The matter: letters, digits, - . and _.")
]
_CASE = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


def plan(scope: ScopeAddress = None, most: Most = 100_000, json: Json = False) -> None:
    """
    Show what a run would remove now, by purpose and age, and what stays and why.

    Removes nothing. What is not known (an age, a purpose, whose it is) stays.
    """
    from .retention_screen import plan_document, plan_screen

    with _opened(scope) as retention:
        found = retention.sweeper.plan(most)
    print_answer(plan_document(found), plan_screen(found), json=json)


def run(
    scope: ScopeAddress = None,
    most: Most = 100_000,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """
    Remove what is due, look whether it is gone, and record both.

    One run at a time on a machine. Killed, it is begun again and finds what is left. Exits with 3
    if something is left that is due.
    """
    from .retention_screen import plan_screen, result_document, result_screen

    check_can_ask(yes=yes)
    with _opened(scope) as retention, retention.leading():
        if not yes:
            found = retention.sweeper.plan(most)
            Console(stderr=True).print(plan_screen(found))
            confirm(f"Remove {len(found.due):,} records for good?", yes=yes)
        result = retention.sweeper.run(most)
    print_answer(result_document(result), result_screen(result), json=json)
    for line in () if json else result.remarks:
        say(line)
    raise typer.Exit(0 if result.complete else INCOMPLETE)


def hold(
    scope: ScopeAddress = None,
    customer: Customer = None,
    thread: Thread = None,
    case: Case = None,
    json: Json = False,
) -> None:
    """
    Keep all records of a customer or of a thread, whatever their age, until it is released.

    Without either, list what is held. Names are kept as keyed hashes alone.
    """
    import re

    chosen = [(kind, each) for kind, each in (("customer", customer), ("run", thread)) if each]
    if len(chosen) > 1:
        raise CommandError("pass one of --customer and --thread. Nothing was changed.", USAGE)
    if case is not None and not re.fullmatch(_CASE, case):
        raise CommandError("--case takes letters, digits, - . and _", USAGE)
    with _opened(scope) as retention:
        held = [retention.holds.add(kind, text, case=case or "") for kind, text in chosen]
        shown = held or retention.holds.active()
    _show(shown, json=json)


def pin(
    memory: Annotated[str, typer.Argument(metavar="ID", help="The memory, point or item.")],
    store: Annotated[str, typer.Option(metavar="NAME", help="Its store, as events name it.")],
    scope: ScopeAddress = None,
    json: Json = False,
) -> None:
    """Keep one memory, whatever its age, until it is released."""
    with _opened(scope) as retention:
        held = retention.holds.add("memory", memory, store=store)
    _show([held], json=json)


def release(
    scope: ScopeAddress = None,
    number: Annotated[
        str | None, typer.Option("--hold", metavar="NUMBER", help="The hold or pin.")
    ] = None,
    case: Case = None,
    json: Json = False,
) -> None:
    """
    End a hold or pin by its number, or all of a case.

    Exits with 6 if there is none.
    """
    if (number is None) == (case is None):
        raise CommandError("pass one of --hold and --case. Nothing was changed.", USAGE)
    with _opened(scope) as retention:
        ended = retention.holds.release(
            lambda each: each.number == number if number is not None else each.case == case
        )
    _show(ended, json=json)
    if not ended:
        raise typer.Exit(NOBODY_KNOWN)


def _show(holds: list[Hold], *, json: bool) -> None:
    if json:
        found: list[dict[str, Any]] = [
            {"hold": e.number, "kind": e.kind, "case": e.case, "store": e.store} for e in holds
        ]
        print_json({"holds": found})
        return
    for each in holds:
        print(f"{each.number}  {each.kind}  {each.case or each.store}".rstrip())  # noqa: T201 - the answer


@contextmanager
def _opened(scope: str | None) -> Generator[ScopedRetention]:
    from ...memory.retention.sweep import RetentionRefusedError
    from .scope import scope_at

    opened = scope_at(needed_scope(scope, "retention"))
    status = Console(stderr=True).status("opening the stores")
    with status:
        retention = opened.retention()
        retention.sweeper.tell = status.update
        try:
            yield retention
        except RetentionRefusedError as exc:
            raise CommandError(str(exc), INCOMPLETE) from exc
