"""A scope for tests: without network or files, and with its events in a list."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Unpack

from ...telemetry.event.event import Event
from ..budgets.budget import Budget
from ..scope import Mnemoscope
from ..settings import load_settings

if TYPE_CHECKING:
    from ..rules.rule import Rule
    from ..setting_values import SettingValues

_KEY = "bW5lbW9zY29wZSB0ZXN0cyBvbmx5"  # 21 bytes that protect nothing, so that no key file is made


class CapturingSink:
    """
    Keeps events in a list. Flush the scope before reading it.

    Attributes:
        events: Oldest first.
    """

    name = "capture"
    idempotent = True

    def __init__(self) -> None:
        self.events: list[Event] = []

    def write(self, batch: Sequence[Event], /) -> None:
        """Keep *batch*."""
        self.events.extend(batch)

    def flush(self, _timeout_s: float, /) -> bool:
        """Nothing is buffered."""
        return True

    def close(self, _timeout_s: float, /) -> None:
        """Nothing is held."""


@contextmanager
def scope_for_tests(
    *, budgets: Iterable[Budget] = (), rules: Iterable[Rule] = (), **settings: Unpack[SettingValues]
) -> Generator[tuple[Mnemoscope, CapturingSink]]:
    """
    Yield a scope that redacts with patterns alone and sends events to a list.

    Args:
        budgets: What may be spent.
        rules: What is decided in front of memory, models, nodes and tools.
        **settings: As for `configure`, for example ``deadline_recall_s=0.05``.
    """
    sink = CapturingSink()
    given: SettingValues = {"audit_pseudonym_key": _KEY, "pii_model": "none", **settings}
    scope = Mnemoscope(load_settings(**given), only_sinks=[sink], budgets=budgets, rules=rules)
    try:
        yield scope, sink
    finally:
        scope.close()
