"""
The spool: an encrypted file in which events wait while the audit database is unavailable.

What was appended is on the disk when `append` returns. Each process has a file of its own, and
takes over those that dead ones left. When the file is full the oldest events make room: who they
were is kept in it, so that the loss is declared, to the event, once the database is back.

Records are numbered, through all files of a spool (see `spool_ledger`). The log is told which
numbers were taken out, so that one which is gone is missed.

Events that a full queue has no room for are kept many to a record, as they are (see
`spool_blocks`): that takes a tenth of the time. Nothing makes room for them, since nobody may wait
for that.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import orjson

from ...telemetry.event.event import Event, Redacted
from ...telemetry.event.spelling import Spelling
from ...telemetry.files.file_lock import FileLock, lock_free_name, lockable_files, try_lock
from ...telemetry.files.framed_file import FramedFile, FramedFileFullError
from ...telemetry.files.framing import HEADER_BYTES, RECORD_BYTES, ByteRange, scan
from ...telemetry.network.probe import try_writing
from ...telemetry.process.fork import reset_after_fork
from ..database.errors import AuditError, KeyMissingError, reason_of
from ..record.header import Columns, Header, of_usage
from ..record.keys import Keyring, decrypted, encrypted
from ..record.rows import usage_from
from ..record.sealing import UnplacedEvent
from ..record.sequence_gaps import DAMAGED, SequenceGap, joined
from ..record.spool_numbers import Range, merged
from ..record.subjects import KnownAliases, aliases_of, spellings_of
from .spool_blocks import OTHER_KEY, TOP_BYTES, SpoolBlocks, SpoolRecord, count_in, is_block
from .spool_ledger import SpoolEnd, SpoolLedger

logger = logging.getLogger("mnemoscope.audit")

MAX_BYTES = 64 * 1024 * 1024
_KIND = b"mnaudits"
_BOUND_TO = b"mnemoscope/audit/spool"
_BATCH = 512
_BLOCK = 64
"""Events in one record, at most: as many are lost where it is damaged."""

_ROOM_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class SpoolStats:
    """
    Counts of what waits.

    Attributes:
        events: How many, in all files.
        size_bytes: How large the files are.
        full_ratio: How full the fullest is. At 1, events are lost.
    """

    events: int
    size_bytes: int
    full_ratio: float


@dataclass(frozen=True, slots=True)
class SpoolStanding:
    """
    What a spool holds at one moment.

    Attributes:
        end: Its name, and how far its numbers are.
        waiting: The numbers that are in it.
    """

    end: SpoolEnd
    waiting: list[Range]


class Spool:
    """
    The spool of one process. Not thread-safe. Opens nothing until something has to wait.

    Args:
        path: The file. Other processes use names beside it.
        ring: Its records are encrypted with a key of the current secret.
        max_bytes: How large the file may become.
        content: Makes the content of what was content. None: it keeps no events as they are.

    Attributes:
        path: As given.
        ledger: Numbers its records, and those of other processes.
        keeps_events: Whether it takes events as they are.
    """

    def __init__(
        self,
        path: Path,
        ring: Keyring,
        max_bytes: int = MAX_BYTES,
        *,
        content: Callable[[Any], Redacted] | None = None,
    ) -> None:
        self.path = path
        self.ledger = SpoolLedger(path, ring)
        self.keeps_events = content is not None
        self._content = content
        self._ring = ring
        self._max_bytes = max_bytes
        self._claim: FileLock | None = None
        self._file: FramedFile | None = None
        self._spans: list[ByteRange] = []
        self._events = 0
        self._blocks = SpoolBlocks(ring, content)
        reset_after_fork(self)

    def another(self) -> Spool:
        """Return one more spool of this process, with a file of its own."""
        return Spool(self.path, self._ring, self._max_bytes, content=self._content)

    def refusal(self) -> str | None:
        """Return why no file can be written in the spool's folder, in a few words; None: it can."""
        try:
            try_writing(self.path)
        except OSError as exc:
            return f"the audit spool {self.path} cannot be written ({reason_of(exc)})"
        return None

    @property
    def pending(self) -> int:
        """The number of this process's events that wait."""
        return self._events

    @property
    def size_bytes(self) -> int:
        """The size of this process's file."""
        return self._file.size_bytes if self._file is not None else 0

    @property
    def full_ratio(self) -> float:
        """How full this process's file is. At 1, events are lost."""
        return self.size_bytes / self._max_bytes

    def append(self, items: Sequence[UnplacedEvent | SequenceGap]) -> None:
        """
        Append *items*, all or none. They are on the disk when this returns.

        Raises:
            AuditError: They are not kept.
        """
        with self._kept_or_told(f"a batch is larger than the audit spool {self.path} may be"):
            file = self._opened()
            with self.ledger.taking(len(items)) as before:
                self._append(file, self._payloads(items, before))

    def append_events(self, events: Sequence[Event]) -> None:
        """
        Append *events*, all or none, without a wait for the disk: see `syncing`.

        Raises:
            AuditError: They are not kept: there is no room, or the disk takes none.
            UnacceptableError: One of them is no event.
        """
        written = self._blocks.encoded(events)
        with self._kept_or_told(f"the audit spool {self.path} is full"):
            file = self._opened()
            with self.ledger.taking(len(written), waits=False) as before:
                spans = file.append(self._sealed_blocks(written, before), syncs=False)
        self._spans += spans
        self._events += len(written)

    @contextmanager
    def _kept_or_told(self, when_full: str) -> Generator[None]:
        """Say in one line why what is appended is not kept."""
        try:
            yield
        except FramedFileFullError:
            raise AuditError(when_full) from None
        except OSError as exc:
            raise AuditError(
                f"the audit spool {self.path} cannot be written: {reason_of(exc)}"
            ) from exc

    def syncing(self) -> Callable[[], None] | None:
        """Return what has on the disk what is not yet there, as `FramedFile.syncing` does."""
        of_file = self._file.syncing() if self._file is not None else None
        if of_file is None:
            return None

        def sync() -> None:
            self.ledger.sync()  # first: what a power cut takes is missed by its number
            of_file()

        return sync

    def _sealed_blocks(self, written: Sequence[bytes], before: SpoolEnd | None) -> list[bytes]:
        return [
            self._blocks.sealed(
                written[start : start + _BLOCK],
                None if before is None else before._replace(end=before.end + start),
            )
            for start in range(0, len(written), _BLOCK)
        ]

    def _append(self, file: FramedFile, payloads: Sequence[bytes]) -> None:
        try:
            self._spans += file.append(payloads)
        except FramedFileFullError:
            self._make_room(file, sum(map(len, payloads)) + len(payloads) * RECORD_BYTES)
            self._spans += file.append(payloads)
        self._events += len(payloads)

    def replay(self, record: Record, declare: Declare, taken: Taken) -> int:
        """
        Hand over everything that waits, oldest first, and remove it once all of it is taken.

        Args:
            record: Takes events. Those that it had already must do no harm.
            declare: Takes losses.
            taken: Takes the numbers of all of them, once the events are taken.

        Returns:
            How many events there were.

        Raises:
            AuditError: Not all was taken; all of it still waits.
        """
        if self._file is None or not self._spans:
            return 0
        replayed = self._hand_over(self._file, self._spans, record, declare, taken)
        try:
            self._file.remove()
        except OSError as exc:
            raise AuditError(
                f"the audit spool {self.path} cannot be emptied: {reason_of(exc)}"
            ) from exc
        self._let_go()
        return replayed

    def adopt(self, record: Record, declare: Declare, taken: Taken) -> int:
        """Hand over what processes that are gone left behind; return how many events it was."""
        adopted = 0
        for path in lockable_files(self.path):
            if self._file is None or path != self._file.path:
                adopted += self._adopt(path, record, declare, taken)
        return adopted

    def has_left(self) -> bool:
        """Return whether processes that are gone may have left something."""
        for path in lockable_files(self.path):
            held = try_lock(path)
            if held is not None:
                held.release()
                return True
        return False

    def accepts(self) -> bool:
        """Return whether the next events can be kept, and nothing has to make room for them."""
        try:
            file = self._opened()
        except OSError:
            return False
        return file.size_bytes + _ROOM_BYTES <= self._max_bytes

    def stats(self) -> SpoolStats:
        """Return what waits, of all processes, by reading the files: nothing is changed."""
        events = size_bytes = fullest = 0
        for path in lockable_files(self.path):
            with suppress(OSError):
                data = path.read_bytes()
                spans = scan(data, _KIND).records
                events += sum(count_in(_top_of(data, each)) for each in spans)
                size_bytes += len(data)
                fullest = max(fullest, len(data))
        return SpoolStats(events, size_bytes, fullest / self._max_bytes)

    def standing(self) -> SpoolStanding | None:
        """
        Return what is in it, of all processes, changing nothing; None: that cannot be told.

        Raises:
            AuditError: It cannot be read, or some of it was written with another secret.
        """
        with self.ledger.standing_still() as end:
            if end is None:
                return None
            files = list(map(_content, lockable_files(self.path)))
        numbers = _joined(found for data in files for found in self._numbers_in(data))
        return SpoolStanding(end, numbers.get(end.spool, []))

    def _numbers_in(self, data: bytes) -> Iterator[Numbers]:
        for span in scan(data, _KIND).records:
            payload = data[span.start + RECORD_BYTES : span.end]
            with suppress(ValueError):
                if is_block(payload):
                    yield self._blocks.numbers(payload)
                else:
                    yield self._opened_record(payload).get("spool", {})

    def close(self) -> None:
        """Close the file. Its records stay, for the next process."""
        if self._file is not None:
            self._file.close()
        self._let_go()

    def forked(self) -> None:
        """Leave the file to the parent; a child has one of its own."""
        self.close()

    # -- the file ----------------------------------------------------------------------------------

    def _opened(self) -> FramedFile:
        if self._file is None:
            held = lock_free_name(self.path)
            try:
                file = FramedFile(held.path, kind=_KIND, max_bytes=self._max_bytes)
            except BaseException:
                held.release()
                raise
            self._claim, self._file = held, file
            _say_what_is_damaged(file)
            self._spans = list(file.recovery.records)
            self._events = sum(count_in(file.read(each)) for each in self._spans)
        return self._file

    def _let_go(self) -> None:
        held, self._claim, self._file, self._spans = self._claim, None, None, []
        self._events = 0
        if held is not None:
            held.release()

    def _adopt(self, path: Path, record: Record, declare: Declare, taken: Taken) -> int:
        held = try_lock(path)
        if held is None:
            return 0  # its process is alive
        try:
            file = FramedFile(path, kind=_KIND, max_bytes=self._max_bytes)
            _say_what_is_damaged(file)
            try:
                adopted = self._hand_over(file, file.recovery.records, record, declare, taken)
                file.remove()
            except AuditError:
                _sync(file)  # whoever wrote it may not have done so before it was gone
                raise
            finally:
                file.close()
        except OSError as exc:
            raise AuditError(f"the audit spool {path} cannot be read: {reason_of(exc)}") from exc
        finally:
            held.release()
        return adopted

    def _hand_over(
        self,
        file: FramedFile,
        spans: Sequence[ByteRange],
        record: Record,
        declare: Declare,
        taken: Taken,
    ) -> int:
        replayed = 0
        numbers: Numbers = {}
        waiting: list[UnplacedEvent] = []
        gaps: list[SequenceGap] = []
        for each in self._records(file, spans):
            waiting += [item for item in each.items if isinstance(item, UnplacedEvent)]
            gaps += [item for item in each.items if isinstance(item, SequenceGap)]
            numbers = _joined([numbers, each.numbers])
            if len(waiting) >= _BATCH:
                gaps += _refused(waiting, record)
                replayed += len(waiting)
                waiting = []
        gaps += _refused(waiting, record)
        for spool, ranges in numbers.items():
            taken(spool, ranges)
        for gap in joined(gaps):  # last: what is taken twice does no harm, what is declared does
            declare(gap)
        return replayed + len(waiting)

    def _records(self, file: FramedFile, spans: Iterable[ByteRange]) -> Iterator[SpoolRecord]:
        for span in spans:
            try:
                yield self._read(file.read(span))
            except ValueError:  # its writer is unknown: the gap in the sequence will show it
                continue
            except OSError as exc:
                raise AuditError(
                    f"the audit spool {file.path} cannot be read: {reason_of(exc)}"
                ) from exc

    def _read(self, payload: bytes) -> SpoolRecord:
        if is_block(payload):
            return self._blocks.opened(payload)
        known = self._opened_record(payload)
        return SpoolRecord([_unpacked(known)], known.get("spool", {}))

    def _make_room(self, file: FramedFile, wanted: int) -> None:
        """Drop the oldest events, as many as are wanted and a quarter of the file."""
        goal = max(wanted, self._max_bytes // 4)
        freed, dropped = 0, 0
        for span in self._spans:
            if freed >= goal:
                break
            freed += span.end - span.start
            dropped += 1
        records = list(self._records(file, self._spans[:dropped]))
        items = [item for each in records for item in each.items]
        lost = [each if isinstance(each, SequenceGap) else _lost(each) for each in items]
        packed = [_packed(each, self._ring) for each in joined(lost)]
        for each in packed[:1]:
            each["spool"] = _joined(each.numbers for each in records)
        gaps = list(map(self._sealed, packed))
        if HEADER_BYTES + wanted + sum(map(len, gaps)) + len(gaps) * RECORD_BYTES > self._max_bytes:
            raise FramedFileFullError
        kept = [file.read(each) for each in self._spans[dropped:]]
        self._spans = list(file.rewrite([*gaps, *kept]))
        self._events += len(gaps) - len(items)

    # -- records -----------------------------------------------------------------------------------

    def _payloads(
        self, items: Sequence[UnplacedEvent | SequenceGap], before: SpoolEnd | None
    ) -> list[bytes]:
        """Return *items*, numbered from the one behind *before*, as they are written."""
        packed = [_packed(each, self._ring) for each in items]
        if before is not None:
            for number, each in enumerate(packed, before.end + 1):
                each["spool"] = {before.spool: [(number, number)]}
        return list(map(self._sealed, packed))

    def _sealed(self, record: dict[str, Any]) -> bytes:
        key = self._ring.current.key("audit/spool")
        sealed = encrypted(key, orjson.dumps(record), _BOUND_TO)
        return self._ring.current_id.encode() + sealed

    def _opened_record(self, payload: bytes) -> dict[str, Any]:
        length = len(self._ring.current_id)
        keys = self._ring.get(payload[:length].decode("ascii", "replace"))
        if keys is None:
            raise KeyMissingError(OTHER_KEY)
        plaintext = decrypted(keys.key("audit/spool"), payload[length:], _BOUND_TO)
        return cast("dict[str, Any]", orjson.loads(plaintext))


Record = Callable[[Sequence[UnplacedEvent]], object]
Declare = Callable[[SequenceGap], object]
Taken = Callable[[str, list[Range]], object]
Numbers = dict[str, list[Range]]
"""Numbers of records, by spool."""


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # emptied meanwhile, which the log says
        return b""
    except OSError as exc:
        raise AuditError(f"the audit spool {path} cannot be read: {reason_of(exc)}") from exc


def spool_name(url: str) -> str:
    """Return a file name for the spool of the log at *url*: each log has one of its own."""
    return f"audit-{sha256(url.encode()).hexdigest()[:12]}.spool"


def _say_what_is_damaged(file: FramedFile) -> None:
    found = file.recovery
    if found.quarantine is not None:
        logger.error(
            "%d bytes of the audit spool %s could not be read, and are put aside in %s now: "
            "`mnemoscope audit verify` tells which events are missing",
            found.quarantined_bytes,
            file.path,
            found.quarantine,
        )


def _sync(file: FramedFile) -> None:
    with suppress(OSError):
        sync = file.syncing()
        if sync is not None:
            sync()


def _top_of(data: bytes, span: ByteRange) -> bytes:
    start = span.start + RECORD_BYTES
    return data[start : min(start + TOP_BYTES, span.end)]


def _joined(numbers: Iterable[Numbers]) -> Numbers:
    """Return all *numbers*, by spool: none are of records of an earlier release."""
    found: defaultdict[str, list[Range]] = defaultdict(list)
    for each in numbers:
        for spool, ranges in each.items():
            found[spool] += [(first, last) for first, last in ranges]
    return {spool: merged(ranges) for spool, ranges in found.items()}


def _refused(drafts: Sequence[UnplacedEvent], record: Record) -> list[SequenceGap]:
    """Record *drafts*; return those that are lost since they cannot be, whatever the database."""
    try:
        record(drafts)
    except (AuditError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - a defect costs the event it is about, and no other
        if len(drafts) == 1:
            only = drafts[0]
            return [SequenceGap(only.writer_id, only.writer_seq, only.writer_seq, DAMAGED)]
        middle = len(drafts) // 2
        return [*_refused(drafts[:middle], record), *_refused(drafts[middle:], record)]
    return []


def _lost(each: UnplacedEvent) -> SequenceGap:
    return SequenceGap(each.writer_id, each.writer_seq, each.writer_seq, "spool_full")


def _packed(each: UnplacedEvent | SequenceGap, ring: Keyring) -> dict[str, Any]:
    if isinstance(each, SequenceGap):
        return {"gap": list(each)}
    subject = each.subject
    aliases = {} if subject is None else aliases_of(subject, ring)
    spellings = {} if subject is None else spellings_of(subject, ring, aliases)
    return {
        "header": [*each.header[:-1], list(each.header.columns)],
        "usage": None if each.usage is None else of_usage(each.usage),
        "writer": [each.writer_id, each.writer_seq],
        "detail": None if each.detail is None else each.detail.decode(),
        "aliases": aliases or None,
        "spellings": {
            key_id: (spelling.folded, spelling.sealed.hex())
            for key_id, spelling in spellings.items()
        },
        "tenant": each.tenant,
        "run": each.run,
        "place": each.place,
        "memories": each.memories,
    }


def _unpacked(known: dict[str, Any]) -> UnplacedEvent | SequenceGap:
    if "gap" in known:
        return SequenceGap._make(known["gap"])
    aliases: dict[str, str] | None = known["aliases"]
    spellings = {
        key_id: Spelling(folded, bytes.fromhex(sealed))
        for key_id, (folded, sealed) in known.get("spellings", {}).items()
    }
    kind, fields, occurred_us, columns = known["header"]
    if isinstance(fields, str):  # of a release whose headers were texts with places to fill in
        fields = orjson.loads(fields % ("null", "", "", 0, 0, "null"))
    detail = known["detail"]
    writer_id, writer_seq = known["writer"]
    return UnplacedEvent(
        header=Header(kind, fields, occurred_us, Columns(*columns)),
        writer_id=writer_id,
        writer_seq=writer_seq,
        detail=None if detail is None else detail.encode(),
        subject=None if aliases is None else KnownAliases(aliases, spellings),
        alias=None if aliases is None else next(iter(aliases.values())),
        tenant=known["tenant"],
        run=known["run"],
        place=known["place"],
        memories=tuple((memory_id, score) for memory_id, score in known["memories"]),
        usage=usage_from(known["usage"]),
    )
