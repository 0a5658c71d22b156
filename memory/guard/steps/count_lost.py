"""The step that counts the writes that a store did not take and no journal keeps."""

from __future__ import annotations

from ....telemetry.event.event import Journalled, OperationClass, Status
from ..call import Call
from ..operation import Method
from ..step import NOTHING, Faces

_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})


class CountLostWrites:
    """
    Counts writes that the store did not take, where there is no journal to keep them.

    Args:
        has_database: Whether it is known which database they are made in. A journal keeps none of
            those of which that is not known.
    """

    def __init__(self, *, has_database: bool = True) -> None:
        self.has_database = has_database

    def faces(self, method: Method) -> Faces:
        """Return the face after the store, for writes."""
        return Faces(after=count_lost) if method.op_class in _WRITES else NOTHING


def count_lost(call: Call) -> None:
    """Mark the write of *call* as lost, if nothing has it."""
    if not call.neutral or call.late or call.status is Status.REFUSED:
        return
    if call.journal is Journalled.NO:
        call.journal = Journalled.LOST
