"""Copies of the sealed log elsewhere, with what it takes to verify them there."""

from __future__ import annotations

from .record import CopyRecord, SealedDetail
from .source import Shipped, ship
from .target import Copy, CopyError, Target, open_copy, open_target
from .verify import verify_copy

__all__ = [
    "Copy",
    "CopyError",
    "CopyRecord",
    "SealedDetail",
    "Shipped",
    "Target",
    "open_copy",
    "open_target",
    "ship",
    "verify_copy",
]
