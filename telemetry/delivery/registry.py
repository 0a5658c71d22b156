"""
The registry of sinks: names and factories, found by entry points.

A package adds a sink by an entry point of the group `GROUP`, whose name is the sink's and which
leads to a `SinkFactory`. The sinks of this package come through the same door; their entry points
are known without looking, since reading the metadata of all installed packages takes a while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..event.subject import SubjectKeys
from .sink import Sink

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from ..event.event import Redacted
    from ..event.parent_run import ParentRun
    from ..event.trace import Tracing
    from .drain import Drain

GROUP = "mnemoscope.sinks"
"""The group of entry points that sinks are found by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkContext:
    """
    The settings and keys that a sink is built from.

    Attributes:
        settings: All settings of mnemoscope, by name. A package's sink reads its own from the
            environment.
        data_folder: Where files go that no setting places elsewhere. May not exist yet.
        keys: Keys of subject hashes, which each `Subject` uses by itself.
        key_made: Whether the secret behind them was made just now, so that nobody has a copy.
        content: Whether the sink was opted in to redacted content.
        content_again: Makes the content of an event of what was one's, in a file of the sink's own.
        is_named: Whether the settings name this sink. If not, it is wanted only where the
            environment configures it.
    """

    settings: Mapping[str, Any]
    data_folder: Path
    keys: SubjectKeys
    key_made: bool = False
    content: bool = False
    content_again: Callable[[Any], Redacted] | None = None
    is_named: bool = True


class SinkFactory(Protocol):
    """Builds one kind of sink: the object that an entry point of `GROUP` leads to."""

    def __call__(self, context: SinkContext, /) -> Sink | None:
        """
        Build the sink; None if it is neither named nor configured. Opens nothing.

        Raises:
            ImportError: A package that it needs is not installed.
            ValueError: A setting makes no sense. One line.
        """
        ...


@runtime_checkable
class AttachedSink(Protocol):
    """A sink that sends events of its own to the other sinks of its scope. Optional."""

    def attach(self, drain: Drain, /) -> None:
        """Take note of the drain that this sink is part of, before its first event."""
        ...


@runtime_checkable
class TracingSink(Protocol):
    """A sink that decides how the trace ids of its scope are made. Optional."""

    def tracing(self) -> Tracing:
        """Return the maker of trace ids."""
        ...


@runtime_checkable
class RunTreeSink(Protocol):
    """
    A sink with a tree of runs, which the caller's thread may be inside of. Optional.

    Attributes:
        capture_parent: Returns the current run, called on the caller's thread for each call, or
            None. Becomes `Event.parent_run`.
    """

    capture_parent: Callable[[], ParentRun | None]


class SinkRegistry:
    """
    Finds the factory of a sink by the sink's name.

    Args:
        built_in: Entry points known without looking, ``module:function``, by the sink's name.
            No other package can take their names.
    """

    def __init__(self, built_in: Mapping[str, str]) -> None:
        self.built_in = tuple(built_in)
        self._found = dict(built_in)
        self._has_looked = False

    def check(self, names: Iterable[str]) -> None:
        """
        Check that each of *names* is the name of a sink.

        Raises:
            ValueError: One is not. It is not quoted: it may be a secret in the wrong place.
        """
        for position, name in enumerate(names, start=1):
            if self._entry_point(name) is None:
                known = ", ".join(self._found)
                raise ValueError(f"name {position} is not a sink: expected some of {known}")

    def build(self, name: str, context: SinkContext) -> Sink | None:
        """
        Build the sink called *name*; None if it is neither named nor configured.

        Raises:
            ValueError: It is unknown, or cannot be built as asked. One line.
        """
        self.check([name])
        module, _, function = self._found[name].partition(":")
        try:
            factory: SinkFactory = getattr(import_module(module), function)
            sink = factory(context)
        except ImportError as exc:
            raise ValueError(_missing(name, module, exc)) from exc
        if sink is None and context.is_named:
            raise ValueError(f"the {name} sink is not configured: see the documentation of it")
        return sink

    def _entry_point(self, name: str) -> str | None:
        if name not in self._found and not self._has_looked:
            self._has_looked = True
            for entry in _entry_points():
                # A package cannot take the name of a built-in sink.
                self._found.setdefault(entry.name, entry.value)
        return self._found.get(name)


def _entry_points() -> EntryPoints:
    from importlib.metadata import entry_points  # noqa: PLC0415 - as long as all of this package

    return entry_points(group=GROUP)


def _missing(name: str, module: str, exc: ImportError) -> str:
    package = (exc.name or "").partition(".")[0]
    subject = f"the {package} package" if package else "a package that is not installed"
    return f"the {name} sink needs {subject}: pip install '{_requirement(name, module, package)}'"


def _requirement(name: str, module: str, package: str) -> str:
    """Return the requirement to install: the extra named like the sink, if there is one."""
    entries = (each for each in _entry_points() if (each.name, each.module) == (name, module))
    owner = next((each.dist for each in entries), None)
    if owner is None:
        return package
    if name in (owner.metadata.get_all("Provides-Extra") or ()):
        return f"{owner.name}[{name}]"
    return package or owner.name
