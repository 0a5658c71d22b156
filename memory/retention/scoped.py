"""Retention of one scope: its sweeper, its holds, and the lock of who may sweep."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...telemetry.files.file_lock import try_lock
from ..subject_data.customer_data import settle
from .holds import HoldBook
from .policy import read_policy
from .sweep import InFiles, RetentionRefusedError, Sweeper

if TYPE_CHECKING:
    from ..guard_factory import GuardFactory
    from ..subject_data.records import SubjectDataProvider
    from ..subject_data.registry import SubjectDataRegistry
    from ..subject_data.runner import SubjectDataRunner
    from .trail import RetentionTrail


class ScopedRetention:
    """
    The retention of a scope.

    Args:
        sweeper: Plans and removes.
        holds: What is held and pinned.
        lock: The file whose lock a run has.

    Attributes:
        sweeper: As given, as are the holds.
    """

    def __init__(self, sweeper: Sweeper, holds: HoldBook, lock: Path) -> None:
        self.sweeper, self.holds = sweeper, holds
        self._lock = lock

    @contextmanager
    def leading(self) -> Generator[None]:
        """
        Be the one of this machine that removes, in the body.

        Raises:
            RetentionRefusedError: Another one is.
        """
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        lock = try_lock(self._lock)
        if lock is None:
            raise RetentionRefusedError("another run is at work on this machine: let it end")
        try:
            yield
        finally:
            lock.release()


def scoped_retention(
    policy: Path,
    trail: RetentionTrail,
    *,
    guards: GuardFactory,
    subject_data: SubjectDataRegistry,
    flush: Callable[[float], bool],
    waiting: Callable[[], Sequence[str]],
    in_files: InFiles,
    folder: Path,
) -> ScopedRetention:
    """
    Return the retention of a scope.

    Args:
        policy: The file of periods.
        trail: The audit trail.
        guards: The scope's, whose writes that wait are made first.
        subject_data: The providers of its wrapped clients, and the clients.
        flush: Delivers what is queued, within so many seconds; False: not all of it.
        waiting: Return where events wait that the trail does not have, a line each.
        in_files: See `Sweeper`.
        folder: Of the holds and of the lock.

    Raises:
        ConfigurationError: The policy cannot be read.
    """

    def stores() -> Mapping[str, tuple[SubjectDataProvider, Any]]:
        clients = {id(provider): client for provider, client in subject_data.clients()}
        named = subject_data.named().items()
        return {name: (provider, clients.get(id(provider))) for name, provider in named}

    def settled(runner: SubjectDataRunner) -> Sequence[str]:
        return settle(guards, runner, flush)

    holds = HoldBook(folder / "retention-holds.json", trail)
    sweeper = Sweeper(
        read_policy(policy),
        trail,
        holds,
        stores=stores,
        settle=settled,
        waiting=waiting,
        in_files=in_files,
    )
    return ScopedRetention(sweeper, holds, folder / "retention")
