"""
The border: only adapters name a client, and documentation and examples import public names only.

Public is what the pages of docs/api list: the names in ``__all__`` of the modules there.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import architecture_picture
import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import Mnemoscope, Origin, Role, Roles, Settings, load_settings
from tests.kit.printed_pages import blocks_of

ROOT = Path(__file__).parents[1]
LISTED = [
    name
    for page in (ROOT / "docs" / "settings.md", *sorted((ROOT / "docs" / "api").glob("*.md")))
    for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
]
"""The public names of the docs' site, each with its module."""

MODULES = sorted({name.rpartition(".")[0] for name in LISTED})
CLIENTS = re.compile(r"mem0|qdrant|langgraph|langchain", re.IGNORECASE)

EXCEPTIONS = {
    "memory/scope.py": "the short names of the front door, and the adapters that they lead to",
    "memory/guard/failures.py": "GraphInterrupt, which is no failure, passes every guard",
    "memory/auto_relay.py": "LangSmith's own variables, by their older names, for a relay",
    "telemetry/langsmith/factory.py": "LangSmith's own variables, by their older names",
    "telemetry/langsmith/sink.py": "LangSmith's own variables, by their older names, and its host",
    "telemetry/otlp/conventions/attributes.py": "what LangGraph calls a graph without a name",
    "telemetry/langsmith/runs.py": "a field of LangSmith's, by the name that LangSmith knows",
}
"""Files that name a client in their code, and why."""


def names_of_clients(path: Path) -> Iterator[str]:
    """Yield each identifier and each text in the code of *path* that names a client."""
    tree = ast.parse(path.read_text())
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    prose = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, documented) and ast.get_docstring(node) is not None
    }
    for node in ast.walk(tree):
        for text in () if node in prose else texts_of(node):
            if CLIENTS.search(text):
                yield text


def texts_of(node: ast.AST) -> Iterator[str]:
    """Yield the identifiers and texts that are in *node* itself."""
    for name in ("id", "attr", "arg", "name", "asname", "module", "value"):
        found = getattr(node, name, None)
        if isinstance(found, str):
            yield found


@pytest.mark.parametrize("package", ["memory", "telemetry", "audit"])
def test_only_adapters_name_a_client(package):
    """A new store touches its own folder, and no file of these."""
    naming = {
        path.relative_to(ROOT).as_posix(): sorted(set(names_of_clients(path)))
        for path in (ROOT / package).rglob("*.py")
    }

    assert {path: found for path, found in naming.items() if found and path not in EXCEPTIONS} == {}


def test_the_exceptions_are_still_needed():
    """Else the list would only grow."""
    assert [path for path in EXCEPTIONS if not set(names_of_clients(ROOT / path))] == []


def test_no_class_derives_from_the_guard():
    """What a guard does differently is a step: nobody overrides its methods."""
    derived = [
        (path.relative_to(ROOT).as_posix(), node.name)
        for folder in ("memory", "telemetry", "adapters", "audit", "examples")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
        if ast.unparse(base).rpartition(".")[2].endswith("Guard")
    ]

    assert derived == []


PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
EXAMPLES = (
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "examples" / "third_party").rglob("*.py")),
)
PATH = re.compile(r"`([\w.-]+/[\w./-]*)`")
"""A path in the text of a page."""


def name_of(path: Path) -> str:
    """Return *path* as the repository has it."""
    return path.relative_to(ROOT).as_posix()


def code_of(path: Path) -> str:
    """Return the Python of a module, or of all code blocks of a page, hidden ones included."""
    if path.suffix == ".py":
        return path.read_text()
    blocks = blocks_of(path.read_text(encoding="utf-8"))
    return "\n".join(block.text for block in blocks if block.language == "python")


def private_imports(code: str) -> Iterator[str]:
    """Yield what *code* imports of mnemoscope that is not public."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            modules = (each.name for each in node.names)
            yield from (each for each in modules if not is_public(each))
        elif isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                if not is_public(node.module, each.name):
                    yield f"{node.module}.{each.name}"


def is_public(module: str, name: str | None = None) -> bool:
    """Return whether *module*, or *name* of it, is public, or somebody else's."""
    if module.partition(".")[0] != "mnemoscope":
        return True
    if module not in MODULES:
        return False
    return name is None or name in import_module(module).__all__


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_there(module):
    """``__all__`` names nothing that cannot be imported, and nothing private."""
    public = import_module(module)

    assert all(hasattr(public, name) for name in public.__all__)
    assert not any(name.startswith("_") for name in public.__all__)


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES], ids=name_of)
def test_pages_and_examples_import_public_names_only(path):
    """A user who copies their code depends on nothing that may change without notice."""
    assert list(private_imports(code_of(path))) == []


def test_the_pages_of_the_api_have_every_public_name_once():
    """One that several modules export is there for one of them."""
    described = [_named(*name.rpartition(".")[::2]) for name in LISTED]
    public = {_named(module, name) for module in MODULES for name in import_module(module).__all__}

    assert sorted(described) == sorted(public)


def _named(module: str, name: str) -> str:
    """Return what tells a public value from others: where it is defined, if it says so."""
    value = getattr(import_module(module), name)
    home = getattr(value, "__module__", None)
    known = home is not None and home.startswith("mnemoscope.") and hasattr(value, "__qualname__")
    return f"{home}.{value.__qualname__}" if known else name


def test_every_setting_is_described():
    """The page of settings is the list of attributes in their class's docstring."""
    described = re.findall(r"^    (\w+): ", inspect.getdoc(Settings) or "", re.MULTILINE)

    assert described == [*Settings.__struct_fields__]


def test_the_picture_of_the_architecture_is_up_to_date():
    """``make architecture-picture`` draws it."""
    assert architecture_picture.PICTURE.read_text() == architecture_picture.picture()


def test_the_picture_has_the_steps_in_their_order(tmp_path):
    """The steps of a guard in a scope that has every feature, as they are drawn."""
    settings = load_settings(
        sinks="audit",
        audit_url=f"sqlite:///{tmp_path / 'audit.db'}",
        audit_mode="strict",
        audit_pseudonym_key="ab" * 32,
        journal=tmp_path / "journal.db",
        pii_model="none",
    )
    roles = Roles({"sales": Role(recall=("langgraph.store/notes",))})
    with closing(Mnemoscope(settings, rules=[Origin(), roles])) as scope:
        guard = guard_of(scope.store(InMemoryStore()))
        kinds = [type(each).__name__ for each in guard.steps]

    names = [re.sub("(?<!^)(?=[A-Z])", " ", each).lower() for each in kinds]
    assert [each.removeprefix("wait for ") for each in names] == [*architecture_picture.STEPS]


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/extending.md", "CONTRIBUTING.md"])
def test_the_paths_of_a_page_exist(page):
    """What a reader is told to open is there."""
    paths = PATH.findall((ROOT / page).read_text())

    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


QUOTED = re.compile(r"<!-- From (\S+) -->\n\n```\w+\n(?:# \w+\.py\n)?(.*?)```", re.DOTALL)


def test_the_code_of_a_page_is_the_examples():
    """Blocks that name an example are some of its lines, letter by letter."""
    quoted = QUOTED.findall((ROOT / "docs" / "extending.md").read_text())

    assert quoted
    assert [path for path, code in quoted if code not in (ROOT / path).read_text()] == []
