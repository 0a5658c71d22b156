"""The command line, run in the test's own process."""

from __future__ import annotations

from mnemoscope.adapters.cli.root import run

__all__ = ["run"]
