"""The Prometheus sink, read back through prometheus_client's own parsers."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from prometheus_client import CollectorRegistry, Gauge, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as parse_openmetrics,
)
from prometheus_client.parser import text_string_to_metric_families

from mnemoscope.memory.api import OutcomeEvent
from mnemoscope.telemetry.event.error_kinds import ErrorKind
from mnemoscope.telemetry.event.event import Journalled, OperationClass, Status
from mnemoscope.telemetry.event.trace import TraceRef
from mnemoscope.telemetry.event.usage import Usage
from mnemoscope.telemetry.prometheus.live import LiveCollector
from mnemoscope.telemetry.prometheus.metrics import Cap
from mnemoscope.telemetry.prometheus.sink import NODE_OPERATION, PrometheusSink
from tests.kit.lengths import examples
from tests.kit.sample_events import events


@pytest.fixture
def registry():
    return CollectorRegistry()


@pytest.fixture
def sink(registry):
    return PrometheusSink(registry=registry)


def scraped(registry):
    """Return every sample of a scrape by name and labels, as Prometheus would see it."""
    text = generate_latest(registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(registry, name, **labels):
    """Return one sample's value, or None."""
    return scraped(registry).get((f"mnemoscope_{name}", tuple(sorted(labels.items()))))


def series(registry, name):
    """Return the label sets of one metric."""
    return [dict(labels) for found, labels in scraped(registry) if found == f"mnemoscope_{name}"]


def test_duration_is_observed_by_store_operation_and_status(registry, sink, event_factory):
    """Every operation is one observation under its own store, operation and status."""
    sink.write([event_factory(duration_s=0.0125), event_factory(status=Status.EMPTY)])

    labels = {"store": "mem0", "class": "recall", "operation": "search_memory"}
    assert value(registry, "operation_duration_seconds_count", **labels, status="ok") == 1
    assert value(registry, "operation_duration_seconds_sum", **labels, status="ok") == 0.0125
    assert value(registry, "operation_duration_seconds_count", **labels, status="empty") == 1


def test_a_notice_is_no_operation(registry, sink, notices):
    """Checkpoints of the audit trail and budgets past a level change no sample of any metric."""
    before = scraped(registry)

    sink.write(notices)

    assert len(notices) == 2
    assert scraped(registry) == before


@pytest.mark.parametrize(
    ("op_class", "least", "most"), [("recall", 50e-6, 30.0), ("model", 5e-3, 1_800.0)]
)
def test_buckets_are_those_of_the_class(registry, sink, event_factory, op_class, least, most):
    """A store answers in microseconds or in seconds, a graph may take minutes."""
    sink.write(
        [
            event_factory(op_class=OperationClass(each), duration_s=seconds)
            for each in OperationClass
            for seconds in (least * 0.8, most * 0.9)
        ]
    )

    buckets = {
        float(labels["le"]): value(registry, "operation_duration_seconds_bucket", **labels)
        for labels in series(registry, "operation_duration_seconds_bucket")
        if labels["class"] == op_class
    }
    assert (min(buckets), sorted(buckets)[-2]) == (least, most)
    assert (buckets[least], buckets[most / 3], buckets[most]) == (1, 1, 2)


def test_durations_of_all_classes_are_one_metric(registry, sink, event_factory):
    """It is announced once, whatever its buckets, and every class has its series in it."""
    sink.write([event_factory(op_class=each) for each in OperationClass])

    text = openmetrics.generate_latest(registry).decode()
    assert text.count("# TYPE mnemoscope_operation_duration_seconds histogram\n") == 1
    counted = series(registry, "operation_duration_seconds_count")
    assert {labels["class"] for labels in counted} == {each.value for each in OperationClass}


def test_errors_are_counted_by_store_operation_and_kind(registry, sink, event_factory):
    """A recall that an exception made neutral is one too; one that found nothing is not."""
    sink.write(
        [
            event_factory(status=Status.ERROR, error="ValueError"),
            event_factory(status=Status.DEGRADED, neutral=True, error="psycopg.OperationalError"),
            event_factory(status=Status.REJECTED, neutral=True),
            event_factory(status=Status.EMPTY),
        ]
    )

    labels = {"store": "mem0", "operation": "search_memory"}
    counted = {each["error"] for each in series(registry, "errors_total")}
    assert counted == {"value", "database", "not_called"}
    assert value(registry, "errors_total", **labels, error="value") == 1


@given(names=st.lists(st.text(max_size=40), max_size=20))
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_set_of_errors_is_closed(registry, event_factory, names):
    """Whatever exceptions are called, their names are no labels."""
    sink = PrometheusSink(registry=registry)
    sink.write([event_factory(status=Status.ERROR, error=name) for name in names])

    assert {each["error"] for each in series(registry, "errors_total")} <= set(ErrorKind)


def test_exemplars_carry_the_trace(registry, sink, event_factory):
    """OpenMetrics text links a bucket to the trace of its latest sampled operation."""
    sink.write([event_factory(trace=TraceRef(0xABC, 0xDEF))])

    families = parse_openmetrics(openmetrics.generate_latest(registry).decode())
    exemplars = [s.exemplar.labels for f in families for s in f.samples if s.exemplar]
    assert exemplars == [{"trace_id": f"{0xABC:032x}", "span_id": f"{0xDEF:016x}"}]


def test_unsampled_operations_leave_no_exemplar(registry, sink, event_factory):
    """A trace that nobody keeps is not linked to."""
    sink.write([event_factory(trace=TraceRef(1, 2, sampled=False))])

    families = parse_openmetrics(openmetrics.generate_latest(registry).decode())
    assert not [s for f in families for s in f.samples if s.exemplar]


def shown(registry):
    """Return every sample with its exemplar, apart from when it was made."""
    return sorted(
        (sample.name, sorted(sample.labels.items()), sample.value, _of(sample.exemplar))
        for family in registry.collect()
        for sample in family.samples
        if not sample.name.endswith("_created")
    )


def _of(exemplar):
    return (exemplar.labels["trace_id"], exemplar.value) if exemplar else ()


FEW = events.map(lambda event: replace(event, store="mem0", method="search", nested=False))
NODES = FEW.map(
    lambda event: replace(
        event,
        operation=NODE_OPERATION,
        op_class=OperationClass.MODEL,
        journal=Journalled.NO,
        parts=tuple(each for each in event.parts if not isinstance(each, Usage)),
    )
)


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batch=st.lists(FEW | NODES, max_size=12))
def test_a_batch_counts_as_its_events_do_one_by_one(batch):
    """All samples are the same, down to which trace each bucket shows."""
    together, apart = CollectorRegistry(), CollectorRegistry()
    PrometheusSink(registry=together).write(batch)
    one_by_one = PrometheusSink(registry=apart)
    for event in batch:
        one_by_one.write([event])

    assert shown(together) == shown(apart)


def test_each_bucket_shows_its_last_trace(registry, sink, event_factory):
    """Of a batch, the last sampled operation that somebody waited for, in each bucket."""
    ended = [
        event_factory(duration_s=0.04, trace=TraceRef(1, 1)),
        event_factory(duration_s=0.04, trace=TraceRef(2, 2)),
        event_factory(duration_s=0.04, trace=TraceRef(3, 3, sampled=False)),
        event_factory(duration_s=0.04, trace=TraceRef(4, 4), journal=Journalled.REPLAYED),
        event_factory(duration_s=4.0, trace=TraceRef(5, 5)),
    ]
    sink.write(ended)

    traces = {exemplar[0] for *_sample, exemplar in shown(registry) if exemplar}
    assert traces == {f"{2:032x}", f"{5:032x}"}


def test_a_feature_gets_its_own_series_once_there_is_room(registry, event_factory):
    """A second scope that allows more features than the first is kept to."""
    usage = Usage(model="m", cost_usd=1.0)
    batch = [event_factory(feature=name, usage=usage) for name in ("a", "b")]
    PrometheusSink(registry=registry, top_features=1).write(batch)
    PrometheusSink(registry=registry, top_features=2).write(batch)

    assert value(registry, "cost_usd_total", model="m", feature="b") == 1.0


def test_nested_operations_blame_their_own_store_and_can_be_subtracted(
    registry, sink, event_factory
):
    """What agents waited in all is the sum of durations less the nested seconds."""
    outer = event_factory(store="mem0", duration_s=2.0)
    inner = event_factory(store="qdrant", duration_s=1.5, nested=True)
    sink.write([outer, inner])

    common = {"class": "recall", "operation": "search_memory", "status": "ok"}
    waited = sum(
        value(registry, "operation_duration_seconds_sum", store=store, **common)
        for store in ("mem0", "qdrant")
    )
    assert waited - value(registry, "nested_seconds_total", store="qdrant") == 2.0
    assert value(registry, "nested_seconds_total", store="mem0") is None


def test_recall_results_and_scores_are_of_answered_recalls_only(registry, sink, event_factory):
    """A neutral value is never mistaken for an empty memory."""
    sink.write(
        [
            event_factory(hits=3, top_score=0.75),
            event_factory(hits=0, status=Status.EMPTY),
            event_factory(hits=0, status=Status.DEGRADED, neutral=True),
            event_factory(hits=1, op_class=OperationClass.REMEMBER),
        ]
    )

    assert value(registry, "recall_results_count", store="mem0") == 2
    assert value(registry, "recall_results_sum", store="mem0") == 3
    assert value(registry, "recall_top_score_sum", store="mem0") == 0.75


def test_odd_numbers_cannot_spoil_a_sum(registry, sink, event_factory):
    """NaN and negative durations and infinite scores are kept out of the sums."""
    sink.write([event_factory(duration_s=seconds) for seconds in (float("nan"), -5.0, 1.0)])
    sink.write([event_factory(duration_s=0.0, top_score=score) for score in (float("inf"), 0.5)])

    labels = {"store": "mem0", "class": "recall", "operation": "search_memory", "status": "ok"}
    assert value(registry, "operation_duration_seconds_sum", **labels) == 1.0
    assert value(registry, "operation_duration_seconds_count", **labels) == 5
    assert value(registry, "recall_top_score_sum", store="mem0") == 0.5


@pytest.mark.parametrize(
    ("overrides", "counted"),
    [
        ({"status": Status.REFUSED, "neutral": True}, (1, None)),
        ({"status": Status.DEGRADED, "neutral": True, "journal": Journalled.LOST}, (None, 1)),
        (
            {"status": Status.DEGRADED, "neutral": True, "journal": Journalled.APPENDED},
            (None, None),
        ),
        ({"status": Status.OK, "journal": Journalled.REPLAYED}, (None, None)),
        ({"status": Status.TIMEOUT, "neutral": True, "late": True}, (None, None)),
        ({"status": Status.ERROR}, (None, None)),
        ({"status": Status.OK}, (None, None)),
        ({"status": Status.DEGRADED, "neutral": True, "op_class": "recall"}, (None, None)),
    ],
)
def test_writes_that_did_not_happen_are_counted(registry, sink, event_factory, overrides, counted):
    """A write is refused, or lost, or raised to the caller, or may still come through."""
    op_class = OperationClass(overrides.pop("op_class", "remember"))
    sink.write([event_factory(op_class=op_class, **overrides)])

    names = ("writes_refused_total", "writes_lost_total")
    assert tuple(value(registry, name, store="mem0") for name in names) == counted


def test_the_journals_writes_are_counted_and_nobody_waited_for_their_replay(
    registry, sink, event_factory
):
    """By outcome; only the call that was journalled has a duration."""
    for journal in (Journalled.APPENDED, Journalled.REPLAYED):
        sink.write([event_factory(op_class=OperationClass.REMEMBER, journal=journal)])

    for outcome in ("appended", "replayed"):
        assert value(registry, "journal_writes_total", store="mem0", outcome=outcome) == 1
    labels = {"store": "mem0", "operation": "search_memory", "status": "ok"} | {"class": "remember"}
    assert value(registry, "operation_duration_seconds_count", **labels) == 1


def test_redactions_and_tripwires_are_counted(registry, sink, event_factory):
    """Replacements count by entity, other people's results by store."""
    sink.write([event_factory(redactions={"EMAIL_ADDRESS": 2, "PERSON": 1}, foreign_hits=3)])

    assert value(registry, "redactions_total", entity="EMAIL_ADDRESS") == 2
    assert value(registry, "redactions_total", entity="PERSON") == 1
    assert value(registry, "tenant_tripwire_total", store="mem0") == 3


def model_call(event_factory, **usage):
    fields = {"model": "m-1", "node": "draft", "input_tokens": 100, "output_tokens": 20, **usage}
    return event_factory(
        store="model",
        operation="chat",
        op_class=OperationClass.MODEL,
        feature="reply",
        usage=Usage(**fields),
    )


def test_tokens_and_cost_are_counted_by_model_feature_and_node(registry, sink, event_factory):
    """The five kinds of tokens, the cost and the time to first token each have their series."""
    sink.write(
        [
            model_call(
                event_factory,
                cached_tokens=40,
                cache_write_tokens=10,
                reasoning_tokens=5,
                cost_usd=0.25,
                time_to_first_token_s=0.5,
            )
        ]
    )

    labels = {"model": "m-1", "feature": "reply", "node": "draft"}
    kinds = {"input": 100, "output": 20, "cached": 40, "cache_write": 10, "reasoning": 5}
    found = {kind: value(registry, "tokens_total", **labels, type=kind) for kind in kinds}
    assert found == kinds
    assert value(registry, "cost_usd_total", model="m-1", feature="reply") == 0.25
    assert value(registry, "time_to_first_token_seconds_sum", model="m-1") == 0.5
    assert value(registry, "unpriced_tokens_total", model="m-1") is None


def test_a_model_without_a_price_is_visible_and_not_free(registry, sink, event_factory):
    """Unpriced tokens have a counter; no cost of zero is claimed."""
    sink.write([model_call(event_factory, cost_usd=None)])

    assert value(registry, "unpriced_tokens_total", model="m-1") == 120
    assert series(registry, "cost_usd_total") == []


def test_usage_that_makes_no_sense_is_left_out(registry, sink, event_factory):
    """A provider's negative numbers neither raise nor count."""
    sink.write([model_call(event_factory, input_tokens=-5, cost_usd=-1.0)])

    kinds = [labels["type"] for labels in series(registry, "tokens_total")]
    assert kinds == ["output"]
    assert series(registry, "cost_usd_total") == []


def test_node_runs_are_observed_by_node(registry, sink, event_factory):
    """One run of a graph's node is one observation under its name, and no waiting of its own."""
    node = {"op_class": OperationClass.MODEL, "store": "langgraph.node", "method": "draft"}
    sink.write([event_factory(operation=NODE_OPERATION, duration_s=0.5, **node)])

    assert value(registry, "node_duration_seconds_sum", node="draft") == 0.5
    assert value(registry, "nested_seconds_total", store="langgraph.node") == 0.5


def test_usage_that_nobody_reported_is_counted_as_such(registry, sink, event_factory):
    """A call whose provider says nothing of tokens is not a call of zero tokens."""
    sink.write([event_factory(usage=Usage(model="m", reported=False))])

    assert value(registry, "unreported_calls_total", model="m") == 1
    assert series(registry, "unpriced_tokens_total") == []


def test_features_beyond_the_cap_share_one_series(registry, event_factory):
    """A thousand features make as many series as are allowed, and ``other``; nothing is lost."""
    sink = PrometheusSink(registry=registry, top_features=3)
    usage = Usage(model="m", cost_usd=1.0)
    sink.write([event_factory(feature=f"feature-{n}", usage=usage) for n in range(1_000)])

    features = {labels["feature"] for labels in series(registry, "cost_usd_total")}
    assert features == {"feature-0", "feature-1", "feature-2", "other"}
    assert value(registry, "cost_usd_total", model="m", feature="other") == 997


def test_combinations_of_bounded_labels_are_bounded_too(registry, event_factory):
    """Three capped labels multiply to millions; a metric still ends at its own limit."""
    sink = PrometheusSink(registry=registry, top_features=100)
    batch = [
        event_factory(
            feature=f"f{n % 90}",
            usage=Usage(model=f"m{n % 83}", node=f"n{n % 79}", input_tokens=1),
        )
        for n in range(6_000)
    ]
    sink.write(batch)

    tokens = {k: v for k, v in scraped(registry).items() if k[0] == "mnemoscope_tokens_total"}
    assert len(tokens) <= 2_001
    assert sum(tokens.values()) == 6_000


def test_an_outcome_is_counted_though_it_is_a_notice(registry, sink, event_factory):
    """By what it measures, and as no operation: no store was asked."""
    outcome = OutcomeEvent(outcome="used", score=0.5)
    sink.write([event_factory(op_class=OperationClass.MODEL, parts=(outcome,))])

    name = "event_part_total"
    assert value(registry, name, part="outcome", measurement="success") == 1
    assert value(registry, name, part="outcome", measurement="cascade") is None
    assert series(registry, "operation_duration_seconds_count") == []


def test_an_agent_has_series_of_its_own(registry, sink, event_factory):
    """Its calls by class, its tokens and its cost; what names no agent has none."""
    usage = Usage(model="m", input_tokens=70, output_tokens=30, cost_usd=0.5)
    sink.write(
        [
            event_factory(agent="sales", duration_s=0.25),
            event_factory(agent="sales", op_class=OperationClass.MODEL, parts=(usage,)),
            event_factory(duration_s=0.5),
        ]
    )

    name = "agent_duration_seconds_sum"
    assert value(registry, name, agent="sales", **{"class": "recall"}) == 0.25
    assert value(registry, name, agent="none", **{"class": "recall"}) is None
    assert value(registry, "agent_tokens_total", agent="sales") == 100
    assert value(registry, "agent_cost_usd_total", agent="sales") == 0.5


def test_a_graph_is_no_time_of_an_agents_own(registry, sink, event_factory):
    """A graph, node or tool waits for operations that are counted by themselves."""
    frame = {"operation": NODE_OPERATION, "op_class": OperationClass.MODEL, "method": "write"}
    sink.write([event_factory(agent="sales", **frame)])

    assert series(registry, "agent_duration_seconds_count") == []


def test_agents_beyond_the_cap_share_one_series(registry, sink, event_factory):
    """A name made up for each run costs no more series than a hundred."""
    sink.write([event_factory(agent=f"agent-{number}") for number in range(150)])

    found = series(registry, "agent_duration_seconds_count")
    assert len(found) == 101
    assert value(registry, "agent_duration_seconds_count", agent="other", **{"class": "recall"})


def test_no_label_holds_a_person_tenant_or_run(registry, sink, event_factory):
    """What identifies somebody is in no sample and no exemplar."""
    event = event_factory(
        customer="ada@example.com",
        tenant="acme",
        run="thread-7",
        purpose="reply-to-ada",
        memory_ids=("memory-1",),
        collection="people",
    )
    sink.write([event])

    text = openmetrics.generate_latest(registry).decode()
    planted = ("ada", "acme", "thread-7", "memory-1", "people")
    assert [word for word in planted if word in text] == []


def test_a_name_that_is_not_utf8_cannot_break_the_scrape(registry, sink, event_factory):
    """A lone surrogate in a feature's name becomes a question mark; the scrape goes on."""
    sink.write([event_factory(feature="bad\ud800", usage=Usage(model="m", cost_usd=1.0))])

    assert value(registry, "cost_usd_total", model="m", feature="bad?") == 1


def test_two_sinks_on_one_registry_share_their_metrics(registry, sink, event_factory):
    """A second scope in the process counts into the same series and raises nothing."""
    second = PrometheusSink(registry=registry)
    sink.write([event_factory()])
    second.write([event_factory()])

    labels = {"store": "mem0", "class": "recall", "operation": "search_memory", "status": "ok"}
    assert value(registry, "operation_duration_seconds_count", **labels) == 2


def test_somebody_elses_metric_of_the_same_name_is_an_error_at_once(registry):
    """A clash is found while configuring, never while writing."""
    Gauge("mnemoscope_cost_usd", "theirs", registry=registry)

    with pytest.raises(ValueError, match="mnemoscope_cost_usd"):
        PrometheusSink(registry=registry)


def test_a_registry_can_be_forgotten():
    """The sink's memory of a registry ends with the registry."""
    registry = CollectorRegistry()
    PrometheusSink(registry=registry)
    LiveCollector.for_registry(registry)
    gone = weakref.ref(registry)
    del registry
    gc.collect()

    assert gone() is None


def test_writing_from_two_threads_loses_nothing(registry, sink, event_factory):
    """Lanes of two scopes may count at the same time."""
    events = [event_factory() for _ in range(500)]
    threads = [threading.Thread(target=sink.write, args=(events,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    labels = {"store": "mem0", "class": "recall", "operation": "search_memory", "status": "ok"}
    assert value(registry, "operation_duration_seconds_count", **labels) == 2_000


class TestCap:
    def test_first_values_keep_their_names(self):
        """A cap of one lets the first value through, again and again."""
        cap = Cap(1)

        assert [cap.label(value) for value in ("a", "b", "a")] == ["a", "other", "a"]

    def test_nothing_has_a_name_of_its_own(self):
        """An empty label would look like a missing one."""
        assert [Cap(9).label(value) for value in (None, "")] == ["none", "none"]

    def test_long_values_are_cut(self):
        """A label of megabytes is not kept in memory for ever."""
        assert len(Cap(9).label("x" * 1_000_000)) == 80


def test_own_seconds_leave_out_what_ran_inside(registry, sink, event_factory):
    """Blame falls on the store that was slow, not on the one that asked it."""
    inner = event_factory(
        store="qdrant", duration_s=0.75, nested=True, trace=TraceRef(1, 2, parent_span_id=1)
    )

    sink.write([inner, event_factory(duration_s=1.0, trace=TraceRef(1, 1))])

    assert value(registry, "own_seconds_total", store="qdrant") == 0.75
    assert value(registry, "own_seconds_total", store="mem0") == 0.25


def test_what_we_add_before_the_store_is_a_metric_of_its_own(registry, sink, event_factory):
    """Redaction and queueing are ours to answer for; a model call is not guarded."""
    sink.write(
        [event_factory(waited_s=0.002), event_factory(op_class=OperationClass.MODEL, store="model")]
    )

    assert value(registry, "operation_waited_seconds_sum", store="mem0") == 0.002
    assert value(registry, "operation_waited_seconds_count", store="model") is None
