"""The health of a scope: what makes each of its parts well or ill, and that asking hurts nobody."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from mnemoscope.memory import Check, Health, Mnemoscope, State, context, load_settings
from mnemoscope.memory.api import (
    Database,
    DeliveryError,
    Faults,
    JournalledWrites,
    OperationClass,
)
from mnemoscope.memory.health import checks as look
from mnemoscope.memory.health.model import ask, failed
from mnemoscope.memory.journal.feature import journal_check
from mnemoscope.memory.journal.journal import Journal, JournalStats
from mnemoscope.memory.limits.breaker import BreakerState
from mnemoscope.memory.privacy.engine.redactor import RedactorHealth
from mnemoscope.memory.privacy.models.name_model import ModelState
from mnemoscope.memory.testing import CapturingSink, scope_for_tests
from mnemoscope.telemetry.delivery.lane import inside_sink
from mnemoscope.telemetry.delivery.lane_stats import LaneStats
from tests.kit.patience import GIVE_UP_S

KEY = "00112233445566778899aabbccddeeff"
FINE = Check(name="fine", state=State.OK, detail="")


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Begin each test with a data folder of its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", raising=False)


class Checked(CapturingSink):
    """A sink that is asked, and answers what a test says."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def check(self, _timeout_s, /):
        return self.answer()


def books(**given):
    """The books of a lane without a care."""
    known = {
        "sink": "capture",
        "offered": 0,
        "delivered": 0,
        "dropped": {},
        "queued": 0,
        "queued_bytes": 0,
        "last_error": None,
    }
    return LaneStats(**(known | given))


def by_name(health):
    return {check.name: check for check in health.checks}


class TestHealth:
    @pytest.mark.parametrize(("state", "ok"), [(each, each != "failed") for each in State])
    def test_only_what_failed_is_unhealthy(self, state, ok):
        """A warning is for somebody to look at, not to be woken by."""
        assert Health(checks=(FINE, Check(name="x", state=state, detail=""))).ok is ok

    def test_its_text_is_the_doctors_screen(self):
        """In words and lines, whatever terminal there is, for ``print``."""
        health = Health(checks=(FINE, failed("sink.otlp", "nobody listens " * 9)))

        said = str(health).splitlines()
        assert said[0].split() == ["state", "check", "detail"]
        assert said[-1] == " Unhealthy: 1 failed, no warnings."
        assert max(map(len, said)) <= 80
        assert "✗ failed" in str(health)

    def test_it_is_json(self):
        """For whoever is not a person."""
        document = Health(checks=(failed("x", "y"),)).as_document()

        assert json.loads(json.dumps(document)) == {
            "ok": False,
            "checks": [{"name": "x", "state": "failed", "detail": "y"}],
        }

    def test_a_check_takes_the_place_of_its_namesake(self):
        """Where it was; others come after."""
        other, better = failed("other", ""), failed("fine", "not at all")
        health = Health(checks=(FINE, other)).with_checks(better, failed("new", ""))

        assert [each.name for each in health.checks] == ["fine", "other", "new"]
        assert health.checks[0] is better


class TestAsking:
    def test_a_question_that_hangs_costs_its_own_answer(self):
        """The others have been asked meanwhile, and the time is bounded."""
        let_go = threading.Event()
        before = time.monotonic()
        health = ask({"hung": let_go.wait, "fine": lambda: FINE}, 0.2)
        seconds = time.monotonic() - before
        let_go.set()

        assert seconds < 2.0
        assert health.checks == (failed("hung", "no answer within 0.2 s"), FINE)

    @pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt])
    def test_a_question_that_raises_is_quoted_by_type(self, kind):
        """A message may hold anything."""

        def broken():
            raise kind("grace@example.com")

        (check,) = ask({"x": broken}, 1.0).checks

        assert check == failed("x", f"could not be looked at ({kind.__name__})")

    def test_no_thread_to_be_had_is_an_answer(self, monkeypatch):
        """Too many threads is one of the things that health is asked for."""

        def cannot(_thread):
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", cannot)

        assert not ask({"x": lambda: FINE}, 1.0).ok


class TestSinks:
    def test_what_the_sink_says_comes_first(self):
        """Then the books of its lane."""
        check = look.sink(Checked(lambda: "writes to x"), books(offered=3, delivered=3), 1.0)

        assert check == Check(
            name="sink.capture", state=State.OK, detail="writes to x; 3 delivered"
        )

    def test_a_back_end_that_is_away_is_a_failure(self):
        """In the sink's own words, in one line."""

        def away():
            raise DeliveryError("nobody\nlistens")

        check = look.sink(Checked(away), books(), 1.0)

        assert check.state is State.FAILED
        assert check.detail == "nobody listens; nothing sent yet"

    def test_what_is_lost_is_a_warning_with_reasons(self):
        """What is gone is gone; what is queued is on its way."""
        lane = books(
            offered=9,
            delivered=4,
            dropped={"overflow": 2, "error": 1},
            queued=2,
            queued_bytes=2_048,
            last_error="OSError",
        )
        check = look.sink(CapturingSink(), lane, 1.0)

        assert check.state is State.WARNING
        assert check.detail == (
            "4 delivered, 2 waiting (2,048 bytes), 3 lost (2 overflow, 1 error), last error OSError"
        )

    def test_a_lane_that_waits_for_its_back_end_is_a_failure(self):
        """Also for a sink that cannot be asked."""
        assert look.sink(CapturingSink(), books(is_up=False), 1.0).state is State.FAILED

    def test_asking_is_not_observed(self):
        """What a check does with a guarded store or an instrumented client makes no event."""
        check = look.sink(Checked(lambda: f"inside: {inside_sink()}"), books(), 1.0)

        assert "inside: True" in check.detail
        assert not inside_sink()


class TestStores:
    @pytest.fixture
    def bench(self, make_bench):
        return make_bench(concurrency=2)

    def checked(self, bench):
        health = look.examine(load_settings(audit_pseudonym_key=KEY), bench.parts.guards, 2.0)
        return by_name(health).get("store.crm")

    def test_a_store_that_nobody_troubles_is_well(self, bench):
        """However many instances there are of it."""
        guards = [bench.guard("crm"), bench.guard("crm")]
        check = self.checked(bench)

        assert check.state is State.OK
        assert check.detail == f"{len(guards)} instances, 0 in flight, 0 late"

    @pytest.mark.parametrize(
        ("state", "expected"),
        [(BreakerState.OPEN, State.FAILED), (BreakerState.HALF_OPEN, State.WARNING)],
    )
    def test_a_breaker_that_is_not_closed_is_told_by_class(
        self, bench, monkeypatch, state, expected
    ):
        """So that one knows whether recalls or writes are missing."""
        guard = bench.guard("crm")
        breaker = guard.limits[OperationClass.REMEMBER].breaker
        monkeypatch.setattr(type(breaker), "state", property(lambda it: _state(it, breaker, state)))
        check = self.checked(bench)

        assert check.state is expected
        assert "for remember:" in check.detail

    def test_a_real_failure_shows(self, bench):
        """Not only a state that a test has set."""
        guard = bench.guard("crm")
        breaker = guard.limits[OperationClass.RECALL].breaker
        for _ in range(bench.policy.breaker.minimum_calls):
            breaker.settle(breaker.admit(), failed=True)

        assert self.checked(bench).detail.startswith("not asked for recall: the breaker is open")

    def test_a_full_bulkhead_is_a_warning(self, bench):
        """The calls inside are counted, and the late ones."""
        guard = bench.guard("crm")
        guard.deadline.late_results = 3
        bulkhead = guard.limits[OperationClass.RECALL].bulkhead
        while bulkhead.enter():
            pass
        check = self.checked(bench)

        assert check.state is State.WARNING
        assert check.detail == "no place left for recall; 2 in flight, 3 late"


def _state(asked, breaker, state):
    return state if asked is breaker else BreakerState.CLOSED


class TestJournal:
    def examined(self, settings, bench):
        parts = bench.parts
        return look.examine(
            settings, parts.guards, 2.0, checks=[each.checks for each in parts.features]
        )

    def stats(self, **given):
        known = {
            "path": Path("/spool/journal"),
            "size_bytes": 46,
            "max_bytes": 1_000,
        }
        return JournalStats(**(known | given))

    def test_no_journal_is_no_failure(self, make_bench):
        """But it is said what that means."""
        check = by_name(self.examined(load_settings(), make_bench()))["journal"]

        assert check.state is State.OFF
        assert "MNEMOSCOPE_JOURNAL" in check.detail

    def test_an_empty_one_is_well(self):
        """Queues in which nothing waits are not listed."""
        check = journal_check(self.stats(waiting={"mem0": 0}), 0)

        assert check.state is State.OK
        assert check.detail == "nothing waits; 46 of 1,000 bytes in /spool/journal"

    def test_what_waits_is_counted_by_store(self):
        """And for how long."""
        stats = self.stats(waiting={"qdrant": 1, "mem0": 2}, oldest_ns=1_000_000_000)
        check = journal_check(stats, 63_000_000_000)

        assert check.state is State.WARNING
        assert check.detail.startswith("writes wait: 2 for mem0, 1 for qdrant, the oldest for 62 s")

    def test_one_that_cannot_be_opened_has_failed(self):
        """It is said what that costs."""
        check = journal_check(self.stats(path=None), 0)

        assert check.state is State.FAILED
        assert "writes may be lost" in check.detail

    def test_one_that_is_almost_full_is_a_warning(self):
        """Before it takes nothing more."""
        assert "almost full" in journal_check(self.stats(size_bytes=900), 0).detail

    def test_what_was_set_aside_is_told_with_what_to_do(self):
        """It waits for somebody, not for its store."""
        check = journal_check(self.stats(parked={"qdrant": 1, "mem0": 2}), 0)

        assert check.state is State.WARNING
        assert check.detail.startswith(
            "writes were set aside: 2 for mem0, 1 for qdrant; look with mnemoscope journal list "
            "--parked, then journal retry or journal drop"
        )

    @pytest.fixture
    def path(self, tmp_path):
        """A journal that somebody has made."""
        path = tmp_path / "journal"
        journal = Journal(path, key=bytes(32), faults=Faults())
        journal.open()
        journal.close()
        return path

    @pytest.mark.parametrize(
        ("harm", "said"),
        [
            (lambda path: path.write_bytes(b"rubble" * 1_000), "is no journal of this version"),
            (lambda path: path.write_bytes(b""), "is empty: see that its disk has room"),
            (lambda path: path.chmod(0o640), "is open to other users (mode 0640)"),
            (lambda path: path.unlink(), "no such file"),
        ],
        ids=["no database", "empty", "open to others", "gone"],
    )
    def test_one_that_cannot_be_used_has_failed_with_the_reason(self, make_bench, path, harm, said):
        """Whatever was done to it while the application runs."""
        bench = make_bench()
        bench.journal = Journal(path, key=bytes(32), faults=Faults())
        settings = load_settings(audit_pseudonym_key=KEY, journal=path)
        before = by_name(self.examined(settings, bench))
        harm(path)
        after = by_name(self.examined(settings, bench))

        assert before["journal"].state is State.OK
        assert after["journal"].state is State.FAILED
        assert said in after["journal"].detail

    def test_a_store_whose_database_is_not_known_keeps_no_writes(self, make_bench, path):
        """Nobody would look for that in the log of the start."""
        bench = make_bench()
        bench.journal = Journal(path, key=bytes(32), faults=Faults())
        writes = JournalledWrites(client=object(), row=None, methods=frozenset())
        known = bench.guard("crm", writes=writes, database=Database.named("crm", "one"))
        unknown = bench.guard("notes", writes=writes)
        settings = load_settings(audit_pseudonym_key=KEY, journal=path)
        found = by_name(self.examined(settings, bench))

        assert [found[f"store.{each.store}"].state for each in (known, unknown)] == [
            State.OK,
            State.WARNING,
        ]
        assert "name=..." in found["store.notes"].detail


class TestKey:
    def test_a_key_that_is_given_is_not_quoted(self):
        """Only where it is from."""
        check = look.key(load_settings(audit_pseudonym_key=KEY))

        assert check.state is State.OK
        assert "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY" in check.detail
        assert KEY not in check.detail

    @pytest.mark.parametrize(
        ("mode", "state"), [(0o600, State.OK), (0o400, State.OK), (0o640, State.FAILED)]
    )
    def test_a_key_file_is_its_owners(self, mode, state):
        """Where it is not, its mode is told."""
        file = load_settings().key_file
        file.parent.mkdir(parents=True)
        file.write_text(KEY)
        file.chmod(mode)
        check = look.key(load_settings())

        assert check.state is state
        assert (f"mode {mode:04o}" in check.detail) == (state is State.FAILED)

    def test_no_key_is_a_warning(self):
        """It may be the first start, or a file that was lost."""
        check = look.key(load_settings())

        assert check.state is State.WARNING
        assert not load_settings().key_file.exists()


class TestNames:
    @pytest.mark.parametrize(
        ("model", "state", "expected"),
        [
            ("none", ModelState.OFF, State.OFF),
            (None, ModelState.READY, State.OK),
            (None, ModelState.MISSING, State.WARNING),
            ("en_no_such", ModelState.MISSING, State.FAILED),
            ("en_no_such", ModelState.IDLE, State.FAILED),
            (None, ModelState.FAILED, State.FAILED),
        ],
    )
    def test_what_was_asked_for_must_be_there(self, model, state, expected):
        """A model that nobody named may be missing, and it is said."""
        check = look.names(RedactorHealth(model=model, state=state, error=None))

        assert check.state is expected

    def test_a_model_that_is_installed_is_not_loaded_for_this(self):
        """That takes a second, and the model may never be needed."""
        check = look.names(RedactorHealth(model=str(Path.cwd()), state=ModelState.IDLE, error=None))

        assert check.state is State.OK


class TestPrices:
    def test_the_shipped_table_is_well(self):
        """It is counted."""
        assert look.prices(None).state is State.OK

    def test_a_file_that_makes_no_sense_is_named(self, tmp_path):
        """As when it is loaded for use, which may be much later."""
        file = tmp_path / "prices.json"
        file.write_text("milk, eggs")
        check = look.prices(file)

        assert check.state is State.FAILED
        assert str(file) in check.detail
        assert "milk" not in check.detail


class TestSelfDefence:
    def test_errors_of_ours_are_a_warning(self, make_bench):
        """By where they happened; those of sinks are told with the sinks."""
        bench = make_bench()
        bench.faults.note("guard.summary", ValueError())
        bench.faults.note("sink.otlp", ValueError())
        check = look.own_errors(bench.faults)

        assert check.state is State.WARNING
        assert check.detail == "errors of its own: 1 in guard.summary"

    def test_too_many_of_them_are_a_failure(self, make_bench):
        """Nothing is reported for a while, which nobody would notice by itself."""
        bench = make_bench(faults=Faults(limit=2))
        for _ in range(2):
            bench.faults.note("guard.report", ValueError(), trips=True)

        assert look.own_errors(bench.faults).state is State.FAILED


class TestScope:
    def test_everything_is_looked_at(self):
        """Sinks, stores and settings first, then what features check, our own errors last."""
        with scope_for_tests() as (scope, _sink):
            names = [check.name for check in scope.health(GIVE_UP_S).checks]

        assert names[:6] == ["sink.capture", "stores", "settings", "key", "names", "prices"]
        assert {"journal", "vault", "budgets"} <= {*names[6:-1]}
        assert names[-1] == "self-defence"

    def test_a_guarded_store_is_there_by_its_name(self):
        """As soon as it is used."""
        with scope_for_tests() as (scope, _sink):
            scope.observe(store="crm", operation="search_memory", neutral=list)(list)()
            checks = by_name(scope.health(GIVE_UP_S))

        assert checks["store.crm"].state is State.OK
        assert "stores" not in checks

    def test_asking_changes_nothing(self):
        """No event, no error of ours, no other last outcome."""
        with scope_for_tests() as (scope, sink):
            before = scope.last_outcome()
            first, second = scope.health(GIVE_UP_S), scope.health(GIVE_UP_S)

            assert scope.flush(GIVE_UP_S)
            assert sink.events == []
            assert scope.last_outcome() is before
            assert first == second

    def test_nobodys_data_is_in_it(self):
        """Neither who was asked about, nor what."""
        with scope_for_tests() as (scope, _sink), context(customer="grace@example.com"):
            search = scope.observe(store="crm", operation="search_memory", neutral=list)

            @search
            def broken(text):
                raise ConnectionError(text)

            broken("Ada likes tea")
            document = json.dumps(scope.health(GIVE_UP_S).as_document())

        assert "grace" not in document.lower()
        assert "tea" not in document

    def test_a_disabled_scope_says_so(self):
        """And is not unhealthy for that."""
        health = Mnemoscope(load_settings(disabled=True)).health()

        assert health.ok
        assert [check.state for check in health.checks] == [State.OFF]

    def test_a_closed_scope_can_be_asked(self):
        """As at any time."""
        with scope_for_tests() as (scope, _sink):
            scope.close()

            assert scope.health(GIVE_UP_S).ok
