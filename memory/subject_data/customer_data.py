"""The data of one customer in an application: its stores, its vault and its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ...telemetry.files.framing import HEADER_BYTES
from ...telemetry.queue.event_file import PAGE_BYTES, QUARANTINE, SUFFIX
from ...telemetry.queue.source import state_of
from ..errors import MnemoscopeError
from ..guard.step import CallKeeper
from .records import DataSubject, NotErasedError, SealedFiles, StoreData
from .registry import SubjectDataRegistry
from .runner import SubjectDataRunner

if TYPE_CHECKING:
    from ..guard_factory import GuardFactory
    from ..settings import Settings
    from ..vault_door import GuardedVault

SETTLE_S = 10.0
"""Seconds that writes and events that are under way are given to arrive."""


def settle(
    guards: GuardFactory, runner: SubjectDataRunner, flush: Callable[[float], bool]
) -> Sequence[str]:
    """Make the writes that wait, and deliver every event; see `CustomerData.settle`."""
    until = guards.clock() + SETTLE_S
    # A list: guards are held weakly, and one may go while they are walked.
    for step in (step for guard in list(guards.guards) for step in guard.steps):
        if isinstance(step, CallKeeper):
            runner.run(step.settle(until))
    # After the writes, each of which is an event.
    if flush(SETTLE_S):
        return ()
    return ("the sinks have not taken every event: look with mnemoscope doctor",)


class ScopedCustomerData:
    """
    The `CustomerData` of one scope, while it is entered.

    Args:
        flush: Delivers what is queued, within so many seconds; False: not all of it.
        vault: The scope's, if it has one.
        waiting: Return what waits in other places, by their names: see `Feature.waiting`.
        spool: Where events wait for its audit database. None: it has none.
        tenant: The tenant they are a customer of.

    Raises:
        ScopeError: The customer is nobody or everybody.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        guards: GuardFactory,
        subject_data: SubjectDataRegistry,
        flush: Callable[[float], bool],
        vault: GuardedVault | None,
        waiting: Mapping[str, Callable[[], Iterable[str]]],
        spool: Path | None,
        customer: str,
        tenant: str | None,
    ) -> None:
        self._settings = settings
        self._spool = spool or settings.audit_spool
        self._guards = guards
        self._providers = subject_data
        self._flush = flush
        self._vault = vault
        self._waiting = waiting
        self._subject = DataSubject(customer=customer, tenant=tenant)
        self._runner = SubjectDataRunner()

    def __enter__(self) -> Self:
        """Open the loop in which asynchronous clients are read."""
        self._runner.__enter__()
        return self

    def __exit__(self, *_exc: object) -> None:
        """Close the event loop of this handle."""
        self._runner.__exit__()

    def settle(self) -> Sequence[str]:
        """
        Make the writes that wait in the journal, and deliver every event so far.

        A write that is made again later would bring back what is erased now.

        Returns:
            What did not arrive, a line each.
        """
        return settle(self._guards, self._runner, self._flush)

    def sealed(self) -> Mapping[str, SealedFiles]:
        """Return what journal and audit spool still hold; see `CustomerData`."""
        found = {name: SealedFiles((*lines(),)) for name, lines in self._waiting.items()}
        return found | {"audit spool": SealedFiles((*self._spooled(),), (*self._others(),))}

    def _spooled(self) -> Iterator[str]:
        """Yield what of the spool is not in the trail: a file of it goes when it is replayed."""
        files = [path for path in self._spools() if self._is_own(path) and _may_have_events(path)]
        damaged = [path for path in files if QUARANTINE in path.name]
        if len(damaged) < len(files):
            yield (
                f"events wait in {len(files) - len(damaged):,} files of the audit spool, and may "
                "be anybody's: run this again when the trail has them"
            )
        for path in damaged:
            yield (
                f"{path.name} has what could not be read of the audit spool, and may be anybody's: "
                "remove it when nobody needs it"
            )

    def _others(self) -> Iterator[str]:
        """Yield the spools beside it, of which another application's database has the events."""
        others = [path for path in self._spools() if not self._is_own(path)]
        names = sorted({_spool_of(path) for path in others if _may_have_events(path)})
        if names:
            yield (
                f"not looked at, since events in them are another audit database's, or this one's "
                f"under an earlier MNEMOSCOPE_AUDIT_URL: {', '.join(names)}"
            )

    def _is_own(self, path: Path) -> bool:
        """Tell whether *path* is of this database's spool; where that is not known, any may be."""
        spool = self._spool
        return spool is None or f"{path}.".startswith(f"{spool}.")

    def _spools(self) -> list[Path]:
        spool, folder = self._spool, self._settings.data_folder
        own = [] if spool is None else _files(spool.parent, f"{escape(spool.name)}*")
        return [*dict.fromkeys([*own, *_files(folder, "audit-*.spool*")])]

    def stores(self, subject: DataSubject) -> Sequence[StoreData]:
        """Return the data of *subject* in each store of the scope."""
        return self._runner.stores(self._providers, subject)

    def erase_pseudonyms(self) -> int | None:
        """Erase the customer from the vault; see `CustomerData`."""
        if self._vault is None:
            return None
        try:
            return self._vault.forget(self._subject.customer, self._subject.tenant)
        except MnemoscopeError as exc:
            raise NotErasedError(str(exc)) from exc

    def files(self) -> Mapping[str, Sequence[Path]]:
        """Return the log file and its rotated files, by any program's naming."""
        log = self._settings.log_file
        if log is None:
            return {}
        return {"logs": _files(log.parent, f"{escape(log.stem)}*{escape(log.suffix)}*")}


def _spool_of(path: Path) -> str:
    name, spool, _process = path.name.partition(".spool")
    return name + spool


def _may_have_events(path: Path) -> bool:
    """Return whether a file of the spool has more than its beginning."""
    size_bytes = path.stat().st_size
    if path.suffix != SUFFIX:
        return size_bytes > HEADER_BYTES
    # Shorter than its first page it is torn: nobody can tell what was in it.
    return 0 < size_bytes < PAGE_BYTES or state_of(path).end != PAGE_BYTES


def _files(folder: Path, pattern: str) -> list[Path]:
    """Return the files in *folder*, but for those that are locks alone."""
    return [each for each in sorted(folder.glob(pattern)) if each.suffix != ".lock"]
