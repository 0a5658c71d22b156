"""
A LangGraph v3 stream without personal data, whatever the borders of its chunks.

    run = graph.stream_events(inputs, version="v3", transformers=[scope.redacted_stream()])

The run itself goes on with what it has: only what its reader sees is redacted, which is the events
and all that LangGraph makes of them (``run.messages``, ``run.values``, ``run.output``, subgraphs).
Put it first: a transformer that runs before it sees what it sees. No error gets out of it, since
one would end the run, and nothing goes by that it could not redact.

``run.interrupts`` is not redacted, since it is what the reader has to answer, and neither is
``run.output`` of a graph whose state is no mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Final, TypeGuard

from langchain_core.messages import BaseMessageChunk
from langgraph.stream import StreamTransformer  # pyright: ignore[reportMissingTypeStubs] - typed

from ..memory.context import current
from ..memory.redaction.content import FAILED
from ..memory.redaction.segments import Segments
from ..memory.runtime import Runtime
from .langgraph_redacted_messages import KEPT, Key, RedactedMessages
from .langgraph_state import StateWalker

_TASK_TEXTS: Final = ("input", "result", "metadata", "interrupts")
"""What of a task's event is not LangGraph's own."""


class RedactedStream:
    """
    Redacts the events of one run, for the scope that starts it.

    Args:
        runtime: Redactor, vault, faults.
        at: LangGraph's name for where the run stands.
    """

    def __init__(self, runtime: Runtime, at: tuple[str, ...]) -> None:
        scope = current()
        redaction = runtime.redactor.begin(
            tenant=scope.tenant, known=scope.identifiers, keeper=runtime.pocket(scope)
        )
        self._at = list(at)
        self._runtime = runtime
        self._text = redaction.text
        self._walker = StateWalker(redaction)
        self._messages = RedactedMessages(redaction.text, self._walker, self._failed)
        self._seen: dict[Key, Any] = {}
        self._tools: dict[Key, tuple[Segments, Any]] = {}

    def redact(self, event: Any) -> list[Any]:
        """
        Redact *event*, in place but for what others hold too.

        Returns:
            Events that go before it: what was held back of what it ends.
        """
        params = event["params"]
        try:
            if "interrupts" in params:
                params["interrupts"] = self._walker.walk(params["interrupts"], KEPT)
            return list(self._by_method(event, params))
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality, and the run goes on
            self._failed(exc)
            _conceal(event, self._at)
            return []

    def left(self) -> Iterator[Any]:
        """Yield events with all that is held back: the run has ended."""
        for key in list(self._seen):
            yield from self._let_go(key)
        for key in list(self._tools):
            yield from self._tool_tail(key)

    def _by_method(self, event: Any, params: Any) -> Iterable[Any]:
        method, data = event["method"], params["data"]
        if method == "messages":
            return self._message(event, params)
        if method == "tools" and _is_dict(data):
            return self._tool(event, params)
        if method == "tasks" and _is_dict(data):
            ended = self._ended(data) if "result" in data else []
            params["data"] = self._task(data)
            return ended
        if method == "values" and _is_dict(data) and params["namespace"] == self._at:
            self._values(data)
        else:
            params["data"] = self._walker.walk(data, KEPT)
        return []

    def _values(self, data: dict[str, Any]) -> None:
        # In place: the run has taken this very dict for its output before anybody could see it.
        # It was made for that; what it holds is the graph's, and stays as it is.
        for name, value in data.items():
            data[name] = FAILED
            try:
                data[name] = self._walker.walk(value, KEPT)
            except Exception as exc:  # noqa: BLE001 - closed on confidentiality
                self._failed(exc)

    def _message(self, event: Any, params: Any) -> list[Any]:
        payload, metadata = params["data"]
        run = metadata.get("run_id") or metadata.get("langgraph_checkpoint_ns")
        key = (*params["namespace"], str(run))
        told = self._messages.metadata(metadata)
        before, redacted = self._messages.redact(key, payload)
        params["data"] = (redacted, told)
        if isinstance(payload, BaseMessageChunk) or _is_dict(payload):
            self._seen[key] = event, told, metadata
        if _is_dict(payload) and payload.get("event") == "message-finish":
            del self._seen[key]
        return [_like(event, (each, told)) for each in before]

    def _let_go(self, key: Key) -> list[Any]:
        event, told, _ = self._seen.pop(key)
        return [_like(event, (each, told)) for each in self._messages.left(key)]

    def _ended(self, data: dict[str, Any]) -> list[Any]:
        """Return what is held back of the calls of a task that has ended, however."""
        task = f":{data.get('id')}"
        keys = [
            key
            for key, (_, _, metadata) in self._seen.items()
            if str(metadata.get("langgraph_checkpoint_ns")).endswith(task)
        ]
        return [event for key in keys for event in self._let_go(key)]

    def _task(self, data: dict[str, Any]) -> dict[str, Any]:
        texts: dict[str, Any] = {
            name: self._walker.walk(data[name], KEPT) for name in _TASK_TEXTS if name in data
        }
        if error := data.get("error"):
            texts["error"] = self._text(f"{type(error).__name__}: {error}")
        return {**data, **texts}

    def _tool(self, event: Any, params: Any) -> list[Any]:
        data = params["data"]
        key = (*params["namespace"], str(data.get("tool_call_id")))
        if data.get("event") != "tool-output-delta" or not isinstance(data.get("delta"), str):
            params["data"] = self._walker.walk(data, KEPT)
            return list(self._tool_tail(key))
        segments, _ = self._tools.setdefault(
            key, (Segments(self._text, failed=self._failed), event)
        )
        params["data"] = {**data, "delta": segments.feed(data["delta"])}
        return []

    def _tool_tail(self, key: Key) -> Iterator[Any]:
        if key not in self._tools:
            return
        segments, event = self._tools.pop(key)
        if rest := segments.end():
            yield _like(event, {**event["params"]["data"], "delta": rest})

    def _failed(self, exc: Exception) -> None:
        self._runtime.faults.note("stream.redact", exc)


class RedactionTransformer(StreamTransformer):
    """
    Has the events of a run redacted before anything else of LangGraph sees them.

    Args:
        scope: LangGraph's name for where it stands: ``()`` at the root.
        begin: Makes what redacts. None: nothing is redacted, mnemoscope is switched off.
    """

    before_builtins: ClassVar[bool] = True
    supports_sync: ClassVar[bool] = True

    def __init__(
        self,
        scope: tuple[str, ...] = (),
        begin: Callable[[tuple[str, ...]], RedactedStream | None] | None = None,
    ) -> None:
        super().__init__(scope)
        self._begin = begin
        self._mux: Any = None
        self._stream: RedactedStream | None = None
        self._own: Any = None

    def init(self) -> dict[str, Any]:
        """Contribute no projection."""
        return {}

    def _on_register(self, mux: Any) -> None:
        # A subgraph's events have been through the root's, which alone numbers them.
        others = (each for each in getattr(mux, "_transformers", ()) if each is not self)
        if any(isinstance(each, RedactionTransformer) for each in others):
            return  # one for the graph and one for the run: the first is enough
        if self._begin is not None and getattr(mux, "_assign_seq", not self.scope):
            self._mux, self._stream = mux, self._begin(self.scope)

    def process(self, event: Any) -> bool:
        """Redact an event, and send what it ends before it."""
        for each in self._redacted(event):
            self._own = each
            self._mux.push(each)
        return True

    async def aprocess(self, event: Any) -> bool:
        """Redact an event, and send what it ends before it."""
        for each in self._redacted(event):
            self._own = each
            await self._mux.apush(each)
        return True

    def finalize(self) -> None:
        """Send what is held back: LangGraph finalizes runs that were left as well."""
        for each in self._left():
            self._own = each
            self._mux.push(each)

    async def afinalize(self) -> None:
        """Send what is held back."""
        for each in self._left():
            self._own = each
            await self._mux.apush(each)

    def fail(self, err: BaseException) -> None:  # noqa: ARG002 - whatever it was, the text is sent
        """Send what is held back."""
        self.finalize()

    async def afail(self, err: BaseException) -> None:  # noqa: ARG002 - likewise
        """Send what is held back."""
        await self.afinalize()

    def _redacted(self, event: Any) -> list[Any]:
        if self._mux is None or event is self._own:
            return []
        if self._stream is None:
            _conceal(event, list(self.scope))
            return []
        return self._stream.redact(event)

    def _left(self) -> list[Any]:
        return list(self._stream.left()) if self._stream is not None else []


class RedactionFactory:
    """
    Makes the transformers of a run, as LangGraph asks for them.

    Args:
        runtime: None: they do nothing.
    """

    def __init__(self, runtime: Runtime | None) -> None:
        self._runtime = runtime

    def __call__(self, scope: tuple[str, ...]) -> RedactionTransformer:
        """Return the transformer for *scope*. Never raises: that would fail the run."""
        return RedactionTransformer(scope, self._begun if self._runtime else None)

    def _begun(self, scope: tuple[str, ...]) -> RedactedStream | None:
        """Return what redacts a run. None: it cannot be redacted, so nothing of it is shown."""
        assert self._runtime is not None  # noqa: S101 - asked for only where it is there
        try:
            return RedactedStream(self._runtime, scope)
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality, and the run goes on
            self._runtime.faults.note("stream.redact", exc)
            return None


def _conceal(event: Any, at: list[str]) -> None:
    """Replace all that an event of a run that stands *at* a name tells."""
    params = event["params"]
    params.pop("interrupts", None)
    if event["method"] == "values" and params["namespace"] == at and _is_dict(params["data"]):
        params["data"].update(dict.fromkeys(params["data"], FAILED))  # the run's output; see above
    else:
        params["data"] = _concealed(event["method"], params["data"])


def _concealed(method: str, data: Any) -> Any:
    """Return what stands for data that could not be redacted, in the shape that is expected."""
    if method == "messages":
        return FAILED, {}
    if method == "tasks" and _is_dict(data):
        failed = {name: FAILED for name in ("result", "error") if data.get(name)}
        kept = {name: data[name] for name in ("id", "name", "triggers") if name in data}
        waiting = [{"value": FAILED}] if data.get("interrupts") else []
        return {**kept, **failed, "input": None, "interrupts": waiting}
    return FAILED


def _like(event: Any, data: Any) -> Any:
    params = {**event["params"], "data": data}
    return {"type": "event", "method": event["method"], "params": params}


def _is_dict(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
