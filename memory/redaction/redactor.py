"""The redactor of a process: what its calls share. Each begins a `Redaction` of its own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...telemetry.subject import SubjectKeys
from ..errors import ConfigurationError
from .cache import Cache, Cached
from .custom import CustomRecognizers, Recognizer
from .engine import SEARCH_S, Engine
from .finding import Finding
from .known import LABEL_CHARS, Known
from .model import ModelState, NameModel
from .operators import OVERSIZE, PSEUDONYM, Operators
from .presidio import Presidio
from .session import Form, Keeper, Redaction
from .walk import Rebuild
from .words import ORDINARY

NO_OPERATORS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    How much work one text may cause. What is over a limit is replaced, never passed.

    Attributes:
        max_chars: Characters of one text that are searched; the rest becomes ``<OVERSIZE>``.
        model_chars: Characters of one text that the language model is shown, at 11 ms for 1,000.
            Beyond them whatever could be a name is replaced.
        search_s: Seconds of a processor's time that our own detectors may take for one text of
            more than 4,096 characters. What is left of it then is replaced.
        recognizers_s: Seconds that the user's recognizers may take for one text.
        cached: Results held.
    """

    max_chars: int = 65_536
    model_chars: int = 8_192
    search_s: float = SEARCH_S
    recognizers_s: float = 1.0
    cached: int = 4_096

    def __post_init__(self) -> None:
        for name in ("max_chars", "model_chars", "search_s", "recognizers_s", "cached"):
            if not getattr(self, name) > 0:
                raise ConfigurationError(f"{name} must be positive, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """
    What the redactor can do just now.

    Attributes:
        model: The model asked for; None: the best installed.
        state: Whether it finds names.
        error: Type of what kept it from loading.
    """

    model: str | None
    state: ModelState
    error: str | None

    @property
    def is_degraded(self) -> bool:
        """True where a model is wanted and cannot be had."""
        return self.state in {ModelState.MISSING, ModelState.FAILED}


class Redactor:
    """
    Redacts text for all calls of a process. Thread-safe.

    Args:
        engine: Finds personal data.
        operators: Say what stands in its place.
        limits: How much work one text may cause.
        rebuild: By type, how to redact values that the walker does not know.
    """

    def __init__(
        self,
        engine: Engine,
        operators: Operators,
        *,
        limits: Limits | None = None,
        rebuild: Mapping[type, Rebuild] | None = None,
    ) -> None:
        self._engine = engine
        self._operators = operators
        self._limits = limits or Limits()
        self._rebuild = dict(rebuild or {})
        self._cache = Cache(entries=self._limits.cached)
        self._known = lru_cache(maxsize=256)(Known)

    def begin(
        self,
        *,
        tenant: str | None = None,
        known: Sequence[str] = (),
        keeper: Keeper | None = None,
    ) -> Redaction:
        """
        Begin the redaction of one call.

        Args:
            tenant: Whose pseudonyms to use.
            known: Ids of the person that it is about.
            keeper: Is told what the pseudonyms of this call stand for.
        """
        identifiers = tuple(dict.fromkeys(filter(None, known))) if known else ()
        return Redaction(self, tenant, self._known(identifiers), self._rebuild, keeper)

    def health(self) -> Health:
        """Return what the redactor can do just now."""
        model = self._engine.presidio.model
        return Health(model=model.name, state=model.state, error=model.error)

    def prepare(self) -> None:
        """Load the model and Presidio now, so that no call has to wait for them."""
        self._engine.presidio.prepare()

    def redacted(
        self,
        text: str,
        *,
        known: Known,
        tenant: str | None,
        form: Form,
        keeper: Keeper | None = None,
    ) -> Cached:
        """
        Return *text* redacted, with what was replaced.

        Raises:
            RedactionError: It could not be redacted.
        """
        if text in ORDINARY or text in known.clean or self._engine.passes(text, known):
            return Cached(text, ())
        if len(text) <= LABEL_CHARS and self._is_clean(text, known):
            known.found_clean(text)
            return Cached(text, ())
        key = self._cache.key_of(form, tenant or "", known.key, text)
        held = self._cache.get(key)
        if held is not None and (keeper is None or keeper.holds(held.pseudonyms)):
            return held
        result = self._computed(text, known, tenant, form, keeper)
        self._cache.put(key, result)
        if result.text != text:
            self._remember(result.text, known, tenant)
        elif not result.counts:
            self._found_clean(result, known)
        return result

    def _is_clean(self, text: str, known: Known) -> bool:
        """
        True where nothing was found in a short *text* for somebody else, nor is it about *known*.

        Names of features and collections, and an agent's standing questions, come with every
        customer: to search them again for each would cost the most where there are many.
        """
        if self._cache.get(self._cache.key_of(_CLEAN, text)) is None:
            return False
        return not self._engine.knows(text, known)

    def _found_clean(self, result: Cached, known: Known) -> None:
        if len(result.text) <= LABEL_CHARS:
            known.found_clean(result.text)
            self._cache.put(self._cache.key_of(_CLEAN, result.text), result)

    def all_pass(self, texts: Sequence[str], known: Known) -> bool:
        """Tell whether *texts* are ids in which nothing would be found, as most are."""
        return self._engine.all_pass(texts, known)

    def explain(self, text: str, *, known: Sequence[str] = ()) -> list[Finding]:
        """Return what would be replaced in *text*, where, how surely and why."""
        return self._engine.find(text[: self._limits.max_chars], self._known(tuple(known)))

    def _computed(
        self, text: str, known: Known, tenant: str | None, form: Form, keeper: Keeper | None
    ) -> Cached:
        body, rest = self._within_limit(text)
        findings = self._engine.find(body, known)
        if not findings and not rest:
            return Cached(text, ())
        counts = Counter(each.entity for each in findings)
        if rest:
            counts["OVERSIZE"] += 1
        stand_in = self._stand_in(body, findings, form)
        pieces: list[str] = []
        pseudonyms: list[str] = []
        done = 0
        for each in findings:
            found = body[each.start : each.end]
            placed = stand_in(found, each.entity, tenant=tenant)
            pieces += (body[done : each.start], placed)
            done = each.end
            if PSEUDONYM.fullmatch(placed):
                pseudonyms.append(placed)
                if keeper is not None:
                    keeper.keep(placed, found, each.entity)
        redacted = "".join((*pieces, body[done:], rest))
        return Cached(redacted, tuple(counts.items()), tuple(pseudonyms))

    def _stand_in(self, text: str, findings: list[Finding], form: Form) -> Callable[..., str]:
        whole = len(findings) == 1 and text[findings[0].start : findings[0].end] == text.strip()
        if form is Form.KEY or (form is Form.VALUE and whole):
            return self._operators.pseudonym
        return self._operators.replacement

    def _within_limit(self, text: str) -> tuple[str, str]:
        """Split *text* into what is searched and what stands for the rest."""
        limit = self._limits.max_chars
        if len(text) <= limit or len(text.removesuffix(OVERSIZE)) <= limit:
            return text, ""
        # Cut between words, else half an identifier would stay in view at the cut.
        head = text[:limit]
        space = max(head.rfind(" ", limit - _WORD_LIMIT), head.rfind("\n", limit - _WORD_LIMIT))
        return head[: space + 1 if space != -1 else max(0, limit - _WORD_LIMIT)], OVERSIZE

    def _remember(self, redacted: str, known: Known, tenant: str | None) -> None:
        """What is recalled and written back must not change again, whatever a model sees in it."""
        for form in Form:
            key = self._cache.key_of(form, tenant or "", known.key, redacted)
            self._cache.put(key, Cached(redacted, ()))


_WORD_LIMIT = 512
_CLEAN = "clean"
"""Of a key: no `Form`, so that what was found for one customer is not mixed up with it."""


def build_redactor(  # noqa: PLR0913 - one argument for each setting of the user's
    *,
    model: str | None = None,
    keys: SubjectKeys,
    operators: Mapping[str, str] = NO_OPERATORS,
    recognizers: Iterable[Recognizer] = (),
    limits: Limits | None = None,
    rebuild: Mapping[type, Rebuild] | None = None,
) -> Redactor:
    """
    Make the redactor of a process. Cheap: models are loaded when they are first needed.

    Args:
        model: spaCy package or path; ``none``: patterns only; None: the best installed.
        keys: Where tenants' pseudonym keys are derived.
        operators: Operator by entity, ``*`` for all that are replaced by default.
        recognizers: Further recognizers, Presidio's `EntityRecognizer`.
        limits: How much work one text may cause.
        rebuild: By type, how to redact values that the walker does not know.
    """
    limits = limits or Limits()
    custom = CustomRecognizers(tuple(recognizers), timeout_s=limits.recognizers_s)
    chosen = Operators(operators, keys=keys, entities=custom.entities)
    engine = Engine(
        Presidio(NameModel(model), model_chars=limits.model_chars),
        custom,
        is_replaced=chosen.is_replaced,
        placeholders=chosen.placeholders,
        search_s=limits.search_s,
    )
    return Redactor(engine, chosen, limits=limits, rebuild=rebuild)


def explain(text: str, *, model: str | None = None) -> list[Finding]:
    """Return what the default policy replaces in *text*: where, as what, how surely and why."""
    redactor = build_redactor(model=model, keys=SubjectKeys(os.urandom(32)))
    return redactor.explain(text)
