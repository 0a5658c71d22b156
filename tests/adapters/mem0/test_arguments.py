"""What a call carries is redacted before the store; the caller's own objects are not touched."""

from __future__ import annotations

import copy
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from mem0 import Memory
from mem0.client.types import AddMemoryOptions, SearchMemoryOptions

from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.adapters.mem0.arguments import content, redact
from mnemoscope.memory.api import Status
from tests.kit.bench import wrapping

guarded = wrapping(ADAPTER)

MAIL = "ada@example.com"
WORDS = f"mail {MAIL} today"
ID = "3f9ab1de-6b8e-4a3c-9a75-0d2a2c1b7c11"
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.fixture
def redaction(redactor):
    """Return the redaction of one call."""
    return redactor.begin(tenant="acme")


@pytest.mark.parametrize(
    "arguments",
    [
        {"messages": WORDS},
        {"messages": [WORDS]},
        {"messages": {"role": "user", "content": WORDS}},
        {"messages": [{"role": "user", "content": WORDS}]},
        {"messages": [{"role": "user", "content": [WORDS]}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": WORDS}]}]},
        {"messages": [{"role": "user", "content": [{"text": WORDS}]}]},
        {"messages": [{"role": "tool", "tool_calls": [{"arguments": WORDS}]}]},
        {"query": WORDS},
        {"text": WORDS},
        {"data": WORDS},
        {"prompt": WORDS},
        {"custom_instructions": WORDS},
        {"schema": WORDS},
        {"feedback_reason": WORDS},
        {"memories": [{"memory_id": ID, "text": WORDS}]},
        {"options": AddMemoryOptions(custom_instructions=WORDS)},
        {"options": {"custom_instructions": WORDS}},
        {"unheard_of": WORDS},
    ],
    ids=repr,
)
def test_text_is_redacted_wherever_it_travels(arguments, redaction):
    """Free text gets a tag, in arguments that nobody has heard of yet too; nothing else changes."""
    redacted = repr(redact(arguments, redaction))

    assert redacted == repr(arguments).replace(MAIL, "<EMAIL_ADDRESS>")
    assert redaction.counts == {"EMAIL_ADDRESS": 1}


@pytest.mark.parametrize(
    "arguments",
    [
        {"metadata": {"contact": {"mails": [MAIL], MAIL: True}}},
        {"filters": {"contact": MAIL}},
        {"filters": {"contact": {"in": [MAIL]}}},
        {"filters": {"AND": [{"OR": [{"contact": {"eq": MAIL}}]}]}},
        {"filters": {MAIL: True}},
        {"structured_data_schema": {"default": MAIL}},
        {"messages": [{"role": "user", "content": "hi", "name": MAIL}]},
        {"messages": [{"role": MAIL, "content": "hi"}]},
        {"messages": [{"role": "user", "content": {"type": "note", "by": MAIL}}]},
        {"messages": [{"role": "user", "content": [{"type": "note", "by": MAIL}]}]},
        {"memories": [{"memory_id": ID, "metadata": {"by": MAIL}, "by": MAIL}]},
        {"options": SearchMemoryOptions(filters={"contact": MAIL})},
        {"timestamp": MAIL},
    ],
    ids=repr,
)
def test_a_whole_identifier_becomes_a_pseudonym(arguments, redaction):
    """Equality keeps its meaning: the same address is the same pseudonym in data and filters."""
    redacted = repr(redact(arguments, redaction))

    assert MAIL not in redacted
    assert redaction.value(MAIL) in redacted


def test_ids_of_the_store_stay_as_they_are(redaction):
    """A tag in place of an id would merge two people's memories."""
    scope = {"user_id": MAIL, "agent_id": "Ada", "run_id": MAIL, "app_id": MAIL}
    arguments: dict[str, Any] = {
        **scope,
        "entity_id": MAIL,
        "memory_id": ID,
        "filters": {**scope, "AND": [{"user_id": {"in": [MAIL]}}]},
        "options": AddMemoryOptions(filters=scope),
    }

    assert redact(arguments, redaction) == arguments
    assert redaction.counts == {}


@pytest.mark.parametrize(
    "arguments",
    [
        {"infer": False, "top_k": 5, "threshold": 0.3, "filters": None, "metadata": None},
        {"memory_type": "procedural_memory"},
        {"feedback": "NEGATIVE"},
        {"expiration_date": "2030-01-31"},
        {"expiration_date": date(2030, 1, 31)},
        {"timestamp": 1_700_000_000, "reference_date": "2030-01-31T10:00:00+01:00"},
        {"messages": 5},
        {"messages": None},
        {"messages": [{"role": "assistant", "content": None, "name": None}]},
        {"filters": {"age": {"gte": 18}, "city": "*"}},
    ],
    ids=repr,
)
def test_what_holds_no_text_is_left_alone(arguments, redaction):
    """Numbers, dates, switches and wrong types reach the client as they were."""
    assert redact(arguments, redaction) == arguments


def test_pictures_are_withheld_and_the_words_beside_them_kept(redaction):
    """What cannot be redacted does not reach the store, and is counted."""
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "look"}, IMAGE]},
        {"role": "user", "content": IMAGE},
    ]
    redacted = redact({"messages": messages}, redaction)

    assert redacted["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "look"}]},
        {"role": "user", "content": []},
    ]
    assert redaction.counts == {"ATTACHMENT": 2}


def test_the_callers_objects_are_not_touched(redaction):
    """Redaction makes new objects at every level."""
    arguments: dict[str, Any] = {
        "messages": [{"role": "user", "content": [{"type": "text", "text": MAIL}, IMAGE]}],
        "metadata": {"mails": [MAIL]},
        "filters": {"AND": [{"contact": [MAIL]}]},
        "memories": [{"text": MAIL, "metadata": {"by": [MAIL]}}],
        "options": AddMemoryOptions(metadata={"mails": [MAIL]}),
    }
    before = copy.deepcopy(arguments)
    redact(arguments, redaction)

    assert arguments == before


def test_typed_options_stay_typed_and_unset_fields_unset(redaction):
    """The client sends what was set and nothing else."""
    options = AddMemoryOptions(metadata={"mail": MAIL}, expiration_date=None)
    redacted = redact({"options": options}, redaction)["options"]

    assert isinstance(redacted, AddMemoryOptions)
    assert redacted.model_fields_set == {"metadata", "expiration_date"}


def test_the_audit_trail_gets_what_was_asked_and_nobodys_id():
    """Content has text, filters and settings; ids are told elsewhere, as hashes."""
    arguments = {
        "query": "tea",
        "user_id": MAIL,
        "memory_id": ID,
        "options": SearchMemoryOptions(filters={"user_id": MAIL, "city": "Paris"}, top_k=3),
    }

    assert content(arguments) == {
        "query": "tea",
        "memory_id": ID,
        "filters": {"city": "Paris"},
        "top_k": 3,
    }
    assert content({"memory_id": MAIL}) == {}
    assert content({"memories": [{"memory_id": MAIL, "text": "tea"}]}) == {
        "memories": [{"text": "tea"}]
    }


async def remember_ada(memory: Any, done: Any) -> None:
    """Write one person's data in every way that mem0 has."""
    message = {"role": "user", "content": f"I am at {MAIL}", "name": MAIL}
    added = await done(
        memory.add([message], user_id="u-17", infer=False, metadata={"contact": {MAIL: [MAIL]}})
    )
    await done(memory.add([message], user_id="u-17", prompt=f"watch for {MAIL}"))
    await done(memory.search(f"who is {MAIL}?", filters={"user_id": "u-17", "contact": MAIL}))
    memory_id = added["results"][0]["id"]
    await done(memory.update(memory_id, text=f"write to {MAIL}", metadata={"by": MAIL}))
    await done(memory.delete(memory_id))


def on_disk(folder: Path) -> bytes:
    """Return all bytes of all files in *folder*."""
    return b"".join(each.read_bytes() for each in sorted(folder.rglob("*")) if each.is_file())


@pytest.mark.parametrize("is_guarded", [True, False])
async def test_no_raw_personal_data_in_files_prompts_and_embeddings(
    is_guarded, kind, make_memory, bench, done, tmp_path
):
    """Vectors, history and messages on disk hold no address; bare mem0, the control, does."""
    bare = make_memory(kind, path=str(tmp_path / "qdrant"), history=str(tmp_path / "history.db"))
    await remember_ada(guarded(bare, bench) if is_guarded else bare, done)
    shown = repr((bare.embedding_model.seen, bare.llm.seen)).encode()

    assert (MAIL.encode() not in on_disk(tmp_path)) == is_guarded
    assert (MAIL.encode() not in shown) == is_guarded


async def test_a_pseudonym_is_found_by_its_address(kind, make_memory, bench, done):
    """An equality filter on a redacted value still finds what it should, and only that."""
    memory = guarded(make_memory(kind), bench)
    for mail in (MAIL, "bob@example.com"):
        await done(memory.add("tea", user_id="u-17", infer=False, metadata={"contact": mail}))
    filters = {"user_id": "u-17", "contact": MAIL}
    found = await done(memory.get_all(filters=filters))

    assert len(found["results"]) == 1


async def test_a_speakers_name_is_a_pseudonym_that_can_be_searched(kind, make_memory, bench, done):
    """Names of speakers are redacted where no model would know them, in what they say too."""
    memory = guarded(make_memory(kind), bench)
    message = {"role": "user", "content": "call me Brunhilde", "name": "Brunhilde"}
    await done(memory.add([message], user_id="u-17", infer=False))
    found = await done(memory.get_all(filters={"user_id": "u-17", "actor_id": "Brunhilde"}))

    assert len(found["results"]) == 1
    assert "Brunhilde" not in repr(found)


async def test_what_cannot_be_redacted_is_not_written(kind, make_memory, bench, events, done):
    """An object that may hide text is refused; the agent goes on, and is told."""
    bare = make_memory(kind)
    memory = guarded(bare, bench)
    result = await done(memory.add("tea", user_id="u-17", infer=False, metadata={"x": object()}))
    (event,) = events()

    assert result == {"results": []}
    assert (event.status, event.neutral) == (Status.REFUSED, True)
    assert await done(bare.get_all(filters={"user_id": "u-17"})) == {"results": []}


async def test_the_event_holds_no_raw_personal_data(make_memory, bench, events):
    """Counts by entity are told, and the content as it was written."""
    memory = guarded(make_memory(Memory), bench)
    memory.add(f"mail {MAIL}", user_id="u-17", infer=False)
    (event,) = events()

    assert event.redactions == {"EMAIL_ADDRESS": 1}
    assert event.content.value == {"messages": "mail <EMAIL_ADDRESS>", "infer": False}
    assert MAIL not in repr(event)


async def test_the_customers_own_id_is_redacted_in_text(kind, make_memory, bench, done):
    """An id that no pattern knows is found where the customer says it."""
    memory = guarded(make_memory(kind), bench)
    added = await done(memory.add("I am zorbo77", user_id="zorbo77", infer=False))
    (stored,) = (await done(memory.get_all(filters={"user_id": "zorbo77"})))["results"]

    assert "zorbo77" not in repr(added)
    assert (stored["user_id"], "zorbo77" in stored["memory"]) == ("zorbo77", False)
