"""Scopes that compare what they read, and share an audit trail as processes do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.memory import Mnemoscope, load_settings
from mnemoscope.memory.testing import CapturingSink
from tests.kit.patience import GIVE_UP_S

KEY = "5e" * 32


class SealedScopes:
    """
    Makes scopes of one audit trail.

    Args:
        folder: Of the trail.
        stack: Ends them.
    """

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack

    def __call__(self, policy: str = "refuse", *, trail: bool = True, **more: Any) -> Mnemoscope:
        """Return a scope with the *policy*; without a trail, with a sink in memory alone."""
        settings = load_settings(
            audit_url=f"sqlite:///{self._folder}/audit.db",
            audit_spool=self._folder / "spool",
            audit_mode="durable",
            audit_pseudonym_key=KEY,
            sinks="audit" if trail else "none",
            pii_model="none",
            integrity=policy,
            **{f"deadline_{each}_s": GIVE_UP_S for each in _CLASSES},
            **more,
        )
        sink = CapturingSink()
        scope = Mnemoscope(settings, extra_sinks=[sink])
        self._stack.callback(scope.close)
        return scope


_CLASSES = ("recall", "remember", "forget", "resume", "checkpoint")


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Callable[..., Mnemoscope]]:
    """Return the maker of scopes that share a trail."""
    with ExitStack() as stack:
        yield SealedScopes(tmp_path, stack)


def findings(scope: Mnemoscope) -> dict[str, int]:
    """Return what the scope's health says was found."""
    (check,) = (each for each in scope.health().checks if each.name == "integrity")
    said = [each.partition(" ") for each in check.detail.split("; ")[1:]]
    return {code: int(number) for number, _, code in said if number.isdigit()}
