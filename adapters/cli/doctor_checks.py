"""
The health of a scope, or of what the environment describes.

Without the application's own scope, one is built from the environment. It takes nothing that a
running application may hold: it makes no key, no vault, binds no port and claims no journal. Those
are checked from outside.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import Any

from msgspec import structs

from ...audit.database.errors import DatabaseMissingError
from ...memory.building.opening import configured_keys, key_use_of, open_vault
from ...memory.errors import ConfigurationError
from ...memory.health import checks
from ...memory.health.model import Check, Health, State, ask, failed
from ...memory.journal.feature import journal_check, unusable_journal
from ...memory.journal.inspection import problem
from ...memory.journal.journal import look
from ...memory.scope import Mnemoscope
from ...memory.secret import Secret
from ...memory.settings import AUTO, Settings, load_settings
from ...memory.vault_door import vault_check
from ...telemetry.network.probe import status_of, try_writing
from ...telemetry.prometheus.server import reachable_host
from ...telemetry.queue.folder import folder_problem
from ...telemetry.relay.folder import standing
from .known_holes import versions_check
from .scope import scope_at

_PORT_TIMEOUT_S = 1.0
"""Seconds that the metrics port is given to answer."""


def environment_health() -> Health:
    """Return the health of what the environment describes; wrong settings are a failed check."""
    try:
        settings = load_settings()
        scope = Mnemoscope(_unshared(settings))
    except ConfigurationError as exc:
        return Health(checks=(failed("settings", " ".join(str(exc).split())),))
    health = scope_health(scope)
    return health if settings.disabled else health.with_checks(*_outside_checks(settings))


def health_at(address: str) -> Health:
    """Return the health of the scope at *address*, or of its environment before its first run."""
    try:
        return scope_health(scope_at(address))
    except DatabaseMissingError:
        # A scope without a key would make one, or write with one that nobody has again.
        detail = f"{address} has not run here yet: neither key nor audit database is there"
        untried = Check(name="scope", state=State.WARNING, detail=detail)
        return environment_health().with_checks(untried)


def scope_health(scope: Mnemoscope) -> Health:
    """Load the model of *scope*, return its health, and close it."""
    try:
        scope.prepare()  # only loading the model shows whether it can be loaded
    except Exception as exc:  # noqa: BLE001 - one failed check among others
        detail = f"the model that finds names could not be loaded ({type(exc).__qualname__})"
        return scope.health().with_checks(failed("names", detail))
    else:
        return scope.health()
    finally:
        scope.close()


def _unshared(settings: Settings) -> Settings:
    """Return *settings* without what a running application holds: files, and a port."""
    changes: dict[str, Any] = {
        "journal": None,
        "vault": None,
        "prometheus_port": None,
        "relay": None,  # whose sinks are then looked at as if they were this process's
    }
    if configured_keys(settings) is None:
        # One for this process: the scope would make the key file, and a check is to leave nothing.
        changes["audit_pseudonym_key"] = Secret(secrets.token_hex(32))
    return structs.replace(settings, **changes)


def _outside_checks(settings: Settings) -> tuple[Check, ...]:
    questions = {"key": lambda: _key(settings), "versions": versions_check}
    journal, vault, folder = settings.journal, settings.vault, settings.relay
    if journal is not None:
        questions["journal"] = lambda: _journal(settings, journal)
    if vault is not None:
        questions["vault"] = lambda: _vault(settings, vault)
    if folder is not None and folder != AUTO:  # of that one an application's own health tells
        questions["relay"] = lambda: _relay(folder)
    port = settings.prometheus_port
    if port is not None:
        host = reachable_host(settings.prometheus_address)
        questions["metrics port"] = lambda: _metrics_port(host, port)
    # All at once, with a time for them: one that hangs must not keep the others from being told.
    return ask(questions, 2 * _PORT_TIMEOUT_S).checks


def _key(settings: Settings) -> Check:
    keys = configured_keys(settings)
    return checks.key(settings, None if keys is None else key_use_of(settings, keys))


def _journal(settings: Settings, path: Path) -> Check:
    # Looked at and not opened: the application holds its claim.
    objection = problem(path) if path.exists() else _why_not_made(path)
    if objection:
        return unusable_journal(f"{path} {objection}")
    return journal_check(look(path, settings.journal_max_bytes), time.time_ns())


def _vault(settings: Settings, path: Path) -> Check:
    if path.exists():
        return vault_check(open_vault(settings).file)
    if objection := _why_not_made(path):
        return failed("vault", f"{path} {objection}")
    return Check(name="vault", state=State.OK, detail=f"{path} is made when it is needed")


def _why_not_made(path: Path) -> str | None:
    try:
        try_writing(path)
    except OSError as exc:
        return f"cannot be made: {(exc.strerror or type(exc).__name__).lower()}"
    return None


def _relay(folder: Path) -> Check:
    """Check the folder of a relay, and that one reads it and is not behind."""
    try:
        objection = folder_problem(folder)
    except FileNotFoundError:
        objection = None  # made with the first event, or by the relay
    if objection is not None:
        return failed("relay", f"{folder} {objection}")
    found = standing(folder)
    if found.problem is None:
        return Check(name="relay", state=State.OK, detail=found.detail)
    state = State.WARNING if found.is_alive else State.FAILED
    return Check(name="relay", state=state, detail=found.detail)


def _metrics_port(host: str, port: int) -> Check:
    bracketed = f"[{host}]" if ":" in host else host
    # An IPv6 address has colons of its own.
    status = status_of(f"http://{bracketed}:{port}/metrics", _PORT_TIMEOUT_S)
    if status is None:
        # A warning: the doctor may well be run while the application is not.
        detail = f"nothing answers on port {port} now"
        return Check(name="metrics port", state=State.WARNING, detail=detail)
    detail = f"port {port} answers /metrics with {status}"
    state = State.OK if status == 200 else State.FAILED  # noqa: PLR2004 - HTTP's OK
    return Check(name="metrics port", state=state, detail=detail)
