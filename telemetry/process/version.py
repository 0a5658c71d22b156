"""The version of this package that runs."""

from __future__ import annotations

from functools import cache


@cache
def running_version() -> str:
    """Return the version of this package; empty where it is not installed."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow, and rare

    try:
        return version("mnemoscope")
    except PackageNotFoundError:
        return ""
