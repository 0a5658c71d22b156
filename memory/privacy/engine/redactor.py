"""The redactor of a process: what its calls share. Each call begins its own `Redaction`."""

from __future__ import annotations

import dataclasses
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

from ....telemetry.event.sink_pseudonyms import PSEUDONYM
from ....telemetry.event.subject import SubjectKeys
from ...errors import ConfigurationError, RedactionError
from ..detectors.finding import Finding, merge_findings
from ..detectors.known_identifiers import KnownIdentifiers
from ..detectors.pace import Pace
from ..detectors.term_lists import NO_LISTS, TermLists
from ..detectors.word_lists import ORDINARY
from ..models.model_setting import ANY_LANGUAGE, parse_models
from ..models.name_model import ModelState, NameModel, models_installed
from .cache import RedactedText, RedactionCache
from .loading import Loading
from .operators import OVERSIZE, Operator, Operators, cut_text
from .redaction import UNLIMITED, Extent, PseudonymStore, Redaction, TextRedactor, TextRole
from .value_redaction import Labels, Rebuild

if TYPE_CHECKING:
    from ..models.custom_recognizers import CustomRecognizer
    from .engine import Engine, HeldReading
    from .mentioned_people import MentionedPeople
    from .recognizers import Analyzer

logger = logging.getLogger("mnemoscope")

_NO_PRESIDIO = (
    "Presidio cannot be imported (%s): our detectors run without its engine, and find the same. "
    "Install presidio-analyzer as mnemoscope requires it"
)
_LOADING_S = 60.0
_SETTLED_S = 5.0
"""Longest that a text without a deadline waits for the detectors, or for Presidio."""

NO_OPERATORS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """
    Limits of the work for one text. Text over a limit is replaced, never passed.

    Attributes:
        max_chars: Characters of one text that are searched; the rest becomes ``<OVERSIZE>``.
        model_chars: Characters of one text that a language model is shown, which are those around
            possible names. Beyond them every possible name is replaced.
        recognizers_s: Seconds that the user's recognizers may take for one text.
        cached: Redactions in the cache.
    """

    max_chars: int = 65_536
    model_chars: int = 8_192
    recognizers_s: float = 1.0
    cached: int = 4_096

    def __post_init__(self) -> None:
        for name in ("max_chars", "model_chars", "recognizers_s", "cached"):
            if not getattr(self, name) > 0:
                raise ConfigurationError(f"{name} must be positive, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactorHealth:
    """
    Health of the redactor: whether its language model works.

    Attributes:
        model: The model of the settings. None: the best installed.
        state: State of the model.
        error: Type of the error that kept it from loading.
        language: Language that it is for. None: the one that the model tells.
        others: The models for other languages.
    """

    model: str | None
    state: ModelState
    error: str | None
    language: str | None = None
    others: tuple[RedactorHealth, ...] = ()

    @property
    def is_degraded(self) -> bool:
        """Whether a model is wanted and is not available."""
        missing = self.state in {ModelState.MISSING, ModelState.FAILED}
        return missing or any(each.is_degraded for each in self.others)


class Redactor:
    """
    Redactor of text for all calls of a process. Thread-safe.

    Args:
        make_engine: Returns what finds personal data; asked in the background, since its detectors
            take a tenth of a second to import. It gets what lends it the analyzer.
        make_analyzer: Returns Presidio's engine, which takes two seconds to import.
        models: The language models that it asks.
        operators: Replace what it finds.
        knows_ordinary: Whether an ordinary word is never personal data: the user denies no term.
        limits: Limits of the work for one text.
        rebuild: Functions by type, for values of types that are not known here.
        ask: Returns what redacts the texts of calls by this redactor. None: this one does.

    Attributes:
        texts: What redacts the texts of calls.
        known_labels: The labels of the mappings that were met last, by their keys.
        is_prepared: All is loaded that a call may need: see `prepare`.
    """

    def __init__(
        self,
        make_engine: Callable[[Callable[[bool], Analyzer | None]], Engine],
        make_analyzer: Callable[[], Analyzer],
        models: Mapping[str | None, NameModel],
        operators: Operators,
        *,
        knows_ordinary: bool = True,
        limits: Limits | None = None,
        rebuild: Mapping[type, Rebuild] | None = None,
        ask: Callable[[Redactor], TextRedactor] | None = None,
    ) -> None:
        self.known_labels: dict[tuple[Any, ...], Labels] = {}
        self.texts: TextRedactor = self if ask is None else ask(self)
        self._knows_ordinary = knows_ordinary
        self._make_engine = make_engine
        self._make_analyzer = make_analyzer
        self._analyzer: Analyzer | None = None
        self._models = models
        self._operators = operators
        self._limits = limits or Limits()
        self._rebuild = dict(rebuild or {})
        self._cache = RedactionCache[RedactedText](entries=self._limits.cached)
        self._shared_chars = min(self._limits.max_chars, _SHARED_CHARS)
        self._known = lru_cache(maxsize=_KNOWN)(_identifiers)
        self._nobody = KnownIdentifiers(())
        self._people = lru_cache(maxsize=_CUSTOMERS)(_nobody_mentioned)
        self._made: Engine | None = None
        self._detectors = Loading(self._load_detectors)
        self._everything = Loading(self._load_everything)
        self._presidio = Loading(self._load_presidio)
        self._clock = time.monotonic
        self._first_text_s: float | None = None
        self._is_warm = False
        self.is_prepared = False

    @cached_property
    def _engine(self) -> Engine:
        self._detectors.wait(_LOADING_S)
        if self._made is None:
            raise _not_loaded(self._detectors)
        return self._made

    def begin(
        self,
        *,
        tenant: str | None = None,
        known: Sequence[str] = (),
        vault: PseudonymStore | None = None,
        extent: Extent = UNLIMITED,
    ) -> Redaction:
        """
        Begin the redaction of one call.

        Args:
            tenant: Tenant of the pseudonyms.
            known: Identifiers of the data subject.
            vault: Stores the originals of this call's pseudonyms.
            extent: How much text there may be.
        """
        found = self._nobody if not known else self._known(tuple(known))
        return Redaction(self.texts, tenant, found, self._rebuild, vault, *extent)

    def health(self) -> RedactorHealth:
        """Return the state of the language models."""
        first, *others = (
            RedactorHealth(model=each.name, state=each.state, error=each.error, language=language)
            for language, each in self._models.items()
        )
        return dataclasses.replace(first, others=tuple(others))

    @property
    def is_loading(self) -> bool:
        """Whether there is nothing to redact with yet, and nothing that says there never will."""
        return not self._everything.is_done and self._everything.error is None

    def wait_until_loaded(self, timeout_s: float = _LOADING_S) -> None:
        """
        Wait for detectors, lists and models, which are loaded in the background.

        Not for Presidio: until it is imported, detectors do without it.

        Raises:
            RedactionError: It took longer, or could not be loaded.
        """
        if not self._everything.wait(timeout_s):
            raise _not_loaded(self._everything)

    def prepare(self, timeout_s: float | None = None) -> bool:
        """
        Load everything, and read what only some texts need as well: no call loads anything then.

        Returns:
            Whether that was done within *timeout_s* seconds; a model that is missing is no failure.
        """
        if not (self._everything.wait(timeout_s) and self._presidio.wait(timeout_s)):
            return False
        if not self._is_warm:
            self._engine.warm_up()
            self._is_warm = True
        return True

    def _load_detectors(self) -> None:
        from ..detectors.identifiers import search as identifiers  # noqa: PLC0415 - on a thread
        from ..names import find as names  # noqa: PLC0415 - as above
        from . import mentioned_people  # noqa: PLC0415 - as above

        identifiers.load()
        names.prepare()
        mentioned_people.load()
        self._made = self._make_engine(self._lend_analyzer)

    def _load_everything(self) -> None:
        self._engine.models.prepare()
        self.is_prepared = True

    def _load_presidio(self) -> None:
        try:
            self._analyzer = self._make_analyzer()
        except Exception as error:
            logger.warning(_NO_PRESIDIO, type(error).__qualname__)
            raise

    def _lend_analyzer(self, must_wait: bool) -> Analyzer | None:  # noqa: FBT001 - one question
        """
        Return Presidio's engine, which is imported once texts have come for some seconds.

        Args:
            must_wait: Wait until it is imported. Otherwise it may be None.

        Raises:
            RedactionError: It could not be imported, or not in time.
        """
        if self._analyzer is None:
            if must_wait:
                self._presidio.wait(_LOADING_S)
                if self._analyzer is None:
                    raise _not_loaded(self._presidio)
            elif self._is_settled() and self._presidio.error is None:
                self._presidio.begin()  # after an error, each text would import it again
        return self._analyzer

    def _is_settled(self) -> bool:
        """Return whether texts have come for some seconds: a short command never needs more."""
        now = self._clock()
        if self._first_text_s is None:
            self._first_text_s = now
        return now - self._first_text_s >= _SETTLED_S

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
        if label:  # it may be what no text by itself shows
            shared = None
        else:
            if text in ORDINARY and self._knows_ordinary:
                return RedactedText(text, ())
            if self._made is None and pace is not None:
                pace.before_slow_work()  # it is being loaded
            if self._engine.is_safe_id(text, known):
                return RedactedText(text, ())
            shared = self._engine.look_up(text) if len(text) <= self._shared_chars else None
            if shared is not None and self._engine.is_clean(text, shared, known):
                known.mark_clean(text)
                return RedactedText(text, ())
        read = f"{label}\0{text}" if label else text
        key = self._cache.key_of(role, tenant or "", known.key, read)
        held = self._cache.get(key)
        if held is not None and (vault is None or vault.holds(held.pseudonyms)):
            return held
        if pace is not None:
            pace.before_search(len(text))
        result = self._search_and_replace(
            text, known, tenant, role, vault, pace, shared=shared, label=label
        )
        if result.text != text:
            self._cache.put(key, result)
            self._cache_result_of(result.text, known, tenant)
        elif shared is None or result.counts:
            self._cache.put(key, result)
        else:
            known.mark_clean(text)
        return result

    def redact_each(
        self,
        text: str,
        choose: Callable[[Finding, str], Operator],
        *,
        known: KnownIdentifiers,
        tenant: str | None,
        role: TextRole,
        vault: PseudonymStore | None = None,
        pace: Pace | None = None,
        label: str = "",
    ) -> RedactedText:
        """
        Return *text* redacted as `redact` does, each find by the operator that is chosen for it.

        Args:
            text: Any text.
            choose: Returns the operator for a find, which it is given with its text.
            known: Identifiers of the data subject.
            tenant: Tenant of the pseudonyms.
            role: Role of the text.
            vault: Stores the originals of pseudonyms.
            pace: Lets other threads in.
            label: What a form would write before the text.

        Raises:
            RedactionError: The text could not be redacted.
        """
        return self._search_and_replace(text, known, tenant, role, vault, pace, choose, label=label)

    def labels_of(self, keys: tuple[Any, ...], pace: Pace | None = None) -> Labels:
        """Return the labels that *keys* of a mapping are: see `ValueTexts`."""
        if self._made is None and pace is not None:
            pace.before_slow_work()  # it is being loaded
        labels = self._engine.labels_of(keys)
        if len(keys) <= _FEW_KEYS:
            if len(self.known_labels) >= _KNOWN_LABELS:
                self.known_labels.clear()
            self.known_labels[keys] = labels
        return labels

    def operator_of(self, entity: str) -> Operator:
        """Return the operator that the settings give to *entity*."""
        return self._operators.of(entity)

    def are_safe_ids(self, texts: Sequence[str], known: KnownIdentifiers) -> bool:
        """Return whether all of *texts* are UUIDs or short numbers and none is *known*."""
        return self._engine.are_safe_ids(texts, known)

    def find_plain(
        self, texts: Sequence[str], known: KnownIdentifiers, pace: Pace | None = None
    ) -> set[str]:
        """Return those of many *texts* that need no search: see `Engine.find_plain`."""
        return self._engine.find_plain(texts, known, pace)

    def mentions(self, text: str, known: KnownIdentifiers) -> bool:
        """Return whether a *known* identifier, or what is always replaced, is in *text*."""
        return self._engine.mentions(text, known)

    def text_to_embed(self, text: str) -> str:
        """Return *text* as it is to be densely encoded; see `Mnemoscope.text_to_embed`."""
        return self._operators.text_to_embed(text)

    def explain(self, text: str, *, known: Sequence[str] = ()) -> list[Finding]:
        """Return the findings that would be replaced in *text*."""
        return self._engine.find(text[: self._limits.max_chars], self._known(tuple(known)))

    def allowed(self, text: str) -> list[Finding]:
        """Return what would be replaced in *text* if no allowed term held it."""
        kept: list[Finding] = []
        self._engine.find(text[: self._limits.max_chars], self._known(()), allowed=kept)
        return merge_findings(kept)

    def _search_and_replace(  # noqa: PLR0917 - what `redact` is given
        self,
        text: str,
        known: KnownIdentifiers,
        tenant: str | None,
        role: TextRole,
        vault: PseudonymStore | None,
        pace: Pace | None,
        choose: Callable[[Finding, str], Operator] | None = None,
        shared: HeldReading | None = None,
        label: str = "",
    ) -> RedactedText:
        body, rest = self._within_limit(text)
        if role is TextRole.NUMBER:
            body, findings = self._engine.find_number(label, body, known, pace)
        else:
            findings = self._engine.find(body, known, pace, held=shared)
            if label:
                behind = self._engine.find_behind(label, body, known, pace)
                findings = merge_findings([*findings, *behind])
        operators: list[Operator] | None = None
        if choose is not None:
            chosen = [(each, choose(each, body[each.start : each.end])) for each in findings]
            findings = [each for each, operator in chosen if operator is not Operator.KEEP]
            operators = [operator for _, operator in chosen if operator is not Operator.KEEP]
        if not findings and not rest:
            return RedactedText(text, ())
        counts = Counter(each.entity for each in findings)
        if rest:
            counts["OVERSIZE"] += 1
        replace = self._operator_for(body, findings, role)
        # Who is named in texts about nobody in particular may be anybody.
        people = self._people(tenant or "", known.key) if known.key else None
        parts: list[str] = []
        pseudonyms: list[str] = []
        done = 0
        for number, each in enumerate(findings):
            found = body[each.start : each.end]
            operator = None if operators is None else operators[number]
            replacement = replace(
                found, each.entity, tenant=tenant, people=people, operator=operator
            )
            parts += (body[done : each.start], replacement)
            done = each.end
            if PSEUDONYM.fullmatch(replacement):
                pseudonyms.append(replacement)
                if vault is not None:
                    vault.store(replacement, found, each.entity)
        redacted = "".join((*parts, body[done:], rest))
        return RedactedText(redacted, tuple(counts.items()), tuple(pseudonyms))

    def _operator_for(
        self, text: str, findings: list[Finding], role: TextRole
    ) -> Callable[..., str]:
        whole = len(findings) == 1 and text[findings[0].start : findings[0].end] == text.strip()
        if role is TextRole.KEY:
            return self._operators.pseudonymize
        return (
            self._operators.replace_whole if whole and role in _WHOLE else (self._operators.replace)
        )

    def _within_limit(self, text: str) -> tuple[str, str]:
        """Split *text* into the part to search and the replacement of the rest."""
        limit = self._limits.max_chars
        if len(text) <= limit or len(text.removesuffix(OVERSIZE)) <= limit:
            return text, ""
        return cut_text(text, limit), OVERSIZE

    def _cache_result_of(self, redacted: str, known: KnownIdentifiers, tenant: str | None) -> None:
        """Cache *redacted* as clean: recalled and written back, it must not change again."""
        clean = RedactedText(redacted, ())
        for role in _ROLES:
            self._cache.put(self._cache.key_of(role, tenant or "", known.key, redacted), clean)


def _not_loaded(loading: Loading) -> RedactionError:
    cause = "it is being loaded" if loading.error is None else type(loading.error).__qualname__
    return RedactionError(f"there is nothing to redact with: {cause}")


_SHARED_CHARS = 65_536
"""Characters of a text that is searched in one piece for whoever is not named in it."""

_ROLES = tuple(TextRole)
_WHOLE = frozenset({TextRole.VALUE, TextRole.NUMBER})

_KNOWN_LABELS, _FEW_KEYS = 1_024, 64
"""Mappings whose labels are known, each of so many keys at most."""

_CUSTOMERS = 1_024
"""Customers of whom it is remembered who was mentioned."""

_KNOWN = 2_048
"""Customers whose identifiers are ready to be searched for: of each some kilobytes at most."""


def _identifiers(known: tuple[str, ...]) -> KnownIdentifiers:
    return KnownIdentifiers(tuple(dict.fromkeys(filter(None, known))))


def _nobody_mentioned(_tenant: str, _customer: str) -> MentionedPeople:
    from .mentioned_people import MentionedPeople  # noqa: PLC0415 - reads word lists

    return MentionedPeople()


def build_redactor(
    *,
    model: str | None = None,
    keys: SubjectKeys,
    operators: Mapping[str, str] = NO_OPERATORS,
    recognizers: Iterable[Any] = (),
    lists: TermLists = NO_LISTS,
    limits: Limits | None = None,
    rebuild: Mapping[type, Rebuild] | None = None,
    ask: Callable[[Redactor], TextRedactor] | None = None,
) -> Redactor:
    """
    Build the redactor of a process. Cheap, unless there are recognizers: these import Presidio.

    Args:
        model: spaCy package or path, a configuration of Presidio's NLP engines, or such by language
            (``en=…,de=…``); ``none``: patterns only; None: the best installed.
        keys: Derives the pseudonym keys of tenants.
        operators: Operator by entity, ``*`` for all that are replaced by default.
        recognizers: Presidio's recognizers, registries and analyzers, and paths of YAML registries.
        lists: What is never touched, and what is always replaced.
        limits: Limits of the work for one text.
        rebuild: Functions by type, for values of types that are not known here.
        ask: Returns what redacts the texts of calls by the redactor. None: it does so itself.

    Raises:
        ConfigurationError: A recognizer is none.
    """
    limits = limits or Limits()
    custom = _custom_recognizers(recognizers, limits.recognizers_s)
    declared = frozenset(entity for each in custom for entity in each.supported_entities)
    chosen = Operators(operators, keys=keys, entities=declared)
    named = models_installed() if model is None else parse_models(model)
    models = {
        language: NameModel(name, None if language == ANY_LANGUAGE else language)
        for language, name in named.items()
    }
    for each in models.values():
        each.look()
    return Redactor(
        partial(_engine, models, chosen, lists, limits, bool(custom)),
        partial(_analyzer, custom),
        models,
        chosen,
        knows_ordinary=not lists.denied,
        limits=limits,
        rebuild=rebuild,
        ask=ask,
    )


def _custom_recognizers(given: Iterable[Any], timeout_s: float) -> Sequence[CustomRecognizer]:
    given = tuple(given)
    if not given:
        return ()
    from ..models.custom_recognizers import CustomRecognizer, to_analyzers  # noqa: PLC0415 - slow

    return [CustomRecognizer(each, timeout_s=timeout_s) for each in to_analyzers(given)]


def _engine(  # noqa: PLR0917 - what the settings say
    models: Mapping[str | None, NameModel],
    operators: Operators,
    lists: TermLists,
    limits: Limits,
    has_custom: bool,  # noqa: FBT001 - bound by `partial`
    lend_analyzer: Callable[[bool], Analyzer | None],
) -> Engine:
    from ..models.language_models import MODEL_ENTITIES, LanguageModels  # noqa: PLC0415 - slow
    from .engine import Engine  # noqa: PLC0415 - see `Redactor`

    return Engine(
        LanguageModels(models, frozenset(filter(operators.is_replaced, MODEL_ENTITIES))),
        model_chars=limits.model_chars,
        lend_analyzer=lend_analyzer,
        has_custom=has_custom,
        is_replaced=operators.is_replaced,
        find_placeholders=operators.find_placeholders,
        lists=lists,
        cached=limits.cached,
    )


def _analyzer(custom: Sequence[CustomRecognizer]) -> Analyzer:
    from .recognizers import Analyzer  # noqa: PLC0415 - see `Redactor`

    return Analyzer(custom)


def explain(text: str, *, model: str | None = None) -> list[Finding]:
    """Return the findings that the default operators replace in *text*."""
    redactor = build_redactor(model=model, keys=SubjectKeys(os.urandom(32)))
    return redactor.explain(text)
