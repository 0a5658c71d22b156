"""
The variables ``MNEMOSCOPE_*`` of the environment: what is set, and which names are no settings.

An empty variable is unset: compose files and CI systems set such for every name that they list.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

PREFIX = "MNEMOSCOPE_"

_OF_THE_COMMAND_LINE = frozenset(
    PREFIX + each for each in ("NOTICE", "SCOPE", "TIMESTAMP_ROOTS", "TIMESTAMP_URL")
)
_GROUPS = ("mnemoscope.sinks", "mnemoscope.store_adapters", "mnemoscope.features")

logger = logging.getLogger("mnemoscope")

_reported: set[str] = set()


def variables_set(environment: Mapping[str, str]) -> dict[str, str]:
    """Return our variables in *environment* that are not empty, by their names in upper case."""
    ours = {name.upper(): value for name, value in environment.items()}
    return {
        name: value for name, value in ours.items() if name.startswith(PREFIX) and value.strip()
    }


def variable_of(setting: str) -> str:
    """Return the name of the variable of *setting*, which may end in ``_``, for Python."""
    return PREFIX + setting.rstrip("_").upper()


def unknown_variables(
    environment: Mapping[str, str], settings: Iterable[str]
) -> dict[str, str | None]:
    """
    Return the variables in *environment* that nothing reads, with the nearest known name of each.

    Those that begin with the name of an installed package's sink or store are that package's.
    """
    known = {*map(variable_of, settings), *_OF_THE_COMMAND_LINE}
    unknown = sorted(variables_set(environment).keys() - known)
    if not unknown:
        return {}
    from difflib import get_close_matches  # noqa: PLC0415 - for mistakes alone

    others = _prefixes_of_packages()
    return {
        name: next(iter(get_close_matches(name, known, n=1)), None)
        for name in unknown
        if not name.startswith(others)
    }


def _prefixes_of_packages() -> tuple[str, ...]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - reads every package's metadata

    found = (entry for group in _GROUPS for entry in entry_points(group=group))
    return tuple(
        f"{variable_of(entry.name)}_"
        for entry in found
        if not entry.value.startswith("mnemoscope.")
    )


def unknown_sentence(unknown: Mapping[str, str | None]) -> str:
    """Return a line about variables that nothing reads."""
    return "; ".join(
        f"{name} is not a setting, nothing reads it"
        + (f": did you mean {nearest}?" if nearest else "")
        for name, nearest in unknown.items()
    )


def warn_of_unknown(unknown: Mapping[str, str | None]) -> None:
    """Log a line about variables that nothing reads, once for each in a process."""
    new = {name: nearest for name, nearest in unknown.items() if name not in _reported}
    if new:
        _reported.update(new)
        logger.warning("%s", unknown_sentence(new))
