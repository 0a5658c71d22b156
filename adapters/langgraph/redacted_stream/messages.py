"""
Messages of a LangGraph v3 stream, redacted as they come, across the borders of their chunks.

Each content block is a text of its own, told apart by the model run and the block's number, so that
nodes, subgraphs and calls that run at once stay apart. What is held back of a block is let go
before its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from langchain_core.messages import AIMessageChunk

from ....memory.privacy.engine.streaming_text import StreamingText, redact_streamed
from ...toolkit.type_guards import is_dict
from ..formats import METADATA, PROTOCOL
from ..shared.state import StateWalker

Key = tuple[Any, ...]

_DELTAS: Final = {"text-delta": "text", "reasoning-delta": "reasoning", "tool-call-delta": "args"}
_BLOCKS: Final = {"text": "text", "reasoning": "reasoning"}
_DELTA_FIELDS, _TEXT_FIELDS = 3, 2
_STARTS: Final = {**_BLOCKS, "tool_call_chunk": "args", "server_tool_call_chunk": "args"}


class RedactedMessages:
    """
    Redactor of the data of ``messages`` events.

    Args:
        text: Redacts a text.
        walker: Redacts whole messages and blocks.
        failed: Is told what went wrong inside a text; that part of it is replaced.
    """

    def __init__(
        self,
        text: Callable[[str], str],
        walker: StateWalker,
        failed: Callable[[Exception], None],
    ) -> None:
        self._text = text
        self._walker = walker
        self._failed = failed
        self._blocks: dict[Key, tuple[StreamingText, str]] = {}
        self._chunks: dict[Key, AIMessageChunk] = {}
        self._metadata: tuple[dict[str, Any], dict[str, Any]] = ({}, {})

    def redact(self, key: Key, payload: Any) -> tuple[list[Any], Any]:
        """Return payloads to send first, and the payload, all redacted."""
        if is_dict(payload) and "event" in payload:
            return self._protocol(key, payload)
        if isinstance(payload, AIMessageChunk):
            return [], self._chunk((*key, payload.id), payload)
        return [], self._walker.walk(payload)

    def metadata(self, metadata: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata of a message, redacted. It is the same for all of its chunks."""
        seen, redacted = self._metadata
        if metadata != seen:
            redacted = self._walker.shaped(metadata, METADATA)
            self._metadata = metadata, redacted
        return redacted

    def left(self, key: Key) -> Iterator[Any]:
        """Yield the held-back rest of the blocks below *key*, which have ended."""
        for each in [each for each in self._blocks if each[: len(key)] == key]:
            yield from self._tail(each)
        for each in [each for each in self._chunks if each[: len(key)] == key]:
            yield self._walker.walk(self._chunks.pop(each))

    def _protocol(self, key: Key, payload: dict[str, Any]) -> tuple[list[Any], Any]:
        kind, block = payload["event"], (*key, payload.get("index"))
        if kind == "content-block-start":
            return [], self._start(block, payload)
        if kind == "content-block-delta":
            return [], self._delta(block, payload)
        if kind == "content-block-finish":
            return list(self._tail(block)), self._finish(payload)
        left = list(self.left(key)) if kind == "message-finish" else []
        return left, self._rest(payload)

    def _start(self, block: Key, payload: dict[str, Any]) -> Any:
        content = payload.get("content")
        name = _STARTS.get(str(content.get("type"))) if is_dict(content) else None
        if name is None or not is_dict(content):
            return self._rest(payload)
        begun = self._fed(block, name, content.get(name))
        return self._with(payload, "content", name, begun)

    def _delta(self, block: Key, payload: dict[str, Any]) -> Any:
        delta = payload.get("delta")
        name = _DELTAS.get(str(delta.get("type"))) if is_dict(delta) else None
        if name is None or not is_dict(delta):
            return self._unknown_delta(block, payload)
        fed = self._fed(block, name, delta.get(name))
        if len(payload) == _DELTA_FIELDS and len(delta) == _TEXT_FIELDS and type(block[-1]) is int:
            return {**payload, "delta": {**delta, name: fed}}  # as nearly all are
        return self._with(payload, "delta", name, fed)

    def _unknown_delta(self, block: Key, payload: dict[str, Any]) -> Any:
        """Empty a delta of a kind that cannot be put together: the block's end has it whole."""
        content = payload.get("content_block")
        if is_dict(content) and (name := _STARTS.get(str(content.get("type")))):
            fed = self._fed(block, name, content.get(name))
            return self._with(payload, "content_block", name, fed)
        delta = payload.get("delta")
        kind = delta.get("type") if is_dict(delta) else None
        bare = {"event": payload["event"], "index": payload.get("index"), "delta": {"type": kind}}
        return self._rest(bare)

    def _finish(self, payload: dict[str, Any]) -> Any:
        content = payload.get("content")
        name = _BLOCKS.get(str(content.get("type"))) if is_dict(content) else None
        if name is None or not is_dict(content) or not isinstance(content.get(name), str):
            return self._rest(payload)
        # By the same rule as its deltas, so that whoever adds them up has the same text.
        text = redact_streamed(content[name], self._text, failed=self._failed)
        return self._with(payload, "content", name, text)

    def _with(self, payload: dict[str, Any], part: str, name: str, text: str) -> Any:
        """Redact all of *payload* but for one text, which is redacted already."""
        redacted = self._rest({**payload, part: {**payload[part], name: ""}})
        redacted[part][name] = text
        return redacted

    def _rest(self, payload: dict[str, Any]) -> Any:
        """Redact all of *payload*. Log probabilities spell out a message's tokens: they go."""
        if is_dict(about := payload.get("metadata")) and "logprobs" in about:
            bare = {name: value for name, value in about.items() if name != "logprobs"}
            payload = {**payload, "metadata": bare}
        return self._walker.shaped(payload, PROTOCOL)

    def _fed(self, block: Key, name: str, piece: Any) -> str:
        if block not in self._blocks:
            whole = name == "args"
            self._blocks[block] = StreamingText(self._text, whole=whole, failed=self._failed), name
        segments, _ = self._blocks[block]
        return segments.feed(piece) if isinstance(piece, str) else ""

    def _tail(self, block: Key) -> Iterator[Any]:
        if block not in self._blocks:
            return
        segments, name = self._blocks.pop(block)
        if rest := segments.end():
            kind = next(each for each, field in _DELTAS.items() if field == name)
            delta = {"type": kind, name: rest}
            yield self._rest({"event": "content-block-delta", "index": block[-1]}) | {
                "delta": delta
            }

    def _chunk(self, key: Key, chunk: AIMessageChunk) -> Any:
        """Hold the chunks of a model's older kind of stream until they are whole."""
        held = self._chunks.pop(key, None)
        whole = chunk if held is None else held + chunk
        if chunk.chunk_position == "last":
            return self._walker.walk(whole)
        self._chunks[key] = whole
        return AIMessageChunk(content="", id=chunk.id and self._walker.identifier(chunk.id))
