"""House rules that no linter knows."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import tomllib
from collections import defaultdict
from importlib.metadata import distributions, packages_distributions
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
SOURCE = ("memory", "telemetry", "adapters", "audit")
FILES = sorted(
    path
    for folder in (*SOURCE, "tests", "benchmarks", "examples", "grafana")
    for path in (ROOT / folder).rglob("*.py")
)
TESTS = [path for path in FILES if path.name.startswith("test_")]
INSTALLED = [
    path
    for folder in (*SOURCE, "grafana", "examples/demo")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def name_of(path: Path) -> str:
    """Return *path* as the repository has it."""
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return all functions in *path*."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [each for each in ast.walk(ast.parse(path.read_text())) if isinstance(each, kinds)]


def test_every_test_says_what_it_holds():
    """In its docstring: the specification."""
    silent = [
        f"{name_of(path)}: {each.name}"
        for path in TESTS
        for each in functions(path)
        if each.name.startswith("test") and not ast.get_docstring(each)
    ]

    assert silent == []


def test_no_absence_is_told_by_a_word_that_a_hash_may_spell():
    """`"ada" not in text` fails by chance where the text holds a digest: it may spell it."""
    spelt = re.compile("[0-9a-f]{1,6}")

    def is_spelt(node: ast.expr) -> bool:
        word = node.value if isinstance(node, ast.Constant) else None
        return isinstance(word, str) and spelt.fullmatch(word) is not None

    compared = [
        (path, each.lineno)
        for path in TESTS
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.Compare) and isinstance(each.ops[0], ast.NotIn)
        if is_spelt(each.left)
    ]

    assert [f"{name_of(path)}:{line}" for path, line in compared] == []


def test_no_wait_is_limited_by_how_fast_a_machine_is():
    """What must come is waited for until it comes: `GIVE_UP_S`; a wait that is to end is short."""
    waits = {"acquire", "flush", "join", "timeout", "wait", "wait_for"}
    limits = {"timeout", "timeout_s"}

    def name(call: ast.Call) -> str:
        return getattr(call.func, "attr", getattr(call.func, "id", ""))

    def limits_of(call: ast.Call) -> list[ast.expr]:
        named = [each.value for each in call.keywords if each.arg in limits]
        return named + (call.args if name(call) in waits else [])

    def is_in_between(given: ast.expr) -> bool:
        value = given.value if isinstance(given, ast.Constant) else None
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0.2

    limited = [
        f"{name_of(path)}:{each.lineno}"
        for path in FILES
        if path.is_relative_to(ROOT / "tests") and path.parent.name != "typing"
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.Call) and any(map(is_in_between, limits_of(each)))
    ]

    assert limited == []


def test_nothing_is_left_to_do():
    """What is not done is an issue, not a comment."""
    words = "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"))
    marked = re.compile(rf"#.*\b({words})\b")

    assert [name_of(path) for path in FILES if marked.search(path.read_text())] == []


def test_no_module_is_a_drawer():
    """A name says what is inside."""
    drawers = {"utils", "util", "helpers", "helper", "common", "base", "misc"}

    assert [name_of(path) for path in FILES if path.stem in drawers] == []


def test_a_public_class_name_has_one_meaning():
    """Two modules that install a class of the same name are two things that a reader confuses."""
    homes = defaultdict(list)
    for path in INSTALLED:
        for each in ast.parse(path.read_text()).body:
            if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
                homes[each.name].append(f"{name_of(path)}:{each.lineno}")

    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


RIDDLES = frozenset(
    ("what", "who", "whom", "whose", "that", "those", "it", "its", "they", "them", "there")
).union(("none", "told", "asked"))
"""Words that point at a thing, or ask for one, and name none."""


def first_sentence(docstring: str) -> str:
    """Return the opening of a docstring: to the first full stop, or the end of its paragraph."""
    return re.split(r"(?<=[.!?])\s|\n\n", docstring.strip(), maxsplit=1)[0]


def riddles_in(sentence: str) -> float:
    """Return the share of `RIDDLES` among the words of *sentence*; code in it is one word."""
    words = re.findall(r"[^\W\d_]+", re.sub(r"`+[^`]*`+", "code", sentence).lower())
    return sum(word in RIDDLES for word in words) / max(1, len(words))


def test_docstrings_open_with_the_thing():
    """
    In at most one opening of two hundred are more than 30 % of the words `RIDDLES`.

    Words are runs of letters.
    """
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    openings = [
        (f"{name_of(path)}:{getattr(each, 'lineno', 1)}", first_sentence(docstring))
        for path in INSTALLED
        if path.relative_to(ROOT).parts[0] in SOURCE
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, kinds) and (docstring := ast.get_docstring(each))
    ]

    riddles = [each for each in openings if riddles_in(each[1]) > 0.3]

    assert len(riddles) <= len(openings) / 200, riddles


NO_REMARK = re.compile(r"#\s*(noqa|type:|pyright:|pragma|mypy:|fmt:|-- .* -+$|-+$)")
"""Comments that speak to a tool, and titles of sections."""
NO_CODE = frozenset(
    (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
)


def lines_of_code_and_remarks(path: Path) -> tuple[set[int], set[int]]:
    """Return the numbers of lines with code, docstrings left out, and of lines with a remark."""
    code: set[int] = set()
    remarks: set[int] = set()
    begins = True  # of a statement: a string that stands alone there is a docstring
    for each in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        if each.type == tokenize.COMMENT:
            remarks |= set() if NO_REMARK.match(each.string) else {each.start[0]}
        elif each.type in NO_CODE:
            begins = begins or each.type != tokenize.NL  # which is inside of brackets, too
        elif not (begins and each.type == tokenize.STRING):
            code.update(range(each.start[0], each.end[0] + 1))
            begins = False
    return code, remarks


def test_code_says_why():
    """Three lines with a remark for a hundred of code, less what one change may go without."""
    counted = [
        lines_of_code_and_remarks(path)
        for path in INSTALLED
        if path.relative_to(ROOT).parts[0] in SOURCE
    ]
    code, remarks = (sum(map(len, each)) for each in zip(*counted, strict=True))

    assert remarks / code >= 0.029, f"{remarks:,} remarks in {code:,} lines of code"


def test_tests_mirror_the_packages():
    """A reader finds the tests of a package where its name says."""
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir()}

    assert set(SOURCE) <= folders


def test_modules_are_importable_by_one_name():
    """Below `tests` no test is in a package: of two with the same name one would be shadowed."""
    packages = {path.parent for path in (ROOT / "tests").rglob("*/__init__.py")}

    assert [name_of(path) for path in TESTS if path.parent in packages] == []


def test_pins_can_be_installed_on_every_python_that_we_support():
    """A pin that only a newer Python can have would break the first command of the README."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = wanted["project"]
    oldest = f"{project['requires-python'].removeprefix('>=')}.0"
    sets = (*project["optional-dependencies"].values(), wanted["dependency-groups"]["test"])
    newer_only = {each.name for each in map(Requirement, chain(*sets)) if each.marker}
    pins = set((ROOT / "constraints.txt").read_text().split())
    too_new = [
        pin
        for each in distributions()
        if (pin := f"{each.name}=={each.version}") in pins and each.name not in newer_only
        if not SpecifierSet(each.metadata.get("Requires-Python", "")).contains(oldest)
    ]

    assert too_new == []


def test_what_holds_arguments_of_a_call_shows_none_of_them():
    """
    They are a user's, and errors of stores quote them.

    A class that has either has a repr of its own, or leaves them out of it.
    """
    quoting = {"Arguments", "BaseException", "Exception"}

    def shows(each: ast.ClassDef) -> bool:
        fields = [line for line in each.body if isinstance(line, ast.AnnAssign)]
        held = [
            line
            for line in fields
            if ast.unparse(line.annotation).removesuffix(" | None") in quoting
        ]
        is_told = any(isinstance(it, ast.FunctionDef) and it.name == "__repr__" for it in each.body)
        return not is_told and any("repr=False" not in ast.unparse(line) for line in held)

    showing = [
        f"{name_of(path)}:{each.lineno}"
        for path in FILES
        if not path.is_relative_to(ROOT / "tests")
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.ClassDef) and shows(each)
    ]

    assert showing == []


def test_no_module_of_ours_hides_a_package():
    """What tests put on the path stands before all that is installed."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())
    folders = wanted["tool"]["pytest"]["ini_options"]["pythonpath"]
    ours = {
        path.stem
        for each in folders
        if (ROOT / each) != ROOT
        for path in (ROOT / each).iterdir()
        if path.suffix == ".py" or (path.is_dir() and list(path.glob("*.py")))
    }

    assert len(ours) > 10
    assert ours.isdisjoint(packages_distributions())
