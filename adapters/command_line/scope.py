"""The ``--scope`` option: the application's own scope, named as a web server's app is."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from ...memory.errors import ConfigurationError
from ...memory.front_door import Mnemoscope
from ...memory.holdings import keeping

VARIABLE = "MNEMOSCOPE_SCOPE"


def scope_at(address: str) -> Mnemoscope:
    """
    Return the scope at *address*, ``package.module:name``: a `Mnemoscope`, or what returns one.

    The working directory is looked in first, as for ``python -m``.

    Raises:
        ConfigurationError: There is none. Says why in one line, and quotes no message of the
            application's.
    """
    module_name, separator, name = address.partition(":")
    if not (separator and module_name and name):
        raise ConfigurationError("--scope takes package.module:name")
    with keeping():  # what a function wraps, nobody else refers to once it has returned
        found = _named(_module(module_name), name)
        if not isinstance(found, Mnemoscope) and callable(found):
            found = _called(found, address)
    if not isinstance(found, Mnemoscope):
        raise ConfigurationError(
            f"{address} is a {type(found).__qualname__}, not a Mnemoscope or a function that "
            "returns one"
        )
    return found


def _module(name: str) -> Any:
    folder = os.getcwd()  # noqa: PTH109 - sys.path holds strings
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as exc:
        if exc.name and (name == exc.name or name.startswith(f"{exc.name}.")):
            raise ConfigurationError(f"there is no module {exc.name}") from exc
        raise _failure(f"importing {name}", exc) from exc
    except (Exception, SystemExit) as exc:
        raise _failure(f"importing {name}", exc) from exc


def _named(module: Any, dotted: str) -> Any:
    found = module
    for name in dotted.split("."):
        try:
            found = getattr(found, name)
        except AttributeError as exc:
            raise ConfigurationError(f"there is no {dotted} in {module.__name__}") from exc
    return found


def _called(function: Callable[[], Any], address: str) -> Any:
    if iscoroutinefunction(function):
        raise ConfigurationError(f"{address} is a coroutine function: a plain one is needed")
    try:
        return function()
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as exc:
        raise _failure(f"calling {address}", exc) from exc


def _failure(what: str, exc: BaseException) -> ConfigurationError:
    place = traceback.extract_tb(exc.__traceback__)[-1]
    kind = type(exc).__qualname__
    return ConfigurationError(f"{what} failed: {kind} at {place.filename}:{place.lineno}")
