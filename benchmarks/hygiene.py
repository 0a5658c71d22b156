"""
Precision and recall of what ``mnemoscope memory doctor`` finds, on conversations with planted junk.

    python -m benchmarks.hygiene FOLDER

FOLDER holds conversations in the form of LoCoMo. Each is one customer: its turns are remembered one
by one through a guarded, real mem0 (``infer=False``), with an audit trail and the feature, and then
junk of each kind is planted, by a seed. Likeness was tuned on ``conv_26`` and with the rewordings
of `TUNED`; the other conversations and the rewordings of `HELD_OUT` were not looked at before.
Rewordings are rules, made here: what a model says in other words may share fewer words with it.
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("MEM0_TELEMETRY", "False")

from rich.console import Console
from rich.table import Table

from mnemoscope.adapters.customer_requests.hygiene import examine_person
from mnemoscope.demo.embedded_mem0 import embedded_memory
from mnemoscope.memory import Mnemoscope, context, load_settings
from mnemoscope.memory.hygiene import Ailment, HygieneFinding, StoredText, examine, hygiene

TUNED_ON = "conv_26"
CUSTOMER = "c-42"
LEAST_CHARACTERS = 40
"""Characters of the shortest turn: what is shorter is no fact."""

LOST = "wolframite"
"""A word that the embedder refuses."""

Reword = Callable[[str, str], str]
"""Returns what a speaker has said in other words, given the text and the speaker."""

_SHORT_FORMS = {
    "I'm": "I am",
    "it's": "it is",
    "don't": "do not",
    "can't": "can not",
    "I've": "I have",
    "that's": "that is",
    "you're": "you are",
    "I'd": "I would",
    "didn't": "did not",
}
_OTHER_WORDS = {
    "great": "wonderful",
    "awesome": "amazing",
    "really": "truly",
    "happy": "glad",
    "think": "believe",
    "kids": "children",
    "started": "began",
    "love": "adore",
}


def _replaced(words: Mapping[str, str], text: str) -> str:
    for one, other in words.items():
        text = re.sub(rf"\b{re.escape(one)}\b", other, text)
    return text


def _typos(text: str, _speaker: str) -> str:
    words = text.split()
    for place in range(2, len(words), 9):
        word = words[place]
        words[place] = word[:1] + word[2:3] + word[1:2] + word[3:]
    return " ".join(words)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s", text)


TUNED: Mapping[str, Reword] = {
    "case and full stop": lambda text, _: text.lower().rstrip(".!?"),
    "long forms": lambda text, _: _replaced(_SHORT_FORMS, text).replace("!", "."),
    "typos": _typos,
    "somebody said": lambda text, speaker: f"{speaker} said: {text}",
    "other words": lambda text, _: _replaced(_OTHER_WORDS, text),
    "last sentence first": lambda text, _: " ".join(_sentences(text)[::-1]),
}
HELD_OUT: Mapping[str, Reword] = {
    "hedged": lambda text, _: "I guess that, well, " + text.replace(", ", ", actually, "),
    "without filling words": lambda text, _: re.sub(
        r"\b(?:really|so|just|very|super|totally|pretty)\s|^(?:Hey|Wow|Oh|Yeah)\b[^,.!]*[,.!]\s",
        "",
        text,
    ),
    "reported": lambda text, speaker: (
        f"{speaker} mentioned that "
        + _replaced({"I": "they", "my": "their", "me": "them", "I'm": "they're"}, text)
    ),
    "first sentence last": lambda text, _: " ".join([*_sentences(text)[1:], _sentences(text)[0]]),
}

WORDINGS = (
    (
        "Rosalind drinks green tea every morning",
        "Every morning Rosalind drinks green tea",
        "Green tea is what Rosalind has in the mornings",
    ),
    (
        "The flat in Mill Road has three rooms and a balcony",
        "The flat in Mill Road has three rooms and also a balcony",
        "There are three rooms and a balcony in the Mill Road flat",
    ),
    (
        "She is allergic to peanuts and carries an adrenaline pen",
        "She's allergic to peanuts, and carries an adrenaline pen",
        "Because of a peanut allergy she always has an EpiPen with her",
    ),
    (
        "Their wedding is planned for the second weekend of June in Lisbon",
        "The wedding is planned for the second weekend of June, in Lisbon",
        "They will get married in Lisbon in the middle of June",
    ),
    (
        "He changed his job from accounting to teaching last autumn",
        "Last autumn he changed his job from accounting to teaching",
        "He left accounting last autumn and became a teacher",
    ),
)
"""Five facts, three wordings each: what is kept of them is told as it is."""


class Score(NamedTuple):
    """What was planted, and what of it was found; and all that was found."""

    planted: int
    found: int
    told: int
    right: int

    @property
    def recall(self) -> float:
        """The share of what was planted that was found."""
        return self.found / max(1, self.planted)

    @property
    def precision(self) -> float:
        """The share of what was found that was planted."""
        return self.right / max(1, self.told)


class Planted:
    """One conversation in a mem0 of its own, with junk whose places are known."""

    def __init__(self, path: Path, folder: Path, rewords: Mapping[str, Reword]) -> None:
        self.rewords = rewords
        self._random = random.Random(path.stem)  # noqa: S311 - no secret
        self.facts: list[str] = []
        self.memory = embedded_memory(folder)
        self._watch_embedder()
        settings = load_settings(
            sinks="audit",
            audit_url=f"sqlite:///{folder / 'audit.db'}",
            audit_pseudonym_key="00" * 32,
            pii_model="none",
            **{f"deadline_{each}_s": 0 for each in ("recall", "remember")},  # type: ignore[arg-type]
        )
        self.scope = Mnemoscope(settings, extra_features=[hygiene])
        self.guarded = self.scope.mem0(self.memory)
        self.turns = [turn for turn in _turns(path) if len(turn[1]) >= LEAST_CHARACTERS]
        self.originals: dict[str, str] = {}
        self.same: dict[str, str] = {}
        self.reworded: dict[str, tuple[str, str]] = {}
        self.echoes: dict[str, str] = {}
        self.near_echoes: dict[str, str] = {}
        self.partial = 0

    def _watch_embedder(self) -> None:
        embed = self.memory.embedding_model.embed

        def refusing(text: str, action: str | None = None) -> Any:
            if LOST in text:
                raise ConnectionError
            return embed(text, action)

        def refusing_any(texts: list[str], action: str = "add") -> Any:
            return [refusing(text, action) for text in texts]

        def found_facts(*_args: Any, **_kwargs: Any) -> str:
            return json.dumps({"memory": [{"text": text, "event": "ADD"} for text in self.facts]})

        self.memory.embedding_model.embed = refusing
        self.memory.embedding_model.embed_batch = refusing_any
        self.memory.llm.generate_response = found_facts

    def plant(self) -> None:
        """Remember three fifths of the turns, and junk of each kind among and behind them."""
        turns = self.turns[:]
        self._random.shuffle(turns)
        fifth = len(turns) // 5
        noted, fresh, known = turns[:fifth], turns[fifth : 2 * fifth], turns[2 * fifth :]
        for number, (_speaker, text) in enumerate(known):
            self.originals[self._add(text, f"session-{number // 20}")] = text
            if number % 8 == 0:  # among others, so that no breaker opens
                self._add_in_part(noted[3 * (number // 8) :][:3], number // 8)
        by_text = {text: id_ for id_, text in self.originals.items()}
        speakers = {text: speaker for speaker, text in known}
        chosen = self._random.sample(sorted(by_text), len(by_text) // 2)
        fourth = len(chosen) // 4
        for text in chosen[:fourth]:
            self.same[self._add(f"  {text.upper()}", "import")] = by_text[text]
        for number, text in enumerate(chosen[fourth : 2 * fourth]):
            name = [*self.rewords][number % len(self.rewords)]
            said = self.rewords[name](text, speakers[text])
            if said != text:
                self.reworded[self._add(said, "import")] = (by_text[text], name)
        for number, text in enumerate(chosen[2 * fourth :]):
            self._echo(text, by_text, f"answer-{number}", fresh, number, speakers)

    def _echo(
        self,
        query: str,
        by_text: Mapping[str, str],
        run: str,
        fresh: Sequence[tuple[str, str]],
        number: int,
        speakers: Mapping[str, str],
    ) -> None:
        """Recall in a run, and write what was found, the same in other words, or something new."""
        with context(customer=CUSTOMER, run=run):
            found = self.guarded.search(query, filters={"user_id": CUSTOMER}, top_k=5)["results"]
        ids = [row["id"] for row in found if row["id"] in self.originals]
        if number % 3 == 0 and ids:
            self.echoes[self._add(self.originals[ids[0]], run)] = ids[0]
        elif number % 3 == 1 and ids:
            text = self.originals[ids[0]]
            name = [*self.rewords][number % len(self.rewords)]
            said = self.rewords[name](text, speakers.get(text, "Somebody"))
            self.near_echoes[self._add(said, run)] = ids[0]
        elif fresh:
            self._add(fresh[number % len(fresh)][1] + f" ({number})", run)

    def _add(self, text: str, run: str) -> str:
        with context(customer=CUSTOMER, run=run):
            answer = self.guarded.add(text, user_id=CUSTOMER, infer=False)
        return str(answer["results"][0]["id"])

    def _add_in_part(self, turns: Sequence[tuple[str, str]], number: int) -> None:
        """Add three turns at once, of which all, the first two or none can be embedded."""
        texts = [text for _speaker, text in turns]
        if number % 4 < 2:
            texts[-1:] = [f"{each} {LOST}" for each in texts[-1:]]
        elif number % 4 == 2:
            texts = [f"{each} {LOST}" for each in texts]
        before, self.facts = self._count(), texts
        messages = [{"role": "user", "content": text} for text in texts]
        with context(customer=CUSTOMER, run=f"note-{number}"):
            # By a model's inference mem0 answers as if all went well, without it raises.
            self.guarded.add(messages, user_id=CUSTOMER, infer=number % 2 == 0)
        self.partial += 0 < self._count() - before < len(texts)

    def _count(self) -> int:
        store = self.memory.vector_store
        return int(store.client.count(store.collection_name).count)

    def examined(self) -> list[HygieneFinding]:
        """Return what the doctor finds, with the stores."""
        assert self.scope.flush(60.0)
        log = self.scope.audit
        return examine_person(
            log,
            log.person(CUSTOMER),
            self.scope,
            now_us=time.time_ns() // 1_000,
            unused_days=90,
            nears=True,
        ).findings


def _turns(path: Path) -> list[tuple[str, str]]:
    held = json.loads(path.read_text(encoding="utf-8"))
    sessions = (held.get(f"session_{number}", ()) for number in range(1, 64))
    return [(turn["speaker"], turn["text"]) for session in sessions for turn in session]


def scores(planted: Planted, findings: Sequence[HygieneFinding]) -> dict[str, Score]:
    """Return the scores by kind."""
    ids = {
        ailment: [[each[2] for each in one.memories] for one in findings if one.ailment is ailment]
        for ailment in Ailment
    }
    echoed = {group[1]: group[0] for group in ids[Ailment.ECHO]}
    source = {
        **planted.same,
        **{new: old for new, (old, _name) in planted.reworded.items()},
        **planted.echoes,
        **planted.near_echoes,
    }
    roots = {each: source.get(each, each) for each in (*source, *source.values())}

    def duplicates(wanted: Mapping[str, str], groups: Sequence[Sequence[str]]) -> Score:
        joined = {each: set(group) for group in groups for each in group}
        found = sum(
            any(roots.get(other) == old and other != new for other in joined.get(new, ()))
            for new, old in wanted.items()
        )
        told = [(group[0], each) for group in groups for each in group[1:]]
        right = sum(roots.get(one, one) == roots.get(other, other) for one, other in told)
        return Score(len(wanted), found, len(told), right)

    nears = {new: old for new, (old, _name) in planted.reworded.items()}
    both = [*ids[Ailment.DUPLICATE], *ids[Ailment.NEAR_DUPLICATE]]
    every = {**planted.echoes, **planted.near_echoes}
    right = sum(new in every for new in echoed)
    partial = len(ids[Ailment.PARTIAL])
    # Near echoes that were found are right, and are counted below: here they are neither.
    alone = [new for new in echoed if new not in planted.near_echoes]
    exact = sum(new in planted.echoes for new in alone)
    return {
        "duplicates, the same text": duplicates(planted.same, ids[Ailment.DUPLICATE]),
        "duplicates, in other words": duplicates(nears, ids[Ailment.NEAR_DUPLICATE]),
        "duplicates, all": duplicates({**planted.same, **nears}, both),
        "echoes, the same text": Score(len(planted.echoes), exact, len(alone), exact),
        "echoes, all": Score(len(every), sum(new in echoed for new in every), len(echoed), right),
        "partial adds": Score(
            planted.partial, min(partial, planted.partial), partial, min(partial, planted.partial)
        ),
    }


def kept_of_wordings() -> int:
    """Return how many of the fifteen memories stay when others supersede what they can."""
    texts = [text for fact in WORDINGS for text in fact]
    stored = [StoredText(("store", None, str(place)), text) for place, text in enumerate(texts)]
    found = examine([], stored, now_us=0)
    return len(texts) - sum(len(one.memories) - 1 for one in found if one.keep is not None)


def main() -> None:
    """Print a table for each conversation and each set of rewordings."""
    if len(sys.argv) != 2:
        sys.exit("python -m benchmarks.hygiene FOLDER")
    logging.disable(logging.CRITICAL)
    paths = sorted(Path(sys.argv[1]).glob("*.json"))
    if not paths:
        sys.exit("no conversation there: expected JSON files in LoCoMo's form")
    screen = Console(highlight=False)
    for path in paths:
        for name, rewords in (("tuned", TUNED), ("held out", HELD_OUT)):
            with tempfile.TemporaryDirectory() as folder:
                planted = Planted(path, Path(folder), rewords)
                with closing(planted.scope):
                    planted.plant()
                    began = time.perf_counter()
                    findings = planted.examined()
                    took_s = time.perf_counter() - began
                half = "tuned on" if path.stem == TUNED_ON else "not tuned on"
                _print(screen, f"{path.stem} ({half}), {name} rewordings", planted, findings)
                screen.print(f"{len(planted.turns):,} turns, examined in {took_s:.1f} s\n")
    screen.print(f"5 facts in 3 wordings: {kept_of_wordings()} of 15 memories are kept")


def _print(
    screen: Console, title: str, planted: Planted, findings: Sequence[HygieneFinding]
) -> None:
    table = Table("kind", "planted", "found", "told", "precision", "recall", title=title)
    for kind, score in scores(planted, findings).items():
        table.add_row(
            kind,
            str(score.planted),
            str(score.found),
            str(score.told),
            f"{score.precision:.3f}",
            f"{score.recall:.3f}",
        )
    screen.print(table)


if __name__ == "__main__":
    main()
