"""Write docs/commands.md, the list of all commands, from their help: ``make reference``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from mnemoscope.adapters.cli.exit_codes import EXIT_CODES
from mnemoscope.adapters.cli.root import app

PAGE = Path(__file__).parent / "commands.md"

HEAD = """\
# Commands

`mnemoscope` alone prints what there is, `mnemoscope COMMAND --help` one command. An option means
the same in all of them: `--json` prints JSON for a program, `--tenant` and `--customer` say whose
data, `--since` and `--until` take an age (`24h`), a day (`2026-03-01`, `today`, `yesterday`) or an
ISO 8601 time, in UTC where it has no zone.

A user's mistake ends in one line on standard error. Answers are printed on standard output, and
progress and remarks on standard error, so that answers can be piped.

```console
$ mnemoscope --install-completion    # bash, zsh, fish: completes commands, options and their values
```

<!-- Written by docs/commands_page.py (make reference). -->

## Exit codes

| code | meaning |
|---|---|
"""


def page() -> str:
    """Return the page."""
    codes = "".join(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items())
    root = get_command(app)
    assert isinstance(root, TyperGroup)  # noqa: S101 - narrows a type
    helps = _helps(_context(root, "mnemoscope", None))
    sections = (f"## {name}\n\n```text\n{text}\n```\n" for name, text in helps)
    return "\n".join([HEAD + codes, *sections])


def _context(command: Any, name: str, above: typer.Context | None) -> typer.Context:
    return typer.Context(
        command,
        info_name=name,
        parent=above,
        terminal_width=80,
        help_option_names=["-h", "--help"],
    )


def _helps(above: typer.Context) -> Iterator[tuple[str, str]]:
    """Yield the name and the help of each command below the group of *above*."""
    group = above.command
    assert isinstance(group, TyperGroup)  # noqa: S101 - narrows a type
    for name in group.list_commands(above):
        command = group.get_command(above, name)
        assert command is not None  # noqa: S101 - it was listed
        context = _context(command, name, above)
        if isinstance(command, TyperGroup):
            yield from _helps(context)
        else:
            yield context.command_path, command.get_help(context)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
