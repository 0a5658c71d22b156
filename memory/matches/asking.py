"""The redactor that asks the user's callback what becomes of each find."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...telemetry.process.faults import Faults
from ..privacy.engine.operators import Operator
from ..privacy.engine.redaction import TextRole
from .match import RedactionCallback, RedactionMatch
from .places import TextPlaces, current_places

if TYPE_CHECKING:
    from ..privacy.detectors.finding import Finding
    from ..privacy.detectors.known_identifiers import KnownIdentifiers
    from ..privacy.detectors.pace import Pace
    from ..privacy.engine.cache import RedactedText
    from ..privacy.engine.redaction import PseudonymStore
    from ..privacy.engine.redactor import Redactor


class AskingRedactor:
    """
    A process's redactor with the callback.

    The callback is asked about what a guarded call hands to its store, and no more: names and ids
    for sinks, and answers, are redacted as the settings say. An error of its own, or an answer that
    is none, is counted as a fault, and the settings hold.

    Args:
        callback: Asked about each find, from any thread.
        faults: Where its errors are counted.
        inner: Finds and replaces.
    """

    def __init__(self, callback: RedactionCallback, faults: Faults, inner: Redactor) -> None:
        self._callback = callback
        self._faults = faults
        self._inner = inner
        self.are_safe_ids = inner.are_safe_ids
        self.find_plain = inner.find_plain
        self.mentions = inner.mentions
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
        vault: PseudonymStore | None = None,
        pace: Pace | None = None,
        label: str = "",
    ) -> RedactedText:
        """
        Return *text* redacted, and the replacements.

        Raises:
            RedactionError: The text could not be redacted.
        """
        redact = partial(self._inner.redact, known=known, tenant=tenant, pace=pace, label=label)
        places = current_places.get()
        if places is None or role is TextRole.KEY:
            return redact(text, role=role, vault=vault)
        result = redact(text, role=role)  # nothing is stored of it yet
        if not result.counts:
            return result

        def is_plain(key: str) -> bool:
            return not redact(key, role=TextRole.KEY, label="").counts

        paths = places.paths_of(text, is_plain)
        if not paths:
            return redact(text, role=role, vault=vault)
        return self._inner.redact_each(
            text,
            partial(self._choose, places, paths),
            known=known,
            tenant=tenant,
            role=role,
            vault=vault,
            pace=pace,
            label=label,
        )

    def _choose(
        self, places: TextPlaces, paths: Sequence[str], found: Finding, text: str
    ) -> Operator:
        """Return what becomes of a find: kept only where the callback keeps it in each place."""
        if places.has_kept(found.entity, text) and not found.is_certain:
            return Operator.KEEP
        configured, path = self._inner.operator_of(found.entity), paths[0]
        chosen = configured
        for path in paths:
            chosen = self._ask(path, found, configured)
            if chosen is not Operator.KEEP:
                break
        if chosen is Operator.KEEP and found.is_certain:
            chosen = configured
        places.count(path, found.entity, text, chosen)
        return chosen

    def _ask(self, path: str, found: Finding, configured: Operator) -> Operator:
        match = RedactionMatch(path, found.entity, found.score, found.why, configured.value)
        try:
            answer: Any = self._callback(match)
            return configured if answer is None else Operator(answer)
        except Exception as exc:  # noqa: BLE001 - the settings hold
            self._faults.note("privacy.callback", exc)
            return configured
