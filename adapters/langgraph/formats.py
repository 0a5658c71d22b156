"""
Formats of messages and of LangGraph's own types: which fields are structure, by where they stand.

Structure is what frameworks and providers find things by: ids of messages, tool calls and
interrupts, types, roles, signatures. A key of such a name anywhere else is content, and so is every
field that a format does not list. Structure is redacted as well, but as a label: an id that is
somebody's address becomes a pseudonym, the same one wherever it stands, so that tool calls still
match their results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Final, TypeAlias

from langchain_core.messages import BaseMessage
from langgraph.types import Command, Interrupt, Send

from ...memory.errors import RedactionError
from ...memory.privacy.engine.value_redaction import (
    Format,
    ValueRedactor,
    copy_model,
    is_binary,
)
from ..toolkit.type_guards import is_dict, is_list


class Field(Enum):
    """
    The kind of content in one field of a message format. A list of one kind counts as the kind.

    Attributes:
        WORD: A word of the format's: kept if it is one, else as ID.
        ID: An id or a name that others are found by: a label.
        PATH: LangGraph's path of a subgraph: names of nodes with ids of tasks, each a label.
        NODE: The name of a node, in a store that finds the node by it: kept.
        BINARY: Base64 of bytes that only a provider can read: kept if it is, else content.
        JSON: An object written as JSON, which is content: redacted inside.
        STATE: State of a graph, in which messages are looked for.
        CONTENT: Anything else.
    """

    WORD = "word"
    ID = "id"
    PATH = "path"
    NODE = "node"
    BINARY = "binary"
    JSON = "json"
    STATE = "state"
    CONTENT = "content"


@dataclass(frozen=True, slots=True)
class Each:
    """A list of things of one format."""

    shape: Shape


@dataclass(frozen=True, slots=True)
class Keyed:
    """A mapping whose keys are of one format, to things of another."""

    keys: Field
    shape: Shape


@dataclass(frozen=True, slots=True)
class Blocks:
    """A text, a content block, or a list of them. The type of a block says which format it has."""


Shape: TypeAlias = "Field | Each | Keyed | Blocks | Mapping[str, Shape]"
"""A mapping is by field; fields that it does not list are content."""

WORD, ID, PATH, NODE, BINARY, JSON, STATE, CONTENT = Field
BLOCKS: Final = Blocks()

WORDS: Final = frozenset(
    {
        *("human", "user", "ai", "assistant", "system", "developer", "tool", "function", "remove"),
        *("HumanMessageChunk", "AIMessageChunk", "SystemMessageChunk", "ToolMessageChunk"),
        *("FunctionMessageChunk", "ChatMessageChunk", "chat", "last", "success", "error"),
        *("tool_call", "tool_call_chunk", "invalid_tool_call", "tool_call_with_context"),
        *("loop", "input", "update", "fork", "completed", "in_progress", "incomplete"),
        *("event", "ephemeral", "auto", "low", "high", "base64", "url", "summary_text"),
        *("message-start", "message-finish", "message-error", "content-block-start"),
        *("content-block-delta", "content-block-finish", "text-delta", "reasoning-delta"),
        *("tool-call-delta", "block-delta", "data-delta", "tool-started", "tool-finished"),
        *("tool-error", "tool-output-delta", "task", "task_result", "checkpoint"),
        *("reference", "citation", "non_standard_annotation", "web_search_result"),
    }
)
"""Words that formats are made of, beside the types of blocks."""

_BLOCK: Final[Mapping[str, Shape]] = {"type": WORD, "id": ID, "index": ID}
_CALL: Final[Mapping[str, Shape]] = {**_BLOCK, "name": ID, "args": JSON}
_SOURCE: Final[Mapping[str, Shape]] = {"type": WORD, "file_id": ID, "media_type": ID}
_FILE: Final[Mapping[str, Shape]] = {**_BLOCK, "file_id": ID, "mime_type": ID, "source": _SOURCE}
_TOOL_USE: Final[Mapping[str, Shape]] = {**_BLOCK, "name": ID, "partial_json": JSON}
_RESULT: Final[Mapping[str, Shape]] = {
    **_BLOCK,
    "tool_use_id": ID,
    "content": BLOCKS,
    "encrypted_content": BINARY,
}
_FUNCTION: Final[Mapping[str, Shape]] = {"name": ID, "arguments": JSON}

BLOCK_FORMATS: Final[Mapping[str, Mapping[str, Shape]]] = {
    # LangChain's, version 1, and what is the same elsewhere
    "text": {**_BLOCK, "annotations": Each(_BLOCK)},
    "text-plain": _FILE,
    "reasoning": {
        **_BLOCK,
        "summary": Each(_BLOCK),
        "encrypted_content": BINARY,
        "extras": {"signature": BINARY},
    },
    "tool_call": _CALL,
    "tool_call_chunk": _CALL,
    "invalid_tool_call": _CALL,
    "server_tool_call": _CALL,
    "server_tool_call_chunk": _CALL,
    "server_tool_result": {**_BLOCK, "tool_call_id": ID, "status": WORD},
    **dict.fromkeys(("image", "audio", "video", "file", "document"), _FILE),
    "non_standard": _BLOCK,
    # Anthropic's
    "thinking": {**_BLOCK, "signature": BINARY},
    "redacted_thinking": {**_BLOCK, "data": BINARY},
    "tool_use": _TOOL_USE,
    "server_tool_use": _TOOL_USE,
    "mcp_tool_use": _TOOL_USE,
    "input_json_delta": _TOOL_USE,
    "tool_result": _RESULT,
    "mcp_tool_result": _RESULT,
    "web_search_tool_result": _RESULT,
    "web_search_result": _RESULT,
    "search_result": _RESULT,
    # OpenAI's
    **dict.fromkeys(("input_text", "output_text", "refusal", "image_url", "input_audio"), _BLOCK),
    **dict.fromkeys(("input_image", "input_file"), _FILE),
    "function": {**_BLOCK, "function": _FUNCTION},
    "function_call": {**_BLOCK, "call_id": ID, "status": WORD, **_FUNCTION},
    "function_call_output": {**_BLOCK, "call_id": ID, "status": WORD},
}
"""Formats of content blocks by their type. One of another type has what all have."""

_OPENAI_CALL: Final[Mapping[str, Shape]] = {**_CALL, "function": _FUNCTION}

MESSAGE: Final[Mapping[str, Shape]] = {
    **dict.fromkeys(("type", "role", "status", "chunk_position"), WORD),
    **dict.fromkeys(("id", "name", "tool_call_id"), ID),
    "content": BLOCKS,
    **dict.fromkeys(("tool_calls", "invalid_tool_calls", "tool_call_chunks"), Each(_OPENAI_CALL)),
    "function_call": _FUNCTION,
    "additional_kwargs": {"tool_calls": Each(_OPENAI_CALL), "function_call": _FUNCTION},
    "response_metadata": {
        **dict.fromkeys(("id", "model", "model_name", "model_provider", "provider"), ID),
        **dict.fromkeys(("finish_reason", "stop_reason", "system_fingerprint"), ID),
    },
}
"""A message, of LangChain's classes or as a dict with a role, as model providers take it."""

INTERRUPT: Final[Mapping[str, Shape]] = {"id": ID}

PROTOCOL: Final[Mapping[str, Shape]] = {
    **dict.fromkeys(("event", "role"), WORD),
    **dict.fromkeys(("index", "id", "message_id", "run_id", "name", "tool_call_id"), ID),
    **dict.fromkeys(("content", "content_block", "delta"), BLOCKS),
    "metadata": MESSAGE["response_metadata"],
}
"""A step of a message in LangChain's streaming protocol."""

METADATA: Final[Mapping[str, Shape]] = {
    "source": WORD,
    **dict.fromkeys(("parents", "checkpoint_map"), Keyed(PATH, ID)),
    **dict.fromkeys(("run_id", "thread_id", "assistant_id", "graph_id", "checkpoint_id"), ID),
    **dict.fromkeys(("langgraph_node", "langgraph_triggers", "langgraph_path"), ID),
    **dict.fromkeys(("langgraph_checkpoint_ns", "checkpoint_ns"), PATH),
    "lc_versions": Keyed(ID, ID),
}
"""What LangGraph tells of a run, a task or a checkpoint, beside what the caller adds."""

_CONFIG: Final[Mapping[str, Shape]] = {"configurable": METADATA, "metadata": METADATA}
_TASK: Final[Mapping[str, Shape]] = {
    **dict.fromkeys(("id", "name", "triggers", "path"), ID),
    **dict.fromkeys(("input", "result"), STATE),
    "interrupts": Each(INTERRUPT),
    "metadata": METADATA,
    "state": _CONFIG,
}
_CHECKPOINT: Final[Mapping[str, Shape]] = {
    **dict.fromkeys(("config", "parent_config"), _CONFIG),
    "values": STATE,
    "metadata": METADATA,
    "next": ID,
    "tasks": Each(_TASK),
}
EVENTS: Final[Mapping[str, Shape]] = {
    "tasks": _TASK,
    "checkpoints": _CHECKPOINT,
    "debug": {"type": WORD, "timestamp": ID, "payload": {**_TASK, **_CHECKPOINT}},
    "tools": {"event": WORD, "tool_call_id": ID, "tool_name": ID, "output": STATE},
}
"""Data of a stream's events by method. Those of other methods are state."""


def redact_shaped(value: Any, shape: Shape, redactor: ValueRedactor) -> Any:
    """
    Return *value* redacted by the format that it should have. Where it has not, it is content.

    Raises:
        RedactionError: A part of it cannot be redacted.
    """
    kind = _type_of(value)
    if isinstance(shape, Field):
        return _field(value, kind, shape, redactor)
    if kind is dict and not isinstance(shape, Each):
        return redactor.inside(value, lambda each, _kind: _mapping(each, shape, redactor))
    if kind in _LISTS and isinstance(shape, (Blocks, Each)):
        part = shape.shape if isinstance(shape, Each) else shape
        return redactor.inside(
            value, lambda each, kind: kind([redact_shaped(i, part, redactor) for i in each])
        )
    return redactor.content.redact(value)


_LISTS: Final = frozenset({list, tuple})


def _type_of(value: object) -> Any:
    return type(value)


def _field(value: Any, kind: Any, field: Field, redactor: ValueRedactor) -> Any:
    if field is CONTENT:
        return redactor.content.redact(value)
    if field is STATE:
        return redactor.redact(value)
    if kind is str:
        return _string(value, field, redactor)
    inner = redactor if field is NODE else redactor.content
    if kind in _LISTS:
        parts = (
            _string(each, field, redactor) if type(each) is str else inner.redact(each)
            for each in value
        )
        return kind(parts)
    return inner.redact(value)


def _string(value: str, field: Field, redactor: ValueRedactor) -> str:
    if field is NODE or (field is WORD and (value in WORDS or value in BLOCK_FORMATS)):
        return value
    if field is PATH:
        return "|".join(
            ":".join(map(redactor.identifier, each.split(":"))) for each in value.split("|")
        )
    if field is JSON:
        return _json(value, redactor)
    if field is BINARY:
        return value if is_binary(value, redactor.text) else redactor.text(value)
    return redactor.identifier(value)


def _mapping(value: dict[Any, Any], shape: Shape, redactor: ValueRedactor) -> dict[Any, Any]:
    if isinstance(shape, Keyed):
        return {
            redact_shaped(key, shape.keys, redactor): redact_shaped(each, shape.shape, redactor)
            for key, each in value.items()
        }
    fields = shape if isinstance(shape, Mapping) else _block(value)
    content, result = redactor.content, dict[Any, Any]()
    for key, each in value.items():
        field = fields.get(key) if type(key) is str else None
        if field is None:
            result[content.redact_key(key)] = content.redact_under(key, each)
        else:
            result[key] = redact_shaped(each, field, redactor)
    if len(result) != len(value):
        raise RedactionError("two keys of a mapping became one after redaction")
    return result


def _block(value: dict[Any, Any]) -> Mapping[str, Shape]:
    named = value.get("type")
    return BLOCK_FORMATS.get(named, _BLOCK) if type(named) is str else _BLOCK


class _AmbiguousError(ValueError):
    """An object with a repeated key: a reader sees one value, the bytes hold both."""


def _json(text: str, redactor: ValueRedactor) -> str:
    """Redact a JSON object inside, or as any text where it is none, as while it is streamed."""
    try:
        # Numbers as they are written: a card's may stand there without quotes.
        held = json.loads(text, object_pairs_hook=_pairs, parse_int=_Digits, parse_float=_Digits)
    except ValueError:
        held = None
    if not isinstance(held, (dict, list)):
        return redactor.text(text)
    redacted = redactor.content.redact(held)
    if redacted == held:
        return text
    return json.dumps(_numbers(redacted), ensure_ascii=False)


class _Digits(str):
    """A number as it was written."""

    __slots__ = ()


def _digits(value: _Digits, redactor: ValueRedactor) -> Any:
    """Redact a number as one that stands under its key, else as the text of its digits."""
    redacted = redactor.redact(json.loads(value))
    if isinstance(redacted, str):
        return redacted
    text = redactor.text(str(value))
    return value if text == value else text


def _numbers(value: Any) -> Any:
    if is_dict(value):
        return {key: _numbers(each) for key, each in value.items()}
    if is_list(value):
        return [_numbers(each) for each in value]
    return json.loads(value) if isinstance(value, _Digits) else value


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    held = dict(pairs)
    if len(held) != len(pairs):
        raise _AmbiguousError
    return held


def _message(value: BaseMessage, redactor: ValueRedactor) -> BaseMessage:
    held = {**value.__dict__, **(value.model_extra or {})}
    changed = {
        name: redacted
        for name, each in held.items()
        if not _is_empty(each) and (redacted := _message_field(name, each, redactor)) is not each
    }
    return copy_model(value, changed, redactor) if changed else value


def _message_field(name: str, value: Any, redactor: ValueRedactor) -> Any:
    shape = MESSAGE.get(name)
    if shape is None:
        return redactor.content.redact_under(name, value)
    return redact_shaped(value, shape, redactor)


def _is_empty(value: Any) -> bool:
    return value is None or (type(value) in _PLAIN and not value)


_PLAIN: Final = frozenset({str, list, dict, tuple})


def _attributes(shape: Mapping[str, Shape], value: Any, redactor: ValueRedactor) -> Any:
    kind = _type_of(value)
    result = object.__new__(kind)
    for name in _ATTRIBUTES[kind]:
        if hasattr(value, name):
            redacted = redact_shaped(getattr(value, name), shape.get(name, CONTENT), redactor)
            object.__setattr__(result, name, redacted)
    return result


_ATTRIBUTES: Final[Mapping[type, tuple[str, ...]]] = {
    Interrupt: ("value", "id", "response_schema"),
    Send: ("node", "arg", "timeout"),
    Command: ("graph", "update", "resume", "goto"),
}


class LangGraphFormats:
    """
    Finder of formats by type.

    Args:
        nodes: What names of nodes are: NODE where a graph finds its nodes by them again, else ID.
        state: Whether dicts may be messages.
    """

    def __init__(self, nodes: Field, *, state: bool) -> None:
        shapes: Mapping[type, Mapping[str, Shape]] = {
            Interrupt: INTERRUPT,
            Send: {"node": nodes, "arg": STATE},
            Command: {"graph": nodes, "update": STATE, "goto": nodes},
        }
        self._found: dict[type, Format | None] = {
            kind: partial(_attributes, shape) for kind, shape in shapes.items()
        }
        self._found[dict] = _maybe_message if state else None

    def __call__(self, kind: Any) -> Format | None:
        """Return the format of values of type *kind*, or None."""
        try:
            return self._found[kind]
        except KeyError:
            is_digits = kind is _Digits
            found = _message if issubclass(kind, BaseMessage) else _digits if is_digits else None
        if len(self._found) < _MOST_TYPES:
            self._found[kind] = found
        return found


_MOST_TYPES = 1_024


def _maybe_message(value: dict[Any, Any], redactor: ValueRedactor) -> Any:
    if "role" in value and ("content" in value or "tool_calls" in value) and is_dict(value):
        return _mapping(value, MESSAGE, redactor)
    if value.get("type") == "tool_call" and "args" in value:
        return _mapping(value, _CALL, redactor)
    return redactor.mapping(value)
