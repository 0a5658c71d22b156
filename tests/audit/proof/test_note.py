"""Signed checkpoints: the reference note of Go's checksum database, and C2SP's rules."""

from __future__ import annotations

import base64

import pytest

from mnemoscope.audit.proof.merkle import EMPTY_ROOT, leaf_hash
from mnemoscope.audit.proof.note import (
    Checkpoint,
    Signer,
    checkpoint_text,
    parse_checkpoint,
    verified,
)

# golang.org/x/mod/sumdb/note: the example in its documentation.
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_SEED = base64.b64decode("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz")[1:]
GO_TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
GO_NOTE = (
    f"{GO_TEXT}\n— PeterNeumann "
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
ROOT = leaf_hash(b"root")


@pytest.fixture(scope="module")
def signer():
    return Signer("example.com/log", bytes(range(32)))


def test_the_reference_note_is_signed_byte_for_byte():
    """The same key gives the same verifier key and the same note as Go's own code."""
    signer = Signer("PeterNeumann", GO_SEED)

    assert signer.verifier_key == GO_KEY
    assert signer.key_id == "c74f20a3"
    assert signer.sign(GO_TEXT) == GO_NOTE


def test_the_reference_note_is_verified():
    """Go's note, by Go's key; and not with a letter changed."""
    assert verified(GO_NOTE, GO_KEY)
    assert not verified(GO_NOTE.replace("cryptography", "cryptographY"), GO_KEY)


def test_a_checkpoint_is_read_as_it_was_written(signer):
    """Origin, size, root and further lines, and whose signature lines it has."""
    text = checkpoint_text("example.com/log", 12, ROOT, "extension 1")

    found = parse_checkpoint(signer.sign(text))
    assert found == Checkpoint("example.com/log", 12, ROOT, ("extension 1",), ("example.com/log",))


def test_a_checkpoint_has_the_form_of_c2sp():
    """Origin, decimal size, base64 root: a line each."""
    text = checkpoint_text("example.com/log", 0, EMPTY_ROOT)

    assert text == "example.com/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"


def test_any_changed_byte_breaks_the_signature(signer):
    """Of the text, of the empty line, of the signature line."""
    note = signer.sign(checkpoint_text("example.com/log", 12, ROOT)).encode()
    passed = []
    for place in range(len(note)):
        for bit in (0x01, 0x20, 0x80):
            changed = bytearray(note)
            changed[place] ^= bit
            text = changed.decode("utf-8", errors="replace")
            if verified(text, signer.verifier_key):
                passed.append(place)

    assert passed == []


def test_a_witness_may_sign_too(signer):
    """Lines of keys that nobody asked for are passed over; the one asked for must be good."""
    note = signer.sign(checkpoint_text("example.com/log", 12, ROOT))
    witness = Signer("witness.example", bytes(32))
    text, _, _line = note.rpartition("\n\n")
    line = witness.sign(f"{text}\n").rpartition("\n\n")[2]
    both = note + line

    assert verified(both, signer.verifier_key)
    assert verified(both, witness.verifier_key)
    assert parse_checkpoint(both).signers == ("example.com/log", "witness.example")
    assert not verified(note, witness.verifier_key)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no note",
        "origin\n1\n\n",
        "origin\n01\n{root}\n",
        "origin\n-1\n{root}\n",
        "origin\n1\n{root}x\n",
        "origin\n1\n{root}\n\n",
        "origin\n\n{root}\n",
        "origin\n\u0661\n{root}\n",
        "origin\n1\nAAAA\n",
    ],
)
def test_what_is_no_checkpoint_is_refused(signer, text):
    """One message, and nothing of the note in it."""
    body = text.replace("{root}", base64.b64encode(ROOT).decode())
    note = signer.sign(body) if body.endswith("\n") else body

    with pytest.raises(ValueError, match=r"checkpoint|note|base64") as caught:
        parse_checkpoint(note)
    assert "origin\n" not in str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "name",
        "name+00000000+AAAA",
        GO_KEY.replace("c74f20a3", "c74f20a4"),
        GO_KEY.replace("Peter", "Paul"),
        GO_KEY[:-4] + "AAAA",
        GO_KEY + "=",
        GO_KEY.replace("+ARpc", "+BRpc"),
    ],
)
def test_a_mistyped_verifier_key_is_refused(key):
    """It carries a hash of itself, so a mistake is told apart from a forged note."""
    with pytest.raises(ValueError, match=r"key|base64"):
        verified(GO_NOTE, key)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\nb", "\u2003"])
def test_a_signers_name_fits_on_its_line(name):
    """A name with spaces or plus signs could pretend to be another."""
    with pytest.raises(ValueError, match="name"):
        Signer(name, bytes(32))


@pytest.mark.parametrize("text", ["", "no newline", "a\rb\n", "a\x00b\n", "\ud800\n"])
def test_what_is_no_text_is_not_signed(signer, text):
    """Control characters could hide what a person signs."""
    with pytest.raises(ValueError, match="control"):
        signer.sign(text)
