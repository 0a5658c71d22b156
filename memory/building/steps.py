"""The steps of a guard, in their order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from ...telemetry.event.kinds import OperationClass
from ..accounting import ModelAccounting
from ..errors import ConfigurationError
from ..guard.steps.audit_gate import AwaitAudit, RequireAudit
from ..guard.steps.late_writes import LateWriteSteps

if TYPE_CHECKING:
    from ..guard.step import Step
    from ..guard.steps.making import GuardParts, StepMaker
    from ..privacy.vault.vault import Vault
    from ..reveal.originals import OpenedOriginals


def order(
    *,
    audit_gate: tuple[RequireAudit | None, AwaitAudit | None],
    reveal: Sequence[StepMaker],
    matches: Sequence[StepMaker],
    features: Sequence[StepMaker],
    keeping: Sequence[StepMaker],
) -> tuple[StepMaker, ...]:
    """
    Return the makers of a guard's steps, in their order: the one place that has it.

    Before the store they run from top to bottom, after it from bottom to top.
    """
    require_audit, await_audit = audit_gate
    return (
        _always(await_audit),
        *reveal,
        _own("report"),
        _own("tenancy"),
        _always(require_audit),
        *matches,
        _own("redact"),
        *features,
        LateWriteSteps(),
        *(keeping or (_count_lost,)),
        attrgetter("steps"),  # the adapter's own
        _own("admit"),
        _own("classify"),
    )


def match_steps() -> Sequence[StepMaker]:
    """Return the maker of the step that has the user decide on each find."""
    from ..matches.step import make_match_steps  # noqa: PLC0415 - only where it is wanted

    return (make_match_steps,)


def reveal_steps_of(
    opened: OpenedOriginals | None, classes: Collection[str], accounting: ModelAccounting
) -> Sequence[StepMaker]:
    """Return the maker of the step that gives answers of these *classes* their originals back."""
    if opened is None:
        return ()
    from ..reveal.step import reveal_steps  # noqa: PLC0415 - only where it is wanted

    return (reveal_steps(opened, frozenset(map(OperationClass, classes)), accounting),)


def _count_lost(_parts: GuardParts) -> Sequence[Step]:
    """Return the step that counts what no journal keeps."""
    from ..guard.steps.count_lost import CountLostWrites  # noqa: PLC0415 - as the guard itself

    return (CountLostWrites(),)


def _always(step: Step | None) -> StepMaker:
    """Return the maker of a step that is the same in all guards. None: there is none."""
    steps = () if step is None else (step,)
    return lambda _parts: steps


def _own(name: str) -> StepMaker:
    """Return the maker of a step that is one of a guard's own parts."""
    return lambda parts: (getattr(parts, name),)


def opened_originals(vault: Vault | None, reveal: Collection[str]) -> OpenedOriginals | None:
    """
    Return what opens pseudonyms of recalls, if *reveal* names a class of operations.

    Raises:
        ConfigurationError: There is no vault to read them from.
    """
    if not reveal:
        return None
    if vault is None:
        raise ConfigurationError("MNEMOSCOPE_PII_REVEAL: set MNEMOSCOPE_VAULT, which it reads from")
    from ..reveal.originals import OpenedOriginals  # noqa: PLC0415 - only where it is wanted

    return OpenedOriginals(vault)
