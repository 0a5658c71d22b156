"""
Events as log records, through loguru.

There are three ways. To a file of ours: one JSON line an event, through a logger of our own, apart
from the host's handlers. To the host's loguru: one readable sentence an event, its fields bound as
``extra``; ordinary operations at DEBUG, abnormal ones at WARNING. ``logger.disable("mnemoscope")``
silences that, as for any library.
Or likewise to the standard library's ``logging``: see `records`.

No record holds content, unless the sink is opted in, or a person, other than as a keyed hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from ..delivery.sink import SinkOutput
from ..event.event import Event, Journalled
from ..event.text import clean_text, json_text, one_line, utc_text
from ..event.usage import Usage
from . import records
from .file import LogFile

Level = Literal["DEBUG", "WARNING"]
Host = Literal["loguru", "logging"]


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
    """

    name = "logs"
    idempotent = False

    def __init__(
        self,
        *,
        file: Path | None = None,
        host: Host = "loguru",
        content: bool = False,
        level: Level = "DEBUG",
        most_bytes: int = 100_000_000,
        kept: int = 10,
    ) -> None:
        self._file = LogFile(file, most_bytes=most_bytes, kept=kept) if file else None
        self._host: Host = host
        self._content = content
        self._level: Level = level

    def write(self, batch: Sequence[Event], /) -> None:
        """Log *batch*. Raises if the file cannot be written."""
        wanted = [event for event in batch if self._level == "DEBUG" or not is_ordinary(event)]
        if self._file is None:
            self._write_to_host(wanted)
        elif wanted:
            self._file.append("".join(json_text(self._line(event)) + "\n" for event in wanted))

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
        part = "all" if self._level == "DEBUG" else "abnormal"
        return SinkOutput(kind, self._content, part=part)

    def close(self, _timeout_s: float, /) -> None:
        """Close the file, if it is ours."""
        if self._file is not None:
            self._file.close()

    def _line(self, event: Event) -> dict[str, Any]:
        return {
            "time": utc_text(event.started_ns // 1_000),
            "level": level_of(event),
            "message": sentence(event),
            **fields(event, content=self._content),
        }

    def _write_to_host(self, events: Sequence[Event]) -> None:
        log = _loguru if self._host == "loguru" else records.log
        for event in events:
            occurred = utc_text(event.started_ns // 1_000)
            known = fields(event, content=self._content)
            log(level_of(event), sentence(event), occurred, known)


def _loguru(level: str, sentence: str, occurred: str, known: dict[str, Any]) -> None:
    from loguru import logger  # noqa: PLC0415 - a disabled library imports nothing

    logger.bind(occurred_at=occurred, **known).log(level, clean_text(sentence))


def is_ordinary(event: Event) -> bool:
    """Return whether the store answered, and with nothing that belongs to somebody else."""
    if event.budget_event is not None or event.verdict is not None:
        return False
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
    if (notice := event.budget_event or event.verdict) is not None:
        return notice.sentence()
    if event.root is not None:
        return f"audit checkpoint of {event.collection}: {event.hits or 0:,} events sealed"
    parts = [
        f"{event.store} {event.operation} {event.status.value} in {event.duration_s * 1e3:.1f} ms"
    ]
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


def fields(event: Event, *, content: bool) -> dict[str, Any]:
    """Return the known fields of *event* by name, people only as keyed hashes."""
    known = {
        "event_id": event.event_id,
        "operation": event.operation,
        **({} if event.is_notice else _call_fields(event)),
        "collection": event.collection,
        "neutral": event.neutral or None,
        "late": event.late or None,
        "journal": event.journal.value or None,
        "nested": event.nested or None,
        "error": event.error,
        "hits": event.hits,
        "root": event.root,
        "foreign_hits": event.foreign_hits or None,
        "top_score": event.top_score,
        "size_bytes": event.size_bytes,
        "iteration": event.iteration,
        "inner_cost_usd": event.inner_cost_usd,
        "mode": event.mode,
        "redactions": dict(event.redactions) or None,
        "subject": event.subject.hashed("logs") if event.subject else None,
        "tenant": event.tenant,
        "agent": event.agent,
        "feature": event.feature,
        "run": event.run,
        "purpose": event.purpose,
        "trace_id": event.trace.trace_hex,
        "span_id": event.trace.span_hex,
        **(_usage_fields(event.usage) if event.usage else {}),
        **(event.budget_event.fields() if event.budget_event else {}),
        **(event.verdict.fields() if event.verdict else {}),
        "content": event.content.value if content and event.content else None,
    }
    return {name: value for name, value in known.items() if value is not None}


def _call_fields(event: Event) -> dict[str, Any]:
    """Return the fields by which the calls of a store are counted."""
    return {
        "store": event.store,
        "method": event.method,
        "class": event.op_class.value,
        "status": event.status.value,
        "duration_s": event.duration_s,
        "waited_s": event.waited_s,
    }


def _usage_fields(usage: Usage) -> dict[str, Any]:
    return {
        "model": usage.model,
        "provider": usage.provider,
        "node": usage.node,
        "namespace": "/".join(usage.namespace) or None,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cache_write_tokens": usage.cache_write_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "time_to_first_token_s": usage.time_to_first_token_s,
        "cost_usd": usage.cost_usd,
    }
