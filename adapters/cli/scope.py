"""Open the scope or the audit trail that a command works on."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager
from inspect import Parameter, iscoroutinefunction, isroutine, signature
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ...audit.database.errors import AuditError
from ...audit.store.shard_count import shard_count
from ...memory.building.opening import making_no_keys
from ...memory.errors import ConfigurationError
from ...memory.scope import Mnemoscope
from ...memory.subject_data.registry import keep_clients
from ...memory.subject_data.runner import one_event_loop
from .exit_codes import say
from .import_work import work_on_import
from .options import chosen_shard

if TYPE_CHECKING:
    from ...audit.log import AuditLog
    from ...memory.setting_values import SettingValues

_loaded: WeakSet[Mnemoscope] = WeakSet()
_command = ExitStack()


def trail_settings(audit_url: str | None) -> SettingValues:
    """Return the setting that names the trail, if *audit_url* is given."""
    return {"audit_url": audit_url} if audit_url else {}


def open_trail(audit_url: str | None, *, needs_key: bool = True) -> AuditLog:
    """
    Open the trail at *audit_url*, or the configured one, for reading; say what waits for it.

    Raises:
        ConfigurationError: The URL or a setting makes no sense; or there is no key, where it needs
            one. None is made.
        AuditError: There is no key because there is no trail yet.
    """
    from ...audit.waiting import what_waits
    from ...memory.building.opening import open_audit_log
    from ...memory.settings import load_settings

    log = open_audit_log(load_settings(**trail_settings(audit_url)), needs_key=needs_key)
    if (shard := chosen_shard.get()) is not None:
        if shard >= len(log.shards):
            raise ConfigurationError(f"--shard: the trail has {len(log.shards)} shards, from 0 on")
        log = log.shards[shard]
    for line in what_waits(log):
        say(f"not in this answer: {line}")
    return log


@contextmanager
def scope_with_trail(address: str, audit_url: str | None) -> Generator[Mnemoscope]:
    """
    Return the scope at *address*, whose trail is at *audit_url* if that is given, and close it.

    Raises:
        ConfigurationError: There is no scope, or its application names another trail itself.
    """
    with _with_variable("MNEMOSCOPE_AUDIT_URL", audit_url), closing(scope_at(address)) as scope:
        # Before anything is erased: the proof would go into a trail that nobody asked for.
        if audit_url is not None and scope.audit.label != open_trail(audit_url).label:
            raise ConfigurationError(
                f"{address} names its audit trail itself, and it is not the one of --audit-url: "
                "nothing was done"
            )
        with scope.audit.verdicts.begun() as snapshot:
            is_short = len(scope.audit.shards) < shard_count(snapshot)
        if is_short or chosen_shard.get() is not None:
            raise ConfigurationError(
                "a scope answers over all shards of the trail: leave --shard out, and set "
                "MNEMOSCOPE_AUDIT_SHARDS to as many as there are"
            )
        yield scope


@contextmanager
def _with_variable(name: str, value: str | None) -> Generator[None]:
    before = os.environ.get(name)
    if value is not None:
        os.environ[name] = value
    try:
        yield
    finally:
        if value is not None:
            os.environ.pop(name, None)
            os.environ.update({} if before is None else {name: before})


def scope_at(address: str) -> Mnemoscope:
    """
    Return the `Mnemoscope` at *address*, or the one that the function at *address* returns.

    An address is ``package.module:name``. Modules are looked up in the working directory first, as
    by ``python -m``. A scope that has no key yet is refused: a command would answer with a new one,
    which finds nobody.

    Raises:
        ConfigurationError: There is no scope. The reason fits one line and quotes no message of
            the application's, which may hold personal data.
    """
    found = found_at(address, "--scope")
    if not isinstance(found, Mnemoscope):
        raise ConfigurationError(
            f"{address} is a {type(found).__qualname__}, not a Mnemoscope or a function that "
            "returns one"
        )
    return found


def found_at(address: str, option: str) -> Any:
    """
    Return the object at *address*, or what it returns if it is a callable without arguments.

    Args:
        address: As of `scope_at`.
        option: Its name in errors.

    Raises:
        ConfigurationError: There is no such object, or the callable failed. As of `scope_at`.
    """
    module_name, separator, name = address.partition(":")
    if not (separator and module_name and name):
        raise ConfigurationError(f"{option} takes package.module:name")
    # Clients that a function wraps have no other owner once it has returned.
    with making_no_keys(), keep_clients():
        found = _attribute(_module(module_name), name)
        if not isinstance(found, Mnemoscope) and callable(found) and not takes_arguments(found):
            found = _call(found, address)
    if isinstance(found, Mnemoscope):
        _loaded.add(found)
        # A command looks for the person first, then at what is held: a client's connections last.
        _command.enter_context(one_event_loop())
    return found


def end_command() -> None:
    """Close the event loop in which the stores of the scopes that were loaded are asked."""
    _command.close()


def takes_arguments(found: Callable[..., Any]) -> bool:
    """Return whether *found* is a function that cannot be called without an argument."""
    if not isroutine(found):
        return False
    given = signature(found).parameters.values()
    named = {Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    return any(each.default is each.empty and each.kind in named for each in given)


def close_local_clients() -> None:
    """Close the local clients of the scopes that were loaded, before the interpreter ends."""
    while _loaded:
        scope = _loaded.pop()
        # A scope that is switched off wraps nothing.
        if not scope.is_disabled:
            scope.subject_data.close_local_clients()


def _module(name: str) -> Any:
    folder = os.getcwd()  # noqa: PTH109 - sys.path holds strings
    # A console script has its own folder there, where `python -m` has this one.
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if name not in sys.modules and (work := work_on_import(name)) is not None:
        line, words = work
        say(
            f"importing {name} runs {words} of its line {line} again: put it behind "
            'if __name__ == "__main__", or name a function that only makes the scope'
        )
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        # The module itself or a package above it; another is missing inside of it, and that is its
        # fault.
        if exc.name and (name == exc.name or name.startswith(f"{exc.name}.")):
            raise ConfigurationError(f"there is no module {exc.name}") from exc
        raise _failure(f"importing {name}", exc) from exc
    except (ConfigurationError, AuditError):
        raise
    except (Exception, SystemExit) as exc:
        raise _failure(f"importing {name}", exc) from exc


def _attribute(module: Any, dotted: str) -> Any:
    found = module
    for name in dotted.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as exc:
            raise ConfigurationError(f"there is no {dotted} in {module.__name__}") from exc
    return found


def _call(function: Callable[[], Any], address: str) -> Any:
    # Its clients would belong to a loop that is over before the command begins.
    if iscoroutinefunction(function):
        raise ConfigurationError(f"{address} is a coroutine function: use a plain function")
    try:
        return function()
    except (ConfigurationError, AuditError):
        raise
    except (Exception, SystemExit) as exc:
        raise _failure(f"calling {address}", exc) from exc


def _failure(action: str, exc: BaseException) -> ConfigurationError:
    # Where it was raised, in the place of the message.
    place = traceback.extract_tb(exc.__traceback__)[-1]
    kind = type(exc).__qualname__
    return ConfigurationError(f"{action} failed: {kind} at {place.filename}:{place.lineno}")
