"""Signatures in plain Python: the vectors of RFC 8032, and a library's own signatures."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.audit.bundle.ed25519 import is_signed
from tests.kit.lengths import examples

# RFC 8032 section 7.1: public key, message, signature.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b"
            "46bd25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11"
            "d8c387b2eaeb4302aeeb00d291612bb0c00"
        ),
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc"
            "6594a7c15e9716ed28dc027beceea1ec40a"
        ),
    ),
]
ORDER = 2**252 + 27742317777372353535851937790883648493


@pytest.mark.parametrize(("public", "message", "signature"), VECTORS)
def test_the_vectors_of_the_rfc_are_accepted(public, message, signature):
    """Of zero, one and two bytes; and not with another message."""
    key, text, signed = map(bytes.fromhex, (public, message, signature))

    assert is_signed(text, signed, key)
    assert not is_signed(text + b"x", signed, key)


@settings(max_examples=examples(20), deadline=None)
@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200), st.integers(0, 511))
def test_what_a_library_signs_is_accepted_and_nothing_else(seed, message, bit):
    """Any key, any message; and with no bit of the signature changed."""
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key().public_bytes_raw()
    signature = private.sign(message)
    changed = (int.from_bytes(signature, "big") ^ 1 << bit).to_bytes(64, "big")

    assert is_signed(message, signature, public)
    assert not is_signed(message, changed, public)


def test_a_second_spelling_of_a_signature_is_refused():
    """The scalar plus the order of the group signs the same, and is another text."""
    public, message, signature = map(bytes.fromhex, VECTORS[1])
    scalar = int.from_bytes(signature[32:], "little") + ORDER

    assert not is_signed(message, signature[:32] + scalar.to_bytes(32, "little"), public)


@pytest.mark.parametrize(
    ("signature", "public"),
    [(b"", bytes(32)), (bytes(64), b""), (bytes(63), bytes(32)), (b"\xff" * 64, b"\xff" * 32)],
)
def test_what_is_no_signature_or_key_is_refused(signature, public):
    """Without an error."""
    assert is_signed(b"", signature, public) is False
