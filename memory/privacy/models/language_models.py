"""
The language models for names, each shown the parts of a text that are in its own language.

Only windows around words that may be names are shown, in batches. What a model is not shown
is not passed: every possible name in it counts as a person.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..detectors.chunks import split_into_chunks
from ..detectors.english_words import english_words, is_english_word
from ..detectors.finding import WEAK, Finding
from ..detectors.language import identify_language
from ..detectors.lazy_pattern import compile_later
from ..detectors.pace import Pace
from ..detectors.person_support import RepeatedWords
from ..detectors.prefilter import TextFeatures
from ..detectors.word_lists import ORDINARY
from .entity_filter import filter_entities, truecase
from .model_setting import ANY_LANGUAGE
from .name_model import ModelBusyError, NameModel
from .windows import Window, find_possible_names, widen

MODEL_ENTITIES = frozenset({"PERSON", "LOCATION", "ORGANIZATION", "NRP", "DATE_TIME"})
"""Entities to find with a language model, each only if it is replaced."""

_PERSON_ONLY = frozenset({"PERSON"})
_MIN_LETTER_SHARE = 0.1
_TOKEN = compile_later(r"\w+|[^\w ]")
_CHARS_OF_TOKEN = 5
"""In prose. The model's time grows with the tokens, not with the characters."""

_SENTENCE_END = compile_later(r"[.!?…](?=\s)|\n|[\u3002\uff01\uff1f]")
_SENTENCE_CHARS, _SURROUNDING_CHARS = 200, 300
_PIECE_CHARS = 2_000
_BATCH_CHARS = 1_200
"""Other threads wait for one batch."""


class LanguageModels:
    """
    The models by the languages that they read. Thread-safe.

    Args:
        models: Model by language; ``*`` for a model of every language. None as a language: what the
            model itself tells.
        model_chars: Maximum number of characters of one text that are shown to a model.
    """

    def __init__(
        self,
        models: Mapping[str | None, NameModel],
        *,
        model_chars: int,
    ) -> None:
        self._models = models
        self._model_chars = model_chars

    @property
    def by_language(self) -> Mapping[str | None, NameModel]:
        """The models, by the languages that the settings say."""
        return self._models

    @property
    def are_wanted(self) -> bool:
        """Whether any model is wanted and may be available."""
        return any(model.is_wanted for model in self._models.values())

    def prepare(self) -> None:
        """Load them now, and the words that tell where they are needed."""
        if not self.are_wanted:
            return
        english_words()
        identify_language("the")
        for model in self._models.values():
            with model.pipeline():
                _ = model.language  # a file tells it

    def find(
        self,
        text: str,
        features: TextFeatures,
        entities: frozenset[str],
        found: Sequence[Finding],
        pace: Pace | None = None,
    ) -> Iterator[Finding]:
        """
        Find *entities* that are not *found* yet, in the parts that a model has the language of.

        The models are shown a limited number of characters, and fewer of a text with many tokens.
        Beyond the limit every possible name counts as a person.
        """
        only_persons = entities <= _PERSON_ONLY
        if only_persons and _has_no_name(text, features):
            return
        # A lone surrogate cannot be encoded for a model; "?" is as long.
        readable = truecase(text.encode("utf-8", "replace").decode())
        places = (
            list(find_possible_names(readable, (each for each in found if each.score > WEAK)))
            if only_persons
            else list(_pieces(readable))
        )
        if not places:
            return
        languages = _Languages(readable)
        budget = _Budget(self._model_chars)
        repeated = RepeatedWords(readable)
        for model, mine in self._by_model(languages, places):
            if model is None:
                yield from _possible_names(repeated, mine)
                continue
            if pace is not None:
                pace.before_slow_work()
            for each in self._found_by(model, repeated, mine, budget, pace, widened=only_persons):
                if each.entity in entities:
                    yield each

    def _by_model(
        self, languages: _Languages, places: Iterable[Window]
    ) -> Iterator[tuple[NameModel | None, list[Window]]]:
        """Yield each model with its places; None with those in what is no language at all."""
        chosen: dict[NameModel | None, list[Window]] = {}
        for place in places:
            language = languages.of(place)
            model = self._model_of(language)
            if model is not None:
                chosen.setdefault(model, []).append(place)
            elif language is None and not languages.has_words(place):
                chosen.setdefault(None, []).append(place)
        yield from chosen.items()

    def _model_of(self, language: str | None) -> NameModel | None:
        for wanted in (language, ANY_LANGUAGE):
            for of, model in self._models.items():
                if model.is_wanted and (of or model.language) == wanted:
                    return model
        return None

    def _found_by(
        self,
        model: NameModel,
        repeated: RepeatedWords,
        places: Sequence[Window],
        budget: _Budget,
        pace: Pace | None,
        *,
        widened: bool,
    ) -> Iterator[Finding]:
        text = repeated.text
        with _lent(model, pace) as pipeline:
            context_words = 0 if pipeline is None else pipeline.context_words
        if pipeline is None:
            return
        chosen_for = next(of for of, each in self._models.items() if each is model)
        language = chosen_for or model.language
        windows = (
            widen(text, places, context_words) if widened else ((each, [each]) for each in places)
        )
        for batch in _batches(windows):
            if pace is not None:
                pace.between_pieces()
            shown = [each for each in batch if budget.allows(text[each[0].start : each[0].end])]
            if shown:
                yield from _found_in_batch(model, repeated, shown, language, pace)
            for _, missed in batch[len(shown) :]:
                yield from _possible_names(repeated, missed)


class _Budget:
    """What a model may still be shown of one text. Once it is used up, nothing more fits in."""

    def __init__(self, most_chars: int) -> None:
        self._left_chars = most_chars

    def allows(self, text: str) -> bool:
        """Count *text*, by its tokens where these are many, and return whether it may be shown."""
        chars = max(len(text), _CHARS_OF_TOKEN * len(_TOKEN.findall(text)))
        fits = chars <= self._left_chars
        self._left_chars = self._left_chars - chars if fits else 0
        return fits


class _Languages:
    """The languages of the places of one text: by sentence, else by line, else by what is near."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        self._known: dict[tuple[int, int], str | None] = {}

    def of(self, place: Window) -> str | None:
        """Return the language of *place*. None: unsure."""
        for start, end in self._parts(place):
            if (language := self._identify(start, end)) is not None:
                return language
        return None

    def has_words(self, place: Window) -> bool:
        """Return whether there is language near *place*; brackets are each a token, and slow."""
        near = self._text[max(0, place.start - _SURROUNDING_CHARS) : place.end + _SURROUNDING_CHARS]
        return sum(map(str.isalpha, near)) >= len(near) * _MIN_LETTER_SHARE

    def _parts(self, place: Window) -> Iterator[tuple[int, int]]:
        start, end = self._sentence(place)
        yield max(start, place.start - _SENTENCE_CHARS), min(end, place.end + _SENTENCE_CHARS)
        yield (
            max(0, start - _SURROUNDING_CHARS),
            min(len(self._text), end + _SURROUNDING_CHARS, start + 2 * _SURROUNDING_CHARS),
        )

    def _sentence(self, place: Window) -> tuple[int, int]:
        before = bisect_right(self._ends, place.start)
        after = bisect_left(self._ends, place.end)
        start = self._ends[before - 1] if before else 0
        return start, self._ends[after] if after < len(self._ends) else len(self._text)

    def _identify(self, start: int, end: int) -> str | None:
        if (start, end) not in self._known:
            self._known[start, end] = identify_language(self._text[start:end])
        return self._known[start, end]


def _has_no_name(text: str, features: TextFeatures) -> bool:
    """Return whether every word of *text* is ordinary, or no word of one in lower case a name."""
    return features.words <= ORDINARY or (
        text.islower() and (" " not in text.strip() or all(map(is_english_word, features.words)))
    )


def _pieces(text: str) -> Iterator[Window]:
    """Yield all of *text*, line by line, and a long line in pieces that overlap."""
    start = 0
    for line in text.splitlines(keepends=True):
        for offset, piece in split_into_chunks(line, size=_PIECE_CHARS):
            if not piece.isspace():
                yield Window(start + offset, start + offset + len(piece))
        start += len(line)


def _batches(
    windows: Iterable[tuple[Window, list[Window]]],
) -> Iterator[list[tuple[Window, list[Window]]]]:
    """Yield *windows* in batches, each short unless a window is long."""
    batch: list[tuple[Window, list[Window]]] = []
    chars = 0
    for window, places in windows:
        length = window.end - window.start
        if batch and chars + length > _BATCH_CHARS:
            yield batch
            batch, chars = [], 0
        batch.append((window, places))
        chars += length
    if batch:
        yield batch


def _found_in_batch(
    model: NameModel,
    repeated: RepeatedWords,
    batch: Sequence[tuple[Window, list[Window]]],
    language: str,
    pace: Pace | None,
) -> Iterator[Finding]:
    """Yield what *model* finds in a batch of windows, if one of their places is in it."""
    text = repeated.text
    with _lent(model, pace) as pipeline:
        answers = list(pipeline.find([text[window.start : window.end] for window, _ in batch]))
    for (window, places), found in zip(batch, answers, strict=True):
        moved = (
            each._replace(start=each.start + window.start, end=each.end + window.start)
            for each in found
        )
        for each in filter_entities(repeated, moved, language=language):
            if any(place.start < each.end and each.start < place.end for place in places):
                yield each


@contextmanager
def _lent(model: NameModel, pace: Pace | None) -> Generator[Any]:
    """Lend the pipeline of *model* to this thread, as long as its *pace* allows to wait for it."""
    patience = {} if pace is None else {"timeout_s": pace.waits_for_model_s}
    try:
        with model.pipeline(**patience) as pipeline:
            yield pipeline
    except ModelBusyError:
        if pace is not None:
            pace.model_is_busy()
        raise


def _possible_names(repeated: RepeatedWords, places: Iterable[Window]) -> Iterator[Finding]:
    found = (Finding(*place, "PERSON", 0.5, "beyond what the model is shown") for place in places)
    yield from filter_entities(repeated, found)
