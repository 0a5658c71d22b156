"""
Features of other packages: rules, steps of guards, health checks and metrics by one entry point.

A package adds a feature by an entry point of the group `GROUP`, which leads to a `FeatureFactory`.
A scope has those that `MNEMOSCOPE_FEATURES` names; of the others nothing is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from ..telemetry.process.faults import Faults
from .errors import ConfigurationError

if TYPE_CHECKING:
    from ..telemetry.prometheus.live import Sample
    from .guard.steps.making import StepMaker
    from .health.model import Check
    from .rules.rule import Rule
    from .run_observers import RunObserver

GROUP: Final = "mnemoscope.features"
"""The group of entry points that features are found by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureContext:
    """
    What a feature is made with. Settings of its own it reads from the environment.

    Attributes:
        digest_key: Returns a secret key of 32 bytes for a purpose, for keyed digests.
        faults: Where errors of the feature's own are noted.
        clock: Monotonic seconds.
        trail: Returns the latest events that a part gave a name to, by `EventPart.references`: of
            each name begin and end in µs since 1970, and the number. None: there is no audit trail.
    """

    digest_key: Callable[[str], bytes]
    faults: Faults
    clock: Callable[[], float]
    trail: Callable[[Sequence[str]], Mapping[str, Sequence[tuple[int, int, float]]]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """
    What a package adds to a scope.

    Attributes:
        rules: Decide in front of memory, models, nodes and tools, behind the scope's own.
        steps: Make steps of each guard. They stand behind the rules, so that they are given calls
            that are redacted and allowed, and before what keeps a write that the store does not
            take.
        observers: Are given the beginnings and ends of graphs, nodes, models and tools.
        checks: Answer `Mnemoscope.health`, by a name that begins with the feature's.
        samples: Returns what each scrape of Prometheus shows besides. None: nothing.
        waiting: Return what waits in a place of the feature's, by its name, a line each: an erasure
            says what may be somebody's and was not looked into.
        start: Begins what the feature has running, once the scope is whole. None: nothing is.
        close: Ends it, as the scope closes.
    """

    rules: Sequence[Rule] = ()
    steps: Sequence[StepMaker] = ()
    observers: Sequence[RunObserver] = ()
    checks: Mapping[str, Callable[[], Check]] = field(
        default_factory=dict[str, "Callable[[], Check]"]
    )
    samples: Callable[[], Iterable[Sample]] | None = None
    waiting: Mapping[str, Callable[[], Iterable[str]]] = field(
        default_factory=dict[str, "Callable[[], Iterable[str]]"]
    )
    start: Callable[[], None] | None = None
    close: Callable[[], None] | None = None


def not_configured(name: str, detail: str) -> Feature:
    """Return what stands for a feature that is off: the check *name*, which says *detail*."""
    from .health.model import Check, State  # noqa: PLC0415 - by whoever looks

    return Feature(checks={name: lambda: Check(name=name, state=State.OFF, detail=detail)})


class FeatureFactory(Protocol):
    """Makes a feature of one scope: the object that an entry point of `GROUP` leads to."""

    def __call__(self, context: FeatureContext, /) -> Feature:
        """
        Return the feature.

        Raises:
            ImportError: A package that it needs is not installed.
            ValueError: A setting of its own makes no sense. One line.
        """
        ...


def load_features(names: Sequence[str], context: FeatureContext) -> list[Feature]:
    """
    Return the features with these names.

    Raises:
        ConfigurationError: No installed package has one, or it cannot be made. A name is not
            quoted: it may be a secret in the wrong place.
    """
    if not names:
        return []
    from importlib.metadata import entry_points  # noqa: PLC0415 - reads every package's metadata

    found = {each.name: each for each in entry_points(group=GROUP)}
    features: list[Feature] = []
    for position, name in enumerate(names, start=1):
        if name not in found:
            known = ", ".join(sorted(found)) or "none is installed"
            raise ConfigurationError(
                f"MNEMOSCOPE_FEATURES: name {position} is no installed feature: expected some of "
                f"{known}"
            )
        try:
            made = found[name].load()(context)
        except (ImportError, ValueError) as exc:
            reason = " ".join(str(exc).split())
            raise ConfigurationError(f"MNEMOSCOPE_FEATURES: {name}: {reason}") from None
        except Exception as exc:  # noqa: BLE001 - of whatever kind: it is that package's mistake
            raise ConfigurationError(
                f"MNEMOSCOPE_FEATURES: {name} cannot be made: its package raised "
                f"{type(exc).__name__}"
            ) from None
        if not isinstance(made, Feature):
            raise ConfigurationError(
                f"MNEMOSCOPE_FEATURES: the entry point {name} of {GROUP} makes a "
                f"{type(made).__name__}: expected a mnemoscope.memory.api.Feature"
            )
        features.append(made)
    return features
