"""Very long texts: stored as a whole, redacted as a whole."""

from __future__ import annotations

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import Mnemoscope, context, load_settings
from mnemoscope.memory.testing import CapturingSink

LINE = "we had green tea and rice, then we talked about the garden. "
FINDS = 40
MILLIONS = 2_000_000


@pytest.mark.long
def test_two_megabytes_are_stored_redacted():
    """Nothing is refused or cut for its length, and no find is missed wherever it stands."""
    part = LINE * (MILLIONS // FINDS // len(LINE) - 2)
    text = "".join(f"{part}mail a{number}@acme.example now. " for number in range(FINDS))
    assert MILLIONS * 0.99 < len(text) < MILLIONS - 100
    settings = load_settings(
        audit_pseudonym_key="ab" * 32, pii_model="none", deadline_remember_s=0.0
    )
    scope = Mnemoscope(settings, only_sinks=[CapturingSink()])
    inner = InMemoryStore()
    with context(customer="c-1"):
        scope.store(inner).put(("notes",), "k", {"text": text})
    scope.close()

    stored = inner.get(("notes",), "k")
    assert stored is not None
    assert stored.value == {"text": f"{part}mail <EMAIL_ADDRESS> now. " * FINDS}
