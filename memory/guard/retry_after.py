"""Seconds for which a service asked not to be called again."""

from __future__ import annotations


def retry_after_s(_exc: BaseException) -> float | None:
    """Return how long the service that raised it asked to be left alone; None: it did not."""
    return None
