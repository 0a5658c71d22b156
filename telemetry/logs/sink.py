"""
Events as log records, through loguru.

There are three ways. To a file of ours: one JSON line an event, through a logger of our own, apart
from the host's handlers. To the host's loguru: one readable sentence an event, its fields bound as
``extra``; ordinary operations at DEBUG, abnormal ones at WARNING. ``logger.disable("mnemoscope")``
silences that, as for any library. Where the host never set loguru up, its own first handler would
print every DEBUG record on stderr: such a host is told the abnormal alone.
Or likewise to the standard library's ``logging``: see `records`. In each of them an event may have
the form of OCSF in place of our own fields: see `ocsf`.

No record holds content, unless the sink is opted in, or a person, other than as a keyed hash.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal

from ..delivery.sink import SinkOutput, UnavailableError
from ..event.event import AUDIT_CHECKPOINT, Event, Journalled
from ..text import clean_text, json_text, one_line, utc_text
from . import records
from .file import LogFile

Level = Literal["DEBUG", "WARNING"]
Host = Literal["loguru", "logging"]
LogFormat = Literal["json", "ocsf"]

_HELD: Final = 1_024


class LogSink:
    """
    Logs one record an event, on the drain's thread.

    Args:
        file: Write JSON lines here; created, rotated, and begun anew if deleted. None: to the host.
        host: What the host logs with: ``loguru`` or ``logging``, which structlog reads.
        content: Include redacted content.
        level: ``WARNING`` leaves out ordinary operations.
        most_bytes: Beyond which the file is moved aside, and another one begun.
        kept: Files kept that were moved aside.
        log_format: ``json``, our own fields, or ``ocsf``: one or more records an event.

    Attributes:
        idempotent: Whether a batch may be written again: to a file of ours, which has each line
            once then.
    """

    name = "logs"

    def __init__(
        self,
        *,
        file: Path | None = None,
        host: Host = "loguru",
        content: bool = False,
        level: Level = "DEBUG",
        most_bytes: int = 100_000_000,
        kept: int = 10,
        log_format: LogFormat = "json",
    ) -> None:
        self._file = LogFile(file, most_bytes=most_bytes, kept=kept) if file else None
        # A handler of the host's may have sent the record on: nobody can take it back.
        self.idempotent = file is not None
        self._path = file
        self._host: Host = host
        self._content = content
        self._level: Level = level
        self._is_ocsf = log_format == "ocsf"

    def write(self, batch: Sequence[Event], /) -> None:
        """
        Log *batch*.

        Raises:
            UnavailableError: The file cannot be written now.
        """
        all_of_them = self._wants_ordinary()
        wanted = [event for event in batch if all_of_them or not is_ordinary(event)]
        if self._file is None:
            self._write_to_host(wanted)
        elif wanted:
            # All in one write: half of the batch would be there twice, once it is written again.
            lines = "".join(
                f"{json_text(each)}\n" for event in wanted for each in self._lines(event)
            )
            try:
                self._file.append(lines)
            except OSError as exc:
                reason = (exc.strerror or type(exc).__name__).lower()
                raise UnavailableError(f"{self._path} cannot be written: {reason}") from exc

    def flush(self, _timeout_s: float, /) -> bool:
        """Return True: every write reaches the operating system before it returns."""
        return True

    def check(self, _timeout_s: float, /) -> str:
        """Find out whether the file can be written, if it is ours."""
        if self._file is None:
            return f"goes to your application's {self._host}"
        return self._file.check()

    def output(self) -> SinkOutput:
        """Return what leaves through this sink."""
        kind = f"the application's {self._host}" if self._file is None else "file"
        part = "all" if self._wants_ordinary() else "abnormal"
        return SinkOutput(kind, self._content, part=part)

    def close(self, _timeout_s: float, /) -> None:
        """Close the file, if it is ours."""
        if self._file is not None:
            self._file.close()

    def _wants_ordinary(self) -> bool:
        if self._level != "DEBUG":
            return False
        return self._file is not None or self._host != "loguru" or is_loguru_set_up()

    def _lines(self, event: Event) -> list[dict[str, Any]]:
        line = {
            "time": utc_text(event.started_ns // 1_000),
            "level": level_of(event),
            "message": sentence(event),
            **fields(event, content=self._content),
        }
        return self._records(event, line) if self._is_ocsf else [line]

    def _records(self, event: Event, line: dict[str, Any]) -> list[dict[str, Any]]:
        from . import ocsf  # noqa: PLC0415 - most logs are in our own form

        return ocsf.records_of(event, line)

    def _write_to_host(self, events: Sequence[Event]) -> None:
        log = _loguru if self._host == "loguru" else records.log
        for event in events:
            occurred = utc_text(event.started_ns // 1_000)
            for known in self._known(event):
                log(level_of(event), sentence(event), occurred, known)

    def _known(self, event: Event) -> list[dict[str, Any]]:
        """Return the fields of each record: of OCSF one, as its names are those of log records."""
        if not self._is_ocsf:
            return [fields(event, content=self._content)]
        return [{records.OCSF: each} for each in self._lines(event)]


def is_loguru_set_up() -> bool:
    """
    Return whether the host has said what loguru does: by a handler of its own, or ``LOGURU_LEVEL``.

    loguru shows its handlers nowhere in public. Where they cannot be read, it counts as not set up.
    """
    from loguru import logger  # noqa: PLC0415 - a disabled library imports nothing

    handlers = getattr(getattr(logger, "_core", None), "handlers", None)
    if handlers is None:
        return False
    # By id: a host that removes the first and adds its own never has that one again.
    return set(handlers) != {_FIRST_HANDLER} or "LOGURU_LEVEL" in os.environ


_FIRST_HANDLER: Final = 0
"""The id of the handler that loguru adds by itself, to stderr."""


def _loguru(level: str, sentence: str, occurred: str, known: dict[str, Any]) -> None:
    from loguru import logger  # noqa: PLC0415 - a disabled library imports nothing

    # No arguments: with them loguru would format the sentence, and braces in it would raise.
    logger.bind(occurred_at=occurred, **known).log(level, clean_text(sentence))


def is_ordinary(event: Event) -> bool:
    """Return whether the store answered, and with nothing that belongs to somebody else."""
    if event.notice is not None:
        return False
    # What a store hands out of somebody else's is a success to the store.
    return event.status.is_normal and not event.foreign_hits


def level_of(event: Event) -> Level:
    """Return the level that *event* is logged at."""
    return "DEBUG" if is_ordinary(event) else "WARNING"


_JOURNAL_PHRASES = {
    Journalled.APPENDED: "the write waits in the journal",
    Journalled.REPLAYED: "the write had waited in the journal",
    Journalled.LOST: "the write is lost",
    Journalled.FORGOTTEN: "the write had waited in the journal, and was deleted there",
    Journalled.SUPERSEDED: "the write had waited in the journal, and a later one has replaced it",
}


def sentence(event: Event) -> str:
    """Return a one-line description for people."""
    return one_line(_sentence(event))


def _sentence(event: Event) -> str:
    if (notice := event.notice) is not None:
        return notice.sentence()
    if event.operation == AUDIT_CHECKPOINT:
        return f"audit checkpoint of {event.collection}: {event.hits or 0:,} events sealed"
    parts = [f"{event.store} {event.operation} {event.status} in {event.duration_s * 1e3:.1f} ms"]
    if event.hits is not None:
        parts.append(f"{event.hits} result{'' if event.hits == 1 else 's'}")
    if event.foreign_hits:
        parts.append(f"{event.foreign_hits} of somebody else's")
    if event.usage:
        parts.append(f"{event.usage.input_tokens} tokens in, {event.usage.output_tokens} out")
    if event.error:
        parts.append(f"because of {event.error}")
    if event.neutral:
        parts.append("the agent was given a neutral value")
    if event.journal:
        parts.append(_JOURNAL_PHRASES[event.journal])
    if event.late:
        parts.append("the store was still at work")
    return ", ".join(parts)


_COMMON: Final = ("operation", "store", "method", "op_class", "status")
_FLAGS: Final = ("neutral", "late", "journal", "nested", "foreign_hits")
_KNOWN: Final = (
    *("collection", "error", "hits", "top_score", "size_bytes"),
    *("tenant", "agent", "feature", "run", "purpose"),
)
_NAMED_OTHERWISE: Final = {"op_class": "class"}
_common_of: Final = attrgetter(*_COMMON, *_FLAGS)
_known_of: Final = attrgetter(*_KNOWN)


@lru_cache(_HELD)
def _in_common(values: tuple[Any, ...], *, is_notice: bool) -> dict[str, Any]:
    """Return the fields that many events have in common; of flags, those that are set."""
    found: dict[str, Any] = {}
    for name, value in zip((*_COMMON, *_FLAGS), values, strict=True):
        # No store was asked for a notice; what its event has for one is a filling.
        is_shown = value if name in _FLAGS else not is_notice or name == "operation"
        if is_shown:
            # A plain string: formatters of the host's show an enumeration by its repr.
            plain = str(value) if isinstance(value, str) else value
            found[_NAMED_OTHERWISE.get(name, name)] = plain
    return found


def fields(event: Event, *, content: bool) -> dict[str, Any]:
    """Return the known fields of *event* by name, people only as keyed hashes."""
    is_notice, trace = event.is_notice, event.trace
    known = {"event_id": event.event_id, **_in_common(_common_of(event), is_notice=is_notice)}
    if not is_notice:  # no store was asked, and nobody waited
        known["duration_s"], known["waited_s"] = event.duration_s, event.waited_s
    values = zip(_KNOWN, _known_of(event), strict=True)
    known |= {name: value for name, value in values if value is not None}
    if event.subject is not None:
        # With the sink's own key, so that hashes of two sinks cannot be laid side by side.
        known["subject"] = event.subject.hashed("logs")
    known["trace_id"], known["span_id"] = trace.trace_hex, trace.span_hex
    if event.redactions:
        known["redactions"] = dict(event.redactions)
    for part in event.parts:
        known = {**{name: of for name, of in part.fields().items() if of is not None}, **known}
    if event.operation == AUDIT_CHECKPOINT:
        known["root"] = event.root
    # Redacted by now; and yet only for who has asked for it, since logs go far.
    if content and event.content is not None and (value := event.content.value) is not None:
        known["content"] = value
    return known
