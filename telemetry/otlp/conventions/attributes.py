"""
The attributes of an event's span, by the GenAI conventions.

There are two parts. Most attributes are the same for each call of one method of one store: a
`SpanTemplate` holds all that they depend on, so that they are encoded once. The others are an
event's own.
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias, cast

from opentelemetry.util.types import AttributeValue

from ...event.event import Event, OperationClass, Status
from ...event.usage import CallDetails, Usage
from ...text import clean_text
from . import openinference, semconv

Attributes = dict[str, AttributeValue]

SINK = "otlp"
"""The sink's name, and so the key under which its subject hashes are made."""

_HELD = 1_024
# A caller that gives up is no failure of the operation.
_NOT_A_FAULT = frozenset(
    {*(each.value for each in Status if each.is_normal), Status.CANCELLED.value}
)
_UNNAMED = "LangGraph"
"""What LangGraph calls a graph that nobody has named."""

_NAMED = {"execute_node": semconv.NODE, "execute_tool": semconv.TOOL_NAME}


def graph_name(method: str) -> str | None:
    """Return the name of a graph, by the method of its event. None: nobody has named it."""
    return None if method == _UNNAMED else method


def error_type(event: Event) -> str | None:
    """Return the class of the failure: the exception's type, or else the status."""
    if event.error is not None or event.status.is_normal:
        return event.error
    return event.status.value


class _ModelCall(NamedTuple):
    """The part of a template that describes a model call; see `Usage`."""

    provider: str | None
    model: str
    requested_model: str
    node: str | None
    namespace: tuple[str, ...]
    streamed: bool
    reported: bool


class SpanTemplate(NamedTuple):
    """
    The part of a span that many events share: name, kind, status and most attributes.

    Attributes are those of `Event`, enumerations by their values; and these:

    Attributes:
        is_frame: Whether it is a graph, node or tool.
        is_notice: Whether mnemoscope says it itself, as of a budget.
        replaced: Its redactions.
        call: Of a model call, what it has in common with others.
    """

    operation: str
    store: str
    db_system: str | None
    server: tuple[str, int] | None
    method: str
    op_class: str
    status: str
    error: str | None
    neutral: bool
    late: bool
    journal: str
    nested: bool
    agent: str | None
    feature: str | None
    is_frame: bool
    is_notice: bool
    replaced: tuple[tuple[str, int], ...]
    call: _ModelCall | None

    @property
    def span_name(self) -> str:
        """The operation, and the model, agent, node, tool or store that it is of."""
        if self.call:
            return f"{self.operation} {self.call.requested_model}"
        if self.operation == "execute_tool":
            return f"{self.operation} {self.method}"
        if not self.is_frame:
            return f"{self.operation} {self.store}"
        return f"{self.operation} {self._frame().get(semconv.AGENT_NAME, self.method)}"

    @property
    def is_failure(self) -> bool:
        """True if the operation failed for its caller."""
        return self.status not in _NOT_A_FAULT

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of all spans of this template, None where unknown."""
        found = self._operation() | self._further()
        found |= {f"{semconv.REDACTIONS}.{entity}": number for entity, number in self.replaced}
        if self.db_system is not None:
            found[semconv.DB_SYSTEM_NAME] = self.db_system
            found[semconv.DB_OPERATION_NAME] = self.method
        if self.server is not None:
            found[semconv.SERVER_ADDRESS], found[semconv.SERVER_PORT] = self.server
        return found

    def _operation(self) -> dict[str, Any]:
        return {
            semconv.OPERATION_NAME: self.operation,
            semconv.SPAN_KIND: openinference.kind_of(self.operation, self.op_class),
            semconv.STORE: self.store,
            semconv.METHOD: self.method,
            semconv.CLASS: self.op_class,
            semconv.STATUS: self.status,
            semconv.ERROR_TYPE: self.error,
            semconv.NEUTRAL: self.neutral,
            semconv.LATE: self.late,
            semconv.JOURNAL: self.journal or None,
            semconv.NESTED: self.nested,
            # The context's. The conventions' name is that of the agent that a span invokes, which
            # may be another: a graph's, and below it a sub-agent's.
            semconv.AGENT: self.agent,
            semconv.FEATURE: self.feature,
        }

    def _further(self) -> dict[str, Any]:
        if self.is_notice:
            return {}
        if self.is_frame:
            return self._frame()
        if self.call is None:
            return {}
        call = self.call
        return _model(call) | openinference.model(self.operation, call.model, call.provider)

    def _frame(self) -> dict[str, Any]:
        if self.operation == "invoke_agent":
            named = graph_name(self.method) or self.agent or self.method
            return {semconv.AGENT_NAME: named}
        key = _NAMED.get(self.operation)
        return {key: self.method} if key else {}


def _model(call: _ModelCall) -> dict[str, Any]:
    return {
        semconv.PROVIDER_NAME: semconv.PROVIDERS.get(call.provider or "", call.provider),
        semconv.REQUEST_MODEL: call.requested_model,
        semconv.RESPONSE_MODEL: call.model,
        # Known of streamed calls alone: that there was no first chunk does not say that none was
        # asked for.
        semconv.REQUEST_STREAM: True if call.streamed else None,
        semconv.USAGE_REPORTED: None if call.reported else False,
        semconv.NODE: call.node,
        semconv.NAMESPACE: call.namespace or None,
    }


TemplateKey: TypeAlias = tuple[
    tuple[Any, ...], bool, tuple[tuple[str, int], ...], _ModelCall | None
]
"""What a template depends on, of an event: found and compared at less cost than the template."""

_FIELDS = (
    *("operation", "store", "db_system", "server", "method", "op_class", "status", "error"),
    *("neutral", "late", "journal", "nested", "agent", "feature"),
)
_fields_of = attrgetter(*_FIELDS)


# A key apart: most events of a process differ in times and ids alone, so that what they share is
# encoded once.
def template_key(event: Event) -> TemplateKey:
    """Return what the template of the span of *event* depends on."""
    # Most events have no parts, and need not be asked for one.
    usage, replaced = event.usage if event.parts else None, event.redactions
    return (
        _fields_of(event),
        event.is_notice,
        tuple(replaced.items()) if replaced else (),
        _call(usage) if usage else None,
    )


@lru_cache(maxsize=_HELD)
def template_of(key: TemplateKey) -> SpanTemplate:
    """Return the template of all spans that have *key*."""
    values, is_notice, replaced, call = key
    of = dict(zip(_FIELDS, values, strict=True))
    status: Status = of["status"]
    if of["error"] is None and not status.is_normal:
        of["error"] = status.value
    is_model = of["op_class"] is OperationClass.MODEL
    for name in ("op_class", "status", "journal"):
        of[name] = of[name].value
    return SpanTemplate(
        **of,
        is_frame=is_model and call is None and not is_notice,
        is_notice=is_notice,
        replaced=tuple((clean_text(entity), number) for entity, number in replaced),
        call=call,
    )


def _call(usage: Usage) -> _ModelCall:
    streamed = usage.time_to_first_token_s is not None
    return _ModelCall(
        usage.provider,
        usage.model,
        usage.requested_model or usage.model,
        usage.node,
        usage.namespace,
        streamed,
        usage.reported,
    )


def span_attributes(event: Event, *, content: bool = False) -> Attributes:
    """Return the span's attributes. Content is among them only if asked for."""
    found = attributes_of_whose(*whose(event)) | own_attributes(event, content=content)
    return _in_common(template_key(event)) | _cleaned(found)


@lru_cache(maxsize=_HELD)
def _in_common(key: TemplateKey) -> Attributes:
    return _cleaned(template_of(key).attributes())


def _cleaned(found: dict[str, Any]) -> Attributes:
    return {key: _clean(value) for key, value in found.items() if value is not None}


def _clean(value: Any) -> AttributeValue:
    # One lone surrogate in a thread id, and protobuf refuses the whole batch.
    if isinstance(value, tuple):
        return [clean_text(each) for each in cast("tuple[str, ...]", value)]
    return clean_text(value) if isinstance(value, str) else value


def whose(event: Event) -> tuple[str | None, str | None, str | None]:
    """Return the customer, run and tenant of *event*: those of a few others, too."""
    return event.subject.hashed(SINK) if event.subject else None, event.run, event.tenant


def attributes_of_whose(
    pseudonym: str | None, run: str | None, tenant: str | None
) -> dict[str, Any]:
    """Return the attributes that say `whose` a span is, None where unknown."""
    return {
        semconv.ENDUSER_PSEUDO_ID: pseudonym,
        semconv.CONVERSATION_ID: run,
        semconv.SESSION_ID: run,
        semconv.TENANT: tenant,
    }


def own_attributes(event: Event, *, content: bool) -> dict[str, Any]:
    """Return the attributes outside of the template and of `whose`, None where unknown."""
    found = {
        semconv.WAITED_S: event.waited_s,
        semconv.SIZE_BYTES: event.size_bytes,
        semconv.MEMORY_STORE_ID: event.collection,
        # A phase is part of its operation's event: no other sink knows an id of its own.
        semconv.EVENT_ID: event.event_id if event.writer_seq or event.is_notice else None,
    }
    for part in event.parts:
        found |= part.attributes()
        if isinstance(part, Usage):
            found |= _consumed(part) | openinference.consumed(part)
            if part.details is not None:
                # Where the event names a server, that is in its template already.
                found |= _details(part.details, None if event.server else part.details.server)
    if event.op_class is not OperationClass.MODEL:
        found |= _memory(event) | openinference.documents(event)
    if event.db_system is not None:
        found[semconv.DB_COLLECTION_NAME] = event.collection
    return found | openinference.what_went_through(event, content=content)


def _memory(event: Event) -> dict[str, Any]:
    ids = event.memory_ids
    return {
        # The conventions have one id; of several the documents of a recall tell.
        semconv.MEMORY_RECORD_ID: ids[0] if len(ids) == 1 else None,
        semconv.MEMORY_RECORD_COUNT: event.hits if event.hits is not None else len(ids) or None,
        semconv.TOP_SCORE: event.top_score,
    }


def _consumed(usage: Usage) -> dict[str, Any]:
    return {
        semconv.RESPONSE_TIME_TO_FIRST_CHUNK: usage.time_to_first_token_s,
        # A 0 would say that the call was free of charge.
        semconv.USAGE_INPUT_TOKENS: usage.input_tokens if usage.reported else None,
        semconv.USAGE_OUTPUT_TOKENS: usage.output_tokens if usage.reported else None,
        semconv.USAGE_CACHE_READ_TOKENS: usage.cached_tokens or None,
        semconv.USAGE_CACHE_CREATION_TOKENS: usage.cache_write_tokens or None,
        semconv.USAGE_REASONING_TOKENS: usage.reasoning_tokens or None,
        semconv.COST_USD: usage.cost_usd,
    }


def _details(details: CallDetails, server: tuple[str, int] | None) -> dict[str, Any]:
    address, port = server or (None, None)
    return {
        semconv.REQUEST_MAX_TOKENS: details.max_tokens,
        semconv.REQUEST_TEMPERATURE: details.temperature,
        semconv.REQUEST_TOP_P: details.top_p,
        semconv.REQUEST_TOP_K: details.top_k,
        semconv.REQUEST_FREQUENCY_PENALTY: details.frequency_penalty,
        semconv.REQUEST_PRESENCE_PENALTY: details.presence_penalty,
        semconv.REQUEST_SEED: details.seed,
        semconv.REQUEST_CHOICE_COUNT: details.choice_count,
        semconv.RESPONSE_ID: details.response_id,
        semconv.RESPONSE_FINISH_REASONS: details.finish_reasons or None,
        semconv.USAGE_AUDIO_INPUT_TOKENS: details.audio_input_tokens,
        semconv.USAGE_IMAGE_INPUT_TOKENS: details.image_input_tokens,
        semconv.USAGE_AUDIO_OUTPUT_TOKENS: details.audio_output_tokens,
        semconv.EMBEDDINGS_DIMENSION_COUNT: details.dimension_count,
        semconv.SERVER_ADDRESS: address,
        semconv.SERVER_PORT: port,
    }
