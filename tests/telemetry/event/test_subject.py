"""The person behind an event, as sinks may know them."""

from __future__ import annotations

import copy
import pickle

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.memory.api import Subject
from mnemoscope.telemetry.event.subject import SubjectKeys

ADA = "ada@example.com"


@pytest.fixture
def ada(subject_keys):
    """Return Ada, of no tenant."""
    return Subject(ADA, tenant=None, keys=subject_keys)


def test_each_sink_knows_another_pseudonym(ada):
    """Nobody who sees two sinks can join them."""
    names = {ada.hashed(sink) for sink in ("logs", "otlp", "langsmith", "audit")}

    assert len(names) == 4
    assert all(len(each) == 26 and each == each.lower() for each in names)


def test_a_pseudonym_is_stable(ada, subject_keys):
    """The same person is the same tomorrow, and in another process with the same secret."""
    again = Subject(ADA, tenant=None, keys=subject_keys)

    assert ada.hashed("logs") == again.hashed("logs") == "r54bgbd2d6aj5u2umio6mlubf4"


def test_it_depends_on_the_secret(ada):
    """Without it nobody can find out by trying addresses."""
    other = Subject(ADA, tenant=None, keys=SubjectKeys(b"another secret of 16"))

    assert ada.hashed("logs") != other.hashed("logs")


def test_the_same_id_of_two_tenants_is_two_people(ada, subject_keys):
    """And the border between the parts cannot be moved."""
    people = [
        ada,
        Subject(ADA, tenant="acme", keys=subject_keys),
        Subject("b", tenant="ca", keys=subject_keys),
        Subject("ab", tenant="c", keys=subject_keys),
    ]

    assert len({each.hashed("logs") for each in people}) == 4


@pytest.mark.parametrize("text", ["", "Ünïcödé ✓", "\udcff", "\0", "x" * 100_000])
def test_any_text_is_an_id(subject_keys, text):
    """Also what no encoding takes."""
    assert len(Subject(text, tenant=text, keys=subject_keys).hashed("logs")) == 26


def test_it_shows_nothing(ada, subject_keys):
    """Neither in logs nor in a debugger's repr of the event around it."""
    assert (repr(ada), str(ada), f"{subject_keys}") == ("Subject(...)",) * 2 + ("SubjectKeys(...)",)
    questions = {name for name in dir(ada) if not name.startswith("_")}
    assert questions == {"hashed", "spelling", "enclosed"}


@pytest.mark.parametrize(
    "leave", [pickle.dumps, copy.copy, copy.deepcopy], ids=lambda f: f.__name__
)
def test_it_does_not_leave_the_process(ada, leave):
    """The error says what to do instead."""
    with pytest.raises(TypeError, match="hashed"):
        leave(ada)


def test_a_short_secret_is_refused():
    """And not quoted."""
    with pytest.raises(ValueError, match="16 bytes") as seen:
        SubjectKeys(b"hunter2")

    assert "hunter2" not in str(seen.value)


def test_keys_are_derived_per_purpose(subject_keys):
    """Each has 32 bytes of its own, and none is the secret."""
    keys = {subject_keys.key(purpose) for purpose in ("logs", "audit", "pseudonym/acme")}

    assert len(keys) == 3
    assert all(len(key) == 32 for key in keys)


@given(secret=st.binary(min_size=16, max_size=80), purpose=st.text(max_size=40))
def test_keys_are_those_of_rfc_5869(secret, purpose):
    """HKDF with SHA-256 and no salt, as `cryptography` derives them."""
    info = b"mnemoscope/subject/" + purpose.encode()
    expected = HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret)

    assert SubjectKeys(secret).key(purpose) == expected
