"""
What redaction costs in recall: long conversations, and questions about them.

    python -m benchmarks.recall FOLDER [--model none] [--dims 64] [--spans]

FOLDER holds conversations in the form of LoCoMo, one JSON file each: sessions of turns with a
speaker, an id and a text, and questions with the ids of the turns that answer them. All turns of a
conversation are remembered, as they are and as ``Speaker: text``, and each question is asked. A
question's recall is the share of its turns among the first ten that are found; its rank is that of
the first of them. Asked are an encoder alone, mem0, LangGraph's store and the hybrid index, all in
memory and with the encoder that `HybridIndex` has: bare, and guarded with each operator. Intervals
hold 95 % of 2,000 samples of the questions; gains are those of a question over its bare answer.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import re
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

os.environ.setdefault("MEM0_TELEMETRY", "False")

from langgraph.store.memory import InMemoryStore
from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase
from mem0.utils.factory import EmbedderFactory
from qdrant_client import QdrantClient

from mnemoscope.adapters.mem0.adapter import configure_library
from mnemoscope.hybrid_search import Document, HybridIndex, WordLlama
from mnemoscope.memory import Mnemoscope, context, load_settings
from mnemoscope.memory.context import current
from mnemoscope.memory.privacy.detectors.word_lists import (
    AMBIGUOUS_NAMES,
    GIVEN_NAMES,
    read_words,
)
from mnemoscope.memory.privacy.engine.redactor import Redactor
from mnemoscope.telemetry.event.sink_pseudonyms import PSEUDONYM

AT, TOP, SAMPLES, TENANT = ("memories",), 10, 2_000, "bench"
OPERATORS = ("bare", "tag", "pseudonym", "mask")
FORMS = ("plain", "said")

Ranks = list[list[int]]
"""For each question the turns that were found, the best first."""


@dataclass(frozen=True)
class Question:
    """A question and the turns that answer it."""

    text: str
    evidence: frozenset[int]


@dataclass(frozen=True)
class Conversation:
    """Turns of two speakers, and questions about them."""

    name: str
    speakers: tuple[str, ...]
    turns: list[tuple[str, str]]
    questions: list[Question]

    def texts(self, form: str) -> list[str]:
        """Return the turns as they are remembered."""
        return [f"{who}: {said}" if form == "said" else said for who, said in self.turns]


def read(path: Path) -> Conversation:
    """Return the conversation in a file."""
    held = json.loads(path.read_text("utf-8"))
    sessions = [name for name in held if re.fullmatch(r"session_\d+", name)]
    turns = [turn for name in sessions for turn in held[name]]
    at = {turn["dia_id"]: index for index, turn in enumerate(turns)}
    questions: list[Question] = []
    for each in held["qa"]:
        ids = re.findall(r"D\d+:\d+", " ".join(each.get("evidence", [])))
        if evidence := frozenset(at[found] for found in ids if found in at):
            questions.append(Question(each["question"], evidence))
    spoken = [(turn["speaker"], turn["text"]) for turn in turns]
    speakers = tuple(dict.fromkeys(who for who, _said in spoken))
    return Conversation(path.stem, speakers, spoken, questions)


class Encoder:
    """
    The encoder of `HybridIndex`, which encodes no text twice.

    Args:
        size: The first dimensions of a vector, which stand for all of them.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._model = WordLlama()
        self._encoded = lru_cache(maxsize=None)(self._encode)

    def documents(self, texts: Sequence[str], /) -> list[list[float]]:
        """Encode texts."""
        return [list(self._encoded(text)) for text in texts]

    def query(self, text: str, /) -> list[float]:
        """Encode a query."""
        return list(self._encoded(text))

    def _encode(self, text: str) -> tuple[float, ...]:
        vector = np.array(self._model.query(text)[: self.size])
        return tuple((vector / (np.linalg.norm(vector) or 1.0)).tolist())


class Embedder(EmbeddingBase):
    """The encoder as mem0 has embedders."""

    encoder: Encoder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """Encode a text."""
        return self.encoder.query(text)


Way = Callable[[Mnemoscope | None, Conversation, list[str], Encoder], Ranks]


def by_encoder(
    scope: Mnemoscope | None, about: Conversation, texts: list[str], encoder: Encoder
) -> Ranks:
    """Ask the encoder alone, as somebody who embeds texts himself."""
    embedded = str if scope is None else scope.text_to_embed
    stored = np.array(encoder.documents(list(map(embedded, texts))))
    asked = np.array(encoder.documents([embedded(each.text) for each in about.questions]))
    return np.argsort(-(asked @ stored.T), axis=1, kind="stable")[:, :TOP].tolist()


def by_mem0(
    scope: Mnemoscope | None, about: Conversation, texts: list[str], encoder: Encoder
) -> Ranks:
    """Ask mem0, with facts as they are given."""
    client = QdrantClient(":memory:")
    store = {"client": client, "collection_name": "facts", "embedding_model_dims": encoder.size}
    Embedder.encoder = encoder
    with warnings.catch_warnings(action="ignore"):  # indexes do nothing in a local Qdrant
        bare = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "embedder": {"provider": "lmstudio", "config": {"embedding_dims": encoder.size}},
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "history_db_path": ":memory:",
            }
        )
    memory = bare if scope is None else scope.mem0(bare)
    turns: dict[str, int] = {}
    for index, text in enumerate(texts):
        [added] = memory.add(text, user_id=about.name, infer=False)["results"]
        turns[added["id"]] = index
    filters = {"user_id": about.name}
    found = [
        memory.search(each.text, filters=filters, top_k=TOP, threshold=0.0)["results"]
        for each in about.questions
    ]
    bare.close()
    client.close()
    return [[turns[each["id"]] for each in hits] for hits in found]


def by_store(
    scope: Mnemoscope | None, about: Conversation, texts: list[str], encoder: Encoder
) -> Ranks:
    """Ask LangGraph's store, with an index."""
    index: Any = {"dims": encoder.size, "embed": encoder.documents, "fields": ["text"]}
    bare = InMemoryStore(index=index)
    store = bare if scope is None else scope.store(bare)
    for number, text in enumerate(texts):
        store.put(AT, str(number), {"text": text})
    return [
        [int(each.key) for each in store.search(AT, query=question.text, limit=TOP)]
        for question in about.questions
    ]


def by_hybrid_index(
    scope: Mnemoscope | None, about: Conversation, texts: list[str], encoder: Encoder
) -> Ranks:
    """Ask by meaning and by words."""
    bare = QdrantClient(":memory:")
    index = HybridIndex(bare if scope is None else scope.qdrant(bare), "turns", dense=encoder)
    index.create()
    index.upsert(Document(id=number, text=text) for number, text in enumerate(texts))
    found = [index.search(each.text, limit=TOP) for each in about.questions]
    bare.close()
    return [[int(each.id) for each in hits] for hits in found]


WAYS: dict[str, Way] = {
    "encoder": by_encoder,
    "mem0": by_mem0,
    "store": by_store,
    "HybridIndex": by_hybrid_index,
}


@dataclass(frozen=True)
class Answers:
    """How well each question was answered."""

    recall: np.ndarray
    reciprocal_rank: np.ndarray


def score(ranks: Ranks, questions: Sequence[Question]) -> Answers:
    """Return how much of its evidence each question found, and how high up."""
    recall, first = [], []
    for found, question in zip(ranks, questions, strict=True):
        recall.append(len(question.evidence.intersection(found)) / len(question.evidence))
        places = (1 / place for place, turn in enumerate(found, 1) if turn in question.evidence)
        first.append(next(places, 0.0))
    return Answers(np.array(recall), np.array(first))


def opened(operator: str, model: str | None) -> Mnemoscope | None:
    """Return a scope with an operator. None: there is no guard."""
    if operator == "bare":
        return None
    settings = load_settings(
        pii_operators=f"*={operator}",
        pii_model=model,
        audit_pseudonym_key="6d" * 32,
        **dict.fromkeys(("deadline_recall_s", "deadline_remember_s"), 0),
    )
    scope = Mnemoscope(settings, only_sinks=[])
    scope.prepare()
    return scope


def measured(
    conversations: Sequence[Conversation],
    model: str | None,
    encoder: Encoder,
    step: Callable[[], Any],
) -> dict[tuple[str, str, str], Answers]:
    """Return the answers by form, way and operator."""
    questions = [each for about in conversations for each in about.questions]
    result: dict[tuple[str, str, str], Answers] = {}
    for operator in OPERATORS:
        scope = opened(operator, model)
        for form in FORMS:
            for name, way in WAYS.items():
                ranks: Ranks = []
                for about in conversations:
                    with context(tenant=TENANT, customer=about.name):
                        ranks += way(scope, about, about.texts(form), encoder)
                result[form, name, operator] = score(ranks, questions)
                step()
        if scope is not None:
            scope.close()
    return result


def interval(values: np.ndarray) -> str:
    """Return the mean of *values*, and where that of 95 of 100 samples of them is."""
    chosen = np.random.default_rng(1).integers(0, len(values), (SAMPLES, len(values)))
    low, high = np.quantile(values[chosen].mean(axis=1), (0.025, 0.975))
    return f"{values.mean():.3f} {low:.3f}-{high:.3f}".replace("-0.", "-.").replace(" 0.", " .")


def gain(values: np.ndarray, bare: np.ndarray) -> str:
    """Return how many points *values* are above *bare*, question by question."""
    over = 100 * (values - bare)
    chosen = np.random.default_rng(1).integers(0, len(over), (SAMPLES, len(over)))
    low, high = np.quantile(over[chosen].mean(axis=1), (0.025, 0.975))
    return f"{over.mean():+.1f} [{low:+.1f} {high:+.1f}]"


def report(console: Console, answers: dict[tuple[str, str, str], Answers], form: str) -> None:
    """Print one form's table, 80 columns wide."""
    table = Table(title=f"{form} turns", box=None, pad_edge=False)
    for heading in ("", "", "recall@10", "points over bare", "MRR"):
        table.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
    for way in WAYS:
        bare = answers[form, way, "bare"]
        for operator in OPERATORS:
            found = answers[form, way, operator]
            table.add_row(
                way if operator == "bare" else "",
                operator,
                interval(found.recall),
                "" if operator == "bare" else gain(found.recall, bare.recall),
                interval(found.reciprocal_rank),
            )
    console.print(table)


# -- who is who ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Identity:
    """How often a mention of a person has the stand-in of the plain name, and nobody else's."""

    kept: int
    mentions: int

    def __str__(self) -> str:
        return f"{self.kept / max(1, self.mentions):.1%} of {self.mentions}"


def identities(about: Conversation, scope: Mnemoscope) -> dict[str, Identity]:
    """Return the identity of speakers, and of all others with a given name."""
    short = {words[0]: words[1:] for words in map(str.split, read_words("nicknames"))}
    named = {who.lower(): who for who in about.speakers}
    texts = [*about.texts("said"), *(each.text for each in about.questions)]
    others = {
        word
        for text in texts
        for word in re.findall(r"\b[A-Z][a-z]+\b", text)
        if word.lower() in GIVEN_NAMES - AMBIGUOUS_NAMES
    }
    speakers = {
        word: named[owner]
        for word in others | set(about.speakers)
        for owner in {word.lower(), *short.get(word.lower(), ())} & named.keys()
    }
    mentioned = {word: word for word in others if word not in speakers}
    with context(tenant=TENANT, customer=about.name):
        for text in texts:
            _stand_ins(text, scope)  # remembered, before anybody asks
        plain = {
            name: _stand_ins(f"I met {name} yesterday", scope)[:1]
            for name in {*speakers.values(), *mentioned}
        }
        its = {name: found[0][2] for name, found in plain.items() if found}
        return {
            "speakers": _identity(texts, speakers, its, scope),
            "third persons": _identity(texts, mentioned, its, scope),
        }


def _identity(
    texts: Sequence[str], people: dict[str, str], its: dict[str, str], scope: Mnemoscope
) -> Identity:
    owners = Counter(its.values())
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, people)) or '(?!)'})\b")
    kept = mentions = 0
    for text in texts:
        found = _stand_ins(text, scope)
        for mention in pattern.finditer(text):
            mentions += 1
            made = {each for start, end, each in found if start <= mention.start() < end}
            own = its.get(people[mention[0]], "")
            kept += made == {own} and owners[own] == 1
    return Identity(kept, mentions)


def _stand_ins(text: str, scope: Mnemoscope) -> list[tuple[int, int, str]]:
    """Return the spans that are replaced in *text*, each with what stands for it."""
    spans, redacted = _redactor(scope).explain(text), _redacted(text, scope)
    made = PSEUDONYM.findall(redacted) or re.findall(r"<[A-Z_]+>|\*{8}", redacted)
    if len(made) != len(spans):
        return []
    return [(span.start, span.end, each) for span, each in zip(spans, made, strict=True)]


def _redacted(text: str, scope: Mnemoscope) -> str:
    return scope._parts.guards.redactor.begin_labels(current()).text(text)  # type: ignore[union-attr]


def _redactor(scope: Mnemoscope) -> Redactor:
    return scope._parts.guards.redactor.redactor  # type: ignore[union-attr]


def report_identities(
    console: Console, conversations: Sequence[Conversation], model: str | None
) -> None:
    """Print how often a person has one stand-in, by operator."""
    table = Table(title="identity kept in questions and turns", box=None, pad_edge=False)
    for heading in ("", "speakers", "third persons"):
        table.add_column(heading, justify="right" if heading else "left")
    for operator in ("tag", "pseudonym"):
        scope = opened(operator, model)
        assert scope is not None
        told = [identities(each, scope) for each in conversations]
        table.add_row(operator, *(str(_sum(told, who)) for who in ("speakers", "third persons")))
        scope.close()
    console.print(table)


def _sum(told: Sequence[dict[str, Identity]], who: str) -> Identity:
    return Identity(sum(each[who].kept for each in told), sum(each[who].mentions for each in told))


def replaced(
    conversations: Sequence[Conversation], scope: Mnemoscope
) -> Iterator[tuple[str, str, str]]:
    """Yield what is replaced in turns and questions, with its entity and what is around it."""
    for about in conversations:
        for text in (*about.texts("plain"), *(each.text for each in about.questions)):
            for each in _redactor(scope).explain(text):
                around = (
                    f"{text[max(0, each.start - 20) : each.start]}[{text[each.start : each.end]}]"
                )
                yield each.entity, text[each.start : each.end], around + text[each.end :][:20]


def report_spans(
    console: Console, conversations: Sequence[Conversation], model: str | None
) -> None:
    """Print 200 random spans that are replaced, for the eye."""
    scope = opened("tag", model)
    assert scope is not None
    found = list(replaced(conversations, scope))
    scope.close()
    chosen = random.Random(1).sample(found, min(200, len(found)))  # noqa: S311 - the same each time
    for entity, _span, around in chosen:
        line = " ".join(around.split())
        console.print(f"{entity[:14]:14} {line}", highlight=False, markup=False)
    inside = sum(bool(re.search(r"\][^\W\d_]", around)) for _entity, _span, around in found)
    across = sum(bool(re.search(r"[a-z]{3}[.!?]\s", span)) for _entity, span, _around in found)
    console.print(
        f"{len(found)} spans; {inside} end inside a word, {across} cross a sentence",
        highlight=False,
    )


def main() -> None:
    """Measure, and print tables of at most 80 columns."""
    parser = argparse.ArgumentParser(description="Measure what redaction costs in recall.")
    parser.add_argument("folder", type=Path, help="conversations, one JSON file each")
    parser.add_argument("--model", help="spaCy package or path, or none; default: both")
    parser.add_argument("--dims", type=int, default=256, help="dimensions of a vector: 64 to 256")
    parser.add_argument("--spans", action="store_true", help="list 200 replaced spans, no more")
    chosen = parser.parse_args()
    files = sorted(chosen.folder.glob("*.json"))
    if not files:
        sys.exit(f"{chosen.folder}: no conversation there: expected JSON files in LoCoMo's form")
    conversations = list(map(read, files))
    console = Console(width=80)
    _register()
    for model in ("none", None) if chosen.model is None else (chosen.model,):
        name = model or "the best model installed"
        if chosen.spans:
            report_spans(console, conversations, model)
            continue
        answers = _with_progress(console, conversations, model, Encoder(chosen.dims), name)
        questions = sum(len(each.questions) for each in conversations)
        turns = sum(len(each.turns) for each in conversations)
        console.rule(f"{turns} turns, {questions} questions, model: {name}")
        for form in FORMS:
            report(console, answers, form)
        report_identities(console, conversations, model)


def _with_progress(
    console: Console,
    conversations: Sequence[Conversation],
    model: str | None,
    encoder: Encoder,
    name: str,
) -> dict[tuple[str, str, str], Answers]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        total = len(OPERATORS) * len(FORMS) * len(WAYS)
        task = progress.add_task(f"model: {name}", total=total)
        return measured(conversations, model, encoder, lambda: progress.advance(task))


def _register() -> None:
    """Let mem0's settings name the encoder, and have it look for nothing on the network."""
    configure_library()
    logging.getLogger("mem0").setLevel(logging.ERROR)
    module = types.ModuleType("recall_embedder")
    module.Embedder = Embedder  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    EmbedderFactory.provider_to_class["lmstudio"] = "recall_embedder.Embedder"


if __name__ == "__main__":
    main()
