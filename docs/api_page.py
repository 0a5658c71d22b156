"""
Write docs/api.md, the list of all public names, from their docstrings: ``make reference``.

Public is what `MODULES` have in their ``__all__``, and nothing else.
"""

from __future__ import annotations

import ast
import enum
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from docstrings import Docstring, bullet, fill, paragraphs, parse, signature, written

from mnemoscope.memory import Settings

PAGE = Path(__file__).parent / "api.md"

MODULES = {
    "mnemoscope.memory": "The front door: a scope, its guarded clients, contexts, budgets, errors.",
    "mnemoscope.memory.api": "For authors of adapters and sinks: see [Extending](extending.md).",
    "mnemoscope.memory.testing": "For tests: see [Testing your code](testing.md).",
    "mnemoscope.adapters.instrument": "See [Without touching the code](instrumenting.md).",
    "mnemoscope.hybrid_search": "See [Stores](stores.md).",
    "mnemoscope.telemetry": "Events, and what joins them to logs and metrics of your own.",
    "mnemoscope.audit": "The audit trail: `scope.audit` is an `AuditLog`.",
    "mnemoscope.demo": "What `mnemoscope demo` runs.",
}
"""The public modules, each with a sentence."""

EMPTY: Mapping[str, str] = MappingProxyType({})

HEAD = """\
# API

Public is what is on this page: the names in `__all__` of the modules below. Everything else may
change without notice. Durations are in seconds, sizes in bytes and money in US dollars; names say
so (`_s`, `_bytes`, `_usd`). A name that several modules export is described where it comes first.

<!-- Written by docs/api_page.py (make reference). -->
"""


def page() -> str:
    """Return the page."""
    described: set[int] = set()
    parts = [HEAD]
    for name, sentence in MODULES.items():
        parts += [f"## {name}\n", f"{sentence}\n"]
        parts += module_parts(import_module(name), described)
    return "\n".join(parts)


def module_parts(module: ModuleType, described: set[int]) -> Iterator[str]:
    """Yield the parts of *module*, and add its names to *described*, by identity."""
    known: list[str] = []
    for name in module.__all__:
        value = getattr(module, name)
        if id(value) in described:
            known.append(f"`{name}`")
            continue
        own_name = getattr(value, "__name__", name)
        if own_name != name and own_name in module.__all__:
            yield f"### {name}\n\nAnother name of `{own_name}`.\n"
            continue
        described.add(id(value))
        yield from (f"{part}\n" for part in entry(module, name, value))
    if known:
        yield fill(f"Also here, and described above: {', '.join(known)}.") + "\n"


def entry(module: ModuleType, name: str, value: Any) -> Iterator[str]:
    """Yield the parts of one public name."""
    yield f"### {name}"
    if inspect.isclass(value):
        yield from class_entry(name, value)
    elif inspect.isroutine(value):
        yield code(signature(name, value))
        yield from body(parse(value.__doc__), types_of_parameters(value))
    else:
        yield from paragraphs(documented_values(module)[name].splitlines())


def class_entry(name: str, kind: type) -> Iterator[str]:
    """Yield the parts of a class."""
    yield code(head_of(name, kind))
    given = types_of_parameters(kind)
    yield from body(parse(kind.__doc__), given, given | types_of_attributes(kind))
    if issubclass(kind, enum.Enum):
        yield "Values: " + ", ".join(f"`{each.value}`" for each in kind) + "."
    for method, member in members(kind):
        yield f"#### {name}.{method}"
        yield from member_entry(f"{name}.{method}", member)


def head_of(name: str, kind: type) -> str:
    """Return how *kind* is made, or what it is."""
    if issubclass(kind, enum.Enum):
        return f"class {name}({kind.__bases__[0].__name__})"
    if getattr(kind, "_is_protocol", False):
        return f"class {name}(Protocol)"
    if issubclass(kind, Settings):
        return f"{name}(**settings)"
    return signature(name, kind)


def member_entry(name: str, member: Any) -> Iterator[str]:
    """Yield the parts of a method or property."""
    if isinstance(member, property):
        yield f"Property: `{written(inspect.get_annotations(member.fget)['return'])}`."
        yield from body(parse(member.__doc__))
        return
    is_bound = isinstance(member, (staticmethod, classmethod))
    function = member.__func__ if is_bound else member
    yield code(signature(name, function, is_method=not isinstance(member, staticmethod)))
    yield from body(parse(function.__doc__), types_of_parameters(function))


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of *kind*, inherited ones of this package too."""
    seen: set[str] = set()
    for owner in kind.__mro__:
        if not owner.__module__.startswith("mnemoscope."):
            continue
        for name, member in vars(owner).items():
            is_code = inspect.isfunction(member) or isinstance(
                member, (property, staticmethod, classmethod)
            )
            documented = getattr(member, "__doc__", None)
            if not name.startswith("_") and is_code and documented and name not in seen:
                seen.add(name)
                yield name, member


def body(
    parsed: Docstring,
    parameters: Mapping[str, str] = EMPTY,
    attributes: Mapping[str, str] = EMPTY,
) -> Iterator[str]:
    """Yield the parts of a docstring, given the types of what it describes."""
    yield from paragraphs(parsed.text)
    for section, types in (("Args", parameters), ("Attributes", attributes)):
        if section in parsed.sections:
            yield "Arguments:" if section == "Args" else "Attributes:"
            yield "\n".join(
                bullet(f"`{name}`{typed(types, name)}: {said}")
                for name, said in parsed.items(section)
            )
    for section in ("Returns", "Yields"):
        if section in parsed.sections:
            text = " ".join(parsed.sections[section])
            yield fill(f"{section}: {text[:1].lower()}{text[1:]}")
    if "Raises" in parsed.sections:
        yield "Raises:"
        yield "\n".join(bullet(f"`{name}`: {said}") for name, said in parsed.items("Raises"))
    if "Example" in parsed.sections:
        yield "```pycon\n" + "\n".join(parsed.sections["Example"]).strip() + "\n```"


def typed(types: Mapping[str, str], name: str) -> str:
    """Return the type of *name* in brackets, if it is known."""
    found = types.get(name.lstrip("*"))
    return f" (`{found}`)" if found else ""


def types_of_parameters(function: Any) -> dict[str, str]:
    """Return the annotations of the parameters of *function*."""
    if inspect.isclass(function) and issubclass(function, BaseException):
        function = function.__init__
    found = inspect.signature(function).parameters
    return {
        name: written(each.annotation)
        for name, each in found.items()
        if each.annotation is not each.empty
    }


def types_of_attributes(kind: type) -> dict[str, str]:
    """Return the annotations of the attributes and properties of *kind*."""
    found: dict[str, str] = {}
    for owner in reversed(kind.__mro__[:-1]):
        annotations = inspect.get_annotations(owner)
        found |= {name: written(each) for name, each in annotations.items()}
        for name, member in vars(owner).items():
            if isinstance(member, property) and member.fget is not None:
                found[name] = written(inspect.get_annotations(member.fget).get("return", ""))
    return found


@cache
def documented_values(module: ModuleType) -> dict[str, str]:
    """Return the docstrings of constants and type aliases that *module* defines or imports."""
    found: dict[str, str] = {}
    for each in (module, *sources_of(module)):
        statements = ast.parse(inspect.getsource(each)).body
        for first, second in pairwise(statements):
            if isinstance(second, ast.Expr) and isinstance(second.value, ast.Constant):
                named = first.targets[0] if isinstance(first, ast.Assign) else first
                name = getattr(getattr(named, "target", named), "id", "")
                value = getattr(first, "value", None)
                written_value = f"`{name} = {ast.unparse(value)}`\n\n" if value else ""
                found.setdefault(name, f"{written_value}{second.value.value}")
    return found


def sources_of(module: ModuleType) -> Iterator[ModuleType]:
    """Yield the modules of this package that *module* imports names from."""
    for statement in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(statement, ast.ImportFrom) and statement.level:
            package = module.__package__ or ""
            base = package.rsplit(".", statement.level - 1)[0] if statement.level > 1 else package
            yield import_module(f"{base}.{statement.module}" if statement.module else base)


def code(text: str) -> str:
    """Return *text* as a block of Python that is shown and not run."""
    return f"```text\n{text}\n```"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
