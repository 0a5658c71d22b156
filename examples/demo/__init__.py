"""
The demo: a LangGraph agent over guarded mem0, Qdrant, store and checkpointer.

``agent.py`` is the part to copy. Importing this package imports no store.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .conversation import ConversationError
from .options import DemoOptions

if TYPE_CHECKING:
    from rich.console import Console

    from .embedded_mem0 import embedded_memory

__all__ = ["ConversationError", "DemoOptions", "embedded_memory", "run_demo"]


def run_demo(options: DemoOptions, console: Console) -> int:
    """
    Replay a conversation and print the answers from the audit trail.

    Returns:
        The exit code: 0, also if a broken checkpointer made runs raise as it should; 1 if the sinks
        do not agree, or if runs raised unexpectedly.

    Raises:
        ConversationError: The file is not a conversation.
        ConfigurationError: An option makes no sense, or needs a package that is not installed.
    """
    from .run import run  # noqa: PLC0415 - imports every store

    return run(options, console)


def __getattr__(name: str) -> Any:
    """Import mem0 and its parts when `embedded_memory` is first used."""
    if name != "embedded_memory":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(".embedded_mem0", __name__).embedded_memory
