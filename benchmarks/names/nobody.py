"""
Real text that names nobody: chats, messages of programs, documentation, JSON and code.

It is that of the packages in `texts.txt`, which `make train-names` installs. What may name a person
is left out by lists and by forms, never by what a model finds.
"""

from __future__ import annotations

import ast
import gzip
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from gettext import GNUTranslations
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.names.sentences import Sentence
from mnemoscope.memory.privacy.detectors.english_words import is_english_word
from mnemoscope.memory.privacy.detectors.lexicon import fold
from mnemoscope.memory.privacy.names.lists import NAMES, word_table

_MOST = {"chat": 6_000, "message": 9_000, "docs": 5_000, "json": 4_000, "code": 3_000}
"""How many texts of each kind are taken."""

_MOST_FILES, _MOST_OF_FILE = 250, 40
_LINES, _CHARS = 14, 400
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")
_CREDIT = re.compile(
    r"[@\u00a9]|\b(?:by|thanks to|thank|author\w*|copyright|maintain\w*|contribut\w*|credits?) "
    r"|\b(?:Mrs?|Ms|Dr|Prof|Sir|St)\b\.?\s",
    re.IGNORECASE,
)
_INTRODUCES = re.compile(
    r"\bnames?\b|\bcalled?\b|\bmeet\b|\b(?:i['\u2019]?m|i am|this is|my \w+,?|mr|mrs) [A-Z]",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^>]+>")
_COMMON = frozenset("oketWPtbn")


def texts(folder: Path, random: Random) -> Iterator[Sentence]:
    """
    Yield texts of the packages in a folder, the same ones for the same random numbers.

    Args:
        folder: Where the packages are installed.
        random: Chooses among the texts.
    """
    for kind, read in _READERS.items():
        known = {each.text: each for each in read(folder, random)}
        chosen = sorted(known.values(), key=lambda each: (each.key, each.text))
        random.shuffle(chosen)
        yield from chosen[: _MOST[kind]]


def names_nobody(text: str) -> bool:
    """Return whether neither a list of given names nor a form says that a text names somebody."""
    if _CREDIT.search(text):
        return False
    was_name = False
    for word in _WORD.finditer(text):
        kinds = word_table().get(fold(word[0]), "")
        is_name = word[0][0].isupper() and not NAMES.isdisjoint(kinds)
        if is_name and (was_name or ("g" in kinds and _COMMON.isdisjoint(kinds))):
            return False
        was_name = is_name and text[word.end() : word.end() + 1] == " "
    return True


def _chats_nobody(text: str) -> bool:
    """Return the same of a chat, where any word may name people: all its words are known."""
    if not names_nobody(text) or _INTRODUCES.search(text):
        return False
    return all(
        is_english_word(word) or not _COMMON.isdisjoint(word_table().get(fold(word), ""))
        for word in map(str.lower, _WORD.findall(text))
    )


def _chats(folder: Path, random: Random) -> Iterator[Sentence]:
    talks = json.loads((folder / "chitchat_dataset" / "dataset.json").read_text("utf-8"))
    for key in random.sample(sorted(talks), 10 * _MOST_FILES):
        turns = ["\n".join(each["text"] for each in turn) for turn in talks[key]["messages"]]
        yield from _some(filter(_chats_nobody, turns), f"chat {key}", "en", random)
    said = re.compile(r"^\s*-[ -]*(.+)$", re.MULTILINE)
    for path in sorted((folder / "chatterbot_corpus" / "data" / "english").glob("*.yml")):
        turns = said.findall(path.read_text("utf-8"))
        yield from _some(filter(_chats_nobody, turns), f"chat {path.stem}", "en", random)


def _messages(folder: Path, random: Random) -> Iterator[Sentence]:
    for path in _sample(folder.rglob("*.mo"), 4 * _MOST_FILES, random):
        language = path.parts[-3][:2]
        with path.open("rb") as file:
            catalog: dict[Any, str] = vars(GNUTranslations(file))["_catalog"]
        found = [each for key, each in catalog.items() if key]
        yield from _some(found, f"message {path.relative_to(folder)}", language, random)


def _docs(folder: Path, random: Random) -> Iterator[Sentence]:
    documents = folder.glob("googleapiclient/discovery_cache/documents/*.json")
    services = folder.glob("botocore/data/*/*/service-2.json.gz")
    for path in _sample([*documents, *services], _MOST_FILES, random):
        key = f"docs {path.relative_to(folder)}"
        yield from _some(list(_described(_read_json(path))), key, "en", random)
    for path in sorted(folder.glob("*.dist-info/METADATA")):
        parts = path.read_text("utf-8").partition("\n\n")[2].split("\n\n")
        yield from _some(parts, f"docs {path.parent.name}", "en", random)
    for path, tree, _ in _modules(folder, random):
        nodes = [each for each in ast.walk(tree) if isinstance(each, _DOCUMENTED)]
        parts = [part for each in nodes for part in (ast.get_docstring(each) or "").split("\n\n")]
        yield from _some(parts, f"docs {path.relative_to(folder)}", "en", random)


def _json(folder: Path, random: Random) -> Iterator[Sentence]:
    paths = [*folder.rglob("*.json"), *folder.glob("botocore/data/*/*/*.json.gz")]
    texts = [each for each in paths if each.parent.name != "chitchat_dataset"]
    for path in _sample(texts, _MOST_FILES, random):
        value = _read_json(path)
        objects = list(_objects(value))
        some = random.sample(objects, min(len(objects), _MOST_OF_FILE))
        found = [json.dumps(each, ensure_ascii=False) for each in some]
        text = json.dumps(value, indent=random.choice([1, 2, 4]), ensure_ascii=False)
        yield from _some([*found, *_pages(text)], f"json {path.relative_to(folder)}", "", random)


def _code(folder: Path, random: Random) -> Iterator[Sentence]:
    for path, tree, text in _modules(folder, random):
        nodes = [each for each in ast.walk(tree) if isinstance(each, _DOCUMENTED[1:])]
        parts = [ast.get_source_segment(text, each) or "" for each in nodes]
        yield from _some([*parts, *_pages(text)], f"code {path.relative_to(folder)}", "", random)
    for path in _sample(folder.rglob("*.html"), _MOST_FILES, random):
        pages = _pages(path.read_text("utf-8"))
        yield from _some(pages, f"code {path.relative_to(folder)}", "", random)


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_READERS: dict[str, Callable[[Path, Random], Iterator[Sentence]]] = {
    "chat": _chats,
    "message": _messages,
    "docs": _docs,
    "json": _json,
    "code": _code,
}


def _sample(paths: Iterable[Path], most: int, random: Random) -> list[Path]:
    known = sorted(paths)
    return random.sample(known, min(len(known), most))


def _some(found: Iterable[str], key: str, language: str, random: Random) -> Iterator[Sentence]:
    """Yield some texts of a file: with a capital, neither short nor long, and naming nobody."""
    fit = sorted({each for each in found if " " in each and len(each) <= 2 * _CHARS})
    for text in random.sample(fit, min(len(fit), _MOST_OF_FILE)):
        if not text.islower() and names_nobody(text):
            yield Sentence(text, [], language, key)


def _pages(text: str) -> list[str]:
    lines = text.split("\n", 40 * _LINES)[: 40 * _LINES]
    return ["\n".join(lines[at : at + _LINES]) for at in range(0, len(lines), _LINES)]


def _modules(folder: Path, random: Random) -> Iterator[tuple[Path, ast.Module, str]]:
    for path in _sample(folder.rglob("*.py"), _MOST_FILES, random):
        text = path.read_text("utf-8")
        yield path, ast.parse(text), text


def _read_json(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def _described(value: Any) -> Iterator[str]:
    """Yield what JSON says in the fields that describe, without marks of HTML."""
    for each in _objects(value):
        for key in ("documentation", "description"):
            if isinstance(text := each.get(key), str):
                yield html.unescape(_TAG.sub("", text)).strip()


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    parts: Sequence[Any] = list(value.values()) if isinstance(value, dict) else value
    for each in parts if isinstance(value, dict | list) else ():
        yield from _objects(each)
