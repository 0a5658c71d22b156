"""Hygiene of memories: echoes, duplicates, partial writes, and what nobody ever recalls."""

from __future__ import annotations

from .findings import (
    Ailment,
    Deed,
    HygieneFinding,
    RecallUse,
    StoredText,
    examine,
    recall_use,
)
from .part import MemoryTexts
from .watch import hygiene

__all__ = [
    "Ailment",
    "Deed",
    "HygieneFinding",
    "MemoryTexts",
    "RecallUse",
    "StoredText",
    "examine",
    "hygiene",
    "recall_use",
]
