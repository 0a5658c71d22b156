"""Labels and texts that come with every customer: read once, and asked about each."""

from __future__ import annotations

import base64

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from presidio_analyzer import EntityRecognizer

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


class Counting(EntityRecognizer):
    """A recognizer of the user's that finds nothing, and counts what it was asked."""

    def __init__(self):
        super().__init__(supported_entities=["WORD"])
        self.texts = []

    def load(self):
        """Nothing is loaded."""

    def analyze(self, text, entities, nlp_artifacts=None):
        self.texts.append(text)
        return []


PROMPTS = (
    "You are a helpful assistant of a tea shop, and you answer in two sentences at most, please.",
    "Ask Maria Kowalska, maria@example.com or +48 601 234 567, if a delivery of tea is not there.",
)
"""Without and with personal data; longer than labels."""


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_text_is_searched_once_for_all_customers(subject_keys, prompt):
    """Each is looked for in it; what else is in it is the same for all of them."""
    counting = Counting()
    redactor = build_redactor(model="none", keys=subject_keys, recognizers=[counting])

    for n in range(100):
        redactor.begin(known=(f"c{n}@example.com",), tenant=f"t{n}").text(prompt)

    assert counting.texts == [prompt]


def test_another_tenant_has_other_pseudonyms_for_what_was_found_once(subject_keys):
    """What is found is shared, and what stands in its place is not."""
    redactor = build_redactor(model="none", keys=subject_keys, operators={"PERSON": "pseudonym"})
    seen = {redactor.begin(tenant=each).text(PROMPTS[1]) for each in ("acme", "globex")}

    assert len(seen) == 2
    assert not any("Kowalska" in each for each in seen)


CUSTOMERS = ("ada@example.com", "Grace Hopper", "c-4711", "+1 212 555 0199", "Żaneta")
CLEAN = "please send the parcel of c-4711 to the shop in the morning, and not in the evening"
PIECES = (
    *PROMPTS,
    *CUSTOMERS,
    CLEAN,
    base64.b64encode(CLEAN.encode()).decode(),
    base64.b64encode(b"the account of ada@example.com and of Grace Hopper").decode(),
    "a d a @ e x a m p l e . c o m",
    "grace at example dot com",
    "nothing that is anybody's",
    "<PERSON_1>",
    "born 1984-05-17",
    "\n",
)


@pytest.fixture(scope="module")
def used_by_all(keys):
    """Return one redactor for all texts and customers: each has had what others had."""
    return build_redactor(model="none", keys=keys)


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3), st.permutations(CUSTOMERS))
@example([CLEAN], CUSTOMERS)
@example([base64.b64encode(CLEAN.encode()).decode()], CUSTOMERS)
@example([PROMPTS[1], "c-4711"], CUSTOMERS)
def test_whoever_came_before_a_customer_gets_what_they_would_get_alone(
    used_by_all, keys, pieces, customers
):
    """Whatever is in a text, plain, in base64 or disguised, and whoever had it before."""
    text = " ".join(pieces)
    for each in customers:
        alone = build_redactor(model="none", keys=keys)
        expected = alone.begin(known=(each,), tenant="acme")
        told = used_by_all.begin(known=(each,), tenant="acme")

        assert told.text(text) == expected.text(text)
        assert told.counts == expected.counts
