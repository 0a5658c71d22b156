"""What `make install-check` and `make readme-check` rely on, without a registry."""

from __future__ import annotations

import tomllib

import pytest
from empty_environments import ROOT, blocks_of, sections_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BEFORE, SECTIONS = sections_of((ROOT / "docs/quickstarts.md").read_text(encoding="utf-8"))


def test_no_resolver_must_look_back_for_us():
    """No requirement is capped: beside any other package, the newest version of each will do."""
    optional = PROJECT["optional-dependencies"].values()
    wanted = [*PROJECT["dependencies"], *(each for extra in optional for each in extra)]

    assert [each for each in wanted if "<" in each.partition(";")[0] or "==" in each] == []


@pytest.mark.parametrize("title", SECTIONS)
def test_a_quick_start_is_complete(title):
    """What to install, by extras that there are, and code that makes its own scope."""
    blocks = blocks_of(SECTIONS[title])
    commands = [each for block in blocks if block.is_console for each in block.commands]
    code = "".join(block.text for block in blocks if not block.is_console)

    (install,) = (each for each in commands if each.startswith("pip install "))
    extras = install.partition("[")[2].partition("]")[0].split(",")
    assert set(extras) <= set(PROJECT["optional-dependencies"])
    assert "scope = configure()" in code or "opentelemetry-instrument python app.py" in commands


def test_blocks_are_those_that_run():
    """Commands without their remarks; code that is not shown, too; other languages not at all."""
    page = """
```console
$ mnemoscope doctor   # what works
✓ ok
$ make demo ARGS="--out DIR"
```

<!--- invisible-code-block: python
one = 1
-->

```python
two = 2
```

```json
{}
```
"""
    console, hidden, shown = blocks_of(page)
    assert console.commands == ["mnemoscope doctor", 'make demo ARGS="--out DIR"']
    assert (hidden.text, shown.text) == ("one = 1\n", "two = 2\n")
    assert [each.is_console for each in (console, hidden, shown)] == [True, False, False]
