"""
Prices of model calls: a table that ships, dated and with sources, and the user's own.

A price that is not in the table is not guessed: the cost is None, and the tokens are counted all
the same. What runs on one's own machine has no price, and costs 0. Costs are list prices at a
vendor's base tier; a contract, a batch or a long context may be billed otherwise, which is what
the user's file is for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, Final, cast

from ..event.usage import Usage
from ..text import is_a
from .serving import LOCAL, is_vendor, served

_PER = 1_000_000
_NUMBERS = ("input", "output", "cached_input", "cache_write", "reasoning")
_KNOWN = frozenset({*_NUMBERS, "snapshots", "source", "as_of"})


class PriceFileError(ValueError):
    """A price file is invalid. The message names the file and the row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """
    One row, in USD per million tokens.

    Attributes:
        input: Input that no cache had.
        output: Output, reasoning included unless it has a price of its own.
        cached_input: Input read from the provider's cache. None: as `input`.
        cache_write: Input written to the provider's cache. None: as `input`.
        reasoning: Output that the model kept to itself. None: as `output`.
        snapshots: Endings of the names that it is also the price of: ``2024-11-20``. None: of no
            other, or, in a user's file, of those of the row that it overrides.
        source: Where the figures are from: a key of the file's ``sources``, or words.
        as_of: The day they were read, ISO 8601.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None
    snapshots: tuple[str, ...] | None = None
    source: str | None = None
    as_of: str | None = None


FREE: Final = Price(input=0, output=0, source="it runs on a machine of one's own")
"""The price of a model that no vendor serves."""


class Prices:
    """
    Prices by model name.

    Args:
        table: Rows by name, as vendors write it, without the vendor's prefix.
    """

    def __init__(self, table: Mapping[str, Price]) -> None:
        rows = {name.lower(): price for name, price in table.items()}
        self._table = {
            f"{name}-{ending.lower()}": price
            for name, price in rows.items()
            # Listed, not guessed: a new snapshot of a model may have a new price.
            for ending in ("latest", *(price.snapshots or ()))
        } | rows
        self._rows = len(rows)
        self._found = lru_cache(maxsize=1_024)(self._look_up)

    @classmethod
    def load(cls, path: str | Path | None = None) -> Prices:
        """
        Return the table that ships, extended and overridden by the file at *path* if given.

        Raises:
            PriceFileError: The file cannot be read or a row of it makes no sense.
        """
        shipped = files(__package__ or __name__).joinpath("prices.json").read_text("utf-8")
        table = _parsed(shipped, "the shipped price file")
        if path is not None:
            table = _merged(table, _parsed(_text(Path(path)), str(path)))
        return cls(table)

    def __len__(self) -> int:
        return self._rows

    def price(self, model: str, provider: str | None = None) -> Price | None:
        """
        Return the price of *model* where *provider* serves it, or None if it is not known.

        The name is looked up as it is, then without a prefix that leaves the vendor's price as it
        is (``models/``, ``openai/``, ``global.anthropic.``). A row is the price of the snapshots
        that it lists, and of no other.
        """
        return self._found(model, provider)

    def cost_usd(self, usage: Usage) -> float | None:
        """
        Return what *usage* cost in USD, or None where its price is not known.

        Cached and cache-written tokens are part of the input, reasoning is part of the output.
        """
        price = self.price(usage.model, usage.provider)
        if price is None:
            return None
        fresh = max(0, usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens)
        cached = price.input if price.cached_input is None else price.cached_input
        write = price.input if price.cache_write is None else price.cache_write
        reasoning = price.output if price.reasoning is None else price.reasoning
        answer = max(0, usage.output_tokens - usage.reasoning_tokens)
        total = (
            fresh * price.input
            + usage.cached_tokens * cached
            + usage.cache_write_tokens * write
            + answer * price.output
            + (usage.output_tokens - answer) * reasoning
        )
        return total / _PER

    def _look_up(self, model: str, provider: str | None) -> Price | None:
        model = model.lower()
        # A host's own price for a model first, where the user's file has one.
        own = self._table.get(f"{provider}/{model}".lower()) or self._table.get(model)
        if own is not None and not is_vendor(own.source):
            return own  # a row of the user's holds whoever serves the model
        found = served(model, provider)
        if found.vendor == LOCAL:
            return FREE
        row = self._of(found.name)
        # A prefix that is left is of a host that asks what it likes.
        if row is None or "/" in found.name:
            return None
        return row if found.vendor in (None, row.source) or not is_vendor(row.source) else None

    def _of(self, name: str) -> Price | None:
        if name.startswith("ft:"):
            name = ":".join(name.split(":")[:2])  # whose it is and what it is called say no price
        name = name.replace("@", "-")
        # OpenRouter writes versions with a dot where vendors have a dash.
        return self._table.get(name) or self._table.get(name.replace(".", "-"))


def _merged(shipped: Mapping[str, Price], own: Mapping[str, Price]) -> dict[str, Price]:
    """Return the rows of both: one that overrides another is of the same snapshots."""
    return {
        **shipped,
        **{
            name: replace(price, snapshots=shipped[name].snapshots)
            if price.snapshots is None and name in shipped
            else price
            for name, price in own.items()
        },
    }


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise PriceFileError(f"{path}: cannot be read ({type(exc).__name__})") from exc


def _parsed(text: str, where: str) -> dict[str, Price]:
    try:
        document: Any = json.loads(text)
    except json.JSONDecodeError as exc:
        raise PriceFileError(f"{where}: line {exc.lineno}: not JSON: {exc.msg}") from exc
    rows: Any = cast("dict[str, Any]", document).get("models") if _is_dict(document) else None
    if not _is_dict(rows):
        raise PriceFileError(f'{where}: expected {{"models": {{"<model>": {{"input": …}}}}}}')
    named = cast("dict[str, Any]", rows)
    return {name: _price(row, f"{where}: model {name!r}") for name, row in named.items()}


def _price(row: Any, where: str) -> Price:
    if not _is_dict(row):
        raise PriceFileError(f"{where}: expected an object with input and output")
    cells = cast("dict[str, Any]", row)
    # A mistyped name would be a price that is left out, and a wrong bill.
    unknown = sorted(cells.keys() - _KNOWN)
    if unknown:
        known = ", ".join(sorted(_KNOWN))
        raise PriceFileError(f"{where}: unknown {', '.join(unknown)}; known: {known}")
    missing = [each for each in ("input", "output") if each not in cells]
    if missing:
        raise PriceFileError(f"{where}: {' and '.join(missing)} missing (USD per million tokens)")
    for name in _NUMBERS:
        if name in cells and not _is_price(cells[name]):
            raise PriceFileError(
                f"{where}: {name} must be a number, 0 or more, in USD per million tokens"
            )
    snapshots: Any = cells.get("snapshots")
    if snapshots is not None and not _is_words(snapshots):
        raise PriceFileError(f'{where}: snapshots must be a list such as ["2024-11-20"]')
    price = Price(**cells)
    return price if snapshots is None else replace(price, snapshots=tuple(snapshots))


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _is_words(value: Any) -> bool:
    return is_a(value, list) and all(isinstance(each, str) and each for each in value)


def _is_price(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        # `true` is a number to Python.
        and not isinstance(value, bool)
        and isfinite(value)
        and value >= 0
    )
