"""Scopes whose OTLP goes to a real Collector."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from mnemoscope.memory import Mnemoscope, load_settings
from tests.kit.patience import GIVE_UP_S

# Each starts two Collectors, that have to be built: these run by `make test-collector` alone.
collect_ignore_glob = [] if os.environ.get("COLLECTOR_TESTS") else ["test_*.py"]

_CLASSES = ("recall", "remember", "forget", "resume", "checkpoint")


@pytest.fixture
def made_scope() -> Iterator[Callable[..., Mnemoscope]]:
    """Return a maker of scopes with the OTLP sink, or with others; settings by name."""
    with ExitStack() as stack:

        def make(only_sinks: Any = None, **settings: Any) -> Mnemoscope:
            given = {"sinks": "otlp", "pii_model": "none", "audit_pseudonym_key": "5e" * 32}
            unhurried = {f"deadline_{each}_s": GIVE_UP_S for each in _CLASSES}
            chosen = load_settings(**unhurried | given | settings)
            scope = Mnemoscope(chosen, only_sinks=only_sinks)
            stack.callback(scope.close)
            return scope

        yield make
