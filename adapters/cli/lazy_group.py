"""Groups of commands that are imported when they run: help and completion read a table."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from .exit_codes import EXIT_CODES

if TYPE_CHECKING:
    from typer._click import Context, HelpFormatter
    from typer._click.shell_completion import CompletionItem


class Command(NamedTuple):
    """
    A command of a table.

    Attributes:
        function: Where its function is, below this package: ``audit.erase:erase``.
    """

    function: str

    @property
    def sentence(self) -> str:
        """The first line of its function's docstring, read without importing it."""
        module, _, function = self.function.partition(":")
        source = files(str(__package__)).joinpath(f"{module.replace('.', '/')}.py")
        if not source.is_file():  # installed without sources
            return ""
        opening = rf'^def {function}\(.*?"""\s*(.*?)(?:"""|$)'
        found = re.search(opening, source.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        return found[1] if found else ""


class Group(NamedTuple):
    """
    A group of a table.

    Attributes:
        sentence: What its commands are for.
    """

    sentence: str
    commands: Mapping[str, Command]


Table = Mapping[str, Command | Group]


class LazyGroup(TyperGroup):
    """A group whose help and completion come from a table. Alone it prints its help."""

    table: Table = MappingProxyType({})

    def __init__(self, table: Table | None = None, **attributes: Any) -> None:
        super().__init__(**attributes)
        if table is not None:
            self.table = table
        self.commands = cast("Any", dict.fromkeys(self.table))  # asked for near names alone

    def list_commands(self, ctx: Context) -> list[str]:
        """Return the names of the table."""
        del ctx
        return list(self.table)

    def get_command(self, ctx: Context, cmd_name: str) -> TyperCommand | TyperGroup | None:
        """Import the command *cmd_name*."""
        del ctx
        entry = self.table.get(cmd_name)
        return None if entry is None else _loaded(cmd_name, entry)

    def format_commands(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the commands' sentences."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.sentence) for name, entry in self.table.items()])

    def format_epilog(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the exit codes, which are those of every command."""
        del ctx
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])

    def shell_complete(self, ctx: Context, incomplete: str) -> list[CompletionItem]:
        """Return the names and options that begin with *incomplete*."""
        from typer._click.shell_completion import CompletionItem

        names = [
            CompletionItem(name, help=entry.sentence)
            for name, entry in self.table.items()
            if name.startswith(incomplete)
        ]
        # Those of commands are asked of the table alone, which imports none of them.
        return [*names, *super(TyperGroup, self).shell_complete(ctx, incomplete)]

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Print help where no command is named."""
        # While a shell completes, arguments are missing all the time.
        return super().parse_args(ctx, args if args or ctx.resilient_parsing else ["--help"])


def _loaded(name: str, entry: Command | Group) -> TyperCommand | LazyGroup:
    if isinstance(entry, Group):
        return LazyGroup(entry.commands, name=name, help=entry.sentence, rich_markup_mode=None)
    module, _, function = entry.function.partition(":")
    return made_command(name, getattr(import_module(f".{module}", __package__), function))


def made_command(name: str, function: Callable[..., Any]) -> TyperCommand:
    """Return the command that *function* is."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name)(function)
    return cast("TyperCommand", get_command(app))
