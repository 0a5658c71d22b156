"""
``mnemoscope doctor``: the health of a scope, from outside.

Without the application's own scope, one is built from the environment, and touches nothing that the
application may hold: no key is made, no port is bound, no journal is claimed. Those are looked at
as they lie there.
"""

from __future__ import annotations

import secrets
import time
from typing import Any

from pydantic import SecretStr
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...memory import examination
from ...memory.assembly import configured_keys
from ...memory.errors import ConfigurationError
from ...memory.front_door import Mnemoscope
from ...memory.health import Check, Health, State, ask, failed
from ...memory.journal.files import look
from ...memory.settings import Settings, load_settings
from ...telemetry.reach import status_of
from .scope import scope_at

_LOOKS = {
    State.OK: ("✓ ok", "green"),
    State.WARNING: ("! warning", "yellow"),
    State.FAILED: ("✗ failed", "bold red"),
    State.OFF: ("- off", "dim"),
}

_PORT_S = 1.0
"""Seconds that the metrics port is given to answer."""


def diagnose(address: str | None) -> Health:
    """
    Return the health of the scope at *address*, or of one that the environment describes.

    Raises:
        ConfigurationError: There is no scope at *address*.
    """
    if address is not None:
        return _examined(scope_at(address))
    try:
        settings = load_settings()
        scope = Mnemoscope(_apart(settings))
    except ConfigurationError as exc:
        return Health(checks=(failed("settings", " ".join(str(exc).split())),))
    health = _examined(scope)
    return health if settings.disabled else health.with_checks(*_from_outside(settings))


def _examined(scope: Mnemoscope) -> Health:
    try:
        scope.prepare()  # whether a model can be loaded shows only by loading it
    except Exception as exc:  # noqa: BLE001 - what is wrong with it is one finding among others
        detail = f"what finds personal data could not be loaded ({type(exc).__qualname__})"
        return scope.health().with_checks(failed("names", detail))
    else:
        return scope.health()
    finally:
        scope.close()


def _apart(settings: Settings) -> Settings:
    """Return *settings* without what an application that runs beside us may hold."""
    changes: dict[str, Any] = {"journal": None, "prometheus_port": None}
    if configured_keys(settings) is None:
        changes["audit_pseudonym_key"] = SecretStr(secrets.token_hex(32))
    return settings.model_copy(update=changes)


def _from_outside(settings: Settings) -> tuple[Check, ...]:
    questions = {"journal": lambda: _journal(settings), "key": lambda: examination.key(settings)}
    if settings.prometheus_port is not None:
        questions["metrics port"] = lambda: _port(settings.prometheus_port)
    return ask(questions, 2 * _PORT_S).checks


def _journal(settings: Settings) -> Check:
    if settings.journal is None:
        return examination.journal(None, 0)
    try:
        stats = look(settings.journal, settings.journal_max_bytes)
    except OSError as exc:
        reason = (exc.strerror or type(exc).__name__).lower()
        return failed("journal", f"{settings.journal} cannot be used: {reason}")
    return examination.journal(stats, time.time_ns())


def _port(port: int | None) -> Check:
    status = status_of(f"http://127.0.0.1:{port}/metrics", _PORT_S)
    if status is None:
        return Check(name="metrics port", state=State.WARNING, detail=f"nobody serves {port} now")
    detail = f"{port} answers /metrics with {status}"
    state = State.OK if status == 200 else State.FAILED  # noqa: PLR2004 - HTTP's OK
    return Check(name="metrics port", state=state, detail=detail)


def screen(health: Health) -> RenderableType:
    """Return *health* as a table that fits 80 columns, and a verdict."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), header_style="dim", expand=True)
    table.add_column("state", no_wrap=True)
    table.add_column("what", no_wrap=True)
    table.add_column("why", ratio=1, overflow="fold")
    for each in health.checks:
        word, style = _LOOKS[each.state]
        table.add_row(Text(word, style=style), each.name, Text(each.detail))
    return Padding(Group(table, _verdict(health)), (0, 1))


def _verdict(health: Health) -> Text:
    states = [each.state for each in health.checks]
    failures, warnings = states.count(State.FAILED), states.count(State.WARNING)
    if failures:
        return Text(f"Unhealthy: {failures} failed, {_warned(warnings)}.", style="bold red")
    return Text(f"Healthy, {_warned(warnings)}.", style="bold green")


def _warned(warnings: int) -> str:
    return f"{warnings or 'no'} warning{'' if warnings == 1 else 's'}"


def show(health: Health, console: Console, *, json: bool) -> None:
    """Print *health*: for a person, or as JSON."""
    if json:
        console.print_json(data=health.as_document())
    else:
        console.print(screen(health))
