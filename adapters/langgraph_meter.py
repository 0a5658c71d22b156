"""What the model calls of a LangGraph run used: counted once each, told to sinks and the run."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeGuard
from weakref import WeakKeyDictionary

from langchain_core.messages import AIMessage

from ..memory.context import Scope, current
from ..memory.redaction.content import FAILED
from ..memory.runtime import Runtime
from ..telemetry.drain import Drain
from ..telemetry.event import Event, OperationClass, Status
from ..telemetry.prices import Prices
from ..telemetry.subject import Subject
from ..telemetry.trace import TraceRef
from ..telemetry.usage import Usage
from .langgraph_models import ModelCall, ModelCalls

STORE: Final = "langgraph.model"

_RUN_PREFIX = "lc_run--"
_UUID_CHARS = 36
_SEEN = 16_384
_UNTOLD = Scope(tenant=FAILED, agent=FAILED, feature=FAILED, run=FAILED, purpose=FAILED)


@dataclass(slots=True)
class Totals:
    """
    What the model calls of a run used so far.

    Attributes:
        calls: Calls that ended.
        input_tokens: All input, cached included.
        output_tokens: All output, reasoning included.
        cached_tokens: Input read from caches.
        reasoning_tokens: Output the models kept to themselves.
        cost_usd: Of the calls whose model has a price.
        unpriced_calls: Calls whose model has none: their tokens are counted, their cost is not.
        by_node: The same by LangGraph node.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    by_node: dict[str, Totals] = field(default_factory=dict[str, "Totals"])

    def add(self, usage: Usage) -> None:
        """Add one call, here and under its node."""
        self.count(usage)
        self.by_node.setdefault(usage.node or "", Totals()).count(usage)

    def count(self, usage: Usage) -> None:
        """Add one call here."""
        self.calls += 1
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.cached_tokens += usage.cached_tokens
        self.reasoning_tokens += usage.reasoning_tokens
        self.unpriced_calls += usage.cost_usd is None
        self.cost_usd += usage.cost_usd or 0.0


@dataclass(slots=True)
class _Open:
    """A message that began in the stream and has not ended."""

    about: dict[str, Any]
    metadata: dict[str, Any]
    seen_at: float


class _Counted:
    """Run ids that were counted, the latest of them."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def first_time(self, run_id: str) -> bool:
        if run_id in self._ids:
            return False
        self._ids[run_id] = None
        if len(self._ids) > _SEEN:
            self._ids.popitem(last=False)
        return True


_counted: WeakKeyDictionary[Drain, _Counted] = WeakKeyDictionary()


class Meter:
    """
    Counts the model calls of one run and tells of each.

    Where callbacks told of a call, its times and its scope are exact. Where they could not (a model
    that was not called through LangChain's callbacks), the scope is that of whoever started the
    run, the duration is what the reader of the stream saw, and there is no time to the first token.

    Args:
        runtime: Drain, redactor, keys, tracing.
        prices: For the cost.
        models: What callbacks told.

    Attributes:
        totals: What was used so far.
    """

    def __init__(self, runtime: Runtime, prices: Prices, models: ModelCalls) -> None:
        self.totals = Totals()
        self._runtime = runtime
        self._prices = prices
        self._models = models
        # Of whoever starts the run: nodes run in the context of whoever reads it.
        self._scope = current()
        self._trace = runtime.tracing.capture()
        self._parent_run = runtime.parent_run()
        self._open: dict[str, _Open] = {}
        self._counted = _counted.setdefault(runtime.drain, _Counted())

    def saw(self, payload: Any, metadata: dict[str, Any]) -> None:
        """Take one ``messages`` event of the stream."""
        if isinstance(payload, AIMessage):
            self._whole(payload, metadata)
        elif _is_dict(payload):
            self._part(payload, metadata)

    def _part(self, payload: dict[str, Any], metadata: dict[str, Any]) -> None:
        run_id = str(metadata.get("run_id"))
        if payload["event"] == "message-start":
            about = _dict(payload.get("metadata"))
            self._open[run_id] = _Open(about, metadata, self._models.clock())
        elif payload["event"] == "message-finish":
            begun = self._open.pop(run_id, None)
            about = (begun.about if begun else {}) | _dict(payload.get("metadata"))
            since = begun.seen_at if begun else self._models.clock()
            self._ended(run_id, _Open(about, metadata, since), _dict(payload.get("usage")))

    def _whole(self, message: AIMessage, metadata: dict[str, Any]) -> None:
        run_id = self._run_of(message.id)
        if run_id is None:
            return  # made by hand, or a copy: no model was called for it
        about = _Open(message.response_metadata, metadata, self._models.clock())
        self._ended(run_id, about, _dict(message.usage_metadata))

    def _run_of(self, message_id: str | None) -> str | None:
        if message_id is None:
            return None
        if message_id.startswith(_RUN_PREFIX):
            return message_id[len(_RUN_PREFIX) :][:_UUID_CHARS]
        return self._models.run_of(message_id)

    def close(self) -> None:
        """Tell of the calls that began and never ended: failed, cancelled or left alone."""
        while self._open:
            run_id, begun = self._open.popitem()
            self._ended(run_id, begun, {}, status=Status.CANCELLED)

    def _ended(
        self, run_id: str, seen: _Open, used: dict[str, Any], status: Status = Status.OK
    ) -> None:
        if not self._counted.first_time(run_id):
            return
        call = self._models.of(run_id)
        usage = _usage(seen, used, call)
        usage = replace(usage, cost_usd=self._prices.cost_usd(usage))
        self.totals.add(usage)
        if not self._runtime.faults.tripped:
            self._runtime.drain.emit(self._event(usage, seen, call, status))

    def _event(self, usage: Usage, seen: _Open, call: ModelCall | None, status: Status) -> Event:
        runtime, scope = self._runtime, self._scope_of(call, seen.metadata)
        now = self._models.clock()
        started = call.started if call else seen.seen_at
        ended = now if call is None or call.ended is None else call.ended
        error = call.error if call else None
        told = self._redacted(scope)
        return Event(
            writer_id=runtime.drain.writer_id,
            writer_seq=runtime.drain.next_seq(),
            started_ns=call.started_ns if call else _before(runtime.wall_ns(), now - started),
            duration_s=max(0.0, ended - started),
            operation="chat",
            op_class=OperationClass.MODEL,
            store=STORE,
            method="stream",
            status=Status.ERROR if error else status,
            error=error,
            trace=self._traced(),
            parent_run=self._parent_run,
            usage=usage,
            subject=self._subject(scope),
            tenant=told.tenant,
            agent=told.agent,
            feature=told.feature,
            run=told.run,
            purpose=told.purpose,
        )

    def _scope_of(self, call: ModelCall | None, metadata: dict[str, Any]) -> Scope:
        scope = call.scope.filled(self._scope) if call else self._scope
        thread = metadata.get("thread_id")
        return scope.filled(Scope(run=thread)) if isinstance(thread, str) else scope

    def _traced(self) -> TraceRef:
        return replace(self._trace, span_id=self._runtime.tracing.capture().span_id)

    def _redacted(self, scope: Scope) -> Scope:
        """Return the scope as sinks may have it: without the customer, who is a `Subject`."""
        known = (*scope.known, scope.customer) if scope.customer else scope.known
        try:
            label = self._runtime.redactor.begin(tenant=scope.tenant, known=known).label
            return Scope(
                tenant=scope.tenant and label(scope.tenant),
                agent=scope.agent and label(scope.agent),
                feature=scope.feature and label(scope.feature),
                run=scope.run and label(scope.run),
                purpose=scope.purpose and label(scope.purpose),
            )
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality
            self._runtime.faults.note("stream.label", exc)
            return _UNTOLD

    def _subject(self, scope: Scope) -> Subject | None:
        if scope.customer is None:
            return None
        return Subject(scope.customer, tenant=scope.tenant, keys=self._runtime.keys)


def _usage(seen: _Open, used: dict[str, Any], call: ModelCall | None) -> Usage:
    about, metadata = seen.about, seen.metadata
    into, out = _dict(used.get("input_token_details")), _dict(used.get("output_token_details"))
    path = str(metadata.get("langgraph_checkpoint_ns") or "").split("|")
    spoke = call is not None and call.first is not None
    return Usage(
        model=_text(about, "model_name", "model") or _text(metadata, "ls_model_name") or "unknown",
        provider=_text(about, "model_provider", "provider") or _text(metadata, "ls_provider"),
        node=_text(metadata, "langgraph_node"),
        namespace=tuple(each.partition(":")[0] for each in path[:-1]),
        input_tokens=_count(used, "input_tokens"),
        output_tokens=_count(used, "output_tokens"),
        cached_tokens=_count(into, "cache_read"),
        cache_write_tokens=_count(into, "cache_creation"),
        reasoning_tokens=_count(out, "reasoning"),
        time_to_first_token_s=(call.first or 0.0) - call.started if call and spoke else None,
    )


def _count(used: dict[str, Any], name: str) -> int:
    """Return a number of tokens; what is no such number counts for nothing."""
    value = used.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _text(about: dict[str, Any], *names: str) -> str | None:
    return next(
        (value for name in names if isinstance(value := about.get(name), str) and value), None
    )


def _is_dict(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _dict(value: Any) -> dict[str, Any]:
    return value if _is_dict(value) else {}


def _before(wall_ns: int, seconds: float) -> int:
    return wall_ns - round(seconds * 1e9)
