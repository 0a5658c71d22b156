"""The blocks of a prompt and the items in them."""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from ...telemetry.text import is_a, json_text
from ..errors import ConfigurationError

_FULL_WIDTH: Final = {ord(each): ord(each) + 0xFEE0 for each in "[]<>{}|`"}
_TEXTS: Final = ("text", "memory", "content", "data")


class Tier(StrEnum):
    """How firm a fact is: the first two are never pruned, and canonical facts are only added to."""

    IMMUTABLE = "immutable"
    CANONICAL = "canonical"
    KNOWN = "known"


class PromptItem(NamedTuple):
    """
    One memory, fact or turn, as a line of a prompt. Its `repr` shows nothing of it.

    Attributes:
        id: As its store knows it; its number, from 1, in a sequence.
        fields: Its value, payload or record: a text is ``{"text": …}``.
    """

    id: str
    text: str
    tier: Tier
    fields: Mapping[str, Any]

    def __repr__(self) -> str:
        """Return its tier: the rest may be personal data."""
        return f"PromptItem({self.tier})"


@dataclass(frozen=True, slots=True)
class Block:
    """
    One part of a prompt, under a heading of its own.

    Attributes:
        name: Its heading.
        source: A text, which is never cut; a sequence of texts or mappings, the newest last, which
            stay longest; or a guarded client, of whose answer the first stay longest.
        budget: Tokens that it may have, its heading included. 0: it is read and not shown.
        ask: Arguments of the client's method, with a ``limit`` or ``top_k``.
        method: The recall to make: of an asynchronous client, its coroutine method.
        never_prune: Tells whether an item may never be left out, besides the tiers' own.
        latest: Exactly so many items, the last of the source, none of them cut. None: all.
        arcs: Items in an arc: each whole arc is one line, and where there is no room the oldest
            arcs lose events and become one with their neighbours. 0: an item is a line.
    """

    name: str
    source: Any = field(repr=False)
    budget: int
    ask: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    method: str = "search"
    never_prune: Callable[[PromptItem], bool] | None = field(default=None, repr=False)
    latest: int | None = None
    arcs: int = 0

    def __post_init__(self) -> None:
        """Refuse a client without a limit: nobody could tell whether its answer is whole."""
        if self.is_stored and self.limit is None:
            raise ConfigurationError("the block of a client needs a limit or a top_k in its ask")

    @property
    def is_stored(self) -> bool:
        """Whether its source is a client."""
        return not is_a(self.source, str, Sequence)

    @property
    def limit(self) -> int | None:
        """How many items its client is asked for at most."""
        found: int | None = self.ask.get("limit", self.ask.get("top_k"))
        return found

    def recall(self) -> Any:
        """Return its client's answer. Raises what the client does."""
        method = getattr(self.source, self.method)
        found = inspect.signature(method).parameters.values()
        first = [each.name for each in found if each.kind is each.POSITIONAL_ONLY]
        rest = {name: value for name, value in self.ask.items() if name not in first}
        return method(*(self.ask[name] for name in first if name in self.ask), **rest)

    def items(self, answer: Any) -> list[PromptItem]:
        """Return the items in *answer*, by tier. Raises ConfigurationError: its form is unknown."""
        rows: Any = answer if not is_a(answer, str) else [answer]
        if is_a(rows, tuple) and rows and is_a(rows[0], list):
            rows = rows[0]  # a page, and where the next one begins
        rows = rows.get("results") if is_a(rows, Mapping) else getattr(rows, "points", rows)
        if not is_a(rows, Sequence):
            raise ConfigurationError(f"a block's source answered a {type(answer).__name__}")
        found = [self._item(number, each) for number, each in enumerate(rows, 1)]
        in_order = self.arcs or self.latest is not None
        return found if in_order else sorted(found, key=lambda item: [*Tier].index(item.tier))

    def is_pinned(self, item: PromptItem) -> bool:
        """Return whether *item* is never pruned."""
        is_whole = is_a(self.source, str) or self.latest is not None
        chosen = self.never_prune is not None and self.never_prune(item)
        return is_whole or chosen or item.tier is not Tier.KNOWN

    def _item(self, number: int, row: Any) -> PromptItem:
        value: Any = {"text": row} if is_a(row, str) else getattr(row, "value", row)
        fields: Any = getattr(value, "payload", value)
        if not is_a(fields, Mapping):
            raise ConfigurationError(f"a block's source answered a {type(row).__name__} in a list")
        metadata: Any = fields.get("metadata") or {}
        tier: Any = fields.get("tier") or metadata.get("tier")
        ids = getattr(row, "key", None), getattr(row, "id", None), fields.get("id"), number
        texts = [fields[each] for each in _TEXTS if is_a(fields.get(each), str)]
        notes: Any = [*fields.get("summary_notes", ()), *_updates(fields)] if self.arcs else ()
        text = "; ".join(notes) or next(iter(texts), None) or json_text(fields)
        known = Tier(tier) if tier in {*Tier} else Tier.KNOWN
        # One line, so that no text of an item looks like the heading of a block.
        return PromptItem(
            str(next(each for each in ids if each is not None)),
            " ".join(text.split()),
            known,
            fields,
        )


def _updates(fields: Mapping[str, Any]) -> list[str]:
    return [f"{name}: {value}" for name, value in fields.get("state_updates", {}).items()]


def clean_input(text: str, most_characters: int = 500) -> str:
    """
    Return a user's *text* as it may stand in a prompt, cut behind *most_characters*.

    Unicode's form NFKC, without control and format characters, each white space a space, brackets,
    braces, bars and backquotes in full width, so that it begins no block and ends none.
    """
    spaced = " ".join(unicodedata.normalize("NFKC", text).split())
    shown = "".join(each for each in spaced if unicodedata.category(each)[0] != "C")
    return shown.translate(_FULL_WIDTH)[:most_characters]
