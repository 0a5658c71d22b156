"""Budgets: what they cover, when they tell, when they stop, and what they show."""

from __future__ import annotations

import pickle
import threading
import tracemalloc

import pytest

from mnemoscope.memory import (
    Budget,
    BudgetExceeded,
    BudgetExceededError,
    ConfigurationError,
    Scope,
    State,
    configure,
)
from mnemoscope.memory.api import Usage
from mnemoscope.memory.budgets.budgets import Asking, Budgets
from mnemoscope.memory.budgets.feature import budgets_check, budgets_feature
from mnemoscope.memory.budgets.under_way import Reservation
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.budget_event import BudgetEvent
from mnemoscope.telemetry.event.kinds import Level
from tests.kit.patience import GIVE_UP_S, until

HOUR = 3_600.0
PERSON = "ada@example.com"


def used(cost_usd=1.0, *, model="gpt-5", tokens=100):
    return Usage(model=model, input_tokens=tokens, cost_usd=cost_usd)


def scope(feature="reply/draft", **given):
    return Scope(feature=feature, **given)


def refusal(budgets, of):
    """Return the error that refuses a call, and count it. None: it may be made."""
    found = budgets.admit(of, "gpt-5", Asking(object(), (), 0.0, can_wait=False))
    if not isinstance(found, BudgetExceededError):
        return None
    budgets.note_refused(found)
    return found


@pytest.fixture
def make(clock):
    """Return a factory of the budgets of a scope, by the clock that the test turns."""
    return lambda *budgets: Budgets(budgets, clock=clock)


class TestWhatIsCovered:
    @pytest.mark.parametrize(
        ("named", "path", "covered"),
        [
            ("reply", "reply", True),
            ("reply", "reply/draft", True),
            ("reply/draft", "reply/draft", True),
            ("reply/draft", "reply", False),
            ("reply", "reply-draft", False),
            ("reply", None, False),
            (None, None, True),
        ],
    )
    def test_a_feature_covers_what_is_nested_in_it(self, named, path, covered):
        """By whole parts of the path."""
        assert Budget(usd=1, feature=named).covers(Scope(feature=path), "m") is covered

    @pytest.mark.parametrize("field", ["customer", "tenant"])
    def test_a_customer_or_tenant_covers_its_own(self, field):
        """Nobody else's, and not what is nobody's."""
        budget = Budget(usd=1, **{field: PERSON})

        assert budget.covers(Scope(**{field: PERSON}), "m")
        assert not budget.covers(Scope(**{field: "bob"}), "m")
        assert not budget.covers(Scope(), "m")

    @pytest.mark.parametrize(
        ("model", "covered"),
        [
            ("gpt-4o", True),
            ("GPT-4o-2024-11-20", True),
            ("openai/gpt-4o", True),
            ("gpt-4o-mini", False),
            (None, False),
        ],
    )
    def test_a_model_covers_its_snapshots(self, model, covered):
        """By the names that prices are found by."""
        assert Budget(usd=1, model="gpt-4o").covers(Scope(), model) is covered

    def test_it_is_all_of_what_is_named(self):
        """A feature and a model together are what is both."""
        budget = Budget(usd=1, feature="reply", model="gpt-5")

        assert budget.covers(scope(), "gpt-5")
        assert not budget.covers(scope(), "gpt-4o")
        assert not budget.covers(scope("search"), "gpt-5")


class TestLevels:
    def test_each_level_is_told_of_once_in_a_period(self, make, clock):
        """However many calls follow, until a period has passed."""
        budgets = make(Budget(usd=10, expected_at=0.2, alert_at=0.5))
        told = []
        for _call in range(100):
            clock.now += 10
            told += [each.level for each in budgets.add(scope(), used())]

        assert told == [Level.EXPECTED, Level.ALERT, Level.EXCEEDED]

    def test_it_is_told_again_while_it_goes_on(self, make, clock):
        """A spend that stays past a level is told of once in every period."""
        budgets = make(Budget(usd=10))
        told = []
        for _minute in range(24 * 60):
            clock.now += 60
            told += [each.level for each in budgets.add(scope(), used())]

        assert 23 <= told.count(Level.EXCEEDED) <= 24

    def test_one_call_may_cross_all_levels(self, make):
        """Each of them is an event of its own."""
        crossings = make(Budget(usd=1, expected_at=0.1)).add(scope(), used(50.0))

        assert [each.level for each in crossings] == [
            Level.EXPECTED,
            Level.ALERT,
            Level.EXCEEDED,
        ]

    def test_a_level_begins_exactly_where_it_says(self, make):
        """Ten times a tenth is all of it: sums do not drift."""
        budgets = make(Budget(usd=1.0, alert_at=0.9))
        crossed = [[each.level for each in budgets.add(scope(), used(0.1))] for _ in range(10)]

        assert crossed == [*[[]] * 8, [Level.ALERT], [Level.EXCEEDED]]

    def test_what_was_spent_leaves_with_its_period(self, make, clock):
        """An hour's budget is free again an hour later."""
        budgets = make(Budget(usd=10))
        budgets.add(scope(), used(10.0))
        clock.now += HOUR * 61 / 60 + 1
        (status,) = budgets.status()

        assert (status.spent, status.left, status.level) == (0, 10, Level.WITHIN)

    def test_tokens_are_a_unit_too(self, make):
        """Input and output together, whatever they cost."""
        budgets = make(Budget(tokens=200))
        crossings = budgets.add(scope(), used(None, tokens=150))

        assert [(each.level, each.unit, each.spent) for each in crossings] == [
            (Level.ALERT, "tokens", 150)
        ]

    def test_a_call_without_a_price_is_not_counted_as_free(self, make):
        """It is told apart: a budget in dollars cannot see it."""
        budgets = make(Budget(usd=1))
        budgets.add(scope(), used(None))
        (status,) = budgets.status()

        assert (status.calls, status.unpriced_calls, status.spent) == (1, 1, 0)

    def test_usage_that_was_not_reported_is_not_counted_as_none(self, make):
        """Not even in tokens: it is unknown."""
        budgets = make(Budget(tokens=200))
        budgets.add(scope(), Usage(model="m", reported=False))

        assert budgets.status()[0].unpriced_calls == 1

    def test_the_burn_rate_is_an_hours_cost_at_this_pace(self, make, clock):
        """A dollar a minute is sixty an hour."""
        budgets = make(Budget(usd=1_000))
        for _minute in range(60):
            budgets.add(scope(), used(1.0))
            clock.now += 60
        (status,) = budgets.status()

        assert status.burn_per_hour == pytest.approx(60, rel=0.2)

    def test_threads_do_not_lose_a_cent(self):
        """Eight at once, a thousand calls each."""
        budgets = Budgets([Budget(usd=1e9)])

        def spend():
            for _call in range(1_000):
                budgets.add(scope(), used(0.01))

        threads = [threading.Thread(target=spend) for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

        assert budgets.status()[0].spent == 80.0

    def test_a_forked_child_begins_with_nothing_spent(self, make):
        """The parent counts what was spent before."""
        budgets = make(Budget(usd=1, on_exceeded="stop"))
        budgets.add(scope(), used(5.0))
        budgets.forked()

        assert budgets.status()[0].spent == 0
        assert refusal(budgets, scope()) is None

    def test_memory_is_constant(self, make, clock):
        """A hundred thousand calls take no more than the first ones."""
        budgets = make(Budget(usd=1), Budget(tokens=1, name="b"))
        for _ in range(100):
            budgets.add(scope(), used())
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for _call in range(5_000):
                clock.now += 1
                budgets.add(scope(), used())
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()

        assert grown < 20_000


class TestStopping:
    def test_a_spent_budget_refuses_what_it_covers(self, make):
        """Other features go on."""
        budgets = make(Budget(feature="reply", usd=1, on_exceeded="stop"))
        budgets.add(scope(), used(1.0))

        assert isinstance(refusal(budgets, scope()), BudgetExceededError)
        assert refusal(budgets, scope("search")) is None

    def test_what_is_left_may_be_spent(self, make):
        """A level before the last stops nothing, whatever is to happen at the last."""
        budgets = make(Budget(usd=1, expected_at=0.1, on_exceeded="stop"))
        budgets.add(scope(), used(0.99))

        assert budgets.status()[0].level is Level.ALERT
        assert refusal(budgets, scope()) is None

    def test_an_alert_refuses_nothing(self, make):
        """Unless it is asked to stop, a budget only tells."""
        budgets = make(Budget(usd=1))
        budgets.add(scope(), used(9.0))

        assert refusal(budgets, scope()) is None

    def test_it_lets_pass_again_when_its_period_is_over(self, make, clock):
        """The window slides, nobody resets anything."""
        budgets = make(Budget(usd=1, on_exceeded="stop"))
        budgets.add(scope(), used(1.0))
        clock.now += 2 * HOUR

        assert refusal(budgets, scope()) is None

    def test_refusals_are_counted(self, make):
        """How often it was needed shows in the status."""
        budgets = make(Budget(usd=1, on_exceeded="stop"))
        budgets.add(scope(), used(1.0))
        for _ in range(3):
            refusal(budgets, scope())

        assert budgets.status()[0].refused_calls == 3

    def test_the_error_names_the_budget_and_the_amounts(self):
        """In one line that says what to do, and it survives being sent to another process."""
        error = BudgetExceeded("reply per hour", 5.25, 5.0, "usd")
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own, of a line before

        assert "'reply per hour' is spent ($5.25 of $5.00)" in str(error)
        assert (again.budget, again.spent, str(again)) == (error.budget, 5.25, str(error))

    def test_langgraph_does_not_retry_it(self):
        """Its default policy leaves a RuntimeError alone: trying again cannot help."""
        from langgraph.types import RetryPolicy

        assert RetryPolicy().retry_on(BudgetExceededError("b", 1, 1, "usd")) is False


class TestConfiguring:
    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({}, "usd=… or tokens=…"),
            ({"usd": 1, "tokens": 1}, "either usd"),
            ({"usd": 0}, "more than 0 usd"),
            ({"usd": float("nan")}, "more than 0 usd"),
            ({"usd": float("inf")}, "more than 0 usd"),
            ({"tokens": -5}, "more than 0 tokens"),
            ({"usd": 1, "per": "fortnight"}, "minute, hour, day, week, month"),
            ({"usd": 1, "alert_at": 1.5}, "alert_at must be a share"),
            ({"usd": 1, "expected_at": 0}, "expected_at must be a share"),
            ({"usd": 1, "on_exceeded": "explode"}, "alert or stop"),
            ({"usd": 1, "name": "a\nb"}, "the name of a budget"),
            ({"usd": 1, "name": "x" * 81}, "the name of a budget"),
        ],
    )
    def test_what_makes_no_sense_is_refused_at_once(self, given, says):
        """In one line that says what was expected."""
        with pytest.raises(ConfigurationError, match=says):
            Budget(**given)

    @pytest.mark.parametrize(
        ("given", "name"),
        [
            ({"feature": "reply-draft"}, "reply-draft per hour"),
            ({"feature": "reply/draft", "per": "day"}, "reply/draft per day"),
            ({"model": "gpt-5"}, "gpt-5 per hour"),
            ({"customer": PERSON}, "customer per hour"),
            ({"tenant": PERSON}, "tenant per hour"),
            ({}, "all per hour"),
        ],
    )
    def test_a_name_is_made_of_what_is_not_personal(self, given, name):
        """It is a label: a customer's id never goes into it, nor into the repr."""
        budget = Budget(usd=1, **given)

        assert budget.name == name
        assert PERSON not in repr(budget)

    def test_two_of_the_same_name_are_refused(self):
        """They would share their series."""
        with pytest.raises(ConfigurationError, match="budgets 1 and 3 have the same name"):
            Budgets([Budget(usd=1), Budget(usd=1, feature="a"), Budget(tokens=5)])

    def test_too_many_are_refused(self):
        """Every budget has series of its own, and labels are bounded."""
        with pytest.raises(ConfigurationError, match="200 budgets"):
            Budgets(Budget(usd=1, name=f"b{n}") for n in range(201))

    def test_a_scope_has_them(self):
        """Given to the front door, they are seen there."""
        with scope_for_tests(budgets=[Budget(usd=2, feature="reply")]) as (front_door, _sink):
            (status,) = front_door.budgets

        assert (status.budget.name, status.left) == ("reply per hour", 2)

    def test_configure_takes_them(self, monkeypatch):
        """As the scope's own constructor does."""
        monkeypatch.setattr("mnemoscope.memory.default_scope._default", None)
        given = {"sinks": "logs", "pii_model": "none", "audit_pseudonym_key": "5e" * 16}
        front_door = configure(budgets=[Budget(tokens=5)], **given)
        front_door.close()

        assert [each.budget.name for each in front_door.budgets] == ["all per hour"]

    def test_a_scope_that_is_switched_off_has_none(self, monkeypatch):
        """Nothing at all happens."""
        monkeypatch.setenv("MNEMOSCOPE_DISABLED", "1")
        with scope_for_tests(budgets=[Budget(usd=2)]) as (front_door, _sink):
            assert front_door.budgets == ()


class TestTelling:
    def test_a_crossing_is_one_event_without_anybody_in_it(self, make_bench, sink):
        """To all sinks, with the amounts, and nobody's id."""
        budget = Budget(customer=PERSON, usd=1, name="one customer")
        bench = make_bench(budgets=Budgets([budget]))
        for _call in range(3):
            bench.accounting.charge(scope(customer=PERSON), used(0.5))
        bench.drain.flush(GIVE_UP_S)

        assert [(each.operation, each.store) for each in sink.events] == [
            ("budget_alert", "budget"),
            ("budget_exceeded", "budget"),
        ]
        assert sink.events[-1].part(BudgetEvent).spent == 1.0
        assert PERSON not in repr(sink.events)

    def test_an_error_of_ours_never_reaches_the_run(self, make_bench):
        """It is counted, and the run goes on."""
        bench = make_bench(budgets=Budgets([Budget(usd=1)]))
        bench.accounting.charge(scope(), None)

        assert bench.faults.counts["budgets.add"] == 1

    def test_figures_are_live(self, make_bench):
        """Spent, limit, alert level, pace, refusals and crossings, by the budget's name alone."""
        bench = make_bench(
            budgets=Budgets([Budget(usd=4, customer=PERSON), Budget(tokens=9, feature="x")])
        )
        bench.accounting.charge(scope(customer=PERSON), used(3.0))
        samples = {
            (each.name, *sorted(each.labels.values())): each.value
            for each in budgets_feature(bench.budgets).samples()
        }

        assert samples["mnemoscope_budget_spent_usd", "customer per hour"] == 3
        assert samples["mnemoscope_budget_limit_usd", "customer per hour"] == 4
        assert samples["mnemoscope_budget_limit_tokens", "x per hour"] == 9
        assert samples["mnemoscope_budget_alert_ratio", "x per hour"] == 0.75
        assert samples["mnemoscope_budget_crossings_total", "alert", "customer per hour"] == 1
        assert samples["mnemoscope_budget_crossings_total", "customer per hour", "exceeded"] == 0
        assert PERSON not in repr(samples)


class TestDoctor:
    def test_no_budgets_are_no_worry(self, make):
        """Said, and off."""
        with scope_for_tests() as (scope, _sink):
            found = {each.name: each.state for each in scope.health(GIVE_UP_S).checks}
        assert found["budgets"] is State.OFF

    def test_a_fresh_scope_is_well(self, make):
        """Nothing was called yet, so nothing is missing."""
        assert budgets_check(make(Budget(usd=1, feature="typo"))).state is State.OK

    def test_a_budget_that_covers_nothing_is_a_warning(self, make):
        """A feature that never ran, while others did, may be misspelt: said, never raised."""
        budgets = make(Budget(usd=1, feature="typo"), Budget(usd=99, feature="reply"))
        budgets.add(scope(), used())
        check = budgets_check(budgets)

        assert check.state is State.WARNING
        assert "typo per hour: covers none of 1 model calls" in check.detail
        assert "reply per hour: 1% of $99.00 spent" in check.detail

    def test_a_budget_that_stops_calls_is_a_failure(self, make):
        """Somebody is not being answered."""
        budgets = make(Budget(usd=1, on_exceeded="stop"))
        budgets.add(scope(), used(2.0))
        refusal(budgets, scope())
        check = budgets_check(budgets)

        assert check.state is State.FAILED
        assert "1 calls refused" in check.detail

    def test_the_worst_is_told_first(self, make):
        """And no more than five of them."""
        fine = [Budget(usd=99, name=f"fine {number}") for number in range(9)]
        budgets = make(*fine, Budget(usd=1, name="spent"))
        budgets.add(scope(), used(2.0))
        check = budgets_check(budgets)

        assert check.state is State.WARNING
        assert check.detail.startswith("spent: 200%")
        assert check.detail.endswith("; 5 more")

    def test_calls_without_a_price_are_a_warning(self, make):
        """A budget in dollars that cannot see some calls does not pretend to."""
        budgets = make(Budget(usd=1))
        budgets.add(scope(), used(None))

        assert budgets_check(budgets).state is State.WARNING


class TestWhatTheCollectorEnds:
    """It may end a forgotten stream at any moment, on a thread that budgets are at work on."""

    def test_a_call_may_be_released_while_another_is_decided_on(self):
        """The thread that is inside comes in once more: it waits for nobody."""
        held = []

        def clock():
            if held:
                ended = held.pop()
                ended.release(ended)
            return 0.0

        budgets = Budgets([Budget(usd=1, on_exceeded="stop")], clock=clock)
        first = budgets.admit(scope(), "gpt-5", Asking(object(), (), 0.0, can_wait=False))
        decided = []

        def decide():
            held.append(first)
            asking = Asking(object(), (), 0.0, can_wait=False)
            decided.append(budgets.admit(scope(), "gpt-5", asking))
            budgets.add(scope(), used())

        threading.Thread(target=decide, daemon=True).start()
        until(lambda: budgets.calls == 1)

        assert isinstance(decided[0], Reservation)

    def test_a_call_may_be_released_while_others_are_looked_through(self):
        """As it is asked whether anything is under way that a call would wait for."""
        budgets = Budgets([Budget(usd=1, on_exceeded="stop")], clock=lambda: 0.0)
        begun = [
            budgets.admit(scope(), "gpt-5", Asking(object(), (), 0.0, can_wait=False))
            for _ in range(3)
        ]

        class Around(list):
            def __contains__(self, _call):
                for each in begun:
                    each.release(each)
                return True

        asking = Asking(object(), Around(), 0.0, can_wait=True)

        assert isinstance(budgets.admit(scope(), "gpt-5", asking), Reservation)
