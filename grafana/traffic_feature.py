"""A feature of another package: it measures how many writes each store is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemoscope.memory.api import (
    Call,
    EventPart,
    Faces,
    Feature,
    FeatureContext,
    GuardParts,
    Method,
    Step,
)


class Written(EventPart, tag="traffic.written", frozen=True):
    """One write."""

    def measurements(self) -> Mapping[str, float]:
        """Return that it is one."""
        return {"writes": 1.0}


class CountWrites:
    """Adds a part to the event of each write."""

    def faces(self, method: Method) -> Faces:
        """Return the face in front of the store, for what writes."""
        return Faces() if method.written is None else Faces(before=self._add)

    def _add(self, call: Call) -> None:
        call.additions += (_written,)


def _written(store: str, call: Call) -> EventPart:  # noqa: ARG001 - what an addition is given
    return Written()


def counting(context: FeatureContext) -> Feature:  # noqa: ARG001 - what a factory is given
    """Return the feature."""

    def make(parts: GuardParts) -> Sequence[Step]:  # noqa: ARG001 - what a maker is given
        return (CountWrites(),)

    return Feature(steps=(make,))
