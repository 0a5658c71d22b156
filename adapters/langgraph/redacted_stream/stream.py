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
from functools import partial
from typing import Any, ClassVar, Final

from langchain_core.messages import BaseMessageChunk
from langgraph.stream import StreamTransformer  # pyright: ignore[reportMissingTypeStubs] - typed

from ....memory.context import current
from ....memory.privacy.engine.content import FAILED
from ....memory.privacy.engine.streaming_text import StreamingText
from ....memory.scoped_redactor import ScopedRedactor
from ....telemetry.process.faults import Faults
from ...toolkit.type_guards import is_dict
from ..formats import EVENTS, INTERRUPT, PATH, STATE, Each
from ..shared.state import SHOWN, StateWalker
from .messages import Key, RedactedMessages

_UNNAMED: Final = "redacted"
"""Stands for the name of a node that could not be redacted."""


class RedactedStream:
    """
    Redactor of the events of one run, for the scope that starts it.

    Args:
        redactor: Begins the run's redaction.
        faults: Where failing redactions are noted.
        at: LangGraph's path of the run.
    """

    def __init__(self, redactor: ScopedRedactor, faults: Faults, at: tuple[str, ...]) -> None:
        redaction = redactor.begin(current())
        self._at = list(at)
        self._faults = faults
        self._text = redaction.text
        self._walker = StateWalker(redaction, SHOWN)
        self._messages = RedactedMessages(redaction.text, self._walker, self._failed)
        self._seen: dict[Key, Any] = {}
        self._tools: dict[Key, tuple[StreamingText, Any]] = {}

    def redact(self, event: Any) -> list[Any]:
        """
        Redact *event* in place, but copy what others hold too.

        Returns:
            Events to send before it: the held-back rest of what it ends.
        """
        params = event["params"]
        try:
            if "interrupts" in params:
                params["interrupts"] = self._walker.shaped(params["interrupts"], Each(INTERRUPT))
            if params["namespace"]:
                params["namespace"] = self._path(params["namespace"])
            return list(self._by_method(event, params))
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality, and the run goes on
            self._failed(exc)
            _conceal(event, self._at)
            return []

    def left(self) -> Iterator[Any]:
        """Yield events with all held-back text: the run has ended."""
        for key in list(self._seen):
            yield from self._let_go(key)
        for key in list(self._tools):
            yield from self._tool_tail(key)

    def _by_method(self, event: Any, params: Any) -> Iterable[Any]:
        method, data = event["method"], params["data"]
        if method == "messages":
            return self._message(event, params)
        if method == "tools" and is_dict(data):
            return self._tool(event, params)
        if method == "tasks" and is_dict(data):
            ended = self._ended(data) if "result" in data else []
            params["data"] = self._task(data)
            return ended
        if method == "values" and is_dict(data) and params["namespace"] == self._at:
            self._values(data)
        else:
            params["data"] = self._walker.shaped(data, EVENTS.get(method, STATE))
        return []

    def _path(self, namespace: list[str]) -> list[str]:
        """Redact the names of nodes below the run. What is above it LangGraph finds the run by."""
        above = len(self._at)
        return [*namespace[:above], *self._walker.shaped(namespace[above:], PATH)]

    def _values(self, data: dict[str, Any]) -> None:
        # In place: the run has taken this very dict for its output before anybody could see it.
        # It was made for that; what it holds is the graph's, and stays as it is.
        held = dict(data)
        data.clear()
        for name, value in held.items():
            key = name if str(name).isidentifier() else FAILED
            try:
                key = self._walker.key(name)
                data[key] = self._walker.walk(value)
            except Exception as exc:  # noqa: BLE001 - closed on confidentiality
                data[key] = FAILED
                self._failed(exc)

    def _message(self, event: Any, params: Any) -> list[Any]:
        payload, metadata = params["data"]
        run = metadata.get("run_id") or metadata.get("langgraph_checkpoint_ns")
        key = (*params["namespace"], str(run))
        shown = self._messages.metadata(metadata)
        before, redacted = self._messages.redact(key, payload)
        params["data"] = (redacted, shown)
        if isinstance(payload, BaseMessageChunk) or is_dict(payload):
            self._seen[key] = event, shown, metadata
        if is_dict(payload) and payload.get("event") == "message-finish":
            del self._seen[key]
        return [_like(event, (each, shown)) for each in before]

    def _let_go(self, key: Key) -> list[Any]:
        event, shown, _ = self._seen.pop(key)
        return [_like(event, (each, shown)) for each in self._messages.left(key)]

    def _ended(self, data: dict[str, Any]) -> list[Any]:
        """Return events with the held-back text of a task's model calls: it has ended or failed."""
        task = f":{data.get('id')}"
        keys = [
            key
            for key, (_, _, metadata) in self._seen.items()
            if str(metadata.get("langgraph_checkpoint_ns")).endswith(task)
        ]
        return [event for key in keys for event in self._let_go(key)]

    def _task(self, data: dict[str, Any]) -> Any:
        if error := data.get("error"):
            data = {**data, "error": f"{type(error).__name__}: {error}"}
        return self._walker.shaped(data, EVENTS["tasks"])

    def _tool(self, event: Any, params: Any) -> list[Any]:
        data = params["data"]
        key = (*params["namespace"], str(data.get("tool_call_id")))
        if data.get("event") != "tool-output-delta" or not isinstance(data.get("delta"), str):
            params["data"] = self._walker.shaped(data, EVENTS["tools"])
            return list(self._tool_tail(key))
        segments, _ = self._tools.setdefault(
            key, (StreamingText(self._text, failed=self._failed), event)
        )
        shown = self._walker.shaped({**data, "delta": ""}, EVENTS["tools"])
        params["data"] = {**shown, "delta": segments.feed(data["delta"])}
        return []

    def _tool_tail(self, key: Key) -> Iterator[Any]:
        if key not in self._tools:
            return
        segments, event = self._tools.pop(key)
        if rest := segments.end():
            yield _like(event, {**event["params"]["data"], "delta": rest})

    def _failed(self, exc: Exception) -> None:
        self._faults.note("stream.redact", exc)


class RedactionTransformer(StreamTransformer):
    """
    Transformer that redacts the events of a run before other transformers see them.

    Args:
        scope: LangGraph's path of the subgraph: ``()`` at the root.
        begin: Makes the redactor. None: nothing is redacted, mnemoscope is switched off.
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
        """Redact an event, and send held-back text that it ends before it."""
        for each in self._redacted(event):
            self._own = each
            self._mux.push(each)
        return True

    async def aprocess(self, event: Any) -> bool:
        """Redact an event, and send held-back text that it ends before it."""
        for each in self._redacted(event):
            self._own = each
            await self._mux.apush(each)
        return True

    def finalize(self) -> None:
        """Send held-back text. LangGraph finalizes runs that their reader left, too."""
        for each in self._left():
            self._own = each
            self._mux.push(each)

    async def afinalize(self) -> None:
        """Send held-back text."""
        for each in self._left():
            self._own = each
            await self._mux.apush(each)

    def fail(self, err: BaseException) -> None:  # noqa: ARG002 - whatever it was, the text is sent
        """Send held-back text."""
        self.finalize()

    async def afail(self, err: BaseException) -> None:  # noqa: ARG002 - likewise
        """Send held-back text."""
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
    Factory of redacting transformers, called by LangGraph for each run and subgraph.

    Args:
        redactor: Begins the redaction of each run. None: the transformers do nothing.
        faults: Where failing redactions are noted.
    """

    def __init__(
        self, redactor: ScopedRedactor | None = None, faults: Faults | None = None
    ) -> None:
        self._redactor = redactor
        self._faults = faults or Faults()

    def __call__(self, scope: tuple[str, ...]) -> RedactionTransformer:
        """Return the transformer for *scope*. Never raises: that would fail the run."""
        redactor = self._redactor
        return RedactionTransformer(scope, partial(self._begin, redactor) if redactor else None)

    def _begin(self, redactor: ScopedRedactor, scope: tuple[str, ...]) -> RedactedStream | None:
        """Return the redactor of a run. None: it failed to start, so all data is replaced."""
        try:
            return RedactedStream(redactor, self._faults, scope)
        except Exception as exc:  # noqa: BLE001 - closed on confidentiality, and the run goes on
            self._faults.note("stream.redact", exc)
            return None


def _conceal(event: Any, at: list[str]) -> None:
    """Replace all data in an event of the run at the path *at*."""
    params = event["params"]
    params.pop("interrupts", None)
    above = len(at)
    below = (f"{_UNNAMED}:{each.rpartition(':')[2]}" for each in params["namespace"][above:])
    params["namespace"] = [*params["namespace"][:above], *below]
    if event["method"] == "values" and params["namespace"] == at and is_dict(params["data"]):
        names = [name if str(name).isidentifier() else FAILED for name in params["data"]]
        params["data"].clear()  # in place: it is the run's output, as above
        params["data"].update(dict.fromkeys(names, FAILED))
    else:
        params["data"] = _concealed(event["method"], params["data"])


def _concealed(method: str, data: Any) -> Any:
    """Return a placeholder for data that could not be redacted, in the shape that is expected."""
    if method == "messages":
        return FAILED, {}
    if method == "tasks" and is_dict(data):
        failed = {name: FAILED for name in ("result", "error") if data.get(name)}
        kept = {"id": data.get("id"), "name": _UNNAMED}
        waiting = [{"value": FAILED}] if data.get("interrupts") else []
        return {**kept, **failed, "input": None, "interrupts": waiting}
    return FAILED


def _like(event: Any, data: Any) -> Any:
    params = {**event["params"], "data": data}
    return {"type": "event", "method": event["method"], "params": params}
