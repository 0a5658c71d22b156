"""What a customer's own agent reads: the originals, in the same place, and nobody else's."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.store.base import GetOp, SearchOp
from qdrant_client import models

from benchmarks.reveal import strangers
from mnemoscope.memory import (
    ConfigurationError,
    Outcome,
    Role,
    Roles,
    Verdict,
    context,
    load_settings,
)
from mnemoscope.memory.context import current
from mnemoscope.memory.reveal.originals import OpenedOriginals
from mnemoscope.memory.rules.rule import StandaloneRule
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.verdict_event import VerdictEvent
from tests.kit.event_parts import parts_of
from tests.kit.own_process import run_code
from tests.kit.patience import GIVE_UP_S

NAME, MAIL = "Rosalind Quimby", "rosalind.q@quimbymail.example"
TEXT = f"My name is {NAME}, mail {MAIL}."
AT = ("notes",)
OF_ADA = {"customer": "c-1", "tenant": "acme", "agent": "sales", "purpose": "reply"}
CONFIG = {"configurable": {"thread_id": "t-1", "checkpoint_ns": ""}}

READS = {
    "get": lambda store: store.get(AT, "1").value,
    "search": lambda store: store.search(AT)[0].value,
    "batch": lambda store: store.batch([GetOp(AT, "1")])[0].value,
    "batch of searches": lambda store: store.batch([SearchOp(AT)])[0][0].value,
    "aget": lambda store: asyncio.run(store.aget(AT, "1")).value,
    "asearch": lambda store: asyncio.run(store.asearch(AT))[0].value,
    "abatch": lambda store: asyncio.run(store.abatch([GetOp(AT, "1")]))[0].value,
}
POINTS = {
    "query_points": lambda qdrant: qdrant.query_points("notes", query=[0.6, 0.8]).points[0],
    "scroll": lambda qdrant: qdrant.scroll("notes")[0][0],
    "retrieve": lambda qdrant: qdrant.retrieve("notes", [1])[0],
    "batch": lambda qdrant: qdrant.query_batch_points(
        "notes", [models.QueryRequest(query=[0.6, 0.8], with_payload=True)]
    )[0].points[0],
    "groups": lambda qdrant: (
        qdrant.query_points_groups("notes", group_by="n", query=[0.6, 0.8]).groups[0].hits[0]
    ),
}


def put(agents, value=None, key="1", **whose):
    """Have a customer's agent store a value, and wait until the vault has its originals."""
    with context(**OF_ADA | whose):
        agents.store.put(AT, key, {"text": TEXT} if value is None else value)
    agents.settle()


def get(agents, key="1", **whose):
    """Return the value as a customer's agent reads it."""
    with context(**OF_ADA | whose):
        return agents.store.get(AT, key).value


def save(saver, messages):
    """Save a checkpoint with *messages*."""
    checkpoint, version = empty_checkpoint(), saver.get_next_version(None, None)
    checkpoint["channel_values"] = {"messages": messages}
    checkpoint["channel_versions"] = {"messages": version}
    saver.put(CONFIG, checkpoint, {"source": "loop", "step": 1}, {"messages": version})


class TestWhatIsRead:
    """The same as without a guard."""

    @pytest.mark.parametrize("read", READS.values(), ids=READS)
    def test_a_store_answers_with_originals(self, agents, read):
        """By each method, one by one and in batches, synchronous or not."""
        put(agents)
        with context(**OF_ADA):
            assert read(agents.store) == {"text": TEXT}

    @pytest.mark.parametrize("read", POINTS.values(), ids=POINTS)
    def test_qdrant_answers_with_originals(self, agents, read):
        """In payloads, at any depth."""
        payload = {"n": 1, "text": TEXT, "deep": [{"mail": MAIL}]}
        with context(**OF_ADA):
            point = models.PointStruct(id=1, vector=[0.6, 0.8], payload=payload)
            agents.qdrant.upsert("notes", [point])
            agents.settle()

            assert read(agents.qdrant).payload == payload

    def test_a_run_resumes_with_originals(self, agents):
        """Message objects and dicts, of the latest checkpoint and all others, also async."""
        messages = [HumanMessage(TEXT), {"role": "user", "content": MAIL}, AIMessage("Hi!")]

        async def history():
            return [each async for each in agents.saver.alist(CONFIG)]

        with context(**OF_ADA):
            save(agents.saver, messages)
            agents.settle()
            found = [
                agents.saver.get_tuple(CONFIG),
                *agents.saver.list(CONFIG),
                asyncio.run(agents.saver.aget_tuple(CONFIG)),
                *asyncio.run(history()),
            ]

        assert [each.checkpoint["channel_values"]["messages"] for each in found] == [messages] * 4

    def test_each_text_has_its_own_spelling(self, agents, open_agents):
        """Although all spellings are one person and one pseudonym; in another process too."""
        texts = [
            "Hi Mel, tea?",
            "Ask Mel or MELANIE",
            "Melanie's tea",
            "Melanie",
            "I saw Mel today",
        ]
        put(agents, {"texts": texts})

        assert get(agents) == {"texts": texts}
        assert get(open_agents(agents.bare)) == {"texts": texts}

    def test_json_stays_json(self, agents):
        """A name that has to be escaped there is."""
        put(agents, {"name": 'My name is Rosalind "Roz" Quimby.', "text": TEXT}, key="0")
        said = json.dumps({"said": TEXT, "n": [1, 2]})
        put(agents, {"json": said})

        assert get(agents) == {"json": said}
        assert json.loads(get(agents)["json"])["said"] == TEXT

    def test_what_the_store_holds_is_not_changed(self, agents):
        """The agent is given a copy."""
        put(agents)
        get(agents)["text"] += " changed"

        held = agents.bare[0].get(AT, "1").value["text"]
        assert "<PERSON_" in held
        assert NAME not in held
        assert "changed" not in held

    def test_only_the_classes_that_were_named(self, open_agents):
        """Without ``resume`` the state of a run keeps its pseudonyms."""
        agents = open_agents(pii_reveal="recall")
        put(agents)
        with context(**OF_ADA):
            save(agents.saver, [HumanMessage(TEXT)])
            resumed = agents.saver.get_tuple(CONFIG).checkpoint["channel_values"]["messages"]

        assert NAME not in resumed[0].content
        assert get(agents) == {"text": TEXT}


class TestWhatIsWrittenAgain:
    """What was revealed becomes the same pseudonym."""

    def test_the_same_text_is_the_same_again(self, agents):
        """A memory that is read and stored anew does not change."""
        put(agents)
        put(agents, get(agents), key="2")

        assert agents.bare[0].get(AT, "2").value == agents.bare[0].get(AT, "1").value

    def test_a_summary_repeats_the_name(self, agents):
        """Where no detector sees a name, what was shown is replaced, alone or in full."""
        put(agents)
        get(agents)
        summary = f"quimby-notes: Quimby, tea. rosalind? {NAME}! Nothing of Rosalinda."
        put(agents, {"text": summary}, key="2")
        first, second = (agents.bare[0].get(AT, key).value["text"] for key in "12")
        [pseudonym] = [each for each in first.replace(",", " ").split() if "PERSON" in each]

        assert second.count(pseudonym) == 3
        assert "Quimby" not in second
        assert get(agents, key="2") == {"text": summary}

    @pytest.mark.parametrize("name", ["Rosalind", "Chloé", "Chloé Quimby"])
    def test_a_given_name_is_hidden_when_it_is_written_small(self, agents, name):
        """Alone as it was shown, and with its accents."""
        put(agents, {"text": f"My name is {name}."})
        get(agents)
        small = name.split()[0].lower()
        put(agents, {"text": f"tea. {small}? The order is late."}, key="2")

        held = agents.bare[0].get(AT, "2").value["text"]
        assert held.startswith("tea. <PERSON_")
        assert get(agents, key="2") == {"text": f"tea. {small}? The order is late."}

    def test_an_address_with_a_shown_name_in_it_is_one_address(self, agents):
        """What detectors find comes first: no half of it stays."""
        put(agents)
        get(agents)
        put(agents, {"text": "Write to Rosalind.Quimby@quimbymail.example"}, key="2")

        held = agents.bare[0].get(AT, "2").value["text"]
        assert held.startswith("Write to <EMAIL_ADDRESS_")
        assert "quimbymail" not in held


class TestWhoReads:
    """The customer and tenant of the context, and of the call."""

    @pytest.mark.parametrize(
        "whose",
        [{"customer": "c-2"}, {"tenant": "globex"}, {"tenant": None}, {"customer": None}],
        ids=["another customer", "another tenant", "no tenant", "no customer"],
    )
    def test_nobody_else_is_shown_originals(self, agents, whose):
        """Whatever they ask for."""
        put(agents)
        get(agents)

        assert NAME not in get(agents, **whose)["text"]
        assert MAIL not in get(agents, **whose)["text"]

    def test_nothing_is_shown_without_a_context(self, agents):
        """An id in the arguments says whom a call is for, not who reads."""
        config = {"configurable": {**CONFIG["configurable"], "user_id": "c-1", "tenant": "acme"}}
        with context(**OF_ADA):
            save(agents.saver, [HumanMessage(TEXT)])
        agents.settle()

        found = agents.saver.get_tuple(config).checkpoint["channel_values"]["messages"]
        assert NAME not in found[0].content

    def test_an_answer_with_somebody_elses_memories_keeps_its_pseudonyms(self, open_agents):
        """A tripwire is no reason to show anything."""
        agents = open_agents()
        qdrant = agents.scope.qdrant(agents.bare[1], owner_key="owner")
        for number, owner in enumerate(("c-1", "c-2"), 1):
            with context(**OF_ADA | {"customer": owner}):
                payload = {"owner": owner, "text": TEXT}
                point = models.PointStruct(id=number, vector=[0.6, 0.8], payload=payload)
                qdrant.upsert("notes", [point])
        agents.settle()

        with context(**OF_ADA):
            own = qdrant.retrieve("notes", [1])
            mixed = qdrant.retrieve("notes", [1, 2])
        assert own[0].payload["text"] == TEXT
        assert all(NAME not in each.payload["text"] for each in mixed)

    def test_random_readers_are_shown_their_own_alone(self):
        """Fifty customers, in all adapters; `make reveal-strangers` makes 100,000 calls."""
        assert strangers(calls=400, customers=50) == 0


class TestErasure:
    """Who was forgotten stays a pseudonym."""

    def test_the_pseudonym_stays_at_once(self, agents):
        """What this process had opened is dropped."""
        put(agents)
        before = get(agents)
        agents.scope.vault.forget("c-1", "acme")

        assert before == {"text": TEXT}
        assert NAME not in get(agents)["text"]

    def test_what_another_process_erased_is_not_shown_a_second_later(self, agents, open_agents):
        """The vault's file says that it has changed."""
        put(agents)
        now = [0.0]
        opened = OpenedOriginals(agents.scope._parts.vault, lambda: now[0])
        held = agents.bare[0].get(AT, "1").value["text"]
        ours = opened.of("c-1", "acme")
        ours.open([held])
        open_agents(agents.bare).scope.vault.forget("c-1", "acme")
        now[0] += 1.1

        assert held not in ours.known()
        assert ours.open([held])[held] == (held, 0)
        assert len(ours.names) == 0

    def test_a_key_that_is_gone(self, agents, open_agents):
        """With another key nothing opens."""
        put(agents)
        later = open_agents(agents.bare, audit_pseudonym_key="ff" * 16)

        assert NAME not in get(later)["text"]

    def test_spellings_are_erased_and_not_counted(self, agents):
        """The number is that of the pseudonyms, as it always was."""
        put(agents, {"texts": ["Hi Melanie, tea?", "I saw Mel today", "Ask Mel now"]})
        path = agents.scope._parts.vault.file.path
        erased = agents.scope.vault.forget("c-1", "acme")

        with sqlite3.connect(path) as rows:
            assert rows.execute("SELECT count(*) FROM vault_entry").fetchone() == (0,)
        rows.close()
        assert erased == 1


class TestAFailingVault:
    """The agent is never given an error for its sake."""

    def test_the_pseudonyms_stay_and_it_is_counted(self, agents):
        """It is not asked again for a while."""
        put(agents)
        agents.scope._parts.vault.file.path.write_bytes(b"no vault" * 1_000)

        shown = [get(agents)["text"] for _each in range(3)]
        assert all("<PERSON_" in each for each in shown)
        assert agents.scope._parts.faults.counts["reveal.read"] == 3

    def test_a_vault_that_hangs_costs_the_deadline_of_a_recall(self, open_agents, monkeypatch):
        """Then the pseudonyms stay."""
        agents = open_agents(deadline_recall_s=1)
        assert agents.scope.prepare(GIVE_UP_S)
        with context(**OF_ADA):
            agents.bare[0].put(AT, "1", {"text": "I am <PERSON_2aaaaaaaaa>"})
            released = threading.Event()
            vault = agents.scope._parts.vault
            monkeypatch.setattr(vault, "find", lambda *_given: released.wait(GIVE_UP_S))
            try:
                found = agents.store.get(AT, "1")
            finally:
                released.set()

        assert found.value["text"] == "I am <PERSON_2aaaaaaaaa>"
        assert agents.scope._parts.faults.counts["reveal.read"] == 1


class TestTheRecord:
    """What was revealed, to whom and for what."""

    def test_a_reveal_is_an_operation_of_the_vault(self, agents):
        """Its number, agent and purpose are in the event, which sinks seal and count."""
        put(agents)
        get(agents)
        [event] = agents.reveals()

        assert (event.store, event.hits, event.nested) == ("vault", 2, True)
        assert (event.agent, event.purpose, event.tenant) == ("sales", "reply", "acme")
        assert event.subject is not None

    def test_an_iterator_has_one_record(self, agents):
        """As it has one event."""
        with context(**OF_ADA):
            save(agents.saver, [HumanMessage(TEXT)])
            agents.settle()
            list(agents.saver.list(CONFIG))

        assert [each.hits for each in agents.reveals()] == [2]

    def test_sinks_have_pseudonyms(self, open_agents):
        """In the content of what is asked and in the answer, where they are opted in to it."""
        agents = open_agents(content_sinks="otlp")
        put(agents)
        get(agents)
        with context(**OF_ADA):
            agents.store.search(AT, query=f"tea of {NAME}")
        agents.settle()

        told = repr(
            [
                (each, each.content and each.content.value, each.answer and each.answer.value)
                for each in agents.sink.events
            ]
        )
        assert "<PERSON_" in told
        assert "Rosalind" not in told
        assert MAIL not in told

    def test_nothing_is_recorded_where_nothing_is_shown(self, agents):
        """A text without pseudonyms costs no event."""
        put(agents, {"text": "I like tea"})
        get(agents)

        assert agents.reveals() == []


class Never(StandaloneRule):
    """A rule of somebody else's: support is shown no originals."""

    name = "never"

    def may_reveal(self, _store):
        """Return whether the context's purpose is another."""
        return current().purpose != "support"

    def withheld(self, count):
        """Return the facts."""
        return {"never.withheld": count}

    def decide(self, facts):
        """Refuse what was withheld."""
        return Verdict(Outcome.REFUSE, "no_originals", dict(facts.known))


class Broken(Never):
    """One that fails."""

    def may_reveal(self, _store):
        """Raise."""
        raise RuntimeError


class TestRules:
    """A rule may forbid it, by role or purpose."""

    def test_a_role_says_for_which_purposes(self, open_agents):
        """The verdict is told as any other."""
        role = Role(recall=("*",), remember=("*",), reveal=("reply",))
        agents = open_agents(rules=[Roles({"sales": role})])
        put(agents)

        assert get(agents) == {"text": TEXT}
        assert NAME not in get(agents, purpose="statistics")["text"]
        agents.settle()
        [verdict] = parts_of(agents.sink.events, VerdictEvent)
        assert (verdict.rule, verdict.reason) == ("roles", "withheld")

    def test_a_rule_of_another_package_may_forbid_it(self, open_agents):
        """By the protocol that the built-in one has."""
        agents = open_agents(rules=[Never()])
        put(agents)

        assert get(agents) == {"text": TEXT}
        assert NAME not in get(agents, purpose="support")["text"]

    def test_a_rule_that_fails_forbids_it(self, open_agents):
        """What cannot be judged is not shown."""
        agents = open_agents(rules=[Broken()])
        put(agents)

        assert NAME not in get(agents)["text"]


class TestOptIn:
    """Off unless it is asked for."""

    def test_without_the_setting_nothing_of_it_is_imported(self):
        """Nor anything revealed."""
        code = (
            "import sys\n"
            "from mnemoscope.memory.testing import scope_for_tests\n"
            "from langgraph.store.memory import InMemoryStore\n"
            "with scope_for_tests() as (scope, _):\n"
            "    scope.store(InMemoryStore()).get(('a',), 'b')\n"
            "print([each for each in sys.modules if '.reveal' in each])\n"
        )

        assert run_code(code).stdout.strip() == "[]"

    def test_it_takes_a_vault(self):
        """Said in one line, by the names of the variables."""
        with pytest.raises(ConfigurationError, match="PII_REVEAL: set MNEMOSCOPE_VAULT"):
            scope_for_tests(pii_reveal="recall").__enter__()

    @pytest.mark.parametrize("given", ["write", "recall,write"])
    def test_another_word_is_refused(self, given):
        """Only what is read can be revealed."""
        with pytest.raises(ConfigurationError, match="MNEMOSCOPE_PII_REVEAL"):
            load_settings(pii_reveal=given)
