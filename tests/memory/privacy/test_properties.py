"""What holds for any text."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemoscope.memory.privacy.detectors.normalized_text import normalize_text
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.lengths import examples

KEYS = SubjectKeys(bytes(range(32)))
SECRETS = [
    "ada.lovelace@example.com",
    "4111 1111 1111 1111",
    "GB82WEST12345698765432",
    "536-22-8745",
    "+44 20 7946 0958",
    "203.0.113.7",
    "sk-proj-abcdefghijklmnop1234567890",
    "Jennifer Smith",
]
PIECES = st.one_of(
    st.text(max_size=30),
    st.text(st.characters(codec=None), max_size=10),
    st.sampled_from(
        [
            *SECRETS,
            "my name is ",
            "Dear ",
            "\n",
            "<PERSON>",
            "********",
            "%40",
            "&#64;",
            "\u200b",
            " at ",
            " dot ",
            "password: ",
            "12 High Street, ",
            "Ada",
            "and ",
            "Name: ",
            "call ",
            "\ud800",
            "\0",
            "=",
            '"',
            "://",
            "1",
        ]
    ),
)
TEXTS = st.lists(PIECES, max_size=12).map("".join)
ANY = settings(max_examples=examples(300), deadline=None, suppress_health_check=list(HealthCheck))


def fresh(**settings):
    return build_redactor(model="none", keys=KEYS, **settings)


@pytest.mark.fault(67, "odd text: surrogates, NUL, RTL", expected="survived")
@ANY
@given(TEXTS)
def test_any_unicode_is_survived(text):
    """Lone surrogates, NUL, unassigned characters: text in, text out."""
    assert isinstance(fresh().begin(tenant="t", known=["Ada"]).text(text), str)


@ANY
@given(TEXTS)
def test_redacting_is_deterministic(text):
    """Two processes with the same keys say the same."""
    operators = {"*": "pseudonym"}

    assert fresh(operators=operators).begin(tenant="t").text(text) == fresh(
        operators=operators
    ).begin(tenant="t").text(text)


@ANY
@given(TEXTS)
def test_redacting_twice_is_redacting_once(text):
    """What is recalled and written back does not change again."""
    redaction = fresh().begin(tenant="t")
    once = redaction.text(text)

    assert redaction.text(once) == once


@ANY
@given(
    st.text("abcdefgh ,.!?", max_size=40),
    st.sampled_from(SECRETS),
    st.text("abcdefgh ,.!?", max_size=40),
)
def test_no_secret_comes_into_view(before, secret, after):
    """Whatever stands around it, an identifier that stands alone is replaced."""
    redacted = fresh().begin().text(f"{before} {secret} {after}")

    assert secret not in redacted


@ANY
@given(TEXTS)
def test_every_character_of_a_view_maps_back(text):
    """A span found in a view is a span of the original."""
    view = normalize_text(text)
    for index in range(len(view.text)):
        start, end = view.original_span(index, index + 1)

        assert 0 <= start < end <= len(text)


@ANY
@given(
    st.recursive(
        st.one_of(st.none(), st.integers(), TEXTS),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("xyz"), inner),
    )
)
def test_values_keep_their_shape(value):
    """A redacted value has the same structure as the value."""

    def shape(part):
        if isinstance(part, list):
            return [shape(item) for item in part]
        if isinstance(part, dict):
            return [shape(item) for item in part.values()]
        return type(part)

    assert shape(fresh().begin().value(value)) == shape(value)


def test_threads_share_a_redactor(redactor):
    """Many threads at once get what one would, and no counts of another."""
    texts = [f"mail user{number}@example.com and 203.0.113.{number}" for number in range(50)] * 4
    barrier = threading.Barrier(8)

    def work(part):
        barrier.wait()
        redaction = redactor.begin(tenant=f"t{part}")
        return [redaction.text(text) for text in texts], redaction.counts

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))

    assert {tuple(lines) for lines, _ in results} == {
        ("mail <EMAIL_ADDRESS> and <IP_ADDRESS>",) * len(texts)
    }
    assert all(counts == {"EMAIL_ADDRESS": 200, "IP_ADDRESS": 200} for _, counts in results)


@pytest.mark.fault(70, "secrets in reprs", expected="never shown")
@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_of_a_redactor_shows_what_it_saw(redactor, secret):
    """A `repr` in a log or traceback quotes neither texts nor known identifiers."""
    redaction = redactor.begin(known=[secret])
    redaction.text(f"about {secret}")

    assert secret not in repr(redaction) + repr(redactor) + repr(vars(redactor))
