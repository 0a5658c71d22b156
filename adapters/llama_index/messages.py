"""Chat messages in the arguments and answers of LlamaIndex's memories."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...memory.api import Arguments, Record, Redaction, Summary
from ..toolkit.type_guards import is_list

# Not import statements, here and beside: what checks types runs where this framework is not.
_types: Any = import_module("llama_index.core.base.llms.types")
_MEDIA = (_types.ImageBlock, _types.AudioBlock, _types.VideoBlock, _types.DocumentBlock)
_NOT_KEPT = "[{}: not kept, since it cannot be redacted]"
_HOLDERS = (_types.ChatMessage, _types.CitableBlock, _types.CitationBlock)


def redact(arguments: Arguments, redaction: Redaction, *, media: bool) -> Arguments:
    """
    Return *arguments* with every text in messages replaced, as new objects.

    Keys of sessions stay, and so do pictures, sound and documents if *media*. They cannot be
    redacted, so that otherwise a text is in their place.
    """

    def redacted(value: Any) -> Any:
        if is_list(value):
            return [redacted(each) for each in value]
        if isinstance(value, _MEDIA):
            return value if media else _types.TextBlock(text=_NOT_KEPT.format(value.block_type))
        changed: Arguments = {}
        if isinstance(value, _types.TextBlock):
            changed |= {"text": redaction.text(value.text)}
        elif isinstance(value, _HOLDERS):
            changed |= {name: redacted(each) for name, each in dict(value).items()}
        else:
            return redaction.text(value) if type(value) is str else redaction.value(value)
        return value.model_copy(update=changed)

    return {name: each if name == "key" else redacted(each) for name, each in arguments.items()}


def messages_of(arguments: Arguments) -> list[Any]:
    """Return the messages that a call writes, or searches by."""
    given = [arguments["message"]] if "message" in arguments else arguments.get("messages") or ()
    return [each for each in given if isinstance(each, _types.ChatMessage)]


def labelled(message: Any, session: Any) -> Record:
    """Return a message as origin knows it: it has no id, and is all that it says in its session."""
    return Record(str(session), (("message", message.model_dump(mode="json", exclude_none=True)),))


def content(arguments: Arguments) -> Arguments:
    """Return what the trail keeps of a call: roles and texts, or the query."""
    query = arguments.get("input")
    return {"query": str(query)} if query else {"messages": [*map(str, messages_of(arguments))]}


def summary(answer: Any, _arguments: Arguments) -> Summary:
    """Return how many messages, or keys, were found."""
    return Summary(hits=len(answer))
