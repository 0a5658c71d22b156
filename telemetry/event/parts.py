"""The parts of events that this package has itself: those that files hold as they are."""

from __future__ import annotations

from typing import Any, Final, Union

from .budget_event import BudgetEvent
from .memory_label import MemoryLabel
from .memory_store import MemoryStore, NobodysData
from .node_run import NodeRun
from .outcome_event import OutcomeEvent
from .part import CarriedPart, EventPart, UnknownPart
from .phase import OperationPhases
from .spared import Spared
from .tool_run import ToolRun
from .usage import Usage
from .verdict_event import VerdictEvent

OWN: Final[tuple[type[EventPart], ...]] = (
    BudgetEvent,
    MemoryLabel,
    MemoryStore,
    NobodysData,
    NodeRun,
    OperationPhases,
    OutcomeEvent,
    Spared,
    ToolRun,
    Usage,
    VerdictEvent,
)
"""The kinds of parts of this package."""

READABLE: Final = (*OWN, CarriedPart)
"""The kinds of parts in files."""

ANY_PART: Final[Any] = Union[READABLE]  # noqa: UP007 - of a tuple
"""The type of a part in a file."""


def carried(part: EventPart) -> Any:
    """Return *part* as files hold it: one of another package as all that it shows."""
    if part.__class__ in READABLE:
        return part
    return part.encoded if isinstance(part, UnknownPart) else CarriedPart.copy_of(part)
