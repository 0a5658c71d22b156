"""
The conversation that the demo replays: its own, or a file in the format of LoCoMo.

LoCoMo (Maharana et al., ACL 2024) is a set of very long conversations between two people. A file
holds one: ``speaker_a``, ``speaker_b``, and for each session ``session_N_date_time`` and
``session_N``, a list of turns with ``speaker``, ``dia_id`` and ``text``. Other keys are ignored.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

OWN = Path(__file__).with_name("conversation.json")
"""The conversation that ships with the demo."""

_SESSION = re.compile(r"session_([1-9]\d{0,5})", re.ASCII)
_JSON_NAMES = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}


class ConversationError(Exception):
    """A file is not a conversation. The message is one line and quotes nothing of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogueTurn:
    """
    One message.

    Attributes:
        id: Its id in the file: ``D2:7``.
        speaker: The author's name.
        text: The message, verbatim.
    """

    id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """
    Messages of one day.

    Attributes:
        number: As in the file, from 1.
        held: Date and time, as in the file.
        turns: In order.
    """

    number: int
    held: str
    turns: tuple[DialogueTurn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialogue:
    """
    Two people's messages, session by session.

    Attributes:
        speakers: The two names.
        sessions: In order, each with at least one turn.
    """

    speakers: tuple[str, str]
    sessions: tuple[Session, ...]

    def __len__(self) -> int:
        """Return the number of turns."""
        return sum(len(session.turns) for session in self.sessions)

    @property
    def customers(self) -> dict[str, str]:
        """The speakers' ids in the stores, by name. An id reveals nothing of the name."""
        return {name: f"c-{place}" for place, name in enumerate(self.speakers, 1)}


def load_conversation(path: Path | None = None) -> Dialogue:
    """
    Read a conversation; without a path, the demo's own.

    Raises:
        ConversationError: The file cannot be read, or is not a conversation.
    """
    if path is None:
        return _conversation(_json(OWN))
    try:
        return _conversation(_json(path))
    except ConversationError as exc:
        raise ConversationError(f"{path} is not a conversation: {exc}") from None


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as exc:
        reason = (exc.strerror or type(exc).__name__).lower()
        raise ConversationError(f"it cannot be read ({reason})") from None
    except json.JSONDecodeError as exc:
        where = f"line {exc.lineno}, column {exc.colno}"
        raise ConversationError(f"it is not JSON (see {where})") from None
    except UnicodeDecodeError:
        raise ConversationError("it is not JSON (not UTF-8 text)") from None
    except (RecursionError, ValueError):
        raise ConversationError("its JSON cannot be read") from None


def _conversation(document: Any) -> Dialogue:
    found = _object(document, "the file")
    speakers = (_text(found, "speaker_a"), _text(found, "speaker_b"))
    numbers = sorted(int(match[1]) for key in found if (match := _SESSION.fullmatch(key)))
    sessions = [_session(found, number, speakers) for number in numbers]
    held = tuple(session for session in sessions if session.turns)
    if not held:
        raise ConversationError("it has no session (session_1, session_2, …) with a turn in it")
    return Dialogue(speakers=speakers, sessions=held)


def _session(found: dict[str, Any], number: int, speakers: tuple[str, str]) -> Session:
    name = f"session_{number}"
    turns = _expect(found[name], list, name)
    return Session(
        number=number,
        held=_text(found, f"{name}_date_time"),
        turns=tuple(_turn(each, f"{name}[{place}]", speakers) for place, each in enumerate(turns)),
    )


def _turn(document: Any, where: str, speakers: tuple[str, str]) -> DialogueTurn:
    found = _object(document, where)
    speaker = _text(found, "speaker", where)
    if speaker not in speakers:
        raise ConversationError(f"{where}.speaker is neither speaker_a nor speaker_b")
    return DialogueTurn(
        id=_text(found, "dia_id", where), speaker=speaker, text=_text(found, "text", where)
    )


def _object(value: Any, where: str) -> dict[str, Any]:
    return cast("dict[str, Any]", _expect(value, dict, where))


def _text(found: dict[str, Any], key: str, where: str = "") -> str:
    name = f"{where}.{key}" if where else key
    if key not in found:
        raise ConversationError(f"{name} is missing")
    text: str = _expect(found[key], str, name)
    if not text.strip():
        raise ConversationError(f"{name} is empty")
    return text


def _expect(value: Any, wanted: type, where: str) -> Any:
    if not isinstance(value, wanted):
        is_what = _JSON_NAMES[type(value)]
        raise ConversationError(f"{where} must be {_JSON_NAMES[wanted]}, not {is_what}")
    return value
