"""A copy in ClickHouse: rows with proofs, and sums for dashboards. Its SQL is beside this file."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from importlib.resources import files
from string import Template
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from clickhouse_connect import get_client  # pyright: ignore[reportUnknownVariableType]
from clickhouse_connect.driver.exceptions import ClickHouseError

from .record import EVENT, CopyRecord, SealedDetail
from .source import BATCH
from .target import CopyError

_CHECKPOINT = "origin size proof leaf"
_EVENT = "origin seq run header leaf detail_subject detail_key detail detail_expires_us"
_NO_DETAIL = SealedDetail("", "", b"", 1 << 62)
_NO_EVENT = 1 << 62
_READ_OFF = re.compile(r"^  (\w+) .* DEFAULT (.*?\$sealed[^ ,]*(?:, 'UTC'\))?)", re.MULTILINE)
"""A column, and how it is read off the header as a row is inserted."""

_AS_BYTES = dict.fromkeys(("header", "leaf", "detail"), "bytes")


class ClickHouseCopy:
    """
    A copy in a database of ClickHouse, to be written or read.

    Args:
        url: ``clickhouse://user:password@host:port/database``; ``?secure=true`` for TLS; or
            ``chdb:///folder``, an engine in this process.

    Raises:
        ValueError: The URL is not one.
        CopyError: It cannot be reached.
    """

    expired, compacted = 0, False
    wrong: Sequence[str] = ()
    unread: Mapping[str, tuple[int, int]] = MappingProxyType({})

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        try:
            place = f"{parts.hostname or ''}:{parts.port or ''}".rstrip(":")
        except ValueError:  # quotes it, and what stands there may be a password
            raise ValueError("a ClickHouse is at clickhouse://user:password@host:port/db") from None
        self._label, self._origin = f"{parts.scheme}://{place}{parts.path}", ""
        with self._asking("reached"):
            dsn = parts._replace(query="").geturl()
            self._client: Any = get_client(dsn=dsn, secure=parts.query == "secure=true")

    def resume_at(self, origin: str) -> int:
        """Make tables and views, and return the number of the event to go on from."""
        with self._asking("written"):
            for statement in _statements("clickhouse"):
                self._client.command(statement)
            given = {"origin": origin, "batch": BATCH}
            found = self._client.query(_statements("clickhouse_copy")[0], given)
            self._origin = origin
            self._sum_up(is_all=True)
        return int(found.first_item["at"]) if found.row_count else 0

    def send(self, records: Sequence[CopyRecord]) -> int:
        """Store *records*, and sum up the hours that are over. Sets none aside."""
        events = [each for each in records if each.kind == EVENT]
        rows = [(*each[:1], *each[2:6], *(each.detail or _NO_DETAIL)) for each in events]
        notes = [(*each[:1], each.seq, *each[4:6]) for each in records if each.kind != EVENT]
        sent = {"audit_checkpoint": (_CHECKPOINT, notes), "audit_event": (_EVENT, rows)}
        with self._asking("written"):
            for table, (columns, found) in sent.items():
                if found:  # acknowledged when it is stored, whatever the user's profile says
                    self._client.insert(table, found, columns.split(), settings={"async_insert": 0})
            self._sum_up(sent_from=min((each.seq for each in events), default=_NO_EVENT))
        return 0

    def close(self) -> None:
        """Sum up the last hour, as if it were over, and disconnect."""
        with suppress(ClickHouseError):  # or the next stream does
            if self._origin:
                self._sum_up(is_over=True)
        self._client.close()

    def records(self) -> Iterator[CopyRecord]:
        """Yield all rows, checkpoints first, and disconnect."""
        _resume, *reads, expired, changed = _statements("clickhouse_copy")
        with self._asking("read"), closing(self._client):
            for statement in reads:
                with self._client.query_rows_stream(statement, column_formats=_AS_BYTES) as rows:
                    for row in rows:
                        detail = SealedDetail(*row[6:]) if row[6] else None
                        yield CopyRecord._make((*row[:6], detail))
            self.expired = int(self._client.query(expired).first_row[0])
            if events := self._client.query(changed).first_row[0]:
                self.wrong = (f"{events:,} events have a column that is not what was sealed",)

    def _sum_up(
        self, *, is_all: bool = False, is_over: bool = False, sent_from: int = _NO_EVENT
    ) -> None:
        hours, sums, mark = _statements("clickhouse_sums")
        given: dict[str, Any] = {"origin": self._origin, "sent_from": sent_from}
        given |= {"is_all": is_all, "is_over": is_over}
        given |= self._client.query(hours, given).first_item
        if given["until"] > given["since"]:
            for kind in ("spend", "recall", "deviation"):
                self._client.command(sums.replace("$kind", kind), given)
        elif not is_all:  # else the mark alone may be another one: the last hour goes on
            return
        self._client.command(mark, given)

    @contextmanager
    def _asking(self, what: str) -> Generator[None]:
        try:
            yield
        except ClickHouseError as exc:  # its own words may quote a row, or the URL
            reason = getattr(exc, "name", None) or type(exc).__name__
            raise CopyError(f"{self._label} cannot be {what} ({reason})") from None


@cache
def _statements(name: str) -> Sequence[str]:
    here = files(__package__ or "")
    names = ("clickhouse_sealed", "clickhouse", name)
    sealed, tables, text = ((here / f"{each}.sql").read_text("utf-8") for each in names)
    changed = (f"{column} IS DISTINCT FROM {its}" for column, its in _READ_OFF.findall(tables))
    text = Template(text.replace("$changed", " OR ".join(changed))).safe_substitute(
        sealed=sealed.strip()
    )
    return text.removesuffix(";\n").split(";\n")


target = copy = ClickHouseCopy
