"""
The demo: a LangGraph agent over mem0, Qdrant, a store and a checkpointer, watched.

``agent.py`` is the part to copy. Importing this package imports no store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .conversation import ConversationError
from .options import DemoOptions

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["ConversationError", "DemoOptions", "run_demo"]


def run_demo(options: DemoOptions, console: Console) -> int:
    """
    Replay a conversation and print what can be said of it afterwards.

    Returns:
        The exit code: 0, also where a broken checkpointer made runs raise, since that is what was
        to be shown; 1 if the sinks do not agree, or if runs raised that should not have.

    Raises:
        ConversationError: The file is not a conversation.
        ConfigurationError: An option makes no sense, or needs a package that is not installed.
    """
    from .run import run  # noqa: PLC0415 - every store there is

    return run(options, console)
