"""
The language models for names, each shown the sentences of a text that are in its own language.

Only sentences with words of which their reading decides whether they are names are shown, in
batches. What a model is not shown for its length is not passed: every such word counts as a person.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..detectors.chunks import split_into_chunks
from ..detectors.english_words import english_words
from ..detectors.finding import Finding
from ..detectors.language import guess_language, identify_language
from ..detectors.lazy_pattern import compile_later
from ..detectors.pace import Pace
from ..detectors.word_lists import ORDINARY
from .model_setting import ANY_LANGUAGE
from .name_model import ModelBusyError, NameModel

MODEL_ENTITIES = frozenset({"PERSON", "LOCATION", "ORGANIZATION", "NRP", "DATE_TIME"})
"""Entities to find with a language model, each only if it is replaced."""

_PERSON_ONLY = frozenset({"PERSON"})
_MIN_LETTER_SHARE = 0.1
_TOKEN = compile_later(r"\w+|[^\w ]")
_CHARS_OF_TOKEN = 5
"""In prose. The model's time grows with the tokens, not with the characters."""

_SENTENCE_END = compile_later(r"[.!?…](?=\s)|\n|[\u3002\uff01\uff1f]")
_SENTENCE_CHARS = 600
"""Of a sentence that a model is shown as a whole."""

_WORD_CHARS = 60
_SURROUNDING_CHARS = 300
_BATCH_CHARS = 1_200
"""Other threads wait for one batch."""

_WORD = compile_later(r"[^\W\d_]+(?:['\u2019\-][^\W\d_]+)*")


class Passage(NamedTuple):
    """
    A part of a text.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last.
    """

    start: int
    end: int


class ModelReading(NamedTuple):
    """
    What has been read of a text.

    Attributes:
        findings: Entities, those too under which rare names are misfiled.
        shown: What a model has read. Empty: the findings are what no model was shown.
    """

    findings: list[Finding]
    shown: list[Passage]

    def __repr__(self) -> str:
        """Hide the text."""
        return f"ModelReading({len(self.findings)} findings)"


class LanguageModels:
    """
    The models by the languages that they read. Thread-safe.

    Args:
        models: Model by language; ``*`` for a model of every language. None as a language: what the
            model itself tells.
        entities: Entities to find.
    """

    def __init__(
        self, models: Mapping[str | None, NameModel], entities: frozenset[str] = _PERSON_ONLY
    ) -> None:
        self._models = models
        self.entities = entities & MODEL_ENTITIES if self.are_wanted else frozenset[str]()

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

    def read(
        self,
        text: str,
        budget: ReadingBudget,
        pace: Pace | None = None,
        places: Iterable[tuple[int, int]] | None = None,
    ) -> Iterator[ModelReading]:
        """
        Yield what the models read in the sentences that may hold what is looked for.

        Args:
            text: Any text.
            budget: What may be shown. Beyond it every possible name counts as a person.
            pace: Lets other threads in.
            places: Of the possible names. None: every sentence is read.
        """
        possible = sorted(Passage(*each) for each in places or ())
        is_choice = places is not None and self.entities == _PERSON_ONLY
        is_small_word = text.islower() and " " not in text.strip()
        if is_choice and (not possible or is_small_word):
            return
        # A lone surrogate cannot be encoded for a model; "?" is as long.
        readable = truecase(text.encode("utf-8", "replace").decode())
        sentences = _Sentences(readable)
        shown = dict.fromkeys(map(sentences.around, possible) if is_choice else sentences.all())
        for model, mine in self._by_model(sentences, shown):
            if model is not None and pace is not None:
                pace.before_slow_work()
            for batch in _batches(mine):
                if pace is not None:
                    pace.between_pieces()
                texts = [readable[start:end] for start, end in batch]
                if model is None or not budget.allows(texts):
                    yield ModelReading(_beyond(possible, batch), [])
                    continue
                with _lent(model, pace) as pipeline:
                    read = [] if pipeline is None else list(pipeline.find(texts))
                yield ModelReading([*_moved(zip(batch, read, strict=False))], batch)

    def _by_model(
        self, sentences: _Sentences, places: Iterable[Passage]
    ) -> Iterator[tuple[NameModel | None, list[Passage]]]:
        """Yield each model with its places; None with those in what is no language at all."""
        chosen: dict[NameModel | None, list[Passage]] = {}
        for place in places:
            language = sentences.language_of(place)
            model = self._model_of(language)
            if model is not None:
                chosen.setdefault(model, []).append(place)
            elif language is None and not sentences.has_words(place):
                chosen.setdefault(None, []).append(place)
        yield from chosen.items()

    def _model_of(self, language: str | None) -> NameModel | None:
        for wanted in (language, ANY_LANGUAGE):
            for of, model in self._models.items():
                if model.is_wanted and (of or model.language) == wanted:
                    return model
        return None


class ReadingBudget:
    """
    What models may still be shown of one text. Once it is used up, nothing more fits in.

    Args:
        most_chars: Characters, fewer of a text with many tokens.
    """

    def __init__(self, most_chars: int) -> None:
        self._left_chars = most_chars

    def allows(self, texts: Iterable[str]) -> bool:
        """Count *texts*, by tokens where these are many, and return whether they may be shown."""
        chars = sum(max(len(each), _CHARS_OF_TOKEN * len(_TOKEN.findall(each))) for each in texts)
        fits = chars <= self._left_chars
        self._left_chars = self._left_chars - chars if fits else 0
        return fits


class _Sentences:
    """The sentences of a text, and their languages."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = [match.end() for match in _SENTENCE_END.finditer(text)]
        self._known: dict[Passage, str | None] = {}

    def all(self) -> Iterator[Passage]:
        """Yield every sentence, and a long one in pieces that overlap."""
        for start, end in zip([0, *self._ends], [*self._ends, len(self._text)], strict=True):
            sentence = self._text[start:end]
            for offset, piece in split_into_chunks(sentence, size=_SENTENCE_CHARS):
                if not piece.isspace():
                    yield Passage(start + offset, start + offset + len(piece))

    def around(self, place: Passage) -> Passage:
        """Return the sentence of *place*, or of a long one the words around it."""
        before = bisect_right(self._ends, place.start)
        after = bisect_left(self._ends, place.end)
        start = self._ends[before - 1] if before else 0
        end = self._ends[after] if after < len(self._ends) else len(self._text)
        if end - start <= _SENTENCE_CHARS:
            return Passage(start, end)
        # The same piece for all places of one stretch, as they are shown together.
        half = _SENTENCE_CHARS // 2
        first = start + (place.start - start) // half * half
        last = max(place.end, min(end, first + _SENTENCE_CHARS))
        before = self._text.rfind(" ", max(start, first - _WORD_CHARS), first)
        after = self._text.find(" ", last, min(end, last + _WORD_CHARS))
        return Passage(before if before != -1 else first, after if after != -1 else last)

    def language_of(self, place: Passage) -> str | None:
        """Return the language of *place*, else of what is around it, else a guess. None: none."""
        if place not in self._known:
            start, end = place
            around = self._text[max(0, start - _SURROUNDING_CHARS) : end + _SURROUNDING_CHARS]
            own = self._text[start:end]
            self._known[place] = (
                identify_language(own) or identify_language(around) or guess_language(own)
            )
        return self._known[place]

    def has_words(self, place: Passage) -> bool:
        """Return whether there is language near *place*; brackets are each a token, and slow."""
        near = self._text[max(0, place.start - _SURROUNDING_CHARS) : place.end + _SURROUNDING_CHARS]
        return sum(map(str.isalpha, near)) >= len(near) * _MIN_LETTER_SHARE


def truecase(text: str) -> str:
    """Return *text*, if it has no capitals, with one for each word that is not ordinary."""
    if not text.islower():
        return text
    cased = _WORD.sub(
        lambda found: found[0] if found[0] in ORDINARY else found[0].capitalize(), text
    )
    return cased if len(cased) == len(text) else text


def _batches(places: Iterable[Passage]) -> Iterator[list[Passage]]:
    """Yield *places* in batches, each short unless a place is long."""
    batch: list[Passage] = []
    chars = 0
    for place in places:
        length = place.end - place.start
        if batch and chars + length > _BATCH_CHARS:
            yield batch
            batch, chars = [], 0
        batch.append(place)
        chars += length
    if batch:
        yield batch


def _moved(read: Iterable[tuple[Passage, list[Finding]]]) -> Iterator[Finding]:
    for (start, _end), found in read:
        for each in found:
            yield each._replace(start=each.start + start, end=each.end + start)


def _beyond(places: Sequence[Passage], batch: Sequence[Passage]) -> list[Finding]:
    """Return the possible names in a *batch* that no model is shown."""
    return [
        Finding(*each, "PERSON", 0.5, "beyond what the model is shown")
        for start, end in batch
        for each in places[bisect_left(places, (start,)) : bisect_left(places, (end,))]
    ]


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
