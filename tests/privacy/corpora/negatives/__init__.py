"""
Texts without personal data, as a memory is given them: what is replaced in them is lost.

Templates and words stand in one folder for each half, a file for each genre (``logs.txt``) and
language (``prose.de.txt``); `templates` says how they are written. All of it was written for this
project. No text has a person in it, nor a number or address that reaches one. An IP address is
personal data for redaction, so no client has one here; what is nobody's machine (``0.0.0.0``,
``127.0.0.1``, ``[::]``) does occur, and so do versions of four parts. Accounts are those of systems
(``root``, ``postgres``). Titles, brands and terms that were named after somebody (Jenkins, a Bloom
filter) are words: the genre ``lookalikes`` is full of them, the others hold as many as such texts
do.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.privacy.corpora.document import Document, Half

from .templates import read_templates, read_words
from .values import Values

__all__ = ["documents"]


def documents(half: Half, *, per_template: int = 3, seed: int = 0) -> Iterator[Document]:
    """Yield *per_template* texts of each template of *half*, the same ones for the same *seed*."""
    words = read_words(half)
    for template in read_templates(half):
        for number in range(per_template):
            random = Random(f"{template.name} {number} {seed}")  # noqa: S311 - it keeps no secret
            values = Values(random, half, words)
            yield Document(
                text=template.fill(values),
                spans=(),
                language=template.language,
                genre=template.genre,
                template=template.name,
            )
