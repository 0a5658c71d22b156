"""
The redactor of one customer's texts, whose originals are shown to the customer's own agent.

One person has one pseudonym, however a text spells the name. So that the agent reads what was
written, the vault is told how each text spelled it. And what the agent was shown is replaced
wherever it comes back, whether or not a detector would find it there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..privacy.engine.cache import RedactedText
from .names import Place, ShownNames, entity_of

if TYPE_CHECKING:
    from ..privacy.detectors.known_identifiers import KnownIdentifiers
    from ..privacy.detectors.pace import Pace
    from ..privacy.engine.redaction import PseudonymStore, TextRedactor, TextRole
    from ..privacy.vault.vault import CustomerVault


class _Finds:
    """
    The pseudonyms that a redactor makes in one text, in order.

    Args:
        text: The text as it was given.

    Attributes:
        made: Each pseudonym with its original.
    """

    __slots__ = ("_text", "_vault", "entities", "made")

    def __init__(self, vault: CustomerVault, text: str) -> None:
        self._vault = vault
        self._text = text
        self.made: list[tuple[str, str]] = []
        self.entities: dict[str, str] = {}

    def store(self, pseudonym: str, original: str, entity: str) -> None:
        """Note that *pseudonym* stands for *original*, an *entity*, at the next place."""
        self.made.append((pseudonym, original))
        self.entities[pseudonym] = entity

    def holds(self, pseudonyms: Iterable[str]) -> bool:
        """Return whether all of the text was stored recently."""
        return not any(True for _each in pseudonyms) or self._vault.holds_text(self._text)


class CustomerRedactor:
    """
    The redactor of one customer's texts.

    Args:
        vault: The customer's part of the vault. None: what stands beside a call is not stored.
    """

    def __init__(self, inner: TextRedactor, names: ShownNames, vault: CustomerVault | None) -> None:
        self._inner = inner
        self._names = names
        self._vault = vault
        self.are_safe_ids = inner.are_safe_ids
        self.text_to_embed = inner.text_to_embed
        self.labels_of = inner.labels_of
        self.known_labels = inner.known_labels

    def redact(
        self,
        text: str,
        *,
        known: KnownIdentifiers,
        tenant: str | None,
        role: TextRole,
        vault: PseudonymStore | None = None,  # noqa: ARG002 - it is `self._vault`
        pace: Pace | None = None,
        label: str = "",
    ) -> RedactedText:
        """
        Return *text* redacted, and the replacements.

        Raises:
            RedactionError: The text could not be redacted.
        """
        finds = None if self._vault is None else _Finds(self._vault, text)
        result = self._inner.redact(
            text, known=known, tenant=tenant, role=role, vault=finds, pace=pace, label=label
        )
        made = finds.made if finds is not None else ()
        if not made and not len(self._names):
            return result
        hidden, places = self._names.hide(result.text, made)
        named = Counter(entity_of(each.pseudonym) for each in places if each.is_named)
        if finds is not None and (made or named):
            self._store(finds, text, hidden, places)
        if not named:
            return result
        counts = Counter(dict(result.counts)) + named
        pseudonyms = tuple(each.pseudonym for each in places)
        return RedactedText(hidden, tuple(counts.items()), pseudonyms)

    def find_plain(
        self, texts: Sequence[str], known: KnownIdentifiers, pace: Pace | None = None
    ) -> set[str]:
        """Return those of many *texts* that need no search: nothing would be found in them."""
        plain = self._inner.find_plain(texts, known, pace)
        if not len(self._names):
            return plain
        return {each for each in plain if not self._names.are_in(each)}

    def mentions(self, text: str, known: KnownIdentifiers) -> bool:
        """Return whether a *known* identifier, or a shown name, is in *text*."""
        return self._inner.mentions(text, known) or self._names.are_in(text)

    def _store(self, finds: _Finds, given: str, text: str, places: Sequence[Place]) -> None:
        """Have the vault keep what the pseudonyms in a redacted *text* stand for, and how."""
        if self._vault is None or self._vault.holds_text(given):
            return
        originals: dict[str, list[str | None]] = {}
        for each in places:
            originals.setdefault(each.pseudonym, []).append(each.original)
        for pseudonym, spelled in originals.items():
            replaced = tuple(each for each in spelled if each is not None)
            if replaced:
                entity = finds.entities.get(pseudonym) or entity_of(pseudonym)
                spellings = replaced if len(replaced) == len(spelled) else ()
                self._vault.store(pseudonym, replaced[0], entity, text, spellings)
        self._vault.note(given)
