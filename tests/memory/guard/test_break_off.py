"""Deadlines on the caller's own thread, of clients whose waits end by the time that is left."""

from __future__ import annotations

import threading

import pytest

from mnemoscope.memory import DeadlineExceededError
from mnemoscope.memory.api import OperationClass, Status, time_left_s
from tests.kit.patience import GIVE_UP_S
from tests.kit.still_clock import Clock

RECALL, FORGET = OperationClass.RECALL, OperationClass.FORGET
LIMIT_S = 10.0


class Client:
    """
    A store whose calls take as long as a test says, on a clock that the test turns.

    Attributes:
        takes_s: Seconds that a call takes, unless it is broken off before.
        ignores: It never looks at the time that is left.
        threads: Where its calls were made.
        left_s: What each call had left as it began.
    """

    def __init__(self, clock):
        self.clock = clock
        self.takes_s, self.ignores = 0.0, False
        self.threads, self.left_s = [], []

    def __call__(self, _arguments):
        self.threads.append(threading.get_ident())
        left_s = time_left_s()
        self.left_s.append(left_s)
        if left_s is not None and self.takes_s > left_s and not self.ignores:
            self.clock.now_s += left_s
            raise ConnectionResetError
        self.clock.now_s += self.takes_s
        return ["tea"]


@pytest.fixture
def clock():
    return Clock(1_000.0)


@pytest.fixture
def client(clock):
    return Client(clock)


@pytest.fixture
def make_breaking(make_bench, clock):
    """Return a factory of guards whose client breaks its calls off, as long as a function says."""

    def make(breaks_off=lambda _call: True, **given):
        deadlines_s = {RECALL: LIMIT_S, FORGET: LIMIT_S}
        bench = make_bench(clock=clock, deadlines_s=deadlines_s, **given)
        return bench.guard("crm", breaks_off=breaks_off)

    return make


class TestTheCallersThread:
    def test_a_call_that_can_be_broken_off_stays_on_it(self, make_breaking, search, client):
        """And knows what its class allows."""
        answer = make_breaking().call(search, client)

        assert answer == ["tea"]
        assert client.threads == [threading.get_ident()]
        assert client.left_s == [LIMIT_S]

    def test_any_other_call_has_a_thread(self, make_breaking, search, client):
        """And nothing is left for it to look at: its caller goes on without it."""
        make_breaking(lambda _call: False).call(search, client)

        assert client.threads != [threading.get_ident()]
        assert client.left_s == [None]

    def test_a_setting_gives_every_call_a_thread(self, make_breaking, search, client):
        """For stores that hang where no client can break anything off."""
        make_breaking(deadline_threads=True).call(search, client)

        assert client.threads != [threading.get_ident()]

    def test_code_outside_of_a_call_has_no_limit(self, make_breaking, search, client):
        """Neither before nor after one, however that ended."""
        guard, before = make_breaking(), time_left_s()
        guard.call(search, client)
        client.takes_s = 2 * LIMIT_S
        guard.call(search, client)

        assert before is None
        assert time_left_s() is None

    def test_another_thread_has_no_limit(self, make_breaking, search):
        """What the application does beside a call is its own affair, with the same client too."""
        found = []

        def asking(_arguments):
            beside = threading.Thread(target=lambda: found.append(time_left_s()))
            beside.start()
            beside.join(GIVE_UP_S)
            return [time_left_s()]

        answer = make_breaking().call(search, asking)

        assert found == [None]
        assert answer == [LIMIT_S]

    def test_a_call_inside_another_has_no_more_than_that(
        self, make_breaking, make_operation, search, clock, client
    ):
        """Whoever waits for the outer one waits for both."""
        outer, inner = make_breaking(), make_breaking()

        def asking(_arguments):
            clock.now_s += 7.0
            inner.call(search, client)
            return [time_left_s()]

        answer = outer.call(make_operation(name="outer"), asking)

        assert client.left_s == [LIMIT_S - 7.0]
        assert answer == [LIMIT_S - 7.0]


class TestTheDeadline:
    def test_what_the_client_says_as_it_breaks_off_is_the_deadline(
        self, make_breaking, search, client, clock, events_of
    ):
        """A recall has its neutral value, at the deadline, and its event says why."""
        guard = make_breaking()
        client.takes_s = 2 * LIMIT_S
        answer = guard.call(search, client)

        assert answer == []
        assert clock.now_s == 1_000.0 + LIMIT_S
        assert [each.status for each in events_of(guard)] == [Status.TIMEOUT]

    def test_a_class_that_fails_closed_raises(self, make_breaking, forget, client):
        """As it does where a thread keeps the deadline."""
        client.takes_s = 2 * LIMIT_S
        with pytest.raises(DeadlineExceededError):
            make_breaking().call(forget, client)

    def test_an_error_of_the_stores_own_before_it_is_none(
        self, make_breaking, search, clock, events_of
    ):
        """Even a timeout: the store has failed, and was not late."""
        guard = make_breaking()

        def failing(_arguments):
            clock.now_s += LIMIT_S / 2
            raise TimeoutError

        guard.call(search, failing)

        assert [each.status for each in events_of(guard)] == [Status.DEGRADED]

    def test_a_wait_that_ends_a_moment_early_is_the_deadline(
        self, make_breaking, search, clock, events_of
    ):
        """Timers count in milliseconds, and do not agree with each other."""
        guard = make_breaking()

        def timed_out(_arguments):
            clock.now_s += LIMIT_S - 0.0005
            raise TimeoutError

        guard.call(search, timed_out)

        assert [each.status for each in events_of(guard)] == [Status.TIMEOUT]

    def test_an_answer_at_the_last_moment_is_given(self, make_breaking, search, client, events_of):
        """It is there, and so is its caller: to throw it away would lose it for nothing."""
        guard = make_breaking()
        client.takes_s = LIMIT_S
        answer = guard.call(search, client)

        assert answer == ["tea"]
        assert [each.status for each in events_of(guard)] == [Status.OK]

    def test_the_callers_interrupt_passes(self, make_breaking, search, clock):
        """Whatever the time is: it is not the client's."""

        def interrupted(_arguments):
            clock.now_s += 2 * LIMIT_S
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            make_breaking().call(search, interrupted)

    def test_its_place_is_given_back(self, make_breaking, search, client):
        """Nothing of the call is under way any more, so the next one need not wait."""
        guard = make_breaking(concurrency=1)
        client.takes_s = 2 * LIMIT_S
        guard.call(search, client)
        inside = guard.limits[RECALL].bulkhead.in_flight
        client.takes_s = 0.0

        assert inside == 0
        assert guard.call(search, client) == ["tea"]

    def test_a_pause_between_attempts_does_not_outlast_it(
        self, make_bench, make_operation, clock, monkeypatch
    ):
        """A checkpoint that would be tried again after its deadline is given up at once."""
        checkpoint = OperationClass.CHECKPOINT
        guard = make_bench(
            clock=clock, deadlines_s={checkpoint: LIMIT_S}, checkpoint_pauses_s=(GIVE_UP_S,)
        ).guard("crm", breaks_off=lambda _call: True, retries=True)
        tried = []

        def failing(_arguments):
            tried.append(clock.now_s)
            raise ConnectionError

        write = make_operation(name="put", op_class=checkpoint, neutral=None)
        with pytest.raises(ConnectionError):
            guard.call(write, failing)

        assert len(tried) == 1


class TestAClientThatDoesNotBreakOff:
    def test_later_calls_have_threads(self, make_breaking, search, client):
        """A call that was held past its deadline shows that something in it waits regardless."""
        guard = make_breaking()
        client.ignores, client.takes_s = True, LIMIT_S + 0.1
        guard.call(search, client)
        guard.call(search, client)

        assert client.threads[0] == threading.get_ident()
        assert client.threads[1] != threading.get_ident()
        assert guard.deadline.held == 1

    def test_a_call_that_is_a_moment_late_changes_nothing(self, make_breaking, search, client):
        """A busy machine is no client that waits regardless."""
        guard = make_breaking()
        client.ignores, client.takes_s = True, LIMIT_S + 0.04
        guard.call(search, client)
        guard.call(search, client)

        assert set(client.threads) == {threading.get_ident()}
        assert guard.deadline.held == 0

    def test_calls_beside_one_that_is_held_have_threads(self, make_breaking, search, client, clock):
        """One caller is held, and nobody after it, while it is not known when it ends."""
        guard, entered, go = make_breaking(), threading.Event(), threading.Event()

        def hanging(_arguments):
            entered.set()
            assert go.wait(GIVE_UP_S)
            return []

        held = threading.Thread(target=lambda: guard.call(search, hanging))
        held.start()
        assert entered.wait(GIVE_UP_S)
        guard.call(search, client)
        clock.now_s += LIMIT_S + 0.1
        guard.call(search, client)
        go.set()
        held.join(GIVE_UP_S)

        assert client.threads[0] == threading.get_ident()
        assert client.threads[1] != threading.get_ident()
