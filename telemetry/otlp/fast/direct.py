"""
Encoding of export requests without the SDK, used only if it equals the SDK's own.

Found out once, with each exporter that is made: spans of a few made-up events are encoded both
ways, and only if both messages say the same are ours sent from then on. What the SDK puts around
spans and what it says of their parents is taken from its own message.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.sampling import DEFAULT_ON

from ...event.event import Event
from ...event.examples import EXAMPLES
from ...event.trace_ref import TraceRef
from .wire import MOST_ATTRIBUTES, framed, span_of

_RESOURCE_SPANS, _SCOPE_SPANS = b"\x0a", b"\x12"
_FLAGS: Final = b"\x85\x01"


class DirectSpans:
    """
    Encodes events as export requests.

    Args:
        examples: What the SDK's encoder makes of the spans of `EXAMPLES`.
        content: Whether redacted content goes onto spans.
    """

    def __init__(self, examples: Any, *, content: bool) -> None:
        self._content = content
        around = examples.resource_spans[0]
        spans = around.scope_spans[0].spans
        self._flags = {
            _parentage(event.trace): _FLAGS + struct.pack("<I", span.flags)
            for event, span in zip(EXAMPLES, spans, strict=True)
        }
        self._scope = _without(around.scope_spans[0], "spans")
        self._resource = _without(around, "scope_spans")

    def request(self, batch: Sequence[Event]) -> bytes:
        """
        Return ``ExportTraceServiceRequest`` with the spans of *batch*, all sampled.

        Raises:
            TypeError, ValueError, OverflowError, struct.error: Something in it fits no attribute.
        """
        spans = [span_of(event, self._flags_of, content=self._content) for event in batch]
        scope = framed(_SCOPE_SPANS, self._scope + b"".join(spans))
        return framed(_RESOURCE_SPANS, self._resource + scope)

    def _flags_of(self, ref: TraceRef) -> bytes:
        return self._flags[_parentage(ref)]


def _parentage(ref: TraceRef) -> bool | None:
    """Return whether the parent is remote, or None where there is none."""
    return None if ref.parent_span_id is None else ref.parent_is_remote


def _without(message: Any, field: str) -> bytes:
    rest = type(message)()
    rest.CopyFrom(message)
    rest.ClearField(field)
    return bytes(rest.SerializeToString())


def direct_spans(
    provider: TracerProvider,
    build: Callable[[Sequence[Event]], Sequence[ReadableSpan]],
    *,
    content: bool,
) -> DirectSpans | None:
    """
    Return an encoder equal to the SDK's, or None if there is a difference.

    Args:
        provider: Whose sampler, limits and resource the spans would get.
        build: Builds spans through *provider*.
        content: Whether redacted content goes onto spans.
    """
    # What the environment has changed of sampling or limits is the SDK's to do.
    if provider.sampler is not DEFAULT_ON or _is_limited(SpanLimits()):
        return None
    try:
        theirs = encode_spans(build(EXAMPLES))
        ours = DirectSpans(theirs, content=content)
        # Tried on examples as the sink opens: another release of the SDK may encode otherwise.
        same = type(theirs).FromString(ours.request(EXAMPLES))
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
    return ours if _in_order(same) == _in_order(theirs) else None


def _is_limited(limits: SpanLimits) -> bool:
    most = limits.max_span_attributes
    return limits.max_span_attribute_length is not None or (
        most is not None and most < MOST_ATTRIBUTES
    )


def _in_order(request: Any) -> Any:
    """Sort the attributes of all spans of *request*: their order says nothing."""
    for span in request.resource_spans[0].scope_spans[0].spans:
        attributes = sorted(span.attributes, key=lambda each: each.key)
        del span.attributes[:]
        span.attributes.extend(attributes)
    return request
