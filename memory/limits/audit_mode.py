"""Audit durability: `fail_open`, `durable` or `strict`, for all classes of operations or some."""

from __future__ import annotations

import msgspec

from ...telemetry.event.event import OperationClass
from .policy import CLASSES


class AuditMode(msgspec.Struct, frozen=True):
    """
    The value of ``MNEMOSCOPE_AUDIT_MODE``.

    Attributes:
        durable: Classes whose calls wait for their event to be on a disk.
        strict: Those of them that are refused where it could not be.
    """

    durable: frozenset[OperationClass] = frozenset()
    strict: frozenset[OperationClass] = frozenset()


def parse_audit_mode(text: str) -> AuditMode:
    """
    Return the mode that *text* names: ``strict``, say, or ``strict:forget,remember``.

    Raises:
        ValueError: It names none.
    """
    name, colon, listed = text.strip().lower().partition(":")
    names = [each.strip() for each in listed.split(",")] if colon else [*CLASSES]
    if name not in {"fail_open", "durable", "strict"} or not set(names) <= set(CLASSES):
        raise ValueError(
            "expected fail_open, durable or strict, the latter two perhaps followed by a colon "
            f"and some of {', '.join(sorted(CLASSES))}"
        )
    chosen = frozenset(map(OperationClass, names))
    if name == "fail_open":
        return AuditMode()
    return AuditMode(chosen, chosen if name == "strict" else frozenset())
