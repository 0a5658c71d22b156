"""
Capabilities of rules: a protocol for each thing that a rule may do besides deciding.

A rulebook looks for them once, as it is made. A rule that subclasses those that it has is held to
their signatures by type checkers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from ..guard.operation import Method
from .rule import Action, Fact, Rule

if TYPE_CHECKING:
    from ..health.model import Check


@runtime_checkable
class WitnessesActions(Protocol):
    """Facts of an action, made for one decision. Fast: other decisions wait meanwhile."""

    def witness(self, action: Action, /) -> Mapping[str, Fact]:
        """Return facts by name, for `Facts.known`; or `PASSES`, and nothing is to be decided."""
        ...


@runtime_checkable
class ForeseesActions(Protocol):
    """The same facts, of a rule that may take long: a judge, a model. Others decide meanwhile."""

    def foresee(self, action: Action, /) -> Mapping[str, Fact]:
        """Return facts by name, for `Facts.known`."""
        ...


@runtime_checkable
class SelectsMethods(Protocol):
    """A choice of the memory operations that a rule decides on: read once for each method."""

    def concerns(self, method: Method, /) -> bool:
        """Return False for a method whose calls need no decision, whatever their arguments."""
        ...


@runtime_checkable
class SeesAnswers(Protocol):
    """Facts of memory operations that a store has answered, kept with those of the run."""

    def needs_answers(self) -> bool:
        """Return whether its settings need `seen` at all. Read once."""
        return True

    def seen(self, action: Action, /) -> Mapping[str, Fact]:
        """Return facts to keep, by name; the call of *action* has the answer."""
        ...


@runtime_checkable
class EmbedsText(Protocol):
    """A model of the caller's, by which a rulebook compares texts of a node: one in a scope."""

    def embed(self, text: str, /) -> Iterable[float]:
        """Return the vector of a text. None in place of the method: texts are not compared."""
        ...


@runtime_checkable
class ConfinesAnswers(Protocol):
    """A choice of the collections whose records may be in an answer."""

    def allows(self, store: str, collection: str, /) -> bool:
        """Return whether the code that runs now may be shown what stands there."""
        ...

    def left_out(self, count: int, /) -> Mapping[str, Fact]:
        """Return the facts of an answer of which *count* memories may not be shown."""
        ...


@runtime_checkable
class ConfinesReveals(Protocol):
    """A choice of the answers whose pseudonyms may become originals."""

    def may_reveal(self, store: str, /) -> bool:
        """Return whether the code that runs now may be shown the originals in a store's answer."""
        ...

    def withheld(self, count: int, /) -> Mapping[str, Fact]:
        """Return the facts of an answer of which *count* originals may not be shown."""
        ...


@runtime_checkable
class ChecksItself(Protocol):
    """A rule that knows of its own settings whether somebody should look."""

    def check(self) -> Check:
        """Return the check of the scope's health, with a name that begins with its kind."""
        ...


class Seat(NamedTuple):
    """
    A rule and its capabilities, looked up once.

    Attributes:
        witness: See `WitnessesActions`.
        foresee: See `ForeseesActions`. None: it has none, as below.
        concerns: See `SelectsMethods`.
        seen: See `SeesAnswers`.
        embed: See `EmbedsText`.
        confines: Itself, if it is one of `ConfinesAnswers`.
        reveals: Itself, if it is one of `ConfinesReveals`.
    """

    rule: Rule
    witness: Callable[[Action], Mapping[str, Fact]]
    foresee: Callable[[Action], Mapping[str, Fact]] | None
    concerns: Callable[[Method], bool] | None
    seen: Callable[[Action], Mapping[str, Fact]] | None
    embed: Callable[[str], Iterable[float]] | None
    confines: ConfinesAnswers | None
    reveals: ConfinesReveals | None

    @classmethod
    def of(cls, rule: Rule) -> Seat:
        """Return the seat of *rule*."""
        return cls(
            rule,
            rule.witness if isinstance(rule, WitnessesActions) else _no_facts,
            rule.foresee if isinstance(rule, ForeseesActions) else None,
            rule.concerns if isinstance(rule, SelectsMethods) else None,
            rule.seen if isinstance(rule, SeesAnswers) and rule.needs_answers() else None,
            rule.embed if isinstance(rule, EmbedsText) else None,
            rule if isinstance(rule, ConfinesAnswers) else None,
            rule if isinstance(rule, ConfinesReveals) else None,
        )


def _no_facts(_action: Action) -> Mapping[str, Fact]:
    return {}
