"""
Prices of model calls: a table that ships, dated and with sources, and the user's own.

A price that is not in the table is not guessed: the cost is None, and the tokens are counted all
the same. Costs are list prices at a vendor's base tier; a contract, a batch or a long context may
be billed otherwise, which is what the user's file is for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, cast

from ..event.usage import Usage
from .model_names import names_of

_PER = 1_000_000
_NUMBERS = ("input", "output", "cached_input", "cache_write", "reasoning")
_KNOWN = frozenset({*_NUMBERS, "source", "as_of"})


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
        source: Where the figures are from: a key of the file's ``sources``, or words.
        as_of: The day they were read, ISO 8601.
    """

    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None
    reasoning: float | None = None
    source: str | None = None
    as_of: str | None = None


class Prices:
    """
    Prices by model name.

    Args:
        table: Rows by name, as vendors write it, without vendor prefix and snapshot date.
    """

    def __init__(self, table: Mapping[str, Price]) -> None:
        self._table = {name.lower(): price for name, price in table.items()}
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
            table |= _parsed(_text(Path(path)), str(path))
        return cls(table)

    def __len__(self) -> int:
        return len(self._table)

    def price(self, model: str) -> Price | None:
        """
        Return the price of *model*, or None for a model that is not in the table.

        The name is looked up as it is, then without the vendor's prefix (``models/``, ``openai/``,
        ``us.anthropic.``), then without its snapshot (``-2024-11-20``, ``-latest``, ``-v1:0``).
        """
        return self._found(model)

    def cost_usd(self, usage: Usage) -> float | None:
        """
        Return what *usage* cost in USD, or None for a model that is not in the table.

        Cached and cache-written tokens are part of the input, reasoning is part of the output.
        """
        price = self.price(usage.model)
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

    def _look_up(self, model: str) -> Price | None:
        return next((self._table[name] for name in names_of(model) if name in self._table), None)


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
    unknown = sorted(cells.keys() - _KNOWN)
    if unknown:
        raise PriceFileError(f"{where}: unknown {', '.join(unknown)}; known: {_listed(_KNOWN)}")
    missing = [each for each in ("input", "output") if each not in cells]
    if missing:
        raise PriceFileError(f"{where}: {' and '.join(missing)} missing (USD per million tokens)")
    for name in _NUMBERS:
        if name in cells and not _is_price(cells[name]):
            raise PriceFileError(
                f"{where}: {name} must be a number, 0 or more, in USD per million tokens"
            )
    return Price(**cells)


def _is_dict(value: Any) -> bool:
    return isinstance(value, dict)


def _is_price(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and isfinite(value)
        and value >= 0
    )


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))
