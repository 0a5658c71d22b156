"""Names in the cases that a sentence asks for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.resources import files

CASES = ("gen", "dat", "acc", "ins", "voc")


def feminine(language: str, family: str) -> str:
    """The form of a family name that a woman bears."""
    for ending, (replacement,) in _rules(f"{language} family"):
        if ending == "*":
            return family + replacement
        if family.endswith(ending):
            return family.removesuffix(ending) + replacement
    return family


def inflect(language: str, word: str, *, woman: bool, case: str) -> str:
    """A name in a case; as it is where the language or the name has none."""
    suffixing = _SUFFIXING.get(language)
    if suffixing is not None:
        return suffixing(word, case)
    for ending, forms in _rules(f"{language} {'f' if woman else 'm'}"):
        if ending == "*":
            form = forms[CASES.index(case)]
            return word if form == "*" else word + form
        if word.endswith(ending):
            return word.removesuffix(ending) + forms[CASES.index(case)]
    return word


@functools.cache
def _sections() -> dict[str, tuple[tuple[str, tuple[str, ...]], ...]]:
    text = files(__package__).joinpath("data", "inflection.txt").read_text(encoding="utf-8")
    sections = {}
    for section in text.split("\n[")[1:]:
        name, _, body = section.partition("]\n")
        lines = [line.split() for line in body.splitlines() if line]
        sections[name] = tuple((ending, tuple(forms)) for ending, *forms in lines)
    return sections


def _rules(section: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return _sections().get(section, ())


_DOTLESS = "\u0131"
_TURKISH_VOWELS = {"a": _DOTLESS, _DOTLESS: _DOTLESS, "e": "i", "i": "i"}
_TURKISH_VOWELS |= {"o": "u", "u": "u", "ö": "ü", "ü": "ü"}


def _turkish(word: str, case: str) -> str:
    lowered = word.replace("I", _DOTLESS).replace("İ", "i").lower()
    last = next(letter for letter in reversed(lowered) if letter in _TURKISH_VOWELS)
    narrow = _TURKISH_VOWELS[last]
    wide = "a" if last in f"a{_DOTLESS}ou" else "e"
    vowel_ends = lowered[-1] in _TURKISH_VOWELS
    hard = "t" if lowered[-1] in "fstkçşhp" else "d"
    suffix = {
        "gen": f"{'n' * vowel_ends}{narrow}n",
        "dat": f"{'y' * vowel_ends}{wide}",
        "acc": f"{'y' * vowel_ends}{narrow}",
        "ins": f"{'y' * vowel_ends}l{wide}",
        "abl": f"{hard}{wide}n",
        "loc": f"{hard}{wide}",
    }[case]
    return f"{word}'{suffix}"


def _finnish(word: str, case: str) -> str:
    wide = "a" if any(letter in "aouAOU" for letter in word) else "ä"
    ending = {"gen": "n", "all": "lle", "abl": f"lt{wide}", "ade": f"ll{wide}"}[case]
    return _finnish_stem(word) + ending


def _finnish_stem(word: str) -> str:
    for nominative, stem in (("nen", "se"), ("us", "ukse"), ("as", "akse")):
        if word.endswith(nominative):
            return word.removesuffix(nominative) + stem
    if word[-1] not in "aeiouyäö":
        return f"{word}i"
    doubled = word[-3:-1]
    return word[:-2] + word[-1] if doubled in {"kk", "pp", "tt"} else word


_SUFFIXING: dict[str, Callable[[str, str], str]] = {"tr": _turkish, "fi": _finnish}
