"""Labels that come with every customer: read once, and asked about each."""

from __future__ import annotations

import pytest

from mnemoscope.memory.privacy.engine import engine
from mnemoscope.memory.privacy.engine.redactor import build_redactor

LABEL = "support bob"


@pytest.fixture
def redactor(subject_keys):
    """Return a redactor with patterns only."""
    return build_redactor(model="none", keys=subject_keys)


def test_a_label_is_read_once_for_all_customers(redactor, monkeypatch):
    """Whatever their number: its normal form is what each of them is looked for in."""
    read = []
    normal = engine.normalize_text
    monkeypatch.setattr(engine, "normalize_text", lambda text: read.append(text) or normal(text))

    labels = {redactor.begin(known=(f"c{n}@example.com",)).label(LABEL) for n in range(2_000)}

    assert labels == {LABEL}
    assert read.count(LABEL) <= 2


def test_a_label_that_was_clean_for_others_is_not_for_whom_it_names(redactor):
    """However often it was asked before."""
    for n in range(10):
        redactor.begin(known=(f"c{n}@example.com",)).label(LABEL)

    assert "bob" not in redactor.begin(known=("bob",)).label(LABEL)
    assert redactor.begin(known=("c0@example.com",)).label(LABEL) == LABEL


def test_a_thousand_customers_in_turn_stay_ready(redactor):
    """Whose identifiers are looked for is not worked out anew in each round."""
    first = [redactor.begin(known=(f"c{n}@example.com",))._known for n in range(1_000)]
    second = [redactor.begin(known=(f"c{n}@example.com",))._known for n in range(1_000)]

    assert all(a is b for a, b in zip(first, second, strict=True))
