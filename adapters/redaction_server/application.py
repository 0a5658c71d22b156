"""
The application behind ``mnemoscope redact --serve``.

``POST /mask`` answers a document redacted, as Langfuse's ingestion masking wants it. ``POST
/v1/traces`` and ``/v1/logs`` send it on, as a Collector's exporter wants it. Whatever goes wrong is
a status and one of our own sentences: no answer and no log line quotes a document.
"""

from __future__ import annotations

import gzip
import hmac
import logging
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import anyio
import orjson
import urllib3
from anyio.to_thread import run_sync
from google.protobuf.json_format import (  # type: ignore[import-untyped]
    MessageToDict,
    ParseDict,
    ParseError,
)
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...telemetry.otlp.redacted_document import NotOtlpError

logger = logging.getLogger("mnemoscope")

SECRET_HEADER: Final = "x-mnemoscope-secret"  # noqa: S105 - the name of one
_JSON: Final = "application/json"
_PROTOBUF: Final = "application/x-protobuf"
_PATHS: Final = ("/v1/traces", "/v1/logs")
_GOES_ON: Final = ("authorization", "x-scope-orgid")
"""Headers that are the next receiver's business."""

_AT_ONCE: Final = 4
"""Documents redacted at once: more would only wait for each other."""


class RedactionService(NamedTuple):
    """
    What the application does, and how far it goes.

    Attributes:
        redact: Returns an OTLP document redacted; see `redact_document`.
        secret: What the header ``x-mnemoscope-secret`` must be. None: every caller is served.
        forward: Address of an OTLP/HTTP receiver, before ``/v1/traces``. None: nothing is sent on.
        most_bytes: Of a body, as it is sent and as it is unpacked.
        timeout_s: Seconds for a redaction, and again for sending it on.
    """

    redact: Callable[[Any], Any]
    secret: str | None = None
    forward: str | None = None
    most_bytes: int = 16 * 1024 * 1024
    timeout_s: float = 10.0


class _RefusedError(Exception):
    def __init__(self, status: int, sentence: str, after: str | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = {"retry-after": after} if after else None


def build_redaction_server(service: RedactionService) -> Starlette:
    """Build the application."""
    places, pool = anyio.CapacityLimiter(_AT_ONCE), urllib3.PoolManager(maxsize=_AT_ONCE)

    async def answer(request: Request) -> Response:
        path, kind = request.url.path, request.headers.get("content-type", "").partition(";")[0]
        _check(request, service, kind)
        with anyio.fail_after(service.timeout_s):
            body = await _body_of(request, service.most_bytes)
            # A thread that is too late goes on in its place: nobody waits for it any more.
            redacted = await run_sync(
                _redacted, service, path, kind, body, limiter=places, abandon_on_cancel=True
            )
        if path in _PATHS:
            headers = {each: of for each in _GOES_ON if (of := request.headers.get(each))}
            headers |= {"content-type": kind, "content-encoding": "gzip"}
            taken = await run_sync(_send_on, pool, service, path, redacted, headers)
            redacted = _outcome(path, taken, is_json=kind == _JSON)
        return Response(redacted, media_type=kind)

    async def closed(request: Request) -> Response:
        try:
            return await answer(request)
        except _RefusedError as refused:
            return _refusal(refused.status, str(refused), refused.headers)
        except zlib.error:
            return _refusal(400, "expected a gzip stream")
        except TimeoutError:
            return _refusal(503, "it took too long")
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            # By its type alone: messages of parsers quote what they could not read.
            logger.warning("a document could not be redacted: %s", type(exc).__qualname__)
            return _refusal(500, "it could not be redacted")

    paths = ["/mask", *(_PATHS if service.forward else ())]
    return Starlette(routes=[Route(path, closed, methods=["POST"]) for path in paths])


def _check(request: Request, service: RedactionService, kind: str) -> None:
    given = request.headers.get(SECRET_HEADER, "")
    if service.secret and not hmac.compare_digest(given.encode(), service.secret.encode()):
        raise _RefusedError(401, f"the header {SECRET_HEADER} is missing or wrong")
    # Neither is a type that a page of somebody's may send from a browser without being allowed to.
    if kind not in {_JSON, _PROTOBUF}:
        raise _RefusedError(415, f"expected {_JSON} or {_PROTOBUF}")


async def _body_of(request: Request, most: int) -> bytes:
    encoding, body = request.headers.get("content-encoding", "identity"), bytearray()
    if encoding not in {"identity", "gzip"}:
        raise _RefusedError(415, "expected gzip, or no content-encoding")
    # One byte more than is allowed tells a bomb before it is unpacked.
    unpacker = zlib.decompressobj(wbits=31) if encoding == "gzip" else None
    async for piece in request.stream():
        body += unpacker.decompress(piece, most + 1) if unpacker else piece
        if len(body) > most:
            raise _RefusedError(413, f"expected at most {most:,} bytes")
    if unpacker and not unpacker.eof:
        raise _RefusedError(400, "the gzip stream is cut off")
    return bytes(body)


def _redacted(service: RedactionService, path: str, kind: str, body: bytes) -> bytes:
    message = ExportLogsServiceRequest if path == "/v1/logs" else ExportTraceServiceRequest
    try:
        if kind == _JSON:
            return orjson.dumps(service.redact(orjson.loads(body)))
        known = MessageToDict(message.FromString(body), use_integers_for_enums=True)
        return bytes(ParseDict(service.redact(known), message()).SerializeToString())
    except (NotOtlpError, DecodeError, orjson.JSONDecodeError) as exc:
        raise _RefusedError(400, "expected a document of OTLP traces or logs") from exc


def _send_on(
    pool: urllib3.PoolManager, service: RedactionService, path: str, body: bytes, headers: Any
) -> bytes:
    address = f"{(service.forward or '').rstrip('/')}{path}"
    packed = gzip.compress(body, 1)
    try:
        reply = pool.request(
            *("POST", address),
            body=packed,
            headers=headers,
            timeout=service.timeout_s,
            redirect=False,
            retries=False,
        )
    except urllib3.exceptions.HTTPError as exc:
        # A Collector sends it again after this status, and after no 500.
        raise _RefusedError(503, "the next receiver cannot be reached") from exc
    if reply.status != 200:  # noqa: PLR2004 - OTLP's one success
        # Without its text, which may quote the document.
        after = reply.headers.get("retry-after")
        raise _RefusedError(max(reply.status, 400), "the next receiver refused it", after)
    return reply.data


def _outcome(path: str, taken: bytes, *, is_json: bool) -> bytes:
    """Return OTLP's answer: how much the next receiver rejected, and not its words."""
    of_logs = path == "/v1/logs"
    answer: Any = ExportLogsServiceResponse if of_logs else ExportTraceServiceResponse
    field = "rejected_log_records" if of_logs else "rejected_spans"
    try:
        told = (
            ParseDict(orjson.loads(taken or b"{}"), answer(), ignore_unknown_fields=True)
            if is_json
            else answer.FromString(taken)
        )
        rejected = getattr(told.partial_success, field)
    except (DecodeError, ParseError, orjson.JSONDecodeError):
        rejected = 0  # it was taken, by something with an answer of its own
    said = answer(partial_success={field: rejected}) if rejected else answer()
    return orjson.dumps(MessageToDict(said)) if is_json else bytes(said.SerializeToString())


def _refusal(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps({"error": sentence}), status, headers, media_type=_JSON)
