"""The conversation file, good and bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mnemoscope.demo import ConversationError
from mnemoscope.demo.conversation import load_conversation

LOCOMO = Path(__file__).parents[3] / "shared/data/locomo"
SECRET = "ada@example.com"


def a_turn(**overrides):
    return {"speaker": "Ada", "dia_id": "D1:1", "text": "Hello!"} | overrides


def a_document(**overrides):
    document = {
        "speaker_a": "Ada",
        "speaker_b": "Bob",
        "session_1_date_time": "noon",
        "session_1": [a_turn()],
    }
    return {name: value for name, value in (document | overrides).items() if value is not ...}


@pytest.fixture
def written(tmp_path):
    """Write a file and return its path."""

    def write(content):
        path = tmp_path / "conversation.json"
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return write


def test_the_shipped_conversation_has_two_customers_and_several_sessions():
    """The conversation that ships is short, and both of its people speak."""
    conversation = load_conversation()

    speakers = {turn.speaker for session in conversation.sessions for turn in session.turns}
    assert speakers == set(conversation.speakers)
    assert len(conversation.sessions) == 4
    assert len(conversation) == 36


def test_ids_of_customers_say_nothing_of_them():
    """Stores are told an id, never a name."""
    assert load_conversation().customers == {"Ines Marchetti": "c-1", "Jonas Feldt": "c-2"}


@pytest.mark.skipif(not LOCOMO.exists(), reason="the LoCoMo files are not here")
@pytest.mark.parametrize(("name", "turns"), [("conv_26.json", 419), ("conv_30.json", 369)])
def test_a_locomo_file_is_read_whole(name, turns):
    """A LoCoMo file gives all its sessions and all its turns, in order."""
    conversation = load_conversation(LOCOMO / name)

    assert len(conversation) == turns
    assert [session.number for session in conversation.sessions] == list(range(1, 20))


def test_sessions_are_in_order_of_their_number(written):
    """Session 10 comes after session 2, wherever it stands in the file."""
    sessions = {f"session_{n}": [a_turn()] for n in (10, 2)}
    dates = {f"session_{n}_date_time": "noon" for n in (10, 2)}

    conversation = load_conversation(written(a_document(**sessions, **dates)))

    assert [session.number for session in conversation.sessions] == [1, 2, 10]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"ada@example.com", "is not a conversation: it is not JSON (see line 1, column 1)"),
        (b"\xff\xfe\x00", "it is not JSON (not UTF-8 text)"),
        (b"", "it is not JSON"),
        (b"[" * 100_000, "its JSON cannot be read"),
        ([SECRET], "the file must be an object, not a list"),
        (a_document(speaker_a=...), "speaker_a is missing"),
        (a_document(speaker_b=7), "speaker_b must be text, not a number"),
        (a_document(speaker_b=" "), "speaker_b is empty"),
        (a_document(session_1=...), "it has no session"),
        (a_document(session_1=[]), "it has no session"),
        (a_document(session_1=SECRET), "session_1 must be a list, not text"),
        (a_document(session_1=[None]), "session_1[0] must be an object, not null"),
        (a_document(session_1_date_time=...), "session_1_date_time is missing"),
        (a_document(session_1=[a_turn(text=True)]), "session_1[0].text must be text"),
        (a_document(session_1=[a_turn(), a_turn(text="")]), "session_1[1].text is empty"),
        (a_document(session_1=[a_turn(speaker=SECRET)]), "session_1[0].speaker is neither"),
        (a_document(session_1=[{"speaker": "Ada", "text": "x"}]), "session_1[0].dia_id is missing"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_a_file_that_is_no_conversation_is_refused_in_one_line(written, content, said):
    """What is wrong is named, in one line that quotes nothing of the file."""
    path = written(content)

    with pytest.raises(ConversationError) as refused:
        load_conversation(path)

    message = str(refused.value)
    assert said in message
    assert "\n" not in message
    assert SECRET not in message


def test_a_file_that_is_not_there_is_refused_in_one_line(tmp_path):
    """A path that cannot be read is named, with the reason."""
    with pytest.raises(ConversationError, match=r"cannot be read \(no such file or directory\)"):
        load_conversation(tmp_path / "none.json")


def test_a_folder_is_refused_in_one_line(tmp_path):
    """A folder is not a file, and is said to be one."""
    with pytest.raises(ConversationError, match=r"cannot be read \(is a directory\)"):
        load_conversation(tmp_path)
