"""What `make install-check` and `make readme-check` rely on, without a registry."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.kit.bounds import pins
from tests.kit.empty_environments import ROOT
from tests.kit.printed_pages import blocks_of, hidden_in, sections_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SECTIONS = sections_of((ROOT / "docs/quickstarts.md").read_text(encoding="utf-8"))


def test_no_resolver_must_look_back_for_us():
    """No requirement is capped: beside any other package, the newest version of each will do."""
    optional = PROJECT["optional-dependencies"].values()
    wanted = [*PROJECT["dependencies"], *(each for extra in optional for each in extra)]

    assert [each for each in wanted if "<" in each.partition(";")[0] or "==" in each] == []


def test_every_requirement_has_a_bound_that_can_be_pinned():
    """`make test-bounds` installs just these: names without extras, a version, perhaps a marker."""
    extras = PROJECT["optional-dependencies"].values()
    wanted = [*PROJECT["dependencies"], *(each for extra in extras for each in extra)]
    names = {re.match(r"[\w-]+", each).group() for each in wanted}

    found = [
        re.fullmatch(r"([\w-]+)==[\d.b]+(; python_version (>=|<) '[\d.]+')?", each)
        for each in pins()
    ]

    assert None not in found
    assert {each[1] for each in found} == names - {PROJECT["name"]}


@pytest.mark.parametrize("title", SECTIONS)
def test_a_quick_start_is_complete(title):
    """What to install, by extras that there are, and code that makes its own scope."""
    blocks = blocks_of(SECTIONS[title])
    commands = [each for block in blocks for each in block.commands]
    code = "".join(block.text for block in blocks if block.language == "python")

    (install,) = (each for each in commands if each.startswith("pip install "))
    extras = install.partition("[")[2].partition("]")[0].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    assert "scope = configure()" in code or "opentelemetry-instrument python app.py" in commands


PAGE = """
```console
$ mnemoscope doctor   # what works
✓ ok
$ make demo ARGS="--out DIR"
```

<!--- invisible-code-block: python
one = 1
-->

```python
# app.py
two = 2
```

```json
{}
```
<!-- a remark -->
"""


def test_blocks_are_those_that_a_reader_sees():
    """Commands without their remarks, what they print, and files by their names; nothing hidden."""
    console, shown, json = blocks_of(PAGE)

    assert console.commands == ["mnemoscope doctor", 'make demo ARGS="--out DIR"']
    assert console.answers == {"mnemoscope doctor": ["✓ ok"], 'make demo ARGS="--out DIR"': []}
    assert (shown.file, shown.text, shown.line) == ("app.py", "# app.py\ntwo = 2\n", 13)
    assert (json.language, json.file, json.commands) == ("json", None, [])


def test_what_a_comment_hides_is_found():
    """Comments of several lines are what a reader would miss; a remark is not."""
    assert hidden_in(PAGE) == ["<!--- invisible-code-block: python\none = 1\n-->"]
