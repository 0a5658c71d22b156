"""Retention as a feature of a scope: what a call says is sealed, and the policy is checked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...telemetry.event.event import OperationClass
from ...telemetry.event.part import EventPart
from ..errors import ConfigurationError
from ..features import Feature
from ..guard.step import NOTHING, Faces
from ..health.model import Check, State, failed
from ..keep_period import DAY_S, keep_periods
from .policy import ANY, read_policy

if TYPE_CHECKING:
    from ..guard.call import Call
    from ..guard.operation import Method
    from ..guard.step import Step
    from ..guard.steps.making import GuardParts

_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})


class KeptFor(EventPart, tag="retention", frozen=True):
    """
    The time that a call said its records are kept.

    Attributes:
        seconds: From the write on.
    """

    seconds: int

    def sealed(self) -> int:
        """Return the seconds."""
        return self.seconds


class SealPeriods:
    """The step that adds the period of the context to the event of a write."""

    def faces(self, method: Method) -> Faces:
        """Return the face in front of the store, for what writes."""
        return Faces(before=_add) if method.op_class in _WRITES else NOTHING


def _add(call: Call) -> None:
    seconds = keep_periods.get()
    if seconds is not None:
        call.additions += (partial(_kept_for, seconds),)


def _kept_for(seconds: int, _store: str, _call: Call) -> EventPart:
    return KeptFor(seconds)


def retention_feature(path: Path, audit_days: int, *, has_trail: bool) -> Feature:
    """Return the step and the check of retention by the policy at *path*."""

    def make(_parts: GuardParts) -> Sequence[Step]:
        return (SealPeriods(),)

    def check() -> Check:
        return retention_check(path, audit_days, has_trail=has_trail)

    return Feature(steps=(make,), checks={"retention": check})


def retention_check(path: Path, audit_days: int, *, has_trail: bool) -> Check:
    """Check that the policy can be read, and that the trail outlives its periods."""
    try:
        policy = read_policy(path)
    except ConfigurationError as exc:
        return failed("retention", str(exc))
    if not has_trail:
        return failed("retention", "purposes are in the audit trail: add audit to MNEMOSCOPE_SINKS")
    tables = (policy.purposes, *policy.stores.values(), *policy.classes.values())
    longest_s = max((each for table in tables for each in table.values() if each), default=0)
    said = [f"{len(policy.purposes):,} purposes in {path}"]
    if ANY not in policy.purposes:
        said.append("what no purpose covers is kept: give one for '*'")
    if audit_days and longest_s > audit_days * DAY_S:
        said.append(
            f"the audit trail forgets after {audit_days} days, sooner than a purpose ends: what "
            "it forgot stays; raise MNEMOSCOPE_AUDIT_RETENTION_DAYS"
        )
    state = State.OK if len(said) == 1 else State.WARNING
    return Check(name="retention", state=state, detail="; ".join(said))
