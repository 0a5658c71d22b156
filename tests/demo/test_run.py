"""The whole demo: the agent, its stores, the five sinks, and what is said of them."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from mnemoscope.adapters.cli import root as command_line
from mnemoscope.demo.faults import BREAKABLE, FaultMode
from mnemoscope.demo.recorder import CollectorServer
from mnemoscope.memory import ConfigurationError, Mnemoscope, load_settings
from mnemoscope.telemetry.otlp.phases import OPERATIONS

# qdrant-client's local mode opens a database to ask its version, and leaves it.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")

LOCOMO = Path(__file__).parents[3] / "shared/data/locomo"
ESCAPE = "\x1b"
WITH_TRACE = """
    SELECT event ->> 'event_id', event ->> 'trace_id', event ->> 'span_id'
    FROM (SELECT CAST(header AS TEXT) AS event FROM audit_event WHERE kind = 'operation')
"""
DURATION = "mnemoscope_operation_duration_seconds_count"
PERSONAL = re.compile(
    rb"\bInes\b|Marchetti|\bJonas\b|Feldt|Amara|Osei|two\.by\.the\.lake|lantern-and-line"
    rb"|7946 0958|555 0142|4242 4242|3704 0044|Larkspur|Juniper"
    # Without spaces, digits may stand in an id by chance: then others are around them.
    rb"|(?<![0-9a-f])(?:(?:\+?44|0)?(?:20)?79460958|(?:\+?1)?(?:\d{3})?5550142|42424242|DE89)"
)


def files_with_personal_data(folder):
    """Return the files below a folder that hold any of the conversation's personal data."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.name: found[0] for path in files if (found := PERSONAL.findall(path.read_bytes()))}


def operations(told):
    """Return what a sink was told of operations: the rest are signatures of the audit trail."""
    return [
        each
        for each in told
        if not (each.get("operation") or each["name"]).startswith("audit_checkpoint")
    ]


def of_events(spans):
    """Return the spans that stand for operations: the rest are signatures, and phases of mem0's."""
    return [each for each in operations(spans) if "mnemoscope.event_id" in each["attributes"]]


def test_every_message_is_answered(kept):
    """The conversation that ships is replayed whole, and the exit code says so."""
    figures = kept.figures

    assert kept.code == 0
    assert (figures["turns"], figures["answered"], figures["failures"]) == (36, 36, {})


def test_every_event_is_in_all_five_sinks(kept):
    """Audit rows, log lines, spans and runs hold the same events, each once; metrics as many."""
    audit = [
        f"{writer}-{seq}"
        for writer, seq in kept.rows(
            "SELECT writer_id, writer_seq FROM audit_event WHERE kind = 'operation'"
        )
    ]
    logs = [line["event_id"] for line in operations(kept.lines("log.jsonl"))]
    spans = [
        span["attributes"]["mnemoscope.event_id"] for span in of_events(kept.lines("spans.jsonl"))
    ]
    runs = [run["extra"]["metadata"]["event_id"] for run in operations(kept.lines("runs.jsonl"))]
    observed = sum(n for (name, _labels), n in kept.metrics.items() if name == DURATION)

    assert len(audit) == len(set(audit)) > 500
    assert sorted(audit) == sorted(logs) == sorted(spans) == sorted(runs)
    assert observed == len(audit)
    assert set(kept.figures["events"].values()) == {len(audit)}


def test_signatures_are_no_events(kept):
    """The audit trail was signed during the run: the sinks were told, and do not count it."""
    assert len(kept.lines("log.jsonl")) > kept.figures["events"]["logs"]
    assert len(kept.lines("spans.jsonl")) > kept.figures["events"]["otlp"]
    assert len(kept.lines("runs.jsonl")) > kept.figures["events"]["langsmith"]
    assert kept.figures["sinks_agree"]


def test_a_span_that_is_no_event_is_a_phase_of_one(kept):
    """It is below an operation of mem0's, and no other sink has been told of it."""
    spans = kept.lines("spans.jsonl")
    phases = [each for each in spans if "mnemoscope.event_id" not in each["attributes"]]
    stores = {each["spanId"]: each["attributes"]["mnemoscope.store"] for each in of_events(spans)}

    assert {each["attributes"]["gen_ai.operation.name"] for each in phases} <= set(
        OPERATIONS.values()
    )
    assert {stores[each["parentSpanId"]] for each in phases} == {"mem0"}
    assert not {each["spanId"] for each in phases} & {
        line["span_id"] for line in kept.lines("log.jsonl")
    }


def test_metrics_agree_with_the_audit_table_by_store_operation_and_status(kept):
    """Each series of the duration metric counts the rows with its labels."""
    rows = kept.rows(
        "SELECT store, operation, status, count(*) FROM audit_event WHERE kind = 'operation' "
        "GROUP BY 1, 2, 3"
    )

    observed = {
        tuple(dict(labels)[name] for name in ("store", "operation", "status")): n
        for (metric, labels), n in kept.metrics.items()
        if metric == DURATION and n
    }
    assert observed == {(store, operation, status): n for store, operation, status, n in rows}


def test_each_event_has_the_same_trace_in_each_sink(kept):
    """A span is found by the ids in the log line, in the audit row and in the run."""
    audit = {(id_, *ids) for id_, *ids in kept.rows(WITH_TRACE)}
    logs = {
        (line["event_id"], line["trace_id"], line["span_id"])
        for line in operations(kept.lines("log.jsonl"))
    }
    spans = {
        (span["attributes"]["mnemoscope.event_id"], span["traceId"], span["spanId"])
        for span in of_events(kept.lines("spans.jsonl"))
    }
    runs = {
        (of["event_id"], of["otel_trace_id"], of["otel_span_id"])
        for run in operations(kept.lines("runs.jsonl"))
        for of in [run["extra"]["metadata"]]
    }
    assert audit == logs == spans == runs


@pytest.mark.parametrize(
    ("figure", "attribute"),
    [
        ("input_tokens", "gen_ai.usage.input_tokens"),
        ("output_tokens", "gen_ai.usage.output_tokens"),
        ("cached_tokens", "gen_ai.usage.cache_read.input_tokens"),
        ("reasoning_tokens", "gen_ai.usage.reasoning.output_tokens"),
    ],
)
def test_tokens_by_feature_agree_in_screen_metrics_and_spans(kept, figure, attribute):
    """The screen's tokens are those of the metrics and those of the spans."""
    said = {each["name"]: each[figure] for each in kept.figures["spend_by_feature"]}

    kind = figure.removesuffix("_tokens")
    metrics, spans = Counter(), Counter()
    for (name, labels), n in kept.metrics.items():
        if name == "mnemoscope_tokens_total" and dict(labels)["type"] == kind and n:
            metrics[dict(labels)["feature"]] += int(n)
    for span in kept.lines("spans.jsonl"):
        if attribute in span["attributes"]:
            attributes = span["attributes"]
            spans[attributes["mnemoscope.feature"]] += int(attributes[attribute])
    assert said == metrics == spans
    assert set(said) == {"reply-outline", "reply-draft", "remember"}


def test_model_calls_are_counted_once(kept):
    """Three calls a message: for the outline, for the answer, and mem0's for the facts in it."""
    calls = {each["name"]: each["calls"] for each in kept.figures["spend_by_feature"]}

    assert calls == {"reply-outline": 36, "reply-draft": 36, "remember": 36}


def test_memories_are_those_of_one_customer(kept):
    """The 14 facts in the first speaker's messages, and in the end all but the last were read."""
    memories = [each for each in kept.figures["memories"] if each["store"] == "mem0"]

    assert len(memories) == 14
    assert memories[0]["content"].startswith("Good morning!")
    read = [each for each in memories if each["reads"]]
    assert read == memories[:-1]
    assert sum(each["reads"] for each in memories) > len(read)
    assert all(each["last_read"] > each["written"][0] for each in read)


def test_no_personal_data_is_in_any_kept_file(kept):
    """Neither a sink's file nor a store's holds what the conversation says of people."""
    assert files_with_personal_data(kept.out) == {}


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
def test_personal_data_would_be_found(tmp_path, monkeypatch):
    """Control: the same stores without their guards hold it in clear."""
    monkeypatch.setenv("MEM0_TELEMETRY", "False")  # as the demo has it
    from mnemoscope.demo.agent import AgentContext, build_agent, reply
    from mnemoscope.demo.scripted_model import ScriptedModel
    from mnemoscope.demo.stores import open_stores

    scope = Mnemoscope(load_settings(disabled=True))
    with open_stores(tmp_path, scope, ScriptedModel()) as stores:
        graph = build_agent(stores.store, stores.checkpointer)
        agent = AgentContext(
            customer="c-1",
            known=(),
            memory=stores.memory,
            documents=stores.documents,
            model=ScriptedModel(),
        )
        reply(graph, "I am Ines Marchetti.", agent=agent, thread="t", scope=scope)

    found = set(files_with_personal_data(tmp_path))
    assert {"mem0-history.db", "store.db", "threads.db", "storage.sqlite"} <= found


def test_the_agent_recalls_what_it_was_told(kept):
    """A question about an earlier message finds that message."""
    recalled = [each for each in kept.figures["memories"] if "hazelnuts, really" in each["content"]]

    assert [each["reads"] > 0 for each in recalled] == [True]


@pytest.mark.parametrize("how", FaultMode)
@pytest.mark.parametrize("store", ["mem0", "qdrant", "store"])
@pytest.mark.long_but("qdrant-slow")
def test_every_message_is_answered_with_a_store_in_trouble(demo, short, store, how):
    """The agent carries on, the store is named, and the sinks still agree."""
    run = demo(conversation=short, break_store=store, how=how, json=True)

    figures = run.figures
    named = {"store": "langgraph.store"}.get(store, store)
    assert run.code == 0
    assert figures["answered"] == figures["turns"] == 8
    assert figures["culprit"].startswith(f"{named} is to blame")
    assert figures["sinks_agree"]
    assert figures["writes"]["lost"] == 0
    assert figures["writes"]["journalled"] == figures["writes"]["replayed"]
    assert (figures["writes"]["journalled"] > 0) is (store != "qdrant")


@pytest.mark.parametrize("how", FaultMode)
@pytest.mark.long_but("down")
def test_runs_raise_with_the_checkpointer_in_trouble(demo, short, how, monkeypatch):
    """It fails closed: runs raise, which is what was to be shown, so the exit code is 0."""
    # Long enough for the calls of the first half, which are healthy, on any machine.
    monkeypatch.setattr("mnemoscope.demo.run.SHORT_DEADLINE_S", 3.0)
    run = demo(conversation=short, break_store="checkpointer", how=how, json=True)

    figures = run.figures
    assert run.code == 0
    assert 0 < sum(figures["failures"].values()) <= 4
    assert figures["culprit"].startswith("langgraph.checkpoint is to blame")
    assert figures["sinks_agree"]


def test_what_can_be_broken_is_what_the_agent_uses():
    """Each of the four stores has a way to break it."""
    assert set(BREAKABLE) == {"mem0", "qdrant", "store", "checkpointer"}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.long_but("80")
def test_the_screen_fits(demo, short, width):
    """No line is longer than the screen is wide, and none is coloured when it is not a terminal."""
    said = demo(width, conversation=short).said

    assert max(len(line.rstrip()) for line in said.splitlines()) <= width
    assert ESCAPE not in said
    assert "…" not in said.partition("3  What")[0]


def test_the_screen_answers_the_three_questions(demo, short):
    """Latency by store with the culprit, cost by feature, memories of a customer."""
    said = demo(conversation=short, speaker="bob").said

    assert "1  When recall is slow, which store is to blame?" in said
    assert re.search(r"→ Of [\d.]+ s in turns: \d+% ", said)
    assert [said.count(each) for each in ("\n asked ", "\n recalled ", "\n answered ")] == [3] * 3
    assert "I rise late. When is breakfast?" in said
    assert "of 8 messages answered" in said
    assert re.search(r"→ remember caused \d+% of \$", said)
    assert "3  What does the agent remember about Bob Lind, and since when?" in said
    assert "a script, not a language model" in said
    assert "The sinks agree." in said


def test_the_screen_says_why_runs_raised(demo, short):
    """A broken checkpointer is explained, in words, on the screen."""
    said = demo(conversation=short, break_store="checkpointer").said

    assert "It fails closed, so its runs raised" in " ".join(said.split())
    assert "OperationalError" in said


def test_nothing_is_left(demo, short):
    """No thread stays, and the environment is as it was."""
    before = dict(os.environ)

    run = demo(conversation=short)

    assert [each.name for each in run.threads] == []
    assert dict(os.environ) == before


def test_the_users_own_collector_is_used(demo, short, monkeypatch):
    """Spans go where the user has pointed them; the screen does not count them."""
    with CollectorServer() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")

        figures = demo(conversation=short, json=True).figures

    assert figures["events"]["otlp"] is None
    assert figures["sinks_agree"]
    assert len(of_events(collector.spans())) == figures["events"]["audit"]


def test_langchains_own_tracer_is_off(demo, short, monkeypatch):
    """With the user's own LangSmith, it is sent our runs, and no prompt in clear."""
    with CollectorServer() as langsmith:
        monkeypatch.setenv("LANGSMITH_TRACING", "true")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", langsmith.url)
        monkeypatch.setenv("LANGSMITH_API_KEY", "key")

        events = demo(conversation=short, json=True).figures["events"]

    assert events["langsmith"] is None
    assert len(operations(langsmith.runs())) == events["audit"]
    assert "green tea" not in str(langsmith.runs())


def test_a_package_that_is_missing_is_named(demo, short, monkeypatch):
    """Without the stores' packages there is one line that says how to get them."""
    monkeypatch.setattr("mnemoscope.demo.run.NEEDED", ("no_such_package",))

    with pytest.raises(ConfigurationError, match=r"no_such_package.*mnemoscope\[all\]"):
        demo(conversation=short)


def test_a_bad_file_is_one_line_and_exit_code_2(tmp_path, capsys):
    """On the command line there is no traceback, and nothing of the file."""
    bad = tmp_path / "bad.json"
    bad.write_text('{"speaker_a": "Ada"}')

    code = command_line.run(["demo", "--conversation", str(bad)])

    said = " ".join(capsys.readouterr().err.split())
    assert code == 2
    assert said.endswith("is not a conversation: speaker_b is missing")


@pytest.mark.parametrize(
    "options",
    [
        {"break_store": "redis"},
        {"how": "sideways"},
        {"speaker": "Nobody"},
        {"model": "nobody:nothing"},
    ],
    ids=lambda options: next(iter(options)),
)
def test_an_option_that_makes_no_sense_is_refused(demo, short, options):
    """In one line, before anything is replayed."""
    with pytest.raises(ConfigurationError) as refused:
        demo(conversation=short, **options)

    assert "\n" not in str(refused.value)


def test_a_folder_that_is_not_empty_is_refused(demo, short):
    """Nothing of the user's is overwritten, and no run is mixed with another."""
    with pytest.raises(ConfigurationError, match="new or empty folder"):
        demo(conversation=short, out=short.parent)


@pytest.mark.skipif(not LOCOMO.exists(), reason="the LoCoMo files are not here")
@pytest.mark.long
def test_a_conversation_of_other_people_is_replayed_whole(demo, tmp_path):
    """All messages of the first sessions of a LoCoMo file are answered, and the sinks agree."""
    held = json.loads((LOCOMO / "conv_26.json").read_text())
    kept = {name: held[name] for name in held if not re.match(r"session_([3-9]|\d\d)", name)}
    file = tmp_path / "short.json"
    file.write_text(json.dumps(kept))

    figures = demo(conversation=file, json=True).figures

    turns = len(held["session_1"]) + len(held["session_2"])
    assert (figures["turns"], figures["answered"]) == (turns, turns)
    assert turns > 30
    assert figures["sinks_agree"]
