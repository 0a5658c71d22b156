"""
The originals of pseudonyms that this process has opened, for each customer by themselves.

They are read from the vault, and kept for as long as the vault's file is as it was. What another
process erases is not shown a second later; what this one erases, not any more.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ...telemetry.event.sink_pseudonyms import PSEUDONYM
from ...telemetry.process.fork import reset_after_fork
from ..context import Scope
from ..privacy.engine.numbers import number_shown
from ..privacy.vault.vault_keys import VaultCustomer
from .names import ShownNames
from .texts import CustomerRedactor

if TYPE_CHECKING:
    from ..privacy.engine.redaction import TextRedactor
    from ..privacy.vault.vault import CustomerVault, Vault
    from ..privacy.vault.vault_tables import FoundOriginals

MOST_CUSTOMERS = 256
"""Customers whose originals are kept open at once."""

MOST_CHARS = 200_000
"""Characters of the texts of one customer that are kept with their originals."""

_CHECK_S = 1.0
"""Seconds for which it is not looked whether the vault has changed."""

_SETTLED_NS = 100_000_000
"""Age of a change from which the next one certainly has another time."""

_FLUSH_S = 1.0
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')

Shown = tuple[str, int]
"""A text with its originals, and how many of its pseudonyms they replaced."""


class CustomerOriginals:
    """
    One customer's texts with their originals, as far as they were opened. Its `repr` shows none.

    Args:
        clock: Monotonic seconds.

    Attributes:
        subject: The customer's hash in the vault.
        names: What was shown of them.
    """

    def __init__(self, vault: Vault, customer: VaultCustomer, clock: Callable[[], float]) -> None:
        self._vault = vault
        self._customer = customer
        self._clock = clock
        self.subject = vault.hashes_of(customer)[0]
        self.names = ShownNames()
        self._shown: dict[str, Shown] = {}
        self._chars = 0
        self._checked = 0.0
        self._signature: object = None

    def __repr__(self) -> str:
        """Return the number of texts alone."""
        return f"CustomerOriginals({len(self._shown)} texts)"

    def known(self) -> Mapping[str, Shown]:
        """Return the texts that are open, by their redacted form, if the vault still says so."""
        now = self._clock()
        if now - self._checked > _CHECK_S:
            self._checked = now
            signature = self._read_signature()
            if signature is None or signature != self._signature:
                self._shown, self._chars = {}, 0
        return self._shown

    def open(self, texts: Iterable[str]) -> dict[str, Shown]:
        """
        Return redacted *texts* with their originals, read from the vault.

        Raises:
            OSError, sqlite3.Error: The vault cannot be read.
        """
        wanted = list(dict.fromkeys(texts))
        inner = [each for text in wanted for each in _strings_in(text)]
        pseudonyms = list(dict.fromkeys(PSEUDONYM.findall(" ".join(wanted))))
        self._vault.flush(_FLUSH_S)
        signature = self._read_signature()
        found = self._vault.find(self._customer, pseudonyms, [*wanted, *inner])
        if not found.originals:
            self.names.clear()  # they were erased, it may be by another process
        for pseudonym, original in found.originals.items():
            self.names.add(pseudonym, original)
        for (pseudonym, _text), spelled in found.spellings.items():
            for each in spelled:
                self.names.add(pseudonym, each)
        shown = {text: _shown(text, found) for text in wanted}
        if signature != self._signature:
            self._shown, self._chars = {}, 0
        self._signature, self._checked = signature, self._clock()
        self._keep(shown)
        return shown

    def _keep(self, shown: Mapping[str, Shown]) -> None:
        for text, each in shown.items():
            size = len(text) + len(each[0])
            if self._chars + size > MOST_CHARS:
                self._shown, self._chars = {}, 0
            if size <= MOST_CHARS // 4:
                self._shown[text] = each
                self._chars += size

    def _read_signature(self) -> object:
        """Return what tells one state of the vault's file from another. None: it cannot be told."""
        try:
            stat = self._vault.file.path.stat()
        except OSError:
            return None
        if time.time_ns() - stat.st_mtime_ns < _SETTLED_NS:
            return None  # a change that follows may have the same time
        return stat.st_ino, stat.st_size, stat.st_mtime_ns


class OpenedOriginals:
    """
    The originals that a scope has opened, by customer. Thread-safe.

    Args:
        vault: The vault. What is erased there is dropped here.
        clock: Monotonic seconds.
    """

    def __init__(self, vault: Vault, clock: Callable[[], float] = time.monotonic) -> None:
        self._vault = vault
        self._clock = clock
        self.forked()
        reset_after_fork(self)
        vault.on_erasure(self._drop)

    def forked(self) -> None:
        """Start empty in a forked child: a thread of the parent may have held the lock."""
        self._lock = threading.Lock()
        self._customers: OrderedDict[tuple[str, str | None], CustomerOriginals] = OrderedDict()

    def of(self, customer: str, tenant: str | None) -> CustomerOriginals:
        """Return the originals of *customer* of *tenant*, and of nobody else."""
        key = customer, tenant
        with self._lock:
            found = self._customers.get(key)
            if found is None:
                whose = VaultCustomer(customer, tenant)
                found = self._customers[key] = CustomerOriginals(self._vault, whose, self._clock)
                if len(self._customers) > MOST_CUSTOMERS:
                    self._customers.popitem(last=False)
            else:
                self._customers.move_to_end(key)
            return found

    def redactor(
        self, inner: TextRedactor, scope: Scope, vault: CustomerVault | None
    ) -> TextRedactor:
        """Return *inner* as it redacts the texts of the customer of *scope*."""
        if scope.customer is None:
            return inner
        return CustomerRedactor(inner, self.of(scope.customer, scope.tenant).names, vault)

    def _drop(self, subjects: frozenset[str]) -> None:
        with self._lock:
            for key in [key for key, each in self._customers.items() if each.subject in subjects]:
                self._customers.pop(key).names.clear()


def _shown(text: str, found: FoundOriginals) -> Shown:
    """Return *text* with its originals: escaped where they stand inside JSON."""
    is_spelled = any(of == text for _pseudonym, of in found.spellings)
    if is_spelled or not _strings_in(text):
        return _with_originals(text, text, found)
    number = 0

    def of_string(match: re.Match[str]) -> str:
        nonlocal number
        stored = json.loads(match[0])
        shown, replaced = _with_originals(match[0], stored, found, _escaped)
        number += replaced
        return shown if shown == match[0] else _unquoted(shown)

    return _JSON_STRING.sub(of_string, text), number


def _with_originals(
    text: str, stored: str, found: FoundOriginals, write: Callable[[str], str] = str
) -> Shown:
    """Return *text* with its originals, spelled as the redacted text *stored* was."""
    numbers = Counter(PSEUDONYM.findall(stored))
    places: Counter[str] = Counter()
    shown = 0

    def original(match: re.Match[str]) -> str:
        nonlocal shown
        pseudonym = match[0]
        held = found.originals.get(pseudonym)
        if held is None:
            return pseudonym
        spelled = found.spellings.get((pseudonym, stored), ())
        if len(spelled) == numbers[pseudonym]:
            held = spelled[places[pseudonym]]
        places[pseudonym] += 1
        shown += 1
        return write(held)

    return PSEUDONYM.sub(original, text), shown


def _unquoted(string: str) -> str:
    """Return a JSON string, or the number that it shows."""
    shown = number_shown(string[1:-1])
    return string if isinstance(shown, str) else str(shown)


def _escaped(original: str) -> str:
    return json.dumps(original, ensure_ascii=False)[1:-1]


def _strings_in(text: str) -> list[str]:
    """Return the strings with pseudonyms in a text that is a JSON object or list, as they read."""
    if text[:1] not in {"{", "["}:
        return []
    try:
        json.loads(text)
        strings = (json.loads(each) for each in _JSON_STRING.findall(text))
    except (ValueError, RecursionError):
        return []
    return [each for each in strings if PSEUDONYM.search(each)]
