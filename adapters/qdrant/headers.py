"""
Trace headers that tie requests in a Qdrant server's logs to the operations that made them.

Requests over REST and gRPC carry the ids of the operation's span: ``traceparent`` and the host's
``tracestate`` (W3C Trace Context), and ``x-request-id``, which is the span's id alone, as events,
logs and audit rows have it. What the host set for itself with ``qdrant_client.context_headers``
stays. Uploads over REST go through connections of their own making, which carry neither.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from opentelemetry import trace as otel_trace
from qdrant_client import context_headers

from ...memory.guard.call import Call
from ...memory.guard.guard import UNTRACED
from ...memory.guard.operation import Arguments
from ...memory.guard.step import Around, AsyncInvoke, Invoke
from ...telemetry.event.trace import TraceRef
from ...telemetry.process.faults import Faults

REQUEST_ID = "x-request-id"

_REMOTE = {"QdrantRemote", "AsyncQdrantRemote"}


def headers_for(client: object, faults: Faults) -> tuple[Around, ...]:
    """Return the wrapper that sets headers around calls, if *client* talks to a Qdrant server."""
    remote = type(getattr(client, "_client", None)).__name__ in _REMOTE
    return (RequestHeaders(faults),) if remote else ()


class RequestHeaders:
    """
    Wrapper that sends the ids of an operation along with its requests.

    Args:
        faults: Notes a broken span of the host's.
    """

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def wrap(self, call: Call, invoke: Invoke) -> Invoke:
        """Wrap *invoke* so that its requests carry the headers of *call*."""
        headers = self._headers(call)

        def carrying(given: Arguments) -> Any:
            with _HeaderContext(headers):
                return invoke(given)

        return carrying

    def awrap(self, call: Call, invoke: AsyncInvoke) -> AsyncInvoke:
        """As `wrap`, for coroutines."""
        headers = self._headers(call)

        async def carrying(given: Arguments) -> Any:
            with _HeaderContext(headers):
                return await invoke(given)

        return carrying

    def _headers(self, call: Call) -> Mapping[str, str]:
        try:
            return headers_of(call.trace)
        except Exception as exc:  # noqa: BLE001 - the host's span may be broken
            self._faults.note("qdrant.headers", exc)
            return {}


def headers_of(ref: TraceRef) -> dict[str, str]:
    """
    Return the headers of a request that belongs to *ref*, without those that the host set itself.

    Called where the host's span is still the current one: it alone has a ``tracestate``.
    """
    # An id that stands for no trace would join all such requests into one.
    if ref is UNTRACED:
        return {}
    flags = "01" if ref.sampled else "00"
    found = {
        "traceparent": f"00-{ref.trace_hex}-{ref.span_hex}-{flags}",
        REQUEST_ID: ref.span_hex,
    }
    around = otel_trace.get_current_span().get_span_context()
    # The state belongs to its trace: with another id it would be of vendors who never saw that.
    if around.trace_id == ref.trace_id and around.trace_state:
        found["tracestate"] = around.trace_state.to_header()
    current, ours = context_headers.get_context_headers(), _carried.get()
    # A call inside another carries its own ids, not the outer one's.
    theirs = {name.lower() for name, value in current.items() if ours.get(name) != value}
    return {name: value for name, value in found.items() if name not in theirs}


_carried: ContextVar[Mapping[str, str]] = ContextVar("mnemoscope_qdrant_headers", default={})  # noqa: B039 - never changed


class _HeaderContext:
    """
    Context whose requests carry *headers*.

    A body that is ended from another context, as the collector ends a forgotten coroutine, leaves
    nothing of ours there to take away.
    """

    __slots__ = ("_headers", "_held", "_token")

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._held = context_headers.headers(dict(headers))

    def __enter__(self) -> None:
        self._token = _carried.set(self._headers)
        self._held.__enter__()

    def __exit__(self, *_exc: object) -> None:
        try:
            self._held.__exit__(None, None, None)
            _carried.reset(self._token)
        # A generator may be closed in another context than it was begun in, where the token is not
        # valid.
        except ValueError:
            pass
