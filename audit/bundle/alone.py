"""`verify` as one file, with the modules that it imports in the place of the imports."""

from __future__ import annotations

import re
from importlib.resources import files

_IMPORT = re.compile(r"^from \.(\w+) import [^\n]+\n", re.MULTILINE)
# A file has one docstring and one future import, and only at its top: those of the modules that are
# put in would be errors there.
_HEAD = re.compile(r'\A""".*?"""\n|^from __future__ [^\n]+\n', re.MULTILINE | re.DOTALL)


def verify_alone() -> bytes:
    """Return the source of the ``verify.py`` that travels in a bundle."""
    return _IMPORT.sub(_in_place, _source("verify")).encode()


def _in_place(line: re.Match[str]) -> str:
    return _HEAD.sub("", _source(line[1])).strip("\n") + "\n\n"


def _source(module: str) -> str:
    return (files(__package__ or __name__) / f"{module}.py").read_text(encoding="utf-8")
