"""
News, encyclopaedia articles and social posts in five languages, with the people in them labelled.

The files in `data/` have the form of those of `corpora.languages`, and lists of values of their
own. A half of these texts is read as those are: nobody who works on a detector reads the evaluation
half, nor what was found in a text of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.resources import files

from tests.privacy.corpora.document import Document, Half
from tests.privacy.corpora.languages.generator import documents_of
from tests.privacy.corpora.languages.language_data import LanguageData, parse

LANGUAGES = ("de", "en", "es", "fr", "pl")


def data_of(language: str, half: Half) -> LanguageData:
    """Return the values and templates of a language and half."""
    file = files(__package__).joinpath("data", f"{language}.{half}.txt")
    return parse(file.read_text(encoding="utf-8"), language=language, half=half)


def documents(
    half: Half,
    *,
    languages: Iterable[str] | None = None,
    per_template: int = 3,
    seed: int = 0,
) -> Iterator[Document]:
    """Yield *per_template* texts of each template of *half*, in those of *languages* there are."""
    wanted = LANGUAGES if languages is None else languages
    for language in (each for each in LANGUAGES if each in wanted):
        yield from documents_of(data_of(language, half), per_template, seed)
