"""
The webhooks sink: one signed POST for each event that needs somebody's attention.

Its queue holds these events alone, so that a receiver may be away for long. Each message goes out
at least once, under one id: a receiver that has seen the id has seen the message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

import orjson

from ..delivery.sink import DeliveryError, SinkOutput, UnacceptableError, UnavailableError
from ..event.event import Event
from ..event.subject import SubjectKeys
from ..network.probe import connect
from ..network.timeouts import answered, time_limit
from ..process.fork import reset_after_fork
from ..process.late_imports import LATE_IMPORTS
from . import Kind
from .messages import SINK, kind_of, message, message_id, sentence
from .signing import sign

if TYPE_CHECKING:
    from ..network.http import BoundedSession

TIMEOUT_S: Final = 5.0
"""Most seconds one message may take."""

_REMEMBERED: Final = 2_048
_PASSING: Final = frozenset({408, 425, 429})


class WebhookSink:
    """
    Sends messages to one receiver.

    Args:
        url: Where to. A secret: that of a chat service is all that it takes to write there.
        keys: Make the hashes of customers and runs.
        key: Signs the messages. None: they are not signed, as chat services want them.
        form: The body: as Standard Webhooks has it, or ``{"text": …}``.
        kinds: Of the messages that are sent.
        console: Address of the console, for a link.
        clock: Seconds since 1970.
    """

    name = SINK
    idempotent = True
    keeps_pseudonyms = True  # runs go by the names that the processes know which are to end them

    def __init__(
        self,
        url: str,
        keys: SubjectKeys,
        *,
        key: bytes | None = None,
        form: Literal["standard", "slack"] = "standard",
        kinds: Collection[Kind],
        console: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._url, self._keys, self._key, self._form = url, keys, key, form
        self._kinds, self._console, self._clock = frozenset(kinds), console, clock
        self._answered: dict[str, bool] = {}
        self._is_gone = False
        self._session: BoundedSession | None = None
        self._inherited: list[BoundedSession] = []
        reset_after_fork(self)

    def selects(self, event: Event, /) -> bool:
        """Return whether there is a message on *event*."""
        return kind_of(event) in self._kinds

    def write(self, batch: Sequence[Event], /) -> None:
        """
        Send a message for each of *batch* that has one, oldest first.

        Raises:
            UnavailableError: The receiver is away or overloaded.
            UnacceptableError: It refuses the message, or wants none any more: 410.
            DeliveryError: It answered something else that is no success.
        """
        for event in batch:
            kind, known = kind_of(event), self._answered.get(message_id(event))
            # Of a batch that is tried again: only what has not arrived.
            if kind in self._kinds and known is not True:
                self._send(event, kind, was_refused=known is False)

    def flush(self, timeout_s: float, /) -> bool:
        """Return True: nothing waits here."""
        del timeout_s
        return True

    def check(self, timeout_s: float, /) -> str:
        """Connect to the receiver. Nothing is sent: it would be taken for a message."""
        where = urlsplit(self._url)
        if self._is_gone:
            raise DeliveryError("the receiver has answered 410: it wants no messages any more")
        port = where.port or (443 if where.scheme == "https" else 80)
        connect(where.hostname or "", port, timeout_s)
        return f"listens at {where.hostname}"

    def output(self) -> SinkOutput:
        """Return what leaves through this sink."""
        return SinkOutput("webhook", content=False, part="abnormal")

    def close(self, timeout_s: float, /) -> None:
        """Close the connection."""
        del timeout_s
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def forked(self) -> None:
        """Begin anew in a forked child: connections carried over belong to the parent."""
        if self._session is not None:
            self._inherited.append(self._session)
        self._session = None

    def _send(self, event: Event, kind: Kind, *, was_refused: bool) -> None:
        if self._is_gone or was_refused:
            raise UnacceptableError("the receiver refused the message")
        said = message(event, kind, self._keys, self._console)
        body = orjson.dumps({"text": sentence(said)} if self._form == "slack" else said)
        status, retry_after_s = self._posted(message_id(event), body)
        if status is None or status >= 500 or status in _PASSING:  # noqa: PLR2004 - the servers' errors
            raise UnavailableError(f"the receiver answered {status or 'nothing'}", retry_after_s)
        if len(self._answered) >= _REMEMBERED:
            self._answered.clear()
        self._is_gone = status == HTTPStatus.GONE
        if self._is_gone or status in {400, 413, 422}:
            self._answered[message_id(event)] = False
            raise UnacceptableError(f"the receiver refused the message with {status}")
        if not 200 <= status < 300:  # noqa: PLR2004 - a redirect is none either: it is not followed
            # As often as any other error: whoever forgot to open the door may do it meanwhile.
            raise DeliveryError(f"the receiver answered {status}")
        self._answered[message_id(event)] = True

    def _posted(self, message_id: str, body: bytes) -> tuple[int | None, float | None]:
        """Return what the receiver answers, and for how long it wants to be left alone."""
        with LATE_IMPORTS:
            import requests  # noqa: PLC0415 - on the lane's thread

            from ..network.http import BoundedSession  # noqa: PLC0415 - see above

        if self._session is None:
            self._session = BoundedSession(takes_pages=True)
        now_s = int(self._clock())
        headers = {"content-type": "application/json"}
        if self._key is not None:
            headers |= {"webhook-id": message_id, "webhook-timestamp": str(now_s)}
            headers["webhook-signature"] = sign(self._key, message_id, now_s, body)
        with time_limit(TIMEOUT_S):
            # Not raised on: the error quotes the address, which is a secret.
            with suppress(requests.RequestException, OSError, ValueError):
                self._session.post(self._url, data=body, headers=headers, allow_redirects=False)
            return answered()
