"""What the demo can be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...memory.errors import ConfigurationError
from .surge import SURGING
from .trouble import BREAKABLE, How


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """
    What the demo is asked for.

    Attributes:
        conversation: A LoCoMo file. None: the demo's own.
        out: Folder for what the sinks and stores hold. None: nothing is kept.
        break_store: A store to break half-way through: mem0, qdrant, store or checkpointer.
        how: down, slow or flapping.
        surge: What uses three times the tokens from half-way on: draft or outline.
        model: A real chat model, ``provider:name``. None: the script.
        customer: Whose memory the last screen shows: a speaker's name. None: the first speaker's.
        export: The second customer asks at the end for all that is held about them.
        erase: And to be forgotten.
        json: Print the figures as JSON in place of the screen.
    """

    conversation: Path | None = None
    out: Path | None = None
    break_store: str | None = None
    how: str = How.DOWN
    surge: str | None = None
    model: str | None = None
    customer: str | None = None
    export: bool = False
    erase: bool = False
    json: bool = False

    def __post_init__(self) -> None:
        if self.break_store is not None and self.break_store not in BREAKABLE:
            raise ConfigurationError(f"--break takes one of {', '.join(BREAKABLE)}")
        if self.how not in set(How):
            raise ConfigurationError(f"--how takes one of {', '.join(How)}")
        if self.surge is not None and self.surge not in SURGING:
            raise ConfigurationError(f"--surge takes one of {', '.join(SURGING)}")
        if self.surge is not None and self.model is not None:
            raise ConfigurationError("--surge is the script's: leave out --model")
        if self.out is not None and self.out.exists() and _is_occupied(self.out):
            raise ConfigurationError(
                f"--out takes a new or empty folder, and {self.out} is neither"
            )


def _is_occupied(path: Path) -> bool:
    return not path.is_dir() or any(path.iterdir())
