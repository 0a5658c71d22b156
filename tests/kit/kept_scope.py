"""A scope with a retention policy, whose trail goes by a clock that is turned."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.memory import Mnemoscope, load_settings


def scope_in(
    folder: Path, patch: pytest.MonkeyPatch, clock_ns: Callable[[], int], **settings: Any
) -> Mnemoscope:
    """Return the scope of the policy and the trail in *folder*, while what *patch* does stands."""
    # The default, so that it is the clock of each log of a trail.
    patch.setitem(AuditLog.__init__.__kwdefaults__ or {}, "clock_ns", clock_ns)
    patch.setenv("XDG_DATA_HOME", str(folder / "data"))
    given: dict[str, Any] = {
        "sinks": "audit",
        "audit_url": f"sqlite:///{folder}/audit.db",
        "audit_pseudonym_key": "ab" * 32,
        "audit_retention_days": 2_000,
        "pii_model": "none",
        "retention": folder / "retention.yaml",
    }
    return Mnemoscope(load_settings(**(given | settings)))


@contextmanager
def kept_scope(
    folder: Path, clock_ns: Callable[[], int] = time.time_ns, **settings: Any
) -> Iterator[Mnemoscope]:
    """Yield such a scope, and close it."""
    with (
        pytest.MonkeyPatch.context() as patch,
        closing(scope_in(folder, patch, clock_ns, **settings)) as scope,
    ):
        yield scope
