"""Who was found by an id, in words: for the command line and for the pages of the site."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...audit.store.person_lookup import CustomerQuery, Person

NO_TENANT = "no tenant"


def who_lines(query: CustomerQuery, person: Person) -> Iterator[str]:
    """Yield who was found, a line each; an id only where it is not one that was given."""
    if not person.is_logged:
        yield "found in live stores alone: the audit trail knows nobody of this name"
    elif query.tenant is None:
        yield f"found in {listed(person.tenants)}"
    for each in person.identities:
        # What was typed is no secret to whoever typed it; other spellings they have to see.
        if each.customer not in query.names:
            yield f"another spelling is included: {each.customer!r}"
    yield from person.doubts


def shared_line(person: Person) -> str:
    """Return what is said where stores hold what may be another tenant's customer's."""
    return (
        f"this id is known under {listed(person.shared_with)} too, and stores tell no tenants "
        "apart: pass --own-stores if those of this scope have this tenant's customers alone, or "
        "--any in place of a tenant if they are one person"
    )


def listed(tenants: tuple[str, ...]) -> str:
    """Return the names of *tenants* in one phrase."""
    return " and ".join(map(named, tenants))


def named(tenant: str) -> str:
    """Return the name of a tenant, or that there is none."""
    # A name may hold what a terminal takes for a command.
    shown = "".join(each if each.isprintable() else "?" for each in tenant)
    return f"tenant {shown}" if tenant else NO_TENANT
