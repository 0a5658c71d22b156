"""The step that notes where the texts of a call stand, before they are redacted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..guard.call import Call, Slot
from ..guard.step import Faces
from .places import TextPlaces, current_places

if TYPE_CHECKING:
    from ..guard.operation import Method
    from ..guard.step import Step
    from ..guard.steps.making import GuardParts
    from .part import RedactionPlaces

_PLACES: Slot[TextPlaces | None] = Slot("mnemoscope.matches.places", None)


class PlaceTexts:
    """Makes the places of a call's texts current while it is redacted."""

    def faces(self, _method: Method) -> Faces:
        """Return the faces for every method."""
        return Faces(self._begin, self._end)

    def _begin(self, call: Call) -> None:
        places = TextPlaces(call, current_places.get())
        _PLACES.put(call, places)
        current_places.set(places)
        call.additions += (_counted,)

    def _end(self, call: Call) -> None:
        places = _PLACES.of(call)
        if places is not None:
            current_places.set(places.outer)


def make_match_steps(_parts: GuardParts) -> Sequence[Step]:
    """Return the steps of one guard."""
    return (PlaceTexts(),)


def _counted(_store: str, call: Call) -> RedactionPlaces | None:
    places = _PLACES.of(call)
    return None if places is None else places.part()
