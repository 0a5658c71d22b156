"""Whose data a command is about: the options that name a person, and what is said of who it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..customer_requests.who import named, who_lines
from .exit_codes import say

if TYPE_CHECKING:
    from ...audit.database.errors import AmbiguousSubjectError, UnknownSubjectError
    from ...audit.store.person_lookup import CustomerQuery, Person
    from ...telemetry.event.spelling import Identity

Also = Annotated[
    list[str] | None,
    typer.Option(metavar="ID", help="Another id of the same person. May be repeated."),
]
AnyOfThem = Annotated[
    bool,
    typer.Option(
        "--any",
        help="All of that id are one person: in any case, space or Unicode form, as it was pasted, "
        "and without --tenant in any tenant.",
    ),
]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="The person has no other ids: leave other spellings out."),
]
OwnStores = Annotated[
    bool,
    typer.Option("--own-stores", help="The scope's stores have this tenant's customers alone."),
]

IncludingShared = Annotated[
    bool,
    typer.Option("--including-shared", help="Include threads that another customer wrote in, too."),
]

_MOST = 20
"""People that are listed."""


def query_of(
    customer: str,
    tenant: str | None,
    *,
    also: list[str] | None,
    any_of_them: bool,
    exact: bool,
    own_stores: bool = False,
) -> CustomerQuery:
    """Return the question for a person that these options ask."""
    from ...audit.store.person_lookup import CustomerQuery, OtherSpellings

    others = OtherSpellings.INCLUDE if any_of_them else OtherSpellings.ASK
    return CustomerQuery(
        customer=customer,
        tenant=tenant,
        also=tuple(also or ()),
        all_tenants=any_of_them and tenant is None,
        spellings=OtherSpellings.LEAVE_OUT if exact else others,
        own_stores=own_stores,
    )


def say_who(query: CustomerQuery, person: Person) -> None:
    """Say who was found, a line each."""
    for line in who_lines(query, person):
        say(line)


def as_document(query: CustomerQuery, person: Person) -> dict[str, Any]:
    """Return who was found, for ``--json``."""
    others = [each for each in person.identities if each.customer not in query.names]
    return {
        "tenants": [each or None for each in person.tenants] if person.is_logged else [],
        "in_log": person.is_logged,
        "other_spellings": [each.customer for each in others],
        "shared_with": [each or None for each in person.shared_with],
        "doubts": list(person.doubts),
    }


def unknown_lines(exc: UnknownSubjectError) -> Iterator[str]:
    """Yield what is known instead, a line each, for whoever asked."""
    if exc.others:
        yield "known under other spellings or tenants:"
        yield from _people(exc.others)
        yield "repeat the command with that id or tenant, or with --any"
    yield from exc.doubts


def ambiguous_lines(exc: AmbiguousSubjectError) -> Iterator[str]:
    """Yield who is known, a line each, for whoever asked."""
    yield from _people(exc.found)
    if len({each.tenant for each in exc.found}) > 1:
        yield (
            "pass --tenant NAME for one of them (--tenant '' for no tenant), or --any if they are "
            "one person"
        )
    if any(each.customer != exc.asked for each in exc.found):
        yield "pass --any if they are one person, or --exact if they are not"


def _people(found: tuple[Identity, ...]) -> Iterator[str]:
    for each in found[:_MOST]:
        # With its quotes, space around an id is seen.
        yield f"  {named(each.tenant)}: {each.customer!r}"
    if len(found) > _MOST:
        yield f"  and {len(found) - _MOST:,} more"
