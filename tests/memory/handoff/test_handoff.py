"""What passes from one agent to another: what the schema names, and no prose."""

from __future__ import annotations

import datetime as dt
import json
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator
from typing_extensions import TypedDict  # pydantic takes no other before Python 3.12

from mnemoscope.memory import (
    ConfigurationError,
    Handoff,
    HandoffError,
    Mnemoscope,
    context,
    load_settings,
)
from mnemoscope.memory.testing import scope_for_tests

WORD = "wolframite"
"""What an agent says in its own words, to be looked for."""

PACKET = {"verdict": "fraud", "signal_strength": "high", "schema": "cross_agent_v1"}


class Colour(Enum):
    """Two values that are text, and can be no other."""

    RED = "red"
    BLUE = "blue"


class Finding(BaseModel):
    """The output of an agent that looks at payments."""

    verdict: Literal["fraud", "clean"]
    confidence: float = Field(ge=0, le=1)
    reasoning: str = ""
    recommended_action: str | None = None


class Reason(BaseModel):
    """A nested part that has prose."""

    text: str
    weight: int


class Report(BaseModel):
    """An output with a list of parts."""

    reasons: list[Reason]


class Note(TypedDict):
    """A dict of text."""

    text: str


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch):
    """Begin without a default scope."""
    monkeypatch.setattr("mnemoscope.memory.default_scope._default", None)


@pytest.fixture
def handoff_of():
    """Return a function that makes the handoff of a finding."""

    def make(**options):
        return Handoff(
            schema=Finding,
            strip=["reasoning", "recommended_action"],
            buckets={"confidence": "signal_strength"},
            **options,
        )

    return make


def said(**other):
    """Return what the agent says."""
    return {"verdict": "fraud", "confidence": 0.91, "reasoning": WORD} | other


class TestPacket:
    @pytest.mark.parametrize(
        "output", [said(), Finding(**said()), json.dumps(said()), json.dumps(said()).encode()]
    )
    def test_it_has_what_the_schema_names_and_no_prose(self, handoff_of, output):
        """A dict, a model and JSON give one and the same packet."""
        assert handoff_of().translate(output) == PACKET

    @pytest.mark.parametrize(
        ("confidence", "level"),
        [
            (1, "high"),
            (0.7, "high"),
            (0.69, "moderate"),
            (0.4, "moderate"),
            (0.39, "low"),
            (0, "low"),
        ],
    )
    def test_a_number_becomes_a_level(self, handoff_of, confidence, level):
        """The border belongs to the level above it."""
        packet = handoff_of().translate(said(confidence=confidence))
        assert packet["signal_strength"] == level

    def test_what_the_schema_does_not_name_does_not_pass(self, handoff_of):
        """An agent that says more than it was asked hands on no more."""
        assert handoff_of().translate(said(notes=WORD)) == PACKET

    def test_text_that_is_to_pass_is_named(self):
        """A preserved field passes as it is; a nested one is named by its path."""
        handoff = Handoff(schema=Report, preserve=["reasons.text"], packet="report_v2")
        reasons = [{"text": "late", "weight": 2}]
        packet = handoff.translate({"reasons": reasons})
        assert packet == {"reasons": reasons, "schema": "report_v2"}

    def test_a_nested_field_can_be_left_out(self):
        """Of each part in a list."""
        handoff = Handoff(schema=Report, strip=["reasons.text"])
        packet = handoff.translate({"reasons": [{"text": WORD, "weight": 2}] * 2})
        assert packet["reasons"] == [{"weight": 2}] * 2

    def test_a_subclass_hands_on_no_field_of_its_own(self, handoff_of):
        """An instance may have more fields than the schema."""

        class Chatty(Finding):
            aside: str = WORD

        assert handoff_of().translate(Chatty(**said())) == PACKET


_PROSE = [
    str,
    str | None,
    Annotated[str, Field(max_length=9)],
    bytes,
    Any,
    object,
    dict[str, int],
    dict[Literal["a"], str],
    list[str],
    tuple[int, str],
    list[int | list[str]],
    Note,
    Reason,
    list[Reason],
    Reason | None,
]
_TYPED = [
    (bool, True),
    (int, 3),
    (float, 0.5),
    (float, 2),
    (dt.date, dt.date(2026, 1, 2)),
    (UUID, UUID(int=7)),
    (Colour, Colour.RED),
    (Literal["a", 1], "a"),
    (int | None, None),
    (list[Colour], [Colour.RED, Colour.BLUE]),
    (tuple[int, ...], (1, 2)),
    (set[int], {1}),
]


class TestProse:
    @pytest.mark.parametrize("kind", _PROSE, ids=str)
    def test_a_field_that_may_hold_it_has_to_be_named(self, kind):
        """What becomes of it is said when the handoff is made, not found out later."""
        schema = create_model("Said", field=(kind, ...))
        with pytest.raises(ConfigurationError, match="may hold prose"):
            Handoff(schema=schema)
        Handoff(schema=schema, strip=["field"])
        Handoff(schema=schema, preserve=["field"])

    @pytest.mark.parametrize(("kind", "value"), _TYPED, ids=str)
    def test_a_field_that_cannot_passes_by_itself(self, kind, value):
        """Numbers, dates, ids, enums and literals, and lists of them."""
        schema = create_model("Said", field=(kind, ...))
        packet = Handoff(schema=schema).translate(schema(field=value))
        assert json.dumps(packet)
        assert "field" in packet

    @pytest.mark.parametrize("kind", [kind for kind, _value in _TYPED], ids=str)
    def test_text_put_into_a_typed_field_afterwards_does_not_pass(self, kind):
        """A model is not validated again when its fields are set."""
        schema = create_model("Said", field=(kind, ...))
        changed = schema.model_construct(field=WORD)
        with pytest.raises(HandoffError) as refused:
            Handoff(schema=schema).translate(changed)
        assert WORD not in str(refused.value)

    def test_an_enum_that_is_kept_as_its_value_passes(self):
        """So a model can be told to keep them."""

        class Said(BaseModel):
            model_config = ConfigDict(use_enum_values=True)
            colour: Colour

        assert Handoff(schema=Said).translate({"colour": "red"})["colour"] == "red"

    def test_a_model_that_takes_any_field_is_refused(self):
        """What it would take has no place."""
        schema = create_model("Said", __config__=ConfigDict(extra="allow"), field=(int, ...))
        with pytest.raises(ConfigurationError, match="takes any field"):
            Handoff(schema=schema)

    def test_a_model_that_holds_itself_is_refused(self):
        """It has no end of fields to name."""

        class Tree(BaseModel):
            inner: list[Tree] = []

        with pytest.raises(ConfigurationError, match="holds itself"):
            Handoff(schema=Tree)

    @pytest.mark.parametrize(
        ("places", "expected"),
        [
            ({"strip": ["reasoning", "recommended_action", "raisoning"]}, "no field raisoning"),
            ({"strip": ["reasoning"], "preserve": ["reasoning"]}, "named twice"),
        ],
    )
    def test_a_name_that_is_wrong_is_refused(self, places, expected):
        """A field is there, and has one place."""
        with pytest.raises(ConfigurationError, match=expected):
            Handoff(schema=Finding, **places)


class TestRefusal:
    @pytest.mark.parametrize(
        ("output", "problem"),
        [
            (said(verdict=WORD), "verdict: literal_error"),
            (said(confidence=WORD), "confidence: float_parsing"),
            (said(confidence=7), "confidence: less_than_equal"),
            (said(confidence=float("nan")), "confidence: less_than_equal"),
            ({WORD: WORD}, "verdict: missing"),
            (WORD, "the output: not JSON"),
            (f'["{WORD}"]', "the output: model_type"),
            (None, "the output: model_type"),
        ],
    )
    def test_it_names_the_field_and_none_of_the_agents_words(self, handoff_of, output, problem):
        """So it can be shown to the agent, and to a log."""
        with pytest.raises(HandoffError) as refused:
            handoff_of().translate(output)
        assert refused.value.problems[0] == problem
        assert WORD not in f"{refused.value!r} {refused.value.problems}"
        assert refused.value.__cause__ is None

    def test_a_key_that_the_agent_chose_is_not_named(self):
        """The place of an error may have keys of a dict in it."""
        schema = create_model("Said", notes=(dict[str, int], ...))
        with pytest.raises(HandoffError) as refused:
            Handoff(schema=schema, strip=["notes"]).translate({"notes": {WORD: "x"}})
        assert refused.value.problems == ("notes: int_parsing",)

    def test_what_a_validator_says_is_not_repeated(self):
        """Its message may hold the value."""

        class Said(BaseModel):
            number: int

            @field_validator("number")
            @classmethod
            def refuse(cls, value: int) -> int:
                raise ValueError(WORD)

        with pytest.raises(HandoffError, match="number: value_error") as refused:
            Handoff(schema=Said).translate({"number": 1})
        assert WORD not in str(refused.value)

    def test_a_level_of_no_such_number_is_refused(self):
        """Where the schema has no bounds of its own."""
        schema = create_model("Said", score=(float, ...))
        handoff = Handoff(schema=schema, buckets={"score": "level"})
        with pytest.raises(HandoffError, match="score: not between 0 and 1"):
            handoff.translate({"score": 1.01})


class TestSealing:
    @pytest.fixture
    def scope(self, monkeypatch, tmp_path):
        """Return a scope with an audit trail and a log."""
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        scope = Mnemoscope(
            load_settings(
                sinks="logs,audit",
                log_file=tmp_path / "events.jsonl",
                audit_url=f"sqlite:///{tmp_path / 'audit.db'}",
                audit_pseudonym_key="00112233445566778899aabbccddeeff",
                pii_model="none",
            )
        )
        yield scope
        scope.close()

    def test_what_was_said_is_in_the_sealed_detail_and_nowhere_else(
        self, handoff_of, scope, tmp_path
    ):
        """Redacted and encrypted: no file of ours has the word, and the log can tell it."""
        handoff = handoff_of(guard_for=scope.guard_for)
        assert handoff.translate(said(reasoning=f"{WORD}, says ada@example.com")) == PACKET
        assert scope.flush()
        (row,) = [each for each in scope.audit.rows() if each.operation == "handoff"]
        kept = b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())
        assert WORD in row.content
        assert "ada@example.com" not in row.content
        assert WORD.encode() not in kept

    def test_what_was_refused_is_sealed_too(self, handoff_of, scope):
        """An output that passes nothing is what an auditor asks for first."""
        with pytest.raises(HandoffError):
            handoff_of(guard_for=scope.guard_for).translate(said(verdict=WORD))
        assert scope.flush()
        (row,) = [each for each in scope.audit.rows() if each.operation == "handoff"]
        assert row.status == "error"
        assert WORD in row.content

    def test_refusals_open_no_breaker(self, handoff_of):
        """They are the agent's mistakes: the next good output passes."""
        with scope_for_tests() as (scope, _sink):
            handoff = handoff_of(guard_for=scope.guard_for)
            for _ in range(50):
                with pytest.raises(HandoffError):
                    handoff.translate(said(verdict=WORD))
            assert handoff.translate(said()) == PACKET

    def test_it_is_made_in_a_customers_context_where_tenancy_is_enforced(self, handoff_of):
        """It asks no store, so there is nothing to confine."""
        with scope_for_tests(tenancy="enforce") as (scope, _sink), context(customer="c-42"):
            assert handoff_of(guard_for=scope.guard_for).translate(said()) == PACKET


class TestNode:
    def test_a_graph_has_the_packet_in_its_state(self, handoff_of):
        """The next node, and every checkpoint, see nothing else."""

        class State(TypedDict, total=False):
            finding: dict[str, Any]

        seen = []
        graph = StateGraph(State)
        graph.add_node("look", handoff_of().wrap(lambda _state: said(), key="finding"))
        graph.add_node("act", lambda state: seen.append(dict(state)))
        graph.add_edge(START, "look")
        graph.add_edge("look", "act")
        graph.compile().invoke({})
        assert seen == [{"finding": PACKET}]

    def test_an_agent_is_asked_again_once(self, handoff_of):
        """With the error, and what the node was called with."""
        asked = []

        def again(error, state):
            asked.append((error.problems, state))
            return said()

        node = handoff_of().wrap(lambda _state: {"verdict": 1}, ask_again=again)
        assert node("state") == PACKET
        assert [state for _problems, state in asked] == ["state"]

    def test_a_second_bad_output_is_raised(self, handoff_of):
        """There is no third."""
        node = handoff_of().wrap(dict, ask_again=lambda _error: {})
        with pytest.raises(HandoffError):
            node()

    async def test_a_coroutine_function_is_wrapped_alike(self, handoff_of):
        """Another output may come from a coroutine function or from a plain one."""

        async def look():
            return {}

        async def again(_error):
            return said()

        with scope_for_tests() as (scope, _sink):
            handoff = handoff_of(guard_for=scope.guard_for)
            assert await handoff.wrap(look, ask_again=again)() == PACKET
            assert await handoff.wrap(look, ask_again=lambda _error: said())() == PACKET
            with pytest.raises(HandoffError):
                await handoff.wrap(look)()


class TestWrite:
    def test_a_store_is_given_the_packet(self, handoff_of):
        """By position or by name."""
        store = InMemoryStore()
        put = handoff_of().before(store.put, "value")
        put(("findings",), "1", said())
        put(("findings",), key="2", value=said())
        assert [each.value for each in store.search(("findings",))] == [PACKET, PACKET]

    async def test_an_asynchronous_store_too(self, handoff_of):
        """By its coroutine function."""
        store = InMemoryStore()
        await handoff_of().before(store.aput, "value")(("findings",), "1", said())
        assert store.get(("findings",), "1").value == PACKET

    def test_a_client_that_takes_text_is_given_json(self, handoff_of):
        """Such as mem0's ``add``."""
        add = handoff_of().before(
            lambda messages, user_id: (messages, user_id), "messages", as_text=True
        )
        text, user = add(said(), user_id="u-1")
        assert (json.loads(text), user) == (PACKET, "u-1")

    def test_nothing_is_written_of_what_is_refused(self, handoff_of):
        """The store is not called."""
        store = InMemoryStore()
        with pytest.raises(HandoffError):
            handoff_of().before(store.put, "value")(("findings",), "1", {})
        assert store.search(("findings",)) == []

    def test_a_parameter_that_is_not_there_is_refused(self, handoff_of):
        """When the filter is put in front."""
        with pytest.raises(ConfigurationError, match="takes no messages"):
            handoff_of().before(InMemoryStore().put, "messages")
