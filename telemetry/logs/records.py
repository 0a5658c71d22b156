"""
Events as records of ``logging``, for hosts that use it or structlog.

The fields of an event are the record's ``extra``: structlog's ``ExtraAdder`` and every JSON
formatter take them from there. `JsonFormatter` renders the line that our own file has.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from ..text import clean_text, json_text

LOGGER = "mnemoscope.events"
"""Its level and handlers are the host's business, as for any logger."""

FIELDS = "mnemoscope_fields"
"""Attribute of a record that names which of its attributes are ours."""

OCSF: Final = "ocsf"
"""The field with an event in OCSF's form, which is the whole line then."""


def log(level: str, sentence: str, occurred: str, known: dict[str, Any]) -> None:
    """Log one event: a sentence, the time of occurrence and the known fields."""
    number = logging.getLevelNamesMapping()[level]
    logger = logging.getLogger(LOGGER)
    # Before the record is made: most hosts log DEBUG nowhere.
    if not logger.isEnabledFor(number):
        return
    extra = {"occurred_at": occurred, **known}
    # As an argument: a percent sign in the sentence would be read as a format.
    logger.log(number, "%s", clean_text(sentence), extra={**extra, FIELDS: tuple(known)})


class JsonFormatter(logging.Formatter):
    """
    One JSON line an event, as in ``MNEMOSCOPE_LOG_FILE``; other records by the base class.

    Examples:
        >>> handler.setFormatter(JsonFormatter())
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of *record*."""
        names: tuple[str, ...] | None = getattr(record, FIELDS, None)
        # A record of the host's, in a handler that has both.
        if names is None:
            return super().format(record)
        attributes = vars(record)
        if names == (OCSF,):
            return json_text(attributes[OCSF])
        line = {
            "time": attributes["occurred_at"],
            "level": record.levelname,
            "message": record.getMessage(),
        }
        return json_text(line | {name: attributes[name] for name in names})
