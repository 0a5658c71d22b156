"""Deviations: planted stories are found in a noisy trail, and a clean one has none."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from mnemoscope.audit import AuditLog
from mnemoscope.audit.deviations import DeviationSearch, OpenRuns, find_deviations
from mnemoscope.memory.api import OperationClass, OutcomeEvent, Status, TraceRef, Usage
from tests.kit.agent_days import SLOW_AND_SHORT, START_S, TWICE_AS_OFTEN, AgentDays
from tests.kit.lengths import examples

DAYS, WINDOW, DAY_US = 30, 7, 86_400_000_000
NOW_US = (START_S + DAYS * 86_400) * 1_000_000
SINCE_US, BEFORE_US = NOW_US - WINDOW * DAY_US, NOW_US - DAYS * DAY_US
NIGHT_US, MINUTE_US = 3 * 3_600_000_000, 60_000_000


def found_in(days):
    """Return what deviates in the last week of *days*, read as from a trail."""
    search = DeviationSearch((BEFORE_US + SINCE_US) // 2, SINCE_US)
    search.read(days.rows())
    return search.result(None)


def of(findings, agent):
    """Return the findings about *agent*."""
    return [each for each in findings if each.agent == agent]


@pytest.fixture(params=["sqlite", "postgres"])
def log(request, tmp_path, subject_keys):
    """An audit log in each database."""
    url = f"sqlite:///{tmp_path}/audit.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    log = AuditLog(url, subject_keys, clock_ns=lambda: NOW_US * 1_000)
    yield log
    log.close()


@pytest.fixture
def quiet(event_factory):
    """Return a function that makes the recalls of runs: six a day, all alike but for *changed*."""

    def runs(changed=None, *, days=DAYS, first=0, calls=1):
        for number in range(6 * first, 6 * days):
            at_us = BEFORE_US + number * DAY_US // 6 + NIGHT_US
            given = {"agent": "reader", "run": f"run-{number}", "hits": 5, "top_score": 0.8}
            given |= {"purpose": "reply", "collection": "notes", "size_bytes": 100}
            is_changed = changed is not None and at_us >= SINCE_US + DAY_US
            for call in range(given.pop("calls", calls)):
                yield event_factory(
                    started_ns=(at_us + call * MINUTE_US) * 1_000,
                    trace=TraceRef(number + 1, call + 1),
                    **(given | (changed if is_changed else {})),
                )

    return runs


@pytest.fixture
def judged(log):
    """Return a function that records events, and what deviates in the last week of them."""

    def judge(events):
        log.append([*events])
        return find_deviations(log, SINCE_US, NOW_US, before_us=BEFORE_US)

    return judge


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40, 40 + examples(2)))
def test_slow_runs_with_short_answers_are_found(seed):
    """Twelve of a day's took three times as long as average, and answered in few words."""
    found = found_in(AgentDays(seed, stories=[SLOW_AND_SHORT])).findings

    finding = max(of(found, "classifier"), key=lambda each: each.runs / each.expected)
    times = {each.measure: each.found / each.usual for each in finding.evidence}
    assert 6 <= finding.runs <= 30
    assert max(times.values()) > 2
    assert min(times.values()) < 0.6


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40, 40 + examples(2)))
def test_an_agent_that_queries_twice_as_often_with_other_parameters_is_found(seed):
    """Its queries are shorter, and at a place that it had never asked."""
    found = found_in(AgentDays(seed, stories=[TWICE_AS_OFTEN])).findings

    assert "place" in {each.new for each in of(found, "researcher")}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60, 60 + examples(3)))
def test_days_without_a_story_have_next_to_no_finding(seed):
    """Weekends, nights, heavy tails, restarts and an outage are what is usual."""
    found = found_in(AgentDays(seed))

    assert found.judged > 1_000
    assert len(found.findings) <= WINDOW


def test_what_is_alike_stays_alike(judged, quiet):
    """Where all runs are the same, the median deviation is 0: a tenth more is no finding."""
    found = judged(quiet({"duration_s": 0.0125 * 1.1}))

    assert (found.findings, found.unknown, found.judged) == ((), (), 42)


def test_runs_are_named_newest_first(judged, quiet):
    """Each by the name that the application gave it, though the header has none."""
    (finding,) = judged(quiet({"duration_s": 0.05, "hits": 1})).findings

    assert finding.runs == 36
    assert [each.run for each in finding.newest[:3]] == ["run-179", "run-178", "run-177"]
    assert finding.agent == "reader"


@pytest.mark.parametrize(
    ("changed", "new"), [({"purpose": "export"}, "purpose"), ({"collection": "wages"}, "place")]
)
def test_a_scope_that_an_agent_never_touched_is_found(judged, quiet, changed, new):
    """Whether it is a purpose, or a place in a store."""
    (finding,) = judged(quiet(changed)).findings

    assert (finding.new, finding.runs) == (new, 36)


def test_one_run_of_ten_times_the_volume_is_found(judged, quiet, event_factory):
    """A loop is one run, and need not wait for four more."""
    loop = [
        replace(each, started_ns=each.started_ns + number, run="loop", writer_id="b" * 16)
        for each in quiet(first=DAYS - 1)
        for number in range(8)
    ]
    loop = [replace(each, writer_seq=number) for number, each in enumerate(loop, 1)]
    (finding,) = judged([*quiet(), *loop]).findings

    assert [each.run for each in finding.newest] == ["loop"]
    (evidence,) = finding.evidence
    assert (evidence.measure, evidence.found, evidence.usual) == ("calls", 48, 1)


def test_a_day_of_twice_the_busiest_is_found(judged, quiet):
    """Though each run of it is as usual."""
    busy = [
        replace(each, run=f"{each.run}-{number}", writer_id="b" * 16)
        for each in quiet(first=DAYS - 1)
        for number in range(30)
    ]
    busy = [replace(each, writer_seq=number) for number, each in enumerate(busy, 1)]
    found = judged([*quiet(), *busy]).findings

    assert [(each.evidence[0].measure, each.evidence[0].usual) for each in found] == [
        ("calls a day", 6)
    ]


def test_too_little_before_is_unknown_and_no_good_answer(judged, quiet):
    """An agent that is new this week is compared with nothing, and that is said."""
    found = judged(quiet(first=DAYS - WINDOW))

    assert found.findings == ()
    assert found.unknown == (("reader", "run", 0), ("reader", "search_memory", 0))


def test_an_agent_that_paused_for_half_of_the_days_before_is_unknown(judged, quiet):
    """What is usual of it is known, and not how often its runs stand out anyway."""
    paused = (START_S + 12 * 86_400, START_S + 23 * 86_400)
    found = judged(each for each in quiet() if not paused[0] < each.started_ns / 1e9 < paused[1])

    assert [each[:2] for each in found.unknown] == [("reader", "run"), ("reader", "search_memory")]
    assert all(runs < 50 for _agent, _operation, runs in found.unknown)


def test_runs_whose_details_are_erased_are_told_by_their_traces(log, judged, quiet):
    """What is sealed names nobody, and still shows that a run was slow."""
    log.append([*quiet({"duration_s": 0.05, "hits": 1})])
    log.subjects.erase(log.subjects.resolve("ada@example.com", "acme"))

    (finding,) = find_deviations(log, SINCE_US, NOW_US, before_us=BEFORE_US).findings

    assert {each.run for each in finding.newest} == {None}
    assert all(each.trace_id for each in finding.newest)


def test_open_runs_are_bounded(event_factory):
    """However many are under way at once: the one that was quiet longest ends, and it is said."""
    rows = list(AgentDays(1, days=1).rows())
    few = OpenRuns(3)

    ended = list(few.ended(rows))

    assert few.cut > 0
    assert len(ended) > len(list(OpenRuns().ended(rows)))


def work(judged, quiet, *events):
    """Return what the last week's runs did for nothing, by what it is."""
    found = judged([*quiet(), *events])
    return {what: amount for (agent, _op, what), amount in found.idle.items() if agent == "worker"}


@pytest.fixture
def worker(event_factory):
    """Return a function that makes an operation of one run, so many seconds after its beginning."""

    def operation(at_s, **given):
        started_ns = (NOW_US - DAY_US) * 1_000 + round(at_s * 1e9)
        given = {"agent": "worker", "run": "w", "hits": 2, "top_score": 0.5, **given}
        return event_factory(started_ns=started_ns, duration_s=1.0, size_bytes=40, **given)

    return operation


def test_a_loop_that_never_changes_an_answer_is_added_up(judged, quiet, worker):
    """The same query of one run, with the same best score: all but the first earn nothing."""
    again = [worker(at_s) for at_s in (0, 10, 20)]
    other = worker(30, top_score=0.6)

    assert work(judged, quiet, *again, other)["same answers"] == 2


def test_recalls_that_could_have_been_made_at_once_are_added_up(judged, quiet, worker):
    """In a row, with no model call or write between them: the shorter of two would be saved."""
    write = worker(10, op_class=OperationClass.REMEMBER, operation="upsert_memory")
    row = [worker(0), worker(2, top_score=0.4), write, worker(20, top_score=0.3)]

    assert work(judged, quiet, *row)["together s"] == pytest.approx(1.0)


def test_model_calls_that_failed_or_said_the_same_are_added_up(judged, quiet, worker):
    """In dollars, beside all that the agent spent."""
    usage = Usage(model="m", node="n", input_tokens=10, output_tokens=5, cost_usd=0.25)
    model = {"op_class": OperationClass.MODEL, "operation": "chat", "usage": usage}
    calls = [worker(0, **model), worker(5, **model), worker(9, status=Status.ERROR, **model)]

    found = work(judged, quiet, *calls)

    assert (found["usd"], found["again usd"], found["failed usd"]) == (0.75, 0.25, 0.25)


def test_the_cost_of_a_discarded_run_is_added_up(judged, quiet, worker):
    """Its outcome comes as an event of the run, and is no operation of the agent's."""
    usage = Usage(model="m", node="n", input_tokens=10, output_tokens=5, cost_usd=0.25)
    model = {"op_class": OperationClass.MODEL, "operation": "chat", "usage": usage}
    posted = {"op_class": OperationClass.MODEL, "operation": "outcome", "hits": None}
    part = OutcomeEvent(outcome="discarded")

    found = work(judged, quiet, worker(0, **model), worker(9, parts=(part,), **posted))

    assert (found["usd"], found["discarded usd"]) == (0.25, 0.25)
