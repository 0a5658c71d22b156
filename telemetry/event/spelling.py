"""
The spellings of an id: which of them may be one person's, and how one is kept for finding it again.

Two ids that differ in case, in the form of their Unicode, or in space around them are spellings of
each other. A log finds all of them by one keyed hash, of what they have in common, without tenant.
What a page, a mail or a keyboard adds when an id is pasted is left out in further readings of it.
Spelling and tenant themselves are encrypted with a key that takes the secret and the id, in any of
its spellings: whoever has the secret alone can list nobody.
"""

from __future__ import annotations

import hmac
import json
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias
from unicodedata import category, normalize

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

DerivedKey: TypeAlias = Callable[[str], bytes]
"""Returns the key for a purpose."""

_HASH_BYTES = 16
_NONCE_BYTES = 12
_PADDED_BYTES = 64
"""What is sealed is as long as a multiple of this, so that lengths tell nobody."""

_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_LARGEST = 2**63 - 1
"""What databases have as a whole number."""

_FORMS: Final = ("NFC", "NFD", "NFKC", "NFKD")

_AROUND: Final = {"Ps", "Pe", "Pi", "Pf", "Cf"}
"""Categories of brackets, of quotes, and of characters that nobody sees."""

_SCHEMES: Final = ("mailto:", "tel:", "sip:", "sms:", "callto:")


@dataclass(frozen=True, slots=True)
class Identity:
    """
    An id of a customer, as an application spells it, and the tenant it is used in.

    Attributes:
        customer: The id. Not in the `repr`.
        tenant: Its tenant; empty where the application named none. Not in the `repr`.
    """

    customer: str = field(repr=False)
    tenant: str = field(default="", repr=False)


class Spelling(NamedTuple):
    """
    An identity as a log keeps it.

    Attributes:
        folded: The keyed hash that all its spellings have, in all tenants.
    """

    folded: str
    sealed: bytes


def id_text(given: Any) -> Any:
    """Return an id that was given as a whole number as its digits; all else as it is."""
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else given


def id_forms(customer: str) -> tuple[str | int, ...]:
    """Return an id in the forms that stores may have it in: text, and a number if it is digits."""
    if _NUMBER.fullmatch(customer) and abs(int(customer)) <= _LARGEST:
        return customer, int(customer)
    return (customer,)


def folded(text: str) -> str:
    """Return what all spellings of *text* have in common."""
    return normalize("NFKC", normalize("NFKC", text).strip().casefold()).strip()


def usual_spellings(text: str) -> tuple[str, ...]:
    """Return *text* and the spellings of it that people and programs usually make."""
    same = folded(text)
    return tuple(dict.fromkeys(each for each in _spellings(text) if folded(each) == same))


def _spellings(text: str) -> Iterator[str]:
    yield text
    bare = text.strip()
    for cased in (bare, bare.lower(), bare.casefold(), bare.upper(), bare.capitalize()):
        yield cased
        yield from (normalize(form, cased) for form in _FORMS)
    yield bare.title()


def readings(text: str) -> tuple[str, ...]:
    """Return *text*, and the ids that it may stand for if it was pasted: of one person all."""
    bare = bare_id(text)
    number = re.sub(r"[\s().\-/]", "", bare)
    is_number = re.fullmatch(r"\+[0-9]{6,15}", number)  # of telephones: other groups mean something
    found = text, bare_id(text, with_unseen=True), bare, number if is_number else ""
    return tuple(dict.fromkeys(filter(None, found)))


def bare_id(text: str, *, with_unseen: bool = False) -> str:
    """
    Return *text* without what is around an id and in it where it was pasted. Empty: no id is left.

    Quotes, brackets, stops and ``mailto:`` around it go, the name in front of an address in angle
    brackets, and characters that nobody sees, but *with_unseen*: some join letters and pictures.
    Dashes and apostrophes are those of a keyboard.
    """
    from urllib.parse import unquote  # noqa: PLC0415 - few look-ups are of links

    bare = "".join("-" if category(each) == "Pd" else each for each in normalize("NFKC", text))
    bare = bare.translate({0x2212: "-", 0x2019: "'"})
    if not with_unseen:
        bare = re.sub("[\u034f\ufe00-\ufe0f]", "", bare)
        bare = "".join(each for each in bare if category(each) != "Cf")
    if named := re.fullmatch(r"[^<>]*<([^<>]+)>\W*", bare):
        bare = named[1]
    around = " \"'`<>,;:.!?|" + "".join(each for each in {*bare} if category(each) in _AROUND)
    before = ""
    while bare != before:
        before, bare = bare, " ".join(bare.split()).strip(around)
        scheme = next((each for each in _SCHEMES if bare.casefold().startswith(each)), "")
        bare = re.split("[?;]", unquote(bare[len(scheme) :]))[0] if scheme else bare
    return bare if any(map(str.isalnum, bare)) else ""


def untagged(text: str) -> str:
    """Return an address without its tag, ``ada@…`` of ``ada+news@…``: perhaps another person's."""
    return re.sub(r"^([^+@\s]+)\+[^@\s]*@", r"\1@", bare_id(text))


def folded_hash(key: DerivedKey, customer: str) -> str:
    """Return the hash by which all spellings of *customer* are found."""
    return hmac.digest(key("audit/folded"), _folded_bytes(customer), "sha256")[:_HASH_BYTES].hex()


def seal(key: DerivedKey, identity: Identity, bound_to: str) -> Spelling:
    """
    Return *identity* as a log keeps it, in one place alone.

    Args:
        key: Derives keys: `SubjectKeys.key`.
        identity: Id and tenant.
        bound_to: The place.
    """
    nonce = os.urandom(_NONCE_BYTES)
    text = json.dumps([identity.tenant, identity.customer]).encode()
    text = text.ljust(-(-len(text) // _PADDED_BYTES) * _PADDED_BYTES)
    sealed = nonce + _aead(key, identity.customer).encrypt(nonce, text, bound_to.encode())
    return Spelling(folded_hash(key, identity.customer), sealed)


def open_sealed(key: DerivedKey, customer: str, sealed: bytes, bound_to: str) -> Identity | None:
    """
    Return the identity that `seal` was given.

    Args:
        key: The same.
        customer: The same, or another spelling.
        sealed: What it returned.
        bound_to: The same.

    Returns:
        None: one of them is not the same.
    """
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - 20 ms

    nonce, text = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
    try:
        known = json.loads(_aead(key, customer).decrypt(nonce, text, bound_to.encode()))
    except (InvalidTag, ValueError):
        return None
    tenant, spelled = known
    return Identity(spelled, tenant)


def _aead(key: DerivedKey, customer: str) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 20 ms

    return AESGCM(hmac.digest(key("audit/spelling"), _folded_bytes(customer), "sha256"))


def _folded_bytes(customer: str) -> bytes:
    return folded(customer).encode("utf-8", "surrogatepass")
