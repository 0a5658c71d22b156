"""Latency objectives: the share of operations that is to be answered within so many seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from mnemoscope.telemetry.event.kinds import OperationClass
from mnemoscope.telemetry.prometheus.durations import buckets_s

from .promql import quoted

READ: Final[tuple[OperationClass, ...]] = (OperationClass.RECALL, OperationClass.RESUME)
WRITE: Final[tuple[OperationClass, ...]] = (
    OperationClass.REMEMBER,
    OperationClass.CHECKPOINT,
    OperationClass.FORGET,
)
CLASSES: Final[tuple[OperationClass, ...]] = (*READ, *WRITE)

LEAST_TARGET, MOST_TARGET = 0.95, 0.9999
"""Below, no failure is fast enough for the page: all of it burns 20 times too fast at 95 %."""

_NO_STORE = "any-other-store"


class ObjectivesError(ValueError):
    """The objectives make no sense. The message is one line that says where, and what to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """
    What is promised of some operations.

    Attributes:
        target: The share that is to be answered in time, 0.95 to 0.9999.
        within_s: The time, in seconds: the bound of a bucket of the class's histogram.

    Raises:
        ObjectivesError: The target cannot be alerted on.
    """

    target: float
    within_s: float

    def __post_init__(self) -> None:
        if not LEAST_TARGET <= self.target <= MOST_TARGET:
            raise ObjectivesError("target must be a share from 95 % to 99.99 %")

    @property
    def allowed(self) -> str:
        """The share that may be late, as PromQL has it."""
        return f"{1 - self.target:.6g}"

    @property
    def target_text(self) -> str:
        """The target for people."""
        return f"{self.target * 100:.6g} %"

    @property
    def within_text(self) -> str:
        """The time for people."""
        return time_text(self.within_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """
    An objective with the operations that it is about.

    Attributes:
        objective: What is promised.
        classes: Classes of operations.
        store: Name of the store. None: every store but *except_stores*.
        except_stores: Stores with an objective of their own for these classes, or with none.
    """

    objective: Objective
    classes: Sequence[OperationClass]
    store: str | None = None
    except_stores: Sequence[str] = ()

    @property
    def matchers(self) -> str:
        """The labels of its operations, as PromQL selects them."""
        but = [f"store!={quoted(each)}" for each in self.except_stores]
        named = [f"store={quoted(self.store)}"] if self.store else but
        return ",".join([f'class=~"{"|".join(self.classes)}"', *named])

    @property
    def example_store(self) -> str:
        """The name of a store that it is about."""
        name = self.store or _NO_STORE
        while name in self.except_stores:
            name += "-2"
        return name


Given = Mapping[OperationClass, Objective | None]
"""Objectives by class. None: there is to be none."""

_USUAL_READ = Objective(target=0.99, within_s=1.0)
_USUAL_WRITE = Objective(target=0.99, within_s=10.0)
_USUAL: Given = MappingProxyType(
    {each: _USUAL_READ if each in READ else _USUAL_WRITE for each in CLASSES}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Objectives:
    """
    The latency objectives of all stores.

    Attributes:
        default: For every store that has none of its own.
        stores: By the name of the store, as the label `store` has it.

    Raises:
        ObjectivesError: A time is no bound of a bucket, so that nobody could tell who is in time.
    """

    default: Given = field(default_factory=lambda: _USUAL)
    stores: Mapping[str, Given] = field(default_factory=dict[str, Given])

    def __post_init__(self) -> None:
        for each in (self.default, *self.stores.values()):
            for op_class, objective in each.items():
                if objective is not None:
                    _check_bucket(op_class, objective.within_s)
        if not any(self.promises()):
            raise ObjectivesError("no objective is left: state one, for read or for write")

    def promises(self) -> Iterator[Promise]:
        """Yield each objective once, with all the operations that it is about."""
        for objective, groups in _by_objective(self._defaults()).items():
            for except_stores, classes in groups.items():
                yield Promise(objective=objective, classes=classes, except_stores=except_stores)
        for store, given in self.stores.items():
            of_store = {each: (objective, ()) for each, objective in given.items() if objective}
            for objective, groups in _by_objective(of_store).items():
                for classes in groups.values():
                    yield Promise(objective=objective, classes=classes, store=store)

    def _defaults(self) -> dict[OperationClass, tuple[Objective, tuple[str, ...]]]:
        return {
            op_class: (
                objective,
                tuple(name for name, given in self.stores.items() if op_class in given),
            )
            for op_class, objective in self.default.items()
            if objective
        }


_Groups = dict[tuple[str, ...], list[OperationClass]]


def _by_objective(
    of: Mapping[OperationClass, tuple[Objective, tuple[str, ...]]],
) -> dict[Objective, _Groups]:
    """Return the classes with the same objective and stores together."""
    found: dict[Objective, _Groups] = {}
    for op_class, (objective, except_stores) in of.items():
        found.setdefault(objective, {}).setdefault(except_stores, []).append(op_class)
    return found


def _check_bucket(op_class: OperationClass, within_s: float) -> None:
    bounds = buckets_s(op_class)
    if within_s in bounds:
        return
    near = sorted(sorted(bounds, key=lambda bound: abs(bound - within_s))[:2])
    raise ObjectivesError(
        f"within, of {op_class.value}, must be the bound of a bucket: "
        f"{' or '.join(map(time_text, near))}"
    )


def time_text(seconds: float) -> str:
    """Return *seconds* in the unit that people would say it in."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.6g} {unit}"
    return f"{seconds:g} s"
