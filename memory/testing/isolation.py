"""Two tenants, and each method by which one could read what is the other's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias

from ..api import Arguments, Method, Row
from ..context import context
from .adapter_trial import invoked, settled
from .broken_store import TABLE
from .toxic import READS

TENANTS: Final = {"acme": ("c-1", "oolong"), "globex": ("c-2", "rooibos")}
"""Each tenant with a customer of theirs, and a word that stands in all that the customer wrote."""

Reads: TypeAlias = Mapping[str, Callable[[str], Arguments]]


def check_isolation(client: Any, *, write: Callable[[str, str], Any], reads: Reads) -> None:
    """
    Make each read of a guarded store for two tenants. Not to be called where an event loop runs.

    Args:
        client: A client that a scope has wrapped.
        write: Writes a text for the customer whose id comes first, with the same client.
        reads: By method, what returns the arguments of a read of that customer's memories. Its
            asynchronous twin, with an ``a`` in front, is called with the same.

    Raises:
        AssertionError: A read hands out what is the other tenant's; or it is not in *reads*; or
            none finds what its own tenant wrote, so that nothing is shown.
    """
    with asyncio.Runner() as runner:
        for tenant, (customer, text) in TENANTS.items():
            with context(tenant=tenant, customer=customer):
                settled(runner, write(customer, text))
        breaches = list(_breaches(client, reads, runner))
    if breaches:
        raise AssertionError("\n  ".join(("two tenants are not kept apart", *breaches)))


def _breaches(client: Any, reads: Reads, runner: asyncio.Runner) -> Iterator[str]:
    is_found = False
    for name in sorted(_reads_of(client)):
        arguments = reads.get(name, reads.get(name.removeprefix("a")))
        if arguments is None:
            # Passed over, a method that a new version brings would be a hole.
            yield f"{name} reads, and there are no arguments of it in reads"
            continue
        for tenant, (customer, own) in TENANTS.items():
            for other, (named, theirs) in TENANTS.items():
                # Refused is as good as empty.
                with context(tenant=tenant, customer=customer), suppress(Exception):
                    said = repr(settled(runner, invoked(getattr(client, name), arguments(named))))
                    is_found |= tenant == other and own in said
                    if tenant != other and theirs in said:
                        yield f"{name} hands {tenant} what is {other}'s"
    if not is_found:
        yield "no read finds what its own tenant wrote, so nothing shows what others would find"


def _reads_of(client: Any) -> Iterator[str]:
    rows: Mapping[str, Row] = getattr(client.__class__, TABLE)
    for name, row in rows.items():
        # Rows that look at the arguments say of none what they are for most.
        with suppress(AttributeError, KeyError, NotImplementedError):
            method = row if isinstance(row, Method) else row({})
            if method.op_class in READS and getattr(client, name):
                yield name
