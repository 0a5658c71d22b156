"""Guards for an application written without mnemoscope, by patching its clients' classes."""

from __future__ import annotations

from .patching import instrument, uninstrument

__all__ = ["instrument", "uninstrument"]
