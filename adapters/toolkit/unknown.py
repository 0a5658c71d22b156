"""
Rows for what an adapter's table does not describe: arguments without a name, and methods.

They are guarded as all others: what nobody knows is redacted as a value, and where tenancy is
enforced a call of which nobody can say whom it is about is refused.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

from ...memory.api import Method, OperationClass, Row
from ...memory.errors import ScopeError
from ...memory.guard.guard import Guard
from ...memory.guard.operation import Arguments
from ...telemetry.text import code_class

if TYPE_CHECKING:
    from ...memory.privacy.engine.redaction import Redaction

logger = logging.getLogger("mnemoscope")

_reported: set[tuple[str, str]] = set()


@lru_cache(maxsize=512)
def guess(method: Method, known: frozenset[str], *, is_understood: bool) -> Method:
    """
    Return the row of a call of *method* with arguments that its row does not describe.

    Args:
        method: The row.
        known: Names that it describes.
        is_understood: Every other argument has a name that the client declares.
    """
    redact = partial(_redact_others, method, known)
    if is_understood or not _is_owned(method):
        return replace(method, redact=redact)
    return replace(method, redact=redact, needs_owner=True, confine=_refuse_arguments)


def unknown_method(name: str, table: Mapping[str, Row]) -> Method:
    """
    Return a row for a method *name* of which the *table* of its client knows nothing.

    It is taken for a write that cannot be made up for: whoever calls it is given the store's error.
    """
    owned = any(isinstance(row, Method) and _is_owned(row) for row in table.values())
    return Method(
        name=name,
        operation="update_memory",
        # The strictest class: what a write may contain is redacted, and its loss is told.
        op_class=OperationClass.REMEMBER,
        redact=_redact_values,
        needs_owner=owned,
        confine=_refuse_method if owned else None,
    )


def tell_unknown_method(client: type, name: str, guard: Guard) -> None:
    """Count a call of a method that no table knows, and log its name once."""
    guard.faults.count("toolkit.unknown_method")
    client = code_class(client)
    label = f"{client.__module__}.{client.__qualname__}"
    if (label, name) not in _reported:
        _reported.add((label, name))
        logger.warning(
            "mnemoscope does not know %s.%s: it is guarded as a write, its arguments are redacted "
            "as values, and with tenancy enforced it is refused",
            label,
            name,
        )


def _is_owned(method: Method) -> bool:
    return method.needs_owner or method.confine is not None or method.only is not None


def _redact_values(arguments: Arguments, redaction: Redaction) -> Arguments:
    return {name: redaction.value(value) for name, value in arguments.items()}


def _redact_others(
    method: Method, known: frozenset[str], arguments: Arguments, redaction: Redaction
) -> Arguments:
    described = {name: value for name, value in arguments.items() if name in known}
    others = {name: value for name, value in arguments.items() if name not in known}
    return {**method.redact(described, redaction), **_redact_values(others, redaction)}


def _refuse_arguments(_arguments: Arguments, _customer: Any) -> NoReturn:
    raise ScopeError(
        "tenancy is enforced, and this call has arguments that cannot be bound by name: "
        "give them by the names that the client has for them"
    )


def _refuse_method(_arguments: Arguments, _customer: Any) -> NoReturn:
    raise ScopeError(
        "tenancy is enforced, and nothing says whom a call of this method is about: "
        "call it on the unguarded client"
    )
