"""Every class of session of the OpenAI Agents SDK behind a guard."""

from __future__ import annotations

import asyncio
import base64
import json
from importlib.metadata import entry_points
from types import SimpleNamespace

import pytest
from agents import Agent, OpenAIConversationsSession, Runner, SQLiteSession
from agents.extensions.memory import (
    AdvancedSQLiteSession,
    AsyncSQLiteSession,
    EncryptedSession,
    SQLAlchemySession,
)
from agents.memory import OpenAIResponsesCompactionSession, SessionSettings
from agents.testing import ScriptedModel, assistant_message
from cryptography.fernet import Fernet
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from mnemoscope.memory import ConfigurationError, ScopeError, context
from mnemoscope.memory.api import DataSubject
from mnemoscope.memory.testing import AdapterCase, check_adapter, scope_for_tests
from tests.kit.hostile_ids import HOSTILE_IDS, check_apart, text_of

(FOUND,) = entry_points(group="mnemoscope.store_adapters", name="openai_agents")
ADAPTER = FOUND.load()
ADA = "ada.lovelace@example.com"
KEY = Fernet.generate_key().decode()


def owner_of(session_id: str) -> str | None:
    """Return whose session it is: ids are a customer's, a colon, and a number."""
    return session_id.partition(":")[0]


def said(text: str, role: str = "user") -> dict[str, str]:
    """Return a message."""
    return {"role": role, "content": text}


CALLS = {
    "add_items": lambda text: {"items": [said(text), said("ok", "assistant"), said("more")]},
    "get_items": lambda text: {"limit": 10},
    "pop_item": lambda text: {},
    "clear_session": lambda text: {},
}
BRANCHES = {
    "add_items": CALLS["add_items"],
    "get_items": lambda text: {"limit": 10, "branch_id": "main"},
    "get_conversation_turns": lambda text: {"branch_id": "main"},
    "get_conversation_by_turns": lambda text: {"branch_id": "main"},
    "find_turns_by_content": lambda text: {"search_term": text, "branch_id": "main"},
    "list_branches": lambda text: {},
    "create_branch_from_turn": lambda text: {"turn_number": 2, "branch_name": None},
    "create_branch_from_content": lambda text: {"search_term": text, "branch_name": None},
    "delete_branch": lambda text: {"branch_id": "other", "force": True},
    "pop_item": CALLS["pop_item"],
    "clear_session": CALLS["clear_session"],
}
ABSENT = dict.fromkeys((*BRANCHES, *ADAPTER.not_guarded), "of other classes of session")


def alchemy(path, session_id="c-42:1"):
    """Return a session in a database at *path*, by SQLAlchemy."""
    url = f"sqlite+aiosqlite:///{path}"
    engine = create_async_engine(url, poolclass=NullPool)
    return SQLAlchemySession(session_id, engine=engine, create_tables=True)


@pytest.mark.parametrize("kind", [SQLiteSession, AsyncSQLiteSession, SQLAlchemySession])
def test_a_session_keeps_the_contract(kind, tmp_path):
    """All that is asked of an adapter: events, redaction, failing, two customers, erasure."""
    made = []

    def make():
        path = tmp_path / f"{len(made)}.db"
        made.append(alchemy(path) if kind is SQLAlchemySession else kind("c-42:1", path))
        return made[-1]

    check_adapter(
        AdapterCase(
            adapter=ADAPTER,
            make_client=make,
            calls=CALLS,
            not_called=ABSENT,
            options={"customer": owner_of},
            customer="c-42",
        )
    )
    for each in made if kind is not SQLAlchemySession else ():
        closed = each.close()  # a connection of aiosqlite is a thread that nothing else ends
        if closed is not None:
            asyncio.run(closed)


async def test_branches_are_guarded(watch, tmp_path):
    """An `AdvancedSQLiteSession` searches, branches and lists what is redacted, for its owner."""
    watched = watch()
    inner = AdvancedSQLiteSession(
        session_id="c-42:1", db_path=tmp_path / "s.db", create_tables=True
    )
    session = watched.scope.session(inner, customer=owner_of)

    await session.add_items([said(f"I am {ADA}"), said("Hello", "assistant"), said("Bye")])
    (turn,) = await session.find_turns_by_content(ADA)
    await session.create_branch_from_turn(2, "other")
    await session.add_items([said("On a branch")])

    assert turn["content"] == "I am <EMAIL_ADDRESS>"
    assert {each["branch_id"] for each in await session.list_branches()} == {"main", "other"}
    assert len(await session.get_conversation_turns(branch_id="main")) == 2
    with pytest.raises(ValueError, match="99"):
        await session.create_branch_from_turn(99)
    provider = watched.scope.subject_data.named()["openai_agents"]
    (record,) = (await provider.page(DataSubject(customer="c-42"))).records
    assert "On a branch" in repr(record.content)
    assert "Bye" in repr(record.content)
    assert ADA.encode() not in watched.held()
    assert {each.store for each in watched.events()} == {"openai_agents"}
    inner.close()


async def test_an_encrypted_session_is_guarded_from_outside(watch, tmp_path):
    """What it encrypts is redacted; from inside, what is encrypted already is refused."""
    watched = watch()
    inner = SQLiteSession("c-42:1", tmp_path / "s.db")
    session = watched.scope.session(EncryptedSession("c-42:1", inner, KEY), customer=owner_of)
    await session.add_items([said(f"I am {ADA}")])

    assert await session.get_items() == [said("I am <EMAIL_ADDRESS>")]
    assert b"EMAIL_ADDRESS" not in (tmp_path / "s.db").read_bytes()

    wrong = EncryptedSession("c-42:2", watched.scope.session(SQLiteSession("c-42:2")), KEY)
    await wrong.add_items([said("tea")])
    assert await wrong.get_items() == []
    refused = [each for each in watched.events() if each.status == "refused"]
    assert len(refused) == 1
    inner.close()


async def test_compaction_writes_through_the_guard(watch):
    """What the service makes of a conversation is redacted as what was said is."""
    watched = watch()
    inner = SQLiteSession("c-42:1")
    answered = SimpleNamespace(output=[said(f"Summary: {ADA}", "assistant")], usage=None)

    async def compact(**_given):
        return answered

    session = OpenAIResponsesCompactionSession(
        "c-42:1",
        watched.scope.session(inner, customer=owner_of),
        client=SimpleNamespace(responses=SimpleNamespace(compact=compact)),
        compaction_mode="input",
    )
    await session.add_items([said(str(n), "assistant") for n in range(12)])
    await session.run_compaction({"force": True})

    assert await inner.get_items() == [said("Summary: <EMAIL_ADDRESS>", "assistant")]
    with pytest.raises(ConfigurationError, match="guard the session inside"):
        watched.scope.session(session)
    inner.close()


PLACES = {
    "a message": said(ADA),
    "a part": {"role": "user", "content": [{"type": "input_text", "text": ADA}]},
    "an annotation": {
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [
            {
                "type": "output_text",
                "text": "x",
                "annotations": [{"type": "url_citation", "title": ADA, "url": "https://x.org"}],
            }
        ],
    },
    "log probabilities": {
        "type": "message",
        "role": "assistant",
        "content": [
            {"type": "output_text", "text": "x", "logprobs": [{"token": "loveLACE".lower()}]}
        ],
    },
    "arguments": {"type": "function_call", "name": "f", "arguments": json.dumps({"to": [ADA]})},
    "arguments twice": {
        "type": "function_call",
        "name": "f",
        "arguments": f'{{"to": "{ADA}", "to": 1}}',
    },
    "arguments that are no JSON": {"type": "function_call", "name": "f", "arguments": ADA},
    "a name of a tool": {"type": "function_call", "name": ADA, "arguments": "{}"},
    "an output": {"type": "function_call_output", "call_id": "c", "output": f"<{ADA}>"},
    "a part of an output": {
        "type": "function_call_output",
        "call_id": "c",
        "output": [{"type": "input_text", "text": ADA}],
    },
    "reasoning": {"type": "reasoning", "summary": [{"type": "summary_text", "text": ADA}]},
    "a search": {"type": "web_search_call", "id": "w", "action": {"type": "search", "query": ADA}},
    "code": {"type": "code_interpreter_call", "code": f"send('{ADA}')", "outputs": [{"logs": ADA}]},
    "a role": {"role": ADA, "content": "x"},
    "a type": {"type": ADA, "content": "x"},
    "a name that nobody knows": {"role": "user", "content": "x", "later": {"deep": [ADA]}},
    "a key": {"role": "user", "content": "x", ADA: 1},
    "a file": {
        "role": "user",
        "content": [
            {
                "type": "input_file",
                "filename": "a.txt",
                "file_data": f"data:text/plain,{ADA}",
            }
        ],
    },
    "a picture": {
        "role": "user",
        "content": [
            {
                "type": "input_image",
                "image_url": "data:text/plain;base64," + base64.b64encode(ADA.encode()).decode(),
            }
        ],
    },
    "a recording": {
        "role": "user",
        "content": [{"type": "input_audio", "input_audio": {"data": ADA, "format": "wav"}}],
    },
    "text alone": ADA,
}


@pytest.mark.parametrize("place", PLACES)
async def test_an_item_is_redacted_in_each_place(place):
    """And keeps its shape: kinds, roles, states, ids and what has no personal data."""
    with scope_for_tests() as (scope, _):
        inner = SQLiteSession("s")
        item = PLACES[place]
        await scope.session(inner).add_items([item])
        (stored,) = await inner.get_items()
        inner.close()

    assert "lovelace" not in json.dumps(stored)
    assert base64.b64encode(ADA.encode()).decode() not in json.dumps(stored)
    if isinstance(item, dict) and ADA not in item.values() and ADA not in item:
        assert stored.keys() == item.keys()
        for key in item.keys() & {"type", "role", "status", "id", "call_id", "name"}:
            assert stored[key] == item[key]
    assert "lovelace" in json.dumps(item) or "picture" in place


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEA"},
        {"type": "input_audio", "input_audio": {"data": "UklGRgAAAAA", "format": "wav"}},
        {"type": "input_file", "filename": "a.pdf", "file_data": "JVBERi0xLjcK"},
    ],
)
async def test_a_file_that_stands_in_an_item_is_withheld(part):
    """What it shows cannot be read, so it is not stored: the rest of the message is."""
    with scope_for_tests() as (scope, sink):
        inner = SQLiteSession("s")
        text = {"type": "input_text", "text": "look"}
        await scope.session(inner).add_items([{"role": "user", "content": [text, part]}])
        (stored,) = await inner.get_items()
        inner.close()
        scope.flush()

    withheld = {"type": "input_text", "text": "[attachment withheld]"}
    assert stored["content"] == [text, withheld]
    assert dict(sink.events[0].redactions) == {"ATTACHMENT": 1}


class Contextual(SQLiteSession):
    """A session that is given the run's own context, as the SDK offers it."""

    async def get_items(self, limit=None, *, wrapper=None):
        self.given = [*getattr(self, "given", ()), wrapper.context]
        return await super().get_items(limit)

    async def add_items(self, items, *, wrapper=None):
        self.given.append(wrapper.context)
        await super().add_items(items)

    async def pop_item(self, *, wrapper=None):
        return await super().pop_item()

    async def clear_session(self, *, wrapper=None):
        await super().clear_session()


async def test_a_session_that_takes_the_runs_context_is_given_it(watch):
    """As it is: it is the application's own object, and is not stored."""
    watched, about, inner = watch(), object(), Contextual("s")
    model = ScriptedModel([[assistant_message("Tea")]])
    session = watched.scope.session(inner, customer="c-42")
    await Runner.run(Agent(name="A", model=model), "?", session=session, context=about)

    assert set(map(id, inner.given)) == {id(about)}
    assert len(inner.given) > 1
    assert {str(each.status) for each in watched.events()} <= {"ok", "empty"}
    inner.close()


async def test_compaction_by_itself_writes_through_the_guard_too(watch):
    """After a run the SDK would replace rows behind the session's protocol: it may not here."""
    watched, inner, asked = watch(), SQLiteSession("c-42:1"), []

    async def compact(**given):
        asked.append(given)
        return SimpleNamespace(output=[said(f"Summary: {ADA}", "assistant")], usage=None)

    session = OpenAIResponsesCompactionSession(
        "c-42:1",
        watched.scope.session(inner, customer=owner_of),
        client=SimpleNamespace(responses=SimpleNamespace(compact=compact)),
        compaction_mode="input",
        should_trigger_compaction=lambda _: True,
    )
    model = ScriptedModel([[assistant_message("Tea")]])
    await Runner.run(Agent(name="A", model=model), "What?", session=session)

    assert len(asked) == 1
    assert await inner.get_items() == [said("Summary: <EMAIL_ADDRESS>", "assistant")]
    inner.close()


async def test_a_conversation_that_has_no_id_yet_is_its_customers():
    """OpenAI gives one with the first item: until then only whose it is is known."""

    class Conversations:
        async def create(self, **_given):
            return SimpleNamespace(id="conv_1")

        @property
        def items(self):
            raise OSError("away")

    with scope_for_tests() as (scope, sink):
        bare = OpenAIConversationsSession(
            openai_client=SimpleNamespace(conversations=Conversations())
        )
        assert await scope.session(bare, customer="c-42").get_items() == []
        scope.flush()

    assert (sink.events[0].subject is not None, sink.events[0].run) == (True, None)


async def test_what_has_nothing_personal_stays_as_it_is():
    """Letter by letter, arguments of tools and what a provider encrypted among it."""
    sealed = Fernet(KEY).encrypt(b"hidden").decode()
    items = [
        {"type": "function_call", "call_id": "call_Ab1", "name": "f", "arguments": '{ "a":1.50 }'},
        {"type": "reasoning", "id": "rs_68a1", "summary": [], "encrypted_content": sealed},
        {"role": "user", "content": [{"type": "input_image", "image_url": "https://x.org/a.png"}]},
        {"type": "item_reference", "id": "msg_0a1b2c"},
        {"type": "mcp_call", "name": "f", "server_label": "s", "output": None, "status": "failed"},
    ]
    with scope_for_tests() as (scope, _):
        inner = SQLiteSession("s")
        await scope.session(inner).add_items(items)
        assert await inner.get_items() == items
        inner.close()


async def test_a_customer_is_exported_and_erased_with_all_their_sessions(watch, tmp_path):
    """By the function of a session's id, and from the file of the database too."""
    watched = watch()
    path = tmp_path / "s.db"
    for name in ("c-42:1", "c-42:2", "c-7:1"):
        one = SQLiteSession(name, path)
        await one.add_items([said(f"oolong for {name}")])
        one.close()
    inner = SQLiteSession("c-7:1", path, session_settings=SessionSettings(limit=0))
    _session = watched.scope.session(inner, customer=owner_of)

    provider = watched.scope.subject_data.named()["openai_agents"]
    page = await provider.page(DataSubject(customer="c-42"))
    assert [each.id for each in page.records] == ["c-42:1", "c-42:2"]
    assert page.records[1].content == [said("oolong for c-42:2")]
    assert (await provider.erase(DataSubject(customer="c-42"))).removed == 2
    assert await inner.get_items(limit=9) == [said("oolong for c-7:1")]
    assert b"c-42" not in b"".join(each.read_bytes() for each in await provider.files())
    inner.close()


async def test_who_gives_no_function_is_told_that_nothing_can_be_listed(watch):
    """One session is not all that a database has of a customer: that is no empty answer."""
    watched = watch()
    inner = SQLiteSession("s")
    session = watched.scope.session(inner, customer="c-42")

    assert (
        "no session says whose it is"
        in watched.scope.subject_data.named()["openai_agents"].unavailable
    )
    assert session.session_id == "s"
    inner.close()


async def test_another_customers_session_is_refused_where_tenancy_is_enforced(watch):
    """By the owner of the session and the context, before the database is asked."""
    watched = watch(tenancy="enforce")
    inner = SQLiteSession("c-42:1")
    session = watched.scope.session(inner, customer=owner_of)
    with context(customer="c-42"):
        await session.add_items([said("tea")])

    with context(customer="c-7"), pytest.raises(ScopeError, match="another customer"):
        await session.get_items()
    with context(customer="c-7"), pytest.raises(ScopeError, match="another customer"):
        await session.clear_session()
    assert await inner.get_items() == [said("tea")]
    inner.close()


async def test_a_session_of_nobody_is_refused_where_tenancy_is_enforced(watch):
    """An owner that the function does not know is not everybody."""
    session = watch(tenancy="enforce").scope.session(SQLiteSession("s"), customer=lambda _: None)

    with pytest.raises(ScopeError, match="knows no owner"):
        await session.get_items()
    session.close()


@pytest.mark.parametrize("tenancy", ["observe", "enforce"])
async def test_customers_with_ids_of_any_kind_are_apart(watch, tmp_path, tenancy):
    """Nobody's conversation is another's, whatever a file or a query makes of an id."""
    watched, path, opened = watch(tenancy=tenancy), tmp_path / "chats.db", []
    for each in HOSTILE_IDS:
        opened.append(inner := SQLiteSession(f"{each}|1", path))
        session = watched.scope.session(inner, customer=lambda own: own.rpartition("|")[0])
        with context(customer=each):
            await session.add_items([said(text_of(each))])

    await check_apart(watched.scope.subject_data.named()["openai_agents"])
    for each in opened:
        each.close()


@pytest.mark.parametrize("named", ["*", " * ", ["c-42"], True])
@pytest.mark.parametrize("tenancy", ["observe", "enforce"])
async def test_an_owner_that_is_no_id_is_refused(watch, tenancy, named):
    """Everybody is nobody's owner."""
    session = watch(tenancy=tenancy).scope.session(SQLiteSession("s"), customer=lambda _: named)

    with pytest.raises(ScopeError, match="id of one customer"):
        await session.get_items()
    session.close()


async def test_an_owner_who_cannot_be_told_is_refused_where_tenancy_is_enforced(watch):
    """The function fails: that is no permission, with a context or without."""

    def fail(session_id):
        raise KeyError(session_id)

    session = watch(tenancy="enforce").scope.session(SQLiteSession("s"), customer=fail)
    with pytest.raises(ScopeError):
        await session.get_items()
    with context(customer="c-42"), pytest.raises(ScopeError):
        await session.get_items()
    session.close()


async def test_an_owner_by_number_is_exported_by_its_digits(watch, tmp_path):
    """As everywhere."""
    watched = watch()
    inner = SQLiteSession("s", tmp_path / "chats.db")
    session = watched.scope.session(inner, customer=lambda _: 42)
    await session.add_items([said("tea")])
    provider = watched.scope.subject_data.named()["openai_agents"]

    assert len((await provider.page(DataSubject(customer="42"))).records) == 1
    inner.close()


async def test_a_deletion_that_fails_is_raised(watch):
    """Never is a conversation taken for forgotten that is still there."""
    inner = SQLiteSession("s")
    session = watch().scope.session(inner)
    inner._shared_connection.close()

    with pytest.raises(Exception, match="closed"):
        await session.clear_session()
    with pytest.raises(Exception, match="closed"):
        await session.pop_item()
    assert await session.get_items() == []
