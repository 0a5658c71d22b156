"""The chokepoint: what the caller gets, what the store is asked, and the one event of each call."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections import Counter
from dataclasses import replace

import pytest
from opentelemetry import trace as otel_trace
from presidio_analyzer import EntityRecognizer

from mnemoscope.memory import (
    BreakerPolicy,
    DeadlineExceededError,
    RedactionError,
    Scope,
    ScopeError,
    StoreUnavailableError,
    context,
)
from mnemoscope.memory.api import (
    CallerMistake,
    Faults,
    OperationClass,
    Record,
    Status,
    Summary,
    Turns,
)
from mnemoscope.memory.context import current
from mnemoscope.memory.guard.call import last_event, outer_call
from mnemoscope.memory.limits.breaker import NORMAL, BreakerState
from mnemoscope.memory.limits.policy import CLASSES
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.trace import Tracing
from tests.kit.bench import bench_of
from tests.kit.patience import GIVE_UP_S

RECALL, FORGET = OperationClass.RECALL, OperationClass.FORGET
SHORT = {RECALL: 0.05, FORGET: 0.05, OperationClass.CHECKPOINT: 0.05}
SHAKY = BreakerPolicy(minimum_calls=1, window_calls=1)


MISTAKE = CallerMistake(what="a mistake", error=(ValueError, TypeError), where=(__name__,))


def raising(exc):
    def store(_arguments):
        raise exc

    return store


class BrokenRedactor:
    """Fails in the place that a test names."""

    is_prepared = True

    def __init__(self, redactor, place):
        self.redactor, self.place = redactor, place
        self.text_to_embed = redactor.text_to_embed

    def begin(self, **given):
        if self.place == "begin":
            raise RuntimeError("grace@example.com")
        redaction = self.redactor.begin(**given)
        return BrokenRedaction(redaction, self.place)


class BrokenRedaction:
    def __init__(self, redaction, place):
        self.redaction, self.place = redaction, place
        self.counts = redaction.counts

    def value(self, value):
        if self.place in {"value", "all"}:
            raise RuntimeError(value)
        return self.redaction.value(value)

    def label(self, text):
        if self.place in {"label", "all"}:
            raise RuntimeError(text)
        return self.redaction.label(text)

    def __getattr__(self, name):
        return getattr(self.redaction, name)


class TestAnswers:
    async def test_the_stores_own_object_is_returned(self, guard, search, reach):
        """Nothing is copied or wrapped: the caller gets the very object the store made."""
        result = ["tea"]

        assert await reach(guard, search, lambda _arguments: result) is result

    async def test_a_failing_store_gives_a_recall_its_neutral_value(self, guard, search, reach):
        """Fail open: the agent goes on with a value of the right type."""
        answer = await reach(guard, search, raising(ConnectionError("down")))

        assert answer == []

    @pytest.mark.parametrize(
        ("overrides", "exc"),
        [
            ({"op_class": FORGET}, ConnectionError("down")),
            ({"op_class": OperationClass.RESUME}, ConnectionError("down")),
            ({"op_class": OperationClass.CHECKPOINT}, ConnectionError("down")),
            ({"neutral": None}, ConnectionError("down")),
            ({}, ValueError("limit must be positive")),
            ({"op_class": OperationClass.REMEMBER}, TypeError("missing argument")),
        ],
        ids=[
            "forget",
            "resume",
            "checkpoint",
            "no neutral",
            "recall, mistake",
            "remember, mistake",
        ],
    )
    async def test_errors_reach_the_caller_as_the_same_object(
        self, make_guard, make_operation, reach, events_of, overrides, exc
    ):
        """What is raised is raised unchanged: classes that fail closed, and callers' mistakes."""
        guard = make_guard(checkpoint_pauses_s=(), mistakes=[MISTAKE])

        with pytest.raises(type(exc)) as seen:
            await reach(guard, make_operation(**overrides), raising(exc))

        assert seen.value is exc
        assert [event.status for event in events_of(guard)] == [Status.ERROR]

    @pytest.mark.parametrize(
        ("exc", "status"),
        [
            (KeyboardInterrupt(), Status.ERROR),
            (SystemExit(1), Status.ERROR),
            (asyncio.CancelledError(), Status.CANCELLED),
            (GeneratorExit(), Status.CANCELLED),
        ],
        ids=lambda given: type(given).__name__,
    )
    async def test_base_exceptions_are_never_swallowed(
        self, guard, search, reach, events_of, exc, status
    ):
        """Not even a recall turns them into a neutral value; the call is reported all the same."""
        with pytest.raises(type(exc)) as seen:
            await reach(guard, search, raising(exc))

        assert seen.value is exc
        assert [event.status for event in events_of(guard)] == [status]

    async def test_system_exit_is_a_failure_only_where_the_adapter_says_so(
        self, make_guard, search, reach, events_of
    ):
        """A library below the store may call sys.exit() for its own trouble."""
        guard = make_guard(exits=True)

        assert await reach(guard, search, raising(SystemExit(1))) == []
        assert [event.error for event in events_of(guard)] == ["SystemExit"]

    @pytest.mark.parametrize("exc", [KeyboardInterrupt(), asyncio.CancelledError()])
    async def test_no_adapter_can_have_other_base_exceptions_swallowed(
        self, make_guard, search, reach, exc
    ):
        """Not even one whose library ends the process."""
        guard = make_guard(exits=True)

        with pytest.raises(type(exc)):
            await reach(guard, search, raising(exc))

    @pytest.mark.parametrize("exc", [ValueError("odd"), KeyError("odd"), RuntimeError("odd")])
    async def test_what_is_unexpected_is_raised_where_a_setting_says_so(
        self, make_guard, search, reach, events_of, exc
    ):
        """While an application is written, its author wants to see the traceback."""
        guard = make_guard(raise_unexpected=True)

        with pytest.raises(type(exc)) as seen:
            await reach(guard, search, raising(exc))

        assert seen.value is exc
        assert [event.status for event in events_of(guard)] == [Status.ERROR]

    async def test_an_outage_is_survived_even_then(self, make_guard, search, reach, events_of):
        """It is the same in development."""
        guard = make_guard(raise_unexpected=True)

        assert await reach(guard, search, raising(ConnectionError("down"))) == []
        assert [event.status for event in events_of(guard)] == [Status.DEGRADED]

    async def test_an_outage_below_is_survived_even_then(
        self, make_guard, make_operation, search, reach
    ):
        """A store that wraps what a guarded store below it raised has the same outage."""
        below, guard = make_guard(raise_unexpected=True), make_guard(raise_unexpected=True)

        def store(_arguments):
            return below.call(make_operation(), raising(ConnectionError("down")))

        assert guard.call(search, store) == []

    async def test_an_unexpected_failure_of_one_customer_closes_the_store_to_nobody(
        self, make_guard, search, reach, events_of
    ):
        """Not if that is all that happens: what one caller's input decides is not the store's."""
        guard = make_guard()
        for _ in range(40):
            with context(customer="ada"):
                await reach(guard, search, raising(KeyError()))

        assert Status.REJECTED not in {event.status for event in events_of(guard)}
        assert await reach(guard, search, lambda _arguments: ["tea"]) == ["tea"]

    async def test_an_unexpected_failure_of_everybody_lets_one_call_at_a_time_through(
        self, make_guard, search, reach
    ):
        """It opens the breaker as fast as an outage; but whoever comes next is a probe at once."""
        guard = make_guard()
        breaker = guard.limits[RECALL].breaker
        states = []
        for number in range(8):
            states.append(breaker.state)
            with context(customer=f"c-{number}"):
                await reach(guard, search, raising(KeyError()))
        admitted = [breaker.admit().granted for _ in range(2)]

        assert set(states) == {BreakerState.CLOSED}
        assert (breaker.state, admitted) == (BreakerState.HALF_OPEN, [True, False])

    async def test_one_customers_store_is_found_to_be_down(
        self, make_guard, make_operation, reach, events_of
    ):
        """By calls of different inputs; whoever else calls is served, at the same time too."""
        guard = make_guard()
        for number in range(8):
            with context(customer="ada"):
                await reach(guard, make_operation({"query": f"a {number}"}), raising(KeyError()))
        breaker = guard.limits[RECALL].breaker
        found = breaker.state
        trial = breaker.admit((None, "ada"))
        with context(customer="ada"):
            await reach(guard, make_operation(), lambda _arguments: ["tea"])
        with context(customer="bob"):
            served = await reach(guard, make_operation(), lambda _arguments: ["tea"])

        assert trial.granted
        assert (found, served) == (BreakerState.HALF_OPEN, ["tea"])
        assert [each.status for each in events_of(guard)][-2:] == [Status.REJECTED, Status.OK]
        assert breaker.state is BreakerState.CLOSED

    async def test_without_a_context_inputs_are_told_apart(self, make_guard, make_operation, reach):
        """An application that names nobody is protected too, and not shut out by one bad input."""
        one, many = make_guard(), make_guard()
        for number in range(40):
            await reach(one, make_operation({"query": "tea"}), raising(KeyError()))
            if many.limits[RECALL].breaker.state is BreakerState.CLOSED:
                await reach(many, make_operation({"query": f"tea {number}"}), raising(KeyError()))

        assert one.limits[RECALL].breaker.state is BreakerState.CLOSED
        assert many.limits[RECALL].breaker.state is BreakerState.HALF_OPEN

    async def test_without_a_context_a_store_that_answers_stays_open(
        self, make_guard, make_operation, reach
    ):
        """Whatever fails beside: the others are served."""
        guard = make_guard()
        for number in range(40):
            await reach(guard, make_operation({"query": f"bad {number}"}), raising(KeyError()))
            answer = await reach(guard, make_operation(), lambda _arguments: ["tea"])
            assert answer == ["tea"]

    async def test_an_answer_takes_back_what_was_not_known(self, make_guard, search, reach, clock):
        """Others are served: whatever fails, it is not the store."""
        guard = make_guard(clock=clock)
        for number in range(40):
            clock.now += 0.1
            with context(customer=f"c-{number}"):
                await reach(guard, search, raising(KeyError()))
            if number % 7 == 0:
                clock.now += 0.1
                await reach(guard, search, lambda _arguments: ["tea"])

        assert guard.limits[RECALL].breaker.state is BreakerState.CLOSED

    async def test_an_unexpected_failure_that_took_long_counts_like_an_outage(
        self, make_guard, search, reach, clock
    ):
        """Whoever is to blame, others wait for places meanwhile."""
        guard = make_guard(clock=clock)

        def slow(_arguments):
            clock.now += 1.0
            raise KeyError

        for _ in range(8):
            await reach(guard, search, slow)

        assert guard.limits[RECALL].breaker.state is BreakerState.OPEN

    @pytest.mark.parametrize("exc", [TypeError(), KeyError()], ids=repr)
    async def test_a_bad_input_does_not_prolong_an_outage(
        self, make_guard, search, reach, clock, exc
    ):
        """As a probe it tells nothing: the next caller's finds the store back."""
        guard = make_guard(breaker=SHAKY, clock=clock)
        await reach(guard, search, raising(ConnectionError()))
        clock.now += 6
        await reach(guard, search, raising(exc))

        assert await reach(guard, search, lambda _arguments: ["tea"]) == ["tea"]

    async def test_a_broken_row_of_mistakes_is_no_reason_to_raise(self, make_guard, search, reach):
        """In doubt it is the store's failure, and the doubt is counted."""
        broken = replace(MISTAKE, when=lambda _exc: 1 / 0)
        guard = make_guard(mistakes=[broken])

        assert await reach(guard, search, raising(ValueError())) == []
        assert guard._faults.counts["guard.classify"] == 1

    async def test_a_broken_neutral_value_shows_the_caller_the_error(
        self, guard, make_operation, reach
    ):
        """Where no neutral value can be made there is none."""
        operation, exc = make_operation(neutral=lambda _arguments: 1 / 0), ConnectionError()

        with pytest.raises(ConnectionError) as seen:
            await reach(guard, operation, raising(exc))

        assert seen.value is exc
        assert guard._faults.counts["guard.neutral"] == 1


class TestOneEvent:
    async def test_ok(self, guard, search, reach, events_of):
        """An answer with something in it."""
        await reach(guard, search, lambda _arguments: ["tea"])

        (event,) = events_of(guard)
        assert (event.status, event.hits, event.neutral, event.error) == (Status.OK, 1, False, None)

    async def test_empty(self, guard, search, reach, events_of):
        """A recall that found nothing, which is not a neutral value."""
        await reach(guard, search, lambda _arguments: [])

        (event,) = events_of(guard)
        assert (event.status, event.hits, event.neutral) == (Status.EMPTY, 0, False)

    async def test_degraded(self, guard, search, reach, events_of):
        """A failure that the caller does not see, except here."""
        await reach(guard, search, raising(ConnectionError("grace@example.com")))

        (event,) = events_of(guard)
        assert (event.status, event.neutral, event.error) == (
            Status.DEGRADED,
            True,
            "ConnectionError",
        )
        assert "grace@" not in repr(event)

    async def test_timeout(self, make_guard, search, reach, events_of, hang):
        """A store that did not answer within the deadline of its class."""
        guard = make_guard(deadlines_s=SHORT)

        answer = await reach(guard, search, hang)

        assert answer == []
        (event,) = events_of(guard)
        assert (event.status, event.neutral, event.late, event.error) == (
            Status.TIMEOUT,
            True,
            True,
            "TimeoutError",
        )

    async def test_timeout_of_a_class_that_fails_closed(
        self, make_guard, forget, reach, events_of, hang
    ):
        """It is raised as what it is, says that it may still happen, and is reported once."""
        guard = make_guard(deadlines_s=SHORT)

        with pytest.raises(DeadlineExceededError, match="may still take effect") as seen:
            await reach(guard, forget, hang)

        assert isinstance(seen.value, TimeoutError)
        (event,) = events_of(guard)
        assert (event.status, event.neutral) == (Status.TIMEOUT, False)

    async def test_rejected_by_the_breaker(self, make_guard, search, forget, reach, events_of):
        """An open breaker asks the store nothing; each class has a breaker of its own."""
        guard = make_guard(breaker=SHAKY)
        await reach(guard, search, raising(ConnectionError()))
        asked = []

        answers = [await reach(guard, search, asked.append) for _ in range(3)]
        await reach(guard, forget, asked.append)

        assert answers == [[], [], []]
        assert len(asked) == 1
        assert [event.status for event in events_of(guard)] == [
            Status.DEGRADED,
            Status.REJECTED,
            Status.REJECTED,
            Status.REJECTED,
            Status.OK,
        ]

    async def test_rejected_by_the_breaker_where_the_class_fails_closed(
        self, make_guard, forget, reach
    ):
        """Never pretend that something was forgotten."""
        guard = make_guard(breaker=SHAKY)
        with pytest.raises(ConnectionError):
            await reach(guard, forget, raising(ConnectionError()))

        with pytest.raises(StoreUnavailableError, match="crm: breaker open"):
            await reach(guard, forget, lambda _arguments: None)

    @pytest.mark.parametrize("place", ["begin", "value", "all"])
    async def test_refused(self, make_guard, redactor, search, reach, events_of, place):
        """What could not be redacted does not reach the store, and no sink sees it."""
        guard = make_guard(redactor=BrokenRedactor(redactor, place))
        asked = []

        with context(tenant="acme", feature="reply"):
            answer = await reach(guard, search, asked.append)

        assert (answer, asked) == ([], [])
        (event,) = events_of(guard)
        assert (event.status, event.neutral) == (Status.REFUSED, True)
        assert event.content.value == "[REDACTED:error]"
        assert event.error == "mnemoscope.memory.errors.RedactionError"

    async def test_refused_where_the_class_fails_closed(
        self, make_guard, redactor, make_operation, reach
    ):
        """The error says where and never what."""
        guard = make_guard(redactor=BrokenRedactor(redactor, "value"))
        operation = make_operation({"query": "grace@example.com"}, op_class=FORGET)
        asked = []

        with pytest.raises(RedactionError, match=r"crm\.search") as seen:
            await reach(guard, operation, asked.append)

        assert asked == []
        assert "grace" not in str(seen.value)

    async def test_denied(self, guard, make_operation, reach, events_of):
        """A wildcard is the caller's mistake: raised, reported, and its content kept nowhere."""

        def wildcard(_arguments):
            raise ScopeError("names everybody")

        asked = []
        with context(tenant="acme"), pytest.raises(ScopeError):
            await reach(guard, make_operation(scope=wildcard), asked.append)

        assert asked == []
        (event,) = events_of(guard)
        assert (event.status, event.content, event.tenant) == (Status.DENIED, None, "acme")

    async def test_cancelled(self, guard, search, events_of):
        """The caller went away while the store was at work."""
        entered = asyncio.Event()

        async def store(_arguments):
            entered.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(guard.acall(search, store))
        await entered.wait()
        task.cancel()

        with pytest.raises(asyncio.CancelledError):
            await task
        assert [event.status for event in events_of(guard)] == [Status.CANCELLED]
        assert guard.limits[RECALL].bulkhead.in_flight == 0

    async def test_a_thousand_calls_have_a_thousand_events(self, guard, search, events_of):
        """None is lost or doubled, and the writer's numbers are dense."""
        for n in range(500):
            guard.call(search, lambda _arguments: ["tea"])
            await guard.acall(search, _answer(["tea"] * (n % 2)))

        events = events_of(guard)
        assert [event.writer_seq for event in events] == list(range(1, 1_001))

    def test_a_sinks_own_calls_are_not_observed(self, make_bench, make_guard, search):
        """Else a sink that remembers something would feed itself for ever; no number is skipped."""
        guards = []

        class Remembering:
            name, idempotent, batches = "remembering", False, 0

            def write(self, batch):
                self.batches += 1
                guards[0].call(search, lambda _arguments: ["tea"])

            def flush(self, _timeout_s):
                return True

            def close(self, _timeout_s):
                return

        remembering = Remembering()
        guards.append(make_guard(drain=Drain([remembering])))
        guards[0].call(search, lambda _arguments: ["tea"])

        assert bench_of(guards[0]).drain.flush(GIVE_UP_S)
        assert remembering.batches == 1
        assert bench_of(guards[0]).drain.next_seq() == 2


class TestFailsOpen:
    @pytest.mark.parametrize(
        ("site", "given"),
        [
            ("guard.trace", {"tracing": Tracing(sample=lambda _trace_id: 1 / 0)}),
            ("guard.trace", {"tracing": "nonsense"}),
            ("guard.describe", {"parent_run": lambda: 1 / 0}),
        ],
        ids=["sampler", "tracing", "parent run"],
    )
    async def test_services_may_fail(self, make_guard, search, reach, events_of, site, given):
        """A broken service costs the event a field, and is counted; the caller sees nothing."""
        guard = make_guard(**given)

        answer = await reach(guard, search, lambda _arguments: ["tea"])

        assert answer == ["tea"]
        assert [event.status for event in events_of(guard)] == [Status.OK]
        assert guard._faults.counts == {site: 1}

    async def test_ids_that_are_no_numbers_cost_the_trace_only(self, make_guard, search, reach):
        """The host's id generator may return anything."""

        class Ids:
            def generate_span_id(self):
                return "b7"

            generate_trace_id = generate_span_id

        guard = make_guard(tracing=Tracing(Ids()))

        assert await reach(guard, search, lambda _arguments: ["tea"]) == ["tea"]
        assert guard._faults.counts == {"guard.trace": 1}

    @pytest.mark.parametrize(
        ("site", "part"),
        [
            ("guard.scope", "scope"),
            ("guard.summary", "summary"),
            ("guard.describe", "collection"),
            ("guard.describe", "content"),
        ],
    )
    async def test_descriptions_may_fail(self, guard, make_operation, reach, events_of, site, part):
        """A broken description costs the event a field, and is counted; the caller sees nothing."""

        def broken(*_given):
            raise RuntimeError("grace@example.com")

        answer = await reach(guard, make_operation(**{part: broken}), lambda _arguments: ["tea"])

        assert answer == ["tea"]
        (event,) = events_of(guard)
        assert event.status is Status.OK
        assert "grace@" not in repr(event)
        assert guard._faults.counts == {site: 1}

    async def test_a_summary_of_the_wrong_type_is_as_good_as_none(
        self, guard, make_operation, reach, events_of
    ):
        """The caller still gets the answer, and the call its event."""
        operation = make_operation(summary=lambda *_given: None)

        answer = await reach(guard, operation, lambda _arguments: ["tea"])

        assert answer == ["tea"]
        assert [event.hits for event in events_of(guard)] == [None]

    async def test_labels_that_cannot_be_redacted_are_withheld(
        self, make_guard, redactor, search, reach, events_of
    ):
        """Closed on confidentiality, label by label; the event is kept."""
        guard = make_guard(redactor=BrokenRedactor(redactor, "label"))

        with context(tenant="acme", feature="reply", agent="sales"):
            answer = await reach(guard, search, lambda _arguments: ["tea"])

        assert answer == ["tea"]
        (event,) = events_of(guard)
        assert {event.tenant, event.feature, event.agent} == {"[REDACTED:error]"}

    async def test_a_drain_that_raises_is_not_noticed(self, make_guard, search, reach):
        """The last step before the sinks may fail like any other."""

        class Broken:
            writer_id = "00000000000000aa"

            def next_seq(self):
                raise RuntimeError

            def close(self, _timeout_s):
                return

        guard = make_guard(drain=Broken())

        assert await reach(guard, search, lambda _arguments: ["tea"]) == ["tea"]
        assert guard._faults.counts == {"guard.report": 1}

    async def test_a_sink_that_raises_is_not_noticed(self, make_guard, sink, search, reach):
        """Its errors are its lane's."""

        def write(_batch):
            raise OSError

        sink.write, sink.idempotent = write, False
        guard = make_guard()

        assert await reach(guard, search, lambda _arguments: ["tea"]) == ["tea"]
        assert not bench_of(guard).drain.flush(GIVE_UP_S)
        assert guard._faults.counts == {"sink.capture": 1}

    async def test_a_host_whose_logging_raises_is_spared(
        self, make_guard, search, reach, monkeypatch
    ):
        """Telling of an error of ours must not become an error of the host's."""

        def broken(*_given):
            raise RuntimeError

        monkeypatch.setattr("mnemoscope.telemetry.process.faults.logger.warning", broken)
        guard = make_guard(tracing="nonsense")

        assert await reach(guard, search, lambda _arguments: ["tea"]) == ["tea"]

    async def test_observing_stops_while_it_fails_too_often(
        self, make_guard, make_operation, reach, clock, sink
    ):
        """It is counted, the caller is not told an old outcome for this one, and it resumes."""
        faults = Faults(limit=2, window_s=60, clock=clock)
        guard = make_guard(faults=faults, drain=Drain([sink], faults=faults))
        bad = make_operation(summary=lambda *_given: Summary(memory_ids=7))
        for _ in range(3):
            assert await reach(guard, bad, lambda _arguments: ["tea"]) == ["tea"]
        assert last_event.get() is None
        assert faults.counts == {"guard.report": 2, "guard.unreported": 1}
        clock.now += 61

        await reach(guard, make_operation(), lambda _arguments: ["tea"])

        assert bench_of(guard).drain.flush(GIVE_UP_S)
        assert [event.status for event in sink.events] == [Status.OK]

    async def test_dead_sinks_do_not_stop_observing(self, make_guard, search, reach):
        """One sink's trouble is none of the other four's."""
        guard = make_guard()
        for _ in range(1_000):
            guard._faults.note("sink.otlp", OSError())

        await reach(guard, search, lambda _arguments: ["tea"])

        assert last_event.get().status is Status.OK


class TestRedaction:
    async def test_the_store_gets_redacted_arguments(self, guard, make_operation, reach, events_of):
        """And the caller's own objects are not touched."""
        given = {"query": "write to grace@example.com"}
        asked = []

        await reach(guard, make_operation(given), asked.append)

        assert given == {"query": "write to grace@example.com"}
        (event,) = events_of(guard)
        assert "grace@" not in repr((asked, event.content.value))
        assert event.redactions == {"EMAIL_ADDRESS": 1}

    async def test_names_and_ids_reach_sinks_redacted(
        self, guard, make_operation, reach, events_of
    ):
        """A tenant, run or collection may be an e-mail address; the customer is opaque."""
        operation = make_operation(collection=lambda _arguments: "grace@example.com")

        with context(
            tenant="t@example.com", customer="c@example.com", run="r@example.com", agent="sales"
        ):
            await reach(guard, operation, lambda _arguments: ["tea"])

        (event,) = events_of(guard)
        assert "@example.com" not in repr(event)
        assert event.agent == "sales"
        assert event.redactions == {}

    async def test_the_customers_ids_are_always_redacted(self, guard, make_operation, reach):
        """Those of the context, those it knows, and the one that the arguments name."""
        operation = make_operation(
            {"query": "c-4711 aka zebulon42 wrote to q-8822"},
            scope=lambda _arguments: Scope(customer="q-8822"),
        )
        asked = []

        with context(customer="c-4711", known=("zebulon42",)):
            await reach(guard, operation, lambda arguments: asked.append(arguments["query"]))

        assert not {"c-4711", "zebulon42", "q-8822"} & set(asked[0].split())


class TestContexts:
    async def test_the_store_sees_the_callers_context(self, guard, search, reach):
        """Scope, span and the user's own variables, also on another thread."""
        mine = contextvars.ContextVar("mine", default="unset")
        mine.set("set")

        def store(_arguments):
            span = otel_trace.get_current_span().get_span_context()
            return [current().feature, mine.get(), span.span_id]

        with context(feature="reply"):
            feature, own, span_id = await reach(guard, search, store)

        assert (feature, own) == ("reply", "set")
        assert span_id == last_event.get().trace.span_id

    async def test_the_callers_context_is_as_before(self, guard, search, reach):
        """Neither span nor call leaks out of the store's work, whatever its end."""
        await reach(guard, search, raising(ConnectionError()))
        await reach(guard, search, lambda _arguments: ["tea"])

        assert outer_call() is None
        assert not otel_trace.get_current_span().get_span_context().is_valid

    @pytest.mark.long
    async def test_ten_thousand_tasks_do_not_mix_scopes(self, make_guard, search, events_of):
        """The store and the event see the feature of the task that made the call."""
        guard = make_guard(concurrency=20_000, deadlines_s={OperationClass.RECALL: 60.0})

        async def store(_arguments):
            await asyncio.sleep(0)
            return [current().feature]

        async def one(n):
            with context(feature=f"f{n % 97}"):
                answer = await guard.acall(search, store)
            return answer[0], last_event.get().feature

        seen = await asyncio.gather(*(one(n) for n in range(10_000)))

        assert seen == [(f"f{n % 97}",) * 2 for n in range(10_000)]

    async def test_the_last_outcome_is_the_callers_own(self, guard, search, reach):
        """It tells a neutral value from an empty memory, right after the call."""
        await reach(guard, search, raising(ConnectionError()))
        degraded = last_event.get()
        await reach(guard, search, lambda _arguments: [])

        assert (degraded.neutral, last_event.get().neutral) == (True, False)

    async def test_tasks_do_not_see_each_others_outcomes(self, guard, search):
        """Two at once, one of which fails."""
        turn = asyncio.Event()

        async def fails():
            await guard.acall(search, _fail(ConnectionError()))
            turn.set()
            return last_event.get().status

        async def succeeds():
            await turn.wait()
            await guard.acall(search, _answer(["tea"]))
            return last_event.get().status

        assert await asyncio.gather(fails(), succeeds()) == [Status.DEGRADED, Status.OK]

    def test_threads_do_not_see_each_others_outcomes(self, guard, search):
        """A call on another thread leaves this one's outcome alone."""
        guard.call(search, lambda _arguments: [])
        thread = threading.Thread(target=guard.call, args=(search, lambda _arguments: ["tea"]))
        thread.start()
        thread.join()

        assert last_event.get().status is Status.EMPTY

    def test_a_coroutine_ended_from_another_context_leaves_no_trace(
        self, guard, search, events_of, caplog
    ):
        """As the collector ends a forgotten one: no error of ours in place of the end itself."""

        async def store(_arguments):
            await _Pause()

        calling = guard.acall(search, store)
        running = asyncio.new_event_loop()
        try:
            with context(customer="c-42"):
                contextvars.copy_context().run(_start_in_task, running, calling)
            calling.close()
        finally:
            running.close()
        gc.collect()

        assert [event.status for event in events_of(guard)] == [Status.CANCELLED]
        assert caplog.records == []
        assert guard.limits[RECALL].bulkhead.in_flight == 0


USERS = frozenset({"user_id"})


async def _asked_inside(
    make_guard, make_operation, reach, *, shields=True, given=None, ids=frozenset(), found=None
):
    """Return what a store is asked by a call inside another one, which looks something up first."""
    bench = bench_of(make_guard())
    inner = bench.guard("qdrant")
    outer = bench.guard("crm", below=lambda: {inner: ()})
    asked = {}
    raw = {
        "user_id": "ada@example.com",
        "other": {"user_id": "grace@example.com"},
        "note": ["from ada@example.com", "ada@example.com"],
    }

    def sift(answer, _arguments, keep):
        return [each for each in answer if keep(Record("m-1", tuple(each.items())))]

    def store(_arguments):
        inner.call(make_operation(sift=sift), lambda _arguments: [found or {}])
        nested = make_operation({"payload": raw})
        inner.call(nested, lambda arguments: asked.update(arguments["payload"]))

    await reach(outer, make_operation(given, shields=shields, ids=ids, redact=_as_given), store)
    return asked


def _as_given(arguments, _redaction):
    return arguments


class Watching(EntityRecognizer):
    """Finds nothing, and tells what it is asked about."""

    def __init__(self, tell):
        super().__init__(supported_entities=["NOTHING"])
        self._tell = tell

    def load(self):
        return

    def analyze(self, text, entities, nlp_artifacts=None):
        self._tell(text)
        return []


class TestNesting:
    async def test_a_call_inside_another_is_marked(self, make_guard, make_operation, reach):
        """So that nothing is counted twice and blame falls on the right store."""
        outer, inner = make_guard(), make_guard()
        seen = []

        def store(_arguments):
            inner.call(make_operation(), lambda _arguments: ["tea"])
            seen.append(last_event.get())
            return ["tea"]

        await reach(outer, make_operation(), store)

        assert (seen[0].nested, last_event.get().nested) == (True, False)
        assert seen[0].trace.parent_span_id == last_event.get().trace.span_id

    @pytest.mark.parametrize("shields", [True, False])
    async def test_what_a_call_inside_another_carries_is_redacted(
        self, make_guard, make_operation, reach, shields
    ):
        """Whatever it is inside of: what runs there may carry something else."""
        asked = await _asked_inside(make_guard, make_operation, reach, shields=shields)

        assert "grace@" not in repr(asked)

    async def test_ids_that_a_store_hands_down_stay(self, make_guard, make_operation, reach):
        """The very id, under the key that the store has ids under; anything else does not."""
        asked = await _asked_inside(
            make_guard, make_operation, reach, given={"user_id": "ada@example.com"}, ids=USERS
        )

        assert asked["user_id"] == "ada@example.com"
        assert "ada@example.com" not in repr(asked["note"])
        assert "grace@" not in repr(asked)

    async def test_ids_that_the_store_below_answered_with_stay(
        self, make_guard, make_operation, reach
    ):
        """So that a memory that is changed by its id alone is written back as its user's."""
        found = {"user_id": "grace@example.com"}
        asked = await _asked_inside(
            make_guard, make_operation, reach, given={"id": "m-1"}, ids=USERS, found=found
        )

        assert asked["other"]["user_id"] == "grace@example.com"
        assert "ada@" not in repr(asked)

    @pytest.mark.parametrize("about", ["tea", "grace@example.com"])
    async def test_an_event_repeats_no_content_of_an_outer_calls(
        self, make_guard, make_operation, reach, events_of, about
    ):
        """What the outer call does not tell of is told by the inner one."""
        bench = bench_of(make_guard())
        inner = bench.guard("qdrant")
        outer = bench.guard("crm", below=lambda: {inner: ()})

        def store(_arguments):
            return inner.call(make_operation({"query": about}), lambda _arguments: [])

        await reach(outer, make_operation(), store)
        nested, whole = events_of(outer)

        assert whole.content is not None
        assert (nested.content is not None) is (about != "tea")

    @pytest.mark.parametrize("below", [(), ("facts",)])
    async def test_content_that_an_outer_call_has_not_carried_is_told(
        self, make_guard, make_operation, reach, events_of, below
    ):
        """A note that a store writes elsewhere is remembered, so the audit trail has it."""
        bench = bench_of(make_guard())
        inner = bench.guard("qdrant")
        outer = bench.guard("crm", below=lambda: {inner: below} if below else {})

        def store(_arguments):
            nested = make_operation({"query": "tea"}, collection=lambda _arguments: "notes")
            return inner.call(nested, lambda _arguments: [])

        await reach(outer, make_operation(), store)

        assert [each.content is not None for each in events_of(outer)] == [True, True]

    async def test_a_text_is_searched_once_for_all_stores_that_it_goes_through(
        self, make_guard, make_operation, reach, subject_keys
    ):
        """However long: what the outer call redacted is known as such where it is met again."""
        searched = []
        redactor = build_redactor(
            model="none", keys=subject_keys, recognizers=[Watching(searched.append)]
        )
        outer = make_guard(redactor=redactor)
        inner = bench_of(outer).guard("qdrant")
        texts = ["grace@example.com likes tea " * 9, "likes tea with milk, and rain " * 9]

        def store(arguments):
            nested = make_operation({"payload": {"data": arguments["query"]}})
            return inner.call(nested, lambda _arguments: [])

        def redact(arguments, redaction):
            return {name: redaction.text(value) for name, value in arguments.items()}

        for text in texts:
            await reach(outer, make_operation({"query": text}, redact=redact), store)

        assert searched == texts

    async def test_a_task_that_outlives_the_call_is_not_nested(self, guard, make_operation):
        """It inherits the context, but the call that redacted for it is over."""
        go, asked = asyncio.Event(), []

        async def later():
            await go.wait()
            operation = make_operation({"query": "grace@example.com"})
            await guard.acall(operation, _answer([], asked))
            return last_event.get()

        async def store(_arguments):
            return asyncio.create_task(later())

        task = await guard.acall(make_operation(), store)
        go.set()
        event = await task

        assert not event.nested
        assert "grace@" not in repr(asked)


class TestDeadlines:
    def test_a_hung_call_keeps_its_place_until_it_ends(
        self, make_guard, search, events_of, eventually
    ):
        """The caller has gone, the store is still at work: in flight, late, and reported once."""
        guard, go = make_guard(deadlines_s=SHORT), threading.Event()

        answer = guard.call(search, lambda _arguments: go.wait(GIVE_UP_S) and ["late"])
        in_flight = guard.limits[RECALL].bulkhead.in_flight
        go.set()

        assert (answer, in_flight) == ([], 1)
        assert eventually(lambda: guard.deadline.late_results == 1)
        assert guard.limits[RECALL].bulkhead.in_flight == 0
        assert [event.status for event in events_of(guard)] == [Status.TIMEOUT]

    def test_a_late_result_is_not_delivered_to_the_next_caller(
        self, make_guard, search, eventually
    ):
        """The worker that was late serves others afterwards, with their own results."""
        guard, go = make_guard(deadlines_s=SHORT), threading.Event()
        guard.call(search, lambda _arguments: go.wait(GIVE_UP_S) and ["late"])
        go.set()
        eventually(lambda: guard.deadline.late_results == 1)

        answers = [guard.call(search, lambda _arguments, n=n: [n]) for n in range(20)]

        assert answers == [[n] for n in range(20)]

    def test_hung_calls_fill_the_bulkhead_and_no_more(self, make_guard, search, events_of):
        """A store that hangs for all costs this many threads, then nothing."""
        guard, go = make_guard(deadlines_s=SHORT, concurrency=2), threading.Event()

        answers = [guard.call(search, lambda _arguments: go.wait(GIVE_UP_S)) for _ in range(4)]
        go.set()

        assert answers == [[]] * 4
        counts = Counter(event.status for event in events_of(guard))
        assert counts == {Status.TIMEOUT: 2, Status.REJECTED: 2}

    async def test_the_deadline_cancels_an_async_call(self, make_guard, search):
        """A coroutine can be stopped, so it is, and its place is free at once."""
        guard, ended = make_guard(deadlines_s=SHORT), []

        async def store(_arguments):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        assert await guard.acall(search, store) == []
        assert ended == ["cancelled"]
        assert guard.limits[RECALL].bulkhead.in_flight == 0
        assert asyncio.current_task().cancelling() == 0

    async def test_a_client_that_renames_the_cancellation_has_still_timed_out(
        self, make_guard, search
    ):
        """HTTP clients turn it into errors of their own."""
        guard = make_guard(deadlines_s=SHORT)

        async def store(_arguments):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise ValueError("pool is closing") from None

        assert await guard.acall(search, store) == []
        assert last_event.get().status is Status.TIMEOUT

    async def test_the_stores_own_timeout_is_a_failure_and_not_our_deadline(
        self, guard, search, forget, reach
    ):
        """It is told apart in the event, and raised as it is where the class fails closed."""
        exc = TimeoutError("read timed out")

        assert await reach(guard, search, raising(exc)) == []
        status = last_event.get().status
        with pytest.raises(TimeoutError) as seen:
            await reach(guard, forget, raising(exc))

        assert status is Status.DEGRADED
        assert seen.value is exc

    def test_without_a_deadline_there_is_no_thread(self, make_guard, search):
        """The call is made where the caller is."""
        guard = make_guard(deadlines_s={RECALL: 0})

        assert guard.call(search, lambda _arguments: threading.get_ident()) == threading.get_ident()

    def test_an_inline_call_stays_on_its_thread(self, guard, search, make_operation):
        """For clients that are bound to it, by call or by method."""

        def thread(_arguments):
            return threading.get_ident()

        by_call = guard.call(search, thread, inline=True)
        by_method = guard.call(make_operation(inline=True), thread)

        assert {by_call, by_method} == {threading.get_ident()}

    async def test_no_deadline_never_cancels(self, make_guard, search):
        """Zero means none, in async code too."""
        guard = make_guard(deadlines_s={RECALL: 0})

        async def store(_arguments):
            await asyncio.sleep(0.01)
            return ["tea"]

        assert await guard.acall(search, store) == ["tea"]

    def test_a_client_that_is_not_thread_safe_is_called_by_one_at_a_time(self, make_guard, search):
        """The lock is held around the store's work and nothing else."""
        guard, inside, most = make_guard(turns=Turns(lock=threading.Lock())), [], []

        def store(_arguments):
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.002)
            inside.pop()

        threads = [threading.Thread(target=guard.call, args=(search, store)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert most == [1] * 8


class TestRetries:
    async def test_a_checkpoint_is_tried_again(self, make_guard, make_operation, reach, events_of):
        """As often as the policy has pauses, and reported once."""
        guard = make_guard(checkpoint_pauses_s=(0.0, 0.0))
        answers = iter([ConnectionError(), ConnectionError(), "saved"])

        def store(_arguments):
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        operation = make_operation(op_class=OperationClass.CHECKPOINT)

        assert await reach(guard, operation, store) == "saved"
        assert [event.status for event in events_of(guard)] == [Status.OK]

    async def test_the_last_attempts_error_is_raised(self, make_guard, make_operation, reach):
        """When the attempts are used up, the store's own error reaches the graph."""
        guard, errors = make_guard(checkpoint_pauses_s=(0.0,)), []

        def store(_arguments):
            errors.append(ConnectionError())
            raise errors[-1]

        with pytest.raises(ConnectionError) as seen:
            await reach(guard, make_operation(op_class=OperationClass.CHECKPOINT), store)

        assert len(errors) == 2
        assert seen.value is errors[-1]

    @pytest.mark.parametrize("op_class", CLASSES)
    async def test_nothing_else_is_tried_again(self, make_guard, make_operation, reach, op_class):
        """No other class, and no mistake of the caller's: only it knows whether it may be."""
        guard, asked = make_guard(checkpoint_pauses_s=(0.0, 0.0), mistakes=[MISTAKE]), []
        exc = ValueError if op_class is OperationClass.CHECKPOINT else ConnectionError

        def store(_arguments):
            asked.append(1)
            raise exc

        with pytest.raises(exc):
            await reach(guard, make_operation(op_class=op_class, neutral=None), store)

        assert len(asked) == 1

    def test_it_is_not_tried_again_when_the_caller_has_gone(
        self, make_guard, make_operation, eventually
    ):
        """It was told that the checkpoint failed; writing it after all could undo a newer one."""
        guard = make_guard(checkpoint_pauses_s=(0.2,), deadlines_s=SHORT)
        asked = []

        def store(_arguments):
            asked.append(1)
            raise ConnectionError

        with pytest.raises(DeadlineExceededError):
            guard.call(make_operation(op_class=OperationClass.CHECKPOINT), store)

        assert eventually(lambda: guard.deadline.late_results == 1)
        assert asked == [1]


class TestBreaking:
    async def test_only_store_failures_count(self, make_guard, search, reach):
        """A caller that keeps making mistakes does not close the store to others."""
        guard = make_guard(breaker=SHAKY, mistakes=[MISTAKE])
        for exc in (ValueError(), KeyboardInterrupt(), asyncio.CancelledError()):
            with pytest.raises(type(exc)):
                await reach(guard, search, raising(exc))

        assert await reach(guard, search, lambda _arguments: ["tea"]) == ["tea"]

    async def test_a_mistake_gives_the_probe_back(self, make_guard, search, reach, clock):
        """The next caller may find out whether the store is back."""
        guard = make_guard(breaker=SHAKY, clock=clock, mistakes=[MISTAKE])
        await reach(guard, search, raising(ConnectionError()))
        clock.now += 6
        with pytest.raises(ValueError, match="mistake"):
            await reach(guard, search, raising(ValueError("mistake")))

        assert await reach(guard, search, lambda _arguments: ["tea"]) == ["tea"]

    def test_a_full_bulkhead_gives_the_probe_back(self, make_guard, search, clock):
        """It was never made: the next caller may make it."""
        guard = make_guard(
            breaker=SHAKY, clock=clock, concurrency=1, deadlines_s={RECALL: 0}, waits_s={RECALL: 0}
        )
        entered, go = threading.Event(), threading.Event()

        def slow(_arguments):
            entered.set()
            go.wait(GIVE_UP_S)
            raise ConnectionError

        thread = threading.Thread(target=guard.call, args=(search, slow))
        thread.start()
        entered.wait(GIVE_UP_S)
        guard.limits[RECALL].breaker.settle(NORMAL, failed=True)
        clock.now += 6
        crowded = guard.call(search, lambda _arguments: ["tea"])
        go.set()
        thread.join()

        assert crowded == []
        assert guard.call(search, lambda _arguments: ["tea"]) == ["tea"]

    async def test_slow_answers_open_it_too(self, make_guard, search, reach, clock):
        """An answer is slow from half of its deadline on; the caller still gets it."""
        guard = make_guard(breaker=SHAKY, clock=clock)

        def store(_arguments):
            clock.now += 1.0
            return ["tea"]

        answers = [await reach(guard, search, store) for _ in range(2)]

        assert answers == [["tea"], []]


class TestTenancy:
    async def test_a_call_without_owner_is_denied_where_it_is_enforced(
        self, make_guard, make_operation, reach
    ):
        """And passes where the context or the arguments name one."""
        guard, asked = make_guard(enforce_tenancy=True), []
        bare = make_operation(needs_owner=True, confine=lambda given, _customer: given)
        named = make_operation(needs_owner=True, scope=lambda _arguments: Scope(customer="c-1"))

        with pytest.raises(ScopeError, match=r"crm\.search names no customer"):
            await reach(guard, bare, asked.append)
        await reach(guard, named, asked.append)
        with context(customer="c-1"):
            await reach(guard, bare, asked.append)

        assert len(asked) == 2

    async def test_what_a_store_asks_of_another_is_for_its_own_customer(
        self, make_guard, make_operation, reach
    ):
        """If the client is known to narrow it, as mem0 narrows what it asks of Qdrant."""
        bench = bench_of(make_guard())
        inner = make_guard(enforce_tenancy=True, faults=bench.faults)
        outer = bench.guard("mem0", below=lambda: {inner: ()})
        elsewhere = bench.guard("mem0")
        nested = make_operation(needs_owner=True)

        def ask(_arguments):
            return inner.call(nested, lambda _arguments: ["tea"])

        with context(customer="c-1"):
            answer = await reach(outer, make_operation(hands_customer_on=True), ask)
            with pytest.raises(ScopeError, match="cannot be confined"):
                await reach(
                    elsewhere,
                    make_operation(op_class=OperationClass.FORGET, hands_customer_on=True),
                    ask,
                )
            with pytest.raises(ScopeError, match="cannot be confined"):
                await reach(outer, make_operation(op_class=OperationClass.FORGET), ask)
        with pytest.raises(ScopeError, match="names no customer"):
            await reach(outer, make_operation(op_class=OperationClass.FORGET), ask)

        assert answer == ["tea"]

    @pytest.mark.parametrize(
        ("row", "is_served"),
        [
            ({}, False),
            ({"needs_owner": True}, False),
            ({"scope": lambda _arguments: Scope(customer="c-2")}, False),
            ({"scope": lambda _arguments: Scope(tenant="globex")}, False),
            ({"unconfined": "x", "scope": lambda _arguments: Scope(tenant="globex")}, False),
            ({"confine": lambda given, _: given, "scope": lambda _: Scope(customer="c-2")}, False),
            ({"only": lambda result, _: result, "op_class": OperationClass.FORGET}, False),
            ({"only": lambda result, _: result}, True),
            ({"confine": lambda given, _: given}, True),
            ({"scope": lambda _arguments: Scope(customer="c-1")}, True),
            ({"scope": lambda _arguments: Scope(customer=1), "customer": "1"}, True),
            ({"unconfined": "it tells no memory"}, True),
        ],
    )
    async def test_a_row_that_confines_nothing_is_no_permission(
        self, make_guard, make_operation, reach, row, is_served
    ):
        """A customer's call is confined, narrowed, names that customer, or is refused."""
        row = dict(row)
        guard, asked = make_guard(enforce_tenancy=True), []
        with context(customer=row.pop("customer", "c-1"), tenant="acme"):
            try:
                await reach(guard, make_operation(**row), asked.append)
            except ScopeError:
                asked.append("refused")

        assert (asked != ["refused"]) is is_served

    @pytest.mark.parametrize("customer", [None, "c-42"])
    @pytest.mark.parametrize("needs_owner", [True, False])
    async def test_an_unreadable_owner_is_denied_where_it_is_enforced(
        self, make_guard, make_operation, reach, needs_owner, customer
    ):
        """It may be somebody else whom the call names, whoever the context is for."""
        guard, asked = make_guard(enforce_tenancy=True), []
        row = {"needs_owner": needs_owner, "confine": lambda arguments, _customer: arguments}
        operation = make_operation(scope=lambda _arguments: 1 / 0, **row)

        with context(customer=customer), pytest.raises(ScopeError, match="whom it names"):
            await reach(guard, operation, asked.append)

        assert asked == []

    @pytest.mark.parametrize("part", ["confine", "only"])
    async def test_what_keeps_customers_apart_fails_closed(
        self, make_guard, make_operation, reach, events_of, part
    ):
        """Nothing is asked, or nothing handed out, when it cannot be narrowed; one event."""
        guard = make_guard(enforce_tenancy=True)
        operation = make_operation(**{part: lambda *_given: 1 / 0})

        with context(customer="c-1"), pytest.raises(ScopeError, match="ZeroDivisionError"):
            await reach(guard, operation, lambda _arguments: ["somebody else's"])

        assert len(events_of(guard)) == 1

    async def test_results_of_others_are_counted_always_and_dropped_where_enforced(
        self, make_guard, make_operation, reach
    ):
        """The tripwire."""
        operation = make_operation(
            summary=lambda _result, _arguments: Summary(hits=2, owners=("c-1", "c-2")),
            only=lambda result, customer: [each for each in result if each == customer],
        )
        seen = []
        for enforced in (False, True):
            guard = make_guard(enforce_tenancy=enforced)
            with context(customer="c-1"):
                answer = await reach(guard, operation, lambda _arguments: ["c-1", "c-2"])
            seen.append((answer, last_event.get().foreign_hits))

        assert seen == [(["c-1", "c-2"], 1), (["c-1"], 1)]


class TestTimes:
    def test_durations_come_from_the_monotonic_clock(self, make_guard, make_operation, clock):
        """With what passed before the store was reached apart from the rest."""

        def scope(_arguments):
            clock.now += 0.25
            return Scope()

        def store(_arguments):
            clock.now += 0.5

        guard = make_guard(clock=clock, wall_ns=lambda: 17)
        guard.call(make_operation(scope=scope), store)

        event = last_event.get()
        assert (event.started_ns, event.waited_s, event.duration_s) == (17, 0.25, 0.75)

    def test_a_store_reached_at_once_was_not_waited_for(self, make_guard, search, clock):
        """Zero is a time like any other, for a clock that begins there."""

        def store(_arguments):
            clock.now += 0.5

        make_guard(clock=clock).call(search, store)

        assert (last_event.get().waited_s, last_event.get().duration_s) == (0.0, 0.5)

    def test_all_the_time_of_a_call_that_reached_no_store_is_waiting(
        self, make_guard, make_operation, clock
    ):
        """It never got there."""

        def redact(_arguments, _redaction):
            clock.now += 0.5
            raise RuntimeError

        make_guard(clock=clock).call(make_operation(redact=redact), lambda _arguments: None)

        assert (last_event.get().waited_s, last_event.get().duration_s) == (0.5, 0.5)

    def test_a_clock_that_goes_backwards_gives_no_negative_times(self, make_guard, search, clock):
        """No sink has to deal with them."""

        def store(_arguments):
            clock.now -= 5

        make_guard(clock=clock).call(search, store)

        assert (last_event.get().waited_s, last_event.get().duration_s) == (0.0, 0.0)


class _Pause:
    """Awaiting it suspends, once, whoever runs the coroutine."""

    def __await__(self):
        yield


def _start_in_task(loop, coroutine):
    """Run the first step of *coroutine* as if a task of *loop* did."""
    task = loop.create_task(_nothing())
    try:
        asyncio._set_running_loop(loop)
        asyncio.tasks._enter_task(loop, task)
        coroutine.send(None)
    finally:
        asyncio.tasks._leave_task(loop, task)
        asyncio._set_running_loop(None)
        loop.run_until_complete(task)


async def _nothing():
    return


def _answer(result, asked=None):
    async def store(arguments):
        if asked is not None:
            asked.append(arguments)
        await asyncio.sleep(0)
        return result

    return store


def _fail(exc):
    async def store(_arguments):
        raise exc

    return store
