"""Docstrings and signatures as Markdown, for the generated pages of the documentation."""

from __future__ import annotations

import enum
import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

WIDTH = 100
SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises", "Example")
"""Headings of Google-style docstrings, in the order in which they are shown."""

_HEADING = re.compile(rf"({'|'.join(SECTIONS)}):")
_ITEM = re.compile(r"(\*{0,2}[\w.]+): ?(.*)")


@dataclass(slots=True)
class Docstring:
    """
    A docstring, taken apart.

    Attributes:
        text: What stands before the first section, as paragraphs.
        sections: Lines of each section, without their indentation.
    """

    text: list[str] = field(default_factory=list[str])
    sections: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def items(self, section: str) -> list[tuple[str, str]]:
        """Return the names of *section* with their descriptions."""
        found: list[tuple[str, str]] = []
        for line in self.sections.get(section, ()):
            named = _ITEM.fullmatch(line)
            if named is not None and not line.startswith(" "):
                found.append((named[1], named[2]))
            elif found and line.strip():
                name, said = found[-1]
                found[-1] = (name, f"{said} {line.strip()}")
        return found


def parse(docstring: str | None) -> Docstring:
    """Return *docstring* taken apart."""
    parsed, section = Docstring(), ""
    lines = inspect.cleandoc(docstring or "").splitlines()
    for line in lines:
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            section = heading[1]
            parsed.sections[section] = []
        elif section and line and not line.startswith(" "):
            section = ""
            parsed.text += ["", line]
        elif section:
            parsed.sections[section].append(line.removeprefix("    "))
        else:
            parsed.text.append(line)
    return parsed


def prose(text: str) -> str:
    """Return *text*, written for reStructuredText, as Markdown."""
    return re.sub(r"``(.+?)``", r"`\1`", text, flags=re.DOTALL)


def paragraphs(lines: list[str]) -> Iterator[str]:
    """Yield the paragraphs and lists of *lines*, wrapped."""
    for block in "\n".join(lines).strip().split("\n\n"):
        if not block.strip():
            continue
        if block.lstrip().startswith("* "):
            yield prose(block)
        else:
            yield fill(block)


def fill(text: str, *, first: str = "", rest: str = "") -> str:
    """Return *text* wrapped at `WIDTH`, its lines behind *first* and *rest*."""
    return textwrap.fill(
        " ".join(prose(text).split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def bullet(text: str) -> str:
    """Return *text* as an item of a list."""
    return fill(text, first="* ", rest="  ")


def signature(name: str, function: Any, *, is_method: bool = False) -> str:
    """Return the call of *function* as Python, one parameter a line where it is long."""
    if isinstance(function, type) and not _has_own_constructor(function):
        return name
    found = inspect.signature(function)
    parts = list(_parts(list(found.parameters.values())[1 if is_method else 0 :]))
    returned = found.return_annotation
    is_class = inspect.isclass(function)
    arrow = "" if is_class or returned is found.empty else f" -> {written(returned)}"
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= WIDTH:
        return line
    listed = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{listed}){arrow}"


def written(annotation: Any) -> str:
    """Return *annotation* as it is written in the source."""
    annotation = getattr(annotation, "__forward_arg__", annotation)
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+([A-Z])", r"\1", text.strip("'\""))


def _has_own_constructor(kind: type) -> bool:
    if issubclass(kind, BaseException):
        return any("__init__" in vars(each) for each in kind.__mro__ if _is_ours(each))
    return True


def _is_ours(kind: type) -> bool:
    return kind.__module__.startswith("mnemoscope.")


def _parts(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yield *parameters* as they are written, with the marks between their kinds."""
    has_star = False
    for position, each in enumerate(parameters):
        if each.kind is each.KEYWORD_ONLY and not has_star:
            has_star = True
            yield "*"
        has_star = has_star or each.kind is each.VAR_POSITIONAL
        yield _parameter(each)
        following = [other.kind for other in parameters[position + 1 : position + 2]]
        if each.kind is each.POSITIONAL_ONLY and following != [each.POSITIONAL_ONLY]:
            yield "/"


def _parameter(parameter: inspect.Parameter) -> str:
    marks = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}
    text = marks.get(parameter.kind, "") + parameter.name
    if parameter.annotation is not parameter.empty:
        text += f": {written(parameter.annotation)}"
    if parameter.default is parameter.empty:
        return text
    equals = "=" if parameter.annotation is parameter.empty else " = "
    return f"{text}{equals}{_default(parameter.default)}"


def _default(value: Any) -> str:
    """Return a default as Python, or three dots for a function or an object made anew."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    text = repr(value)
    return "..." if text.startswith("<") else text
