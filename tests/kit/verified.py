"""The verification of a log, for tests that hold something else against it."""

from __future__ import annotations

from mnemoscope.audit.verification.whole import verify

__all__ = ["verify"]
