"""
The door for webhooks that decide and abort: a route for any Starlette application.

A webhook is believed for its signature, its time and its id, in this order: whoever has no secret
learns nothing of the rest. Each answer is a status and one plain sentence, which quotes nothing.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ...audit.database.errors import AuditError
from ...audit.log import AuditLog
from ...audit.record.lived_time import SKEW_US
from ...memory.privacy.engine.redactor import Redactor
from ...memory.rules.aborts import abort_event
from ...memory.rules.decisions import CODE
from ...telemetry.event.subject import Subject
from ...telemetry.webhooks.signing import (
    TOLERANCE_S,
    SignatureError,
    StaleError,
    parse_secret,
    verify,
)
from ..deciding import EditError, decide, held_of

MOST_BYTES: Final = 131_072
"""Of a body: JSON may take six bytes for each character of the longest text."""

_REFERENCE: Final = re.compile("[a-z2-7]{26}")
_DONE = (200, "done")
_UNKNOWN_RUN = (202, "sealed, and the audit trail knows no such run yet")
_REPEATED = (409, "this webhook-id was received before")

Answer = tuple[int, str]
"""A status and its sentence."""


class _Message(msgspec.Struct):
    """The body of a webhook."""

    type: Literal["decide", "abort"]
    data: dict[str, Any]


class _Decide(msgspec.Struct, forbid_unknown_fields=True):
    approval: str
    choice: Literal["approve", "edit", "reject", "skip"]
    by: str
    why: str = ""
    text: str | None = None


class _Abort(msgspec.Struct, forbid_unknown_fields=True):
    by: str
    run: str = ""
    name: str = ""
    tenant: str | None = None
    why: str = ""


def routes(
    log: AuditLog,
    secret: str,
    *,
    path: str = "/webhooks",
    redactor: Redactor | None = None,
    clock: Callable[[], float] = time.time,
) -> list[Route]:
    """
    Return the route that takes webhooks.

    Args:
        log: The audit trail that decisions and aborts are sealed in: ``scope.audit``.
        secret: ``whsec_…``, which the senders sign with.
        path: Where it is mounted.
        redactor: ``scope.redactor``, for the texts of edits. None: by the settings of the
            environment.
        clock: Seconds since 1970.

    Raises:
        ValueError: The secret is none.
    """
    inbox = _Inbox(log, parse_secret(secret), redactor, clock)

    async def receive(request: Request) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                return PlainTextResponse("the body is too large\n", 413)
        status, said = await run_in_threadpool(inbox.take, request.headers, body)
        return PlainTextResponse(f"{said}\n", status)

    return [Route(path, receive, methods=["POST"])]


class _Inbox:
    """Takes each webhook once. Thread-safe."""

    def __init__(
        self,
        log: AuditLog,
        key: bytes,
        redactor: Redactor | None,
        clock: Callable[[], float],
    ) -> None:
        self._log, self._key, self._redactor, self._clock = log, key, redactor, clock
        self._seen: dict[str, float] = {}
        self._guard = threading.Lock()

    def take(self, headers: Mapping[str, str], body: bytes) -> Answer:
        """Return status and sentence for a webhook, once what it asks for is sealed."""
        try:
            message_id, sent_s = verify(self._key, headers, body, self._clock())
        except StaleError as exc:
            return 400, str(exc)
        except SignatureError as exc:
            return 401, str(exc)
        if not self._is_new(message_id):
            return _REPEATED
        try:
            status, said = self._act(message_id, sent_s, body)
        except AuditError:
            status, said = 503, "the audit trail cannot be used now: send it again"
        if status >= 500:  # noqa: PLR2004 - the sender is to try again, under the same id
            with self._guard:
                self._seen.pop(message_id, None)
        return status, said

    def _is_new(self, message_id: str) -> bool:
        now = self._clock()
        with self._guard:
            # Beyond that its timestamp is refused.
            self._seen = {
                each: at for each, at in self._seen.items() if now - at <= 2 * TOLERANCE_S
            }
            is_new = message_id not in self._seen
            self._seen[message_id] = now
        return is_new

    def _act(self, message_id: str, sent_s: int, body: bytes) -> Answer:
        try:
            message = msgspec.json.decode(body, type=_Message)
            kind: type[_Decide | _Abort] = _Decide if message.type == "decide" else _Abort
            order = msgspec.convert(message.data, kind)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return 422, "expected {type: decide or abort, data: {…}}: see docs/webhooks.md"
        if not order.by or (order.why and not CODE.fullmatch(order.why)):
            return (
                422,
                "expected who it is as by; a reason is a code: up to 64 of a-z, 0-9, _, -, .",
            )
        if isinstance(order, _Decide):
            return self._decide(order, sent_s)
        by = Subject(order.by, tenant=None, keys=self._log.ring.current)
        return self._abort(order, message_id, by)

    def _decide(self, order: _Decide, sent_s: int) -> Answer:
        found = held_of(self._log, order.approval)
        # Held again since it was decided and used up. A process that has not seen the id would
        # take the decision on the first time for one on the second.
        if found is not None and found.standing.used and (sent_s + 1) * 1e6 <= found.since_us:
            return 409, "the decision is older than what it is on"
        if order.text is not None and order.choice != "edit":
            return 422, "expected a text with the choice edit alone"
        try:
            decided = decide(
                self._log,
                order.approval,
                order.choice,
                by=order.by,
                why=order.why,
                text=order.text,
                redactor=self._redactor,
            )
        except EditError as exc:
            return 422, str(exc)
        if decided is None:
            return 404, "there is no such approval"
        return _DONE if decided.is_first else (409, f"decided already: {decided.choice}")

    def _abort(self, order: _Abort, message_id: str, by: Subject) -> Answer:
        if bool(order.run) == bool(order.name) or (
            order.run and not _REFERENCE.fullmatch(order.run)
        ):
            return 422, "expected either run, as messages have it, or name and tenant"
        run = order.run or self._log.ring.current.run_reference(order.tenant, order.name)
        # The trail takes it once, whichever process receives it and however often.
        event = abort_event(run, message_id, by, order.why)
        if not self._log.append([event]):
            return _REPEATED
        return _DONE if self._knows(run, order.name) else _UNKNOWN_RUN

    def _knows(self, run: str, name: str) -> bool:
        """Return whether the trail has events of a run, as far as they can all be read."""
        refer, now_us = self._log.ring.current.run_reference, round(self._clock() * 1e6)
        found = self._log.runs(since_us=0, until_us=now_us + SKEW_US, run=name or None)
        its = (refer(each.address.tenant, each.address.run) for each in found.runs)
        return found.is_cut or run in its
