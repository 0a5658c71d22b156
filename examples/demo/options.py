"""The options of the demo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mnemoscope.memory.errors import ConfigurationError

from .faults import BREAKABLE, FaultMode
from .surge import SURGING


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """
    The options of one run of the demo.

    Attributes:
        conversation: A LoCoMo file. None: the demo's own.
        out: Folder that keeps the data of sinks and stores. None: nothing is kept.
        break_store: A store to break half-way through: mem0, qdrant, store or checkpointer.
        how: down, slow or flapping.
        surge: The feature that uses three times its tokens from half-way on: draft or outline.
        model: A real chat model, ``provider:name``. None: the script.
        speaker: The one whose memory the last screen shows. None: the first one.
        export: Export the second customer's data at the end.
        erase: Erase the second customer at the end.
        mcp: Have another agent reach the memory over MCP, from a server that changes.
        json: Print the figures as JSON in place of the screen.
    """

    conversation: Path | None = None
    out: Path | None = None
    break_store: str | None = None
    how: str = FaultMode.DOWN
    surge: str | None = None
    model: str | None = None
    speaker: str | None = None
    export: bool = False
    erase: bool = False
    mcp: bool = False
    json: bool = False

    def __post_init__(self) -> None:
        if self.break_store is not None and self.break_store not in BREAKABLE:
            raise ConfigurationError(f"--break takes one of {', '.join(BREAKABLE)}")
        if self.how not in set(FaultMode):
            raise ConfigurationError(f"--how takes one of {', '.join(FaultMode)}")
        if self.surge is not None and self.surge not in SURGING:
            raise ConfigurationError(f"--surge takes one of {', '.join(SURGING)}")
        if self.surge is not None and self.model is not None:
            raise ConfigurationError(
                "--surge works with the scripted model only: leave out --model"
            )
        if self.out is not None and self.out.exists() and _is_occupied(self.out):
            raise ConfigurationError(
                f"--out takes a new or empty folder, and {self.out} is neither"
            )


def _is_occupied(path: Path) -> bool:
    return not path.is_dir() or any(path.iterdir())
