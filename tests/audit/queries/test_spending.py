"""Spend: read from a real trail, beside the period before, and the feature that moved most."""

from __future__ import annotations

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.queries.spending import Period, Spent, spending
from mnemoscope.audit.queries.top_mover import PARTS, sentence
from mnemoscope.memory.api import OperationClass, Status, Usage

HOUR_US = 3_600_000_000
NOW_US = 1_700_000_000_000_000
LAST_HOUR = Period(since_us=NOW_US - HOUR_US, until_us=NOW_US)


@pytest.fixture
def trail(tmp_path, subject_keys, event_factory):
    """An empty trail, to which `call` adds model calls."""
    log = AuditLog(f"sqlite:///{tmp_path}/audit.db", subject_keys, clock_ns=lambda: NOW_US * 1_000)
    yield log
    log.close()


@pytest.fixture
def call(trail, event_factory):
    """Return a function that records a model call of so many minutes ago."""

    def record(minutes, *, cost_usd=1.0, feature="draft", node="write", model="m-1", **given):
        usage = Usage(
            model=model,
            node=node,
            input_tokens=100,
            output_tokens=20,
            cached_tokens=40,
            reasoning_tokens=5,
            cost_usd=cost_usd,
        )
        fields = {"operation": "chat", "op_class": OperationClass.MODEL, "store": "langgraph.model"}
        started_ns = (NOW_US - minutes * 60_000_000) * 1_000
        event = event_factory(
            usage=usage, feature=feature, started_ns=started_ns, **fields, **given
        )
        trail.append([event])

    return record


@pytest.fixture
def spent(trail):
    """Return a function that asks the trail."""

    def ask(*by, period=LAST_HOUR, **given):
        with trail.reading() as snapshot:
            return spending(snapshot, by or ("feature",), period, **given)

    return ask


@pytest.fixture
def said(spent):
    """Return a function that says what moved."""
    return lambda: sentence(spent(*PARTS))


class TestSpending:
    def test_calls_are_added_up_by_feature_dearest_first(self, call, spent):
        """Every kind of token, and the cost."""
        call(1, feature="search", cost_usd=0.5)
        call(2)
        call(3)
        lines = spent().lines

        assert [(each.names, each.now.cost_usd) for each in lines] == [
            (("draft",), 2.0),
            (("search",), 0.5),
        ]
        assert lines[0].now == Spent(2, 200, 40, 80, 0, 10, 2.0)

    def test_the_period_before_is_as_long_and_stands_beside_it(self, call, spent):
        """What is older than both is in neither."""
        call(10)
        call(70, cost_usd=0.25)
        call(119, cost_usd=0.25)
        call(121, cost_usd=9.0)
        (line,) = spent().lines

        assert (line.now.cost_usd, line.before.cost_usd) == (1.0, 0.5)

    def test_a_period_has_its_beginning_and_not_its_end(self, call, spent):
        """So that periods side by side count every call once."""
        call(60, cost_usd=1.0)
        call(0, cost_usd=7.0)
        found = spent()

        assert (found.now.cost_usd, found.before.cost_usd) == (1.0, 0.0)

    def test_several_dimensions_are_told_apart_together(self, call, spent):
        """A line for each combination that there is."""
        call(1, node="write")
        call(1, node="plan", model="m-2")
        names = [each.names for each in spent("feature", "node", "model").lines]

        assert names == [("draft", "plan", "m-2"), ("draft", "write", "m-1")]

    def test_customers_are_opaque_references(self, call, spent, trail):
        """The trail's own, the same for all calls of one person; whoever names nobody is nobody."""
        call(1, customer="ada@example.com")
        call(2, customer="ada@example.com")
        call(3, customer="bob@example.com")
        call(4, customer=None)
        lines = spent("customer").lines

        assert sorted(each.now.calls for each in lines) == [1, 1, 2]
        assert [each.now.calls for each in lines if each.names == (None,)] == [1]
        assert "example.com" not in repr(lines)

    def test_a_tenant_sees_its_own_calls(self, call, spent):
        """By the keyed hash in each sealed header."""
        call(1, tenant="acme", cost_usd=1.0)
        call(2, tenant="globex", cost_usd=5.0)
        call(70, tenant="acme", cost_usd=2.0)
        found = spent(tenant="acme")

        assert (found.now.cost_usd, found.before.cost_usd) == (1.0, 2.0)
        assert spent(tenant="nobody").lines == ()

    def test_a_call_without_a_price_is_counted_and_costs_nothing_that_is_known(self, call, spent):
        """Its tokens are there, and how many they are of those without a cost."""
        call(1, cost_usd=None)
        call(2, cost_usd=3.0)
        now = spent().now

        assert (now.calls, now.cost_usd) == (2, 3.0)
        assert (now.unpriced_calls, now.unpriced_tokens, now.tokens) == (1, 120, 240)

    def test_a_call_that_a_budget_refused_was_not_made(self, call, spent):
        """It is neither a call nor one of unknown cost."""
        call(1)
        call(2, cost_usd=None, status=Status.REJECTED)

        assert (spent().now.calls, spent().now.unpriced_calls) == (1, 0)

    def test_what_is_no_model_call_is_not_spend(self, trail, call, event_factory, spent):
        """Memory operations are in the trail as well."""
        call(1)
        trail.append([event_factory(started_ns=(NOW_US - 1) * 1_000)])

        assert spent().now.calls == 1

    def test_nothing_recorded_is_no_lines(self, trail, event_factory, spent):
        """And no error."""
        trail.append([event_factory(started_ns=1_000)])

        assert spent().lines == ()


@pytest.mark.xdist_group("postgres")
def test_postgresql_tells_the_same(postgres_url, subject_keys, event_factory):
    """One wording of the queries for both databases: by all dimensions, for one tenant, and all."""
    log = AuditLog(postgres_url, subject_keys, clock_ns=lambda: NOW_US * 1_000)
    fields = {"operation": "chat", "op_class": OperationClass.MODEL, "store": "langgraph.model"}
    used = Usage(model="m-1", node="write", input_tokens=100, output_tokens=20, cost_usd=1.0)
    log.append(
        [
            event_factory(
                usage=used,
                feature="draft",
                tenant=tenant,
                started_ns=(NOW_US - minutes * 60_000_000) * 1_000,
                **fields,
            )
            for tenant, minutes in (("acme", 1), ("acme", 70), ("globex", 2))
        ]
    )
    with log.reading() as snapshot:
        everybody = spending(snapshot, ("feature", "node", "model", "customer"), LAST_HOUR)
        tenants = spending(snapshot, ("tenant",), LAST_HOUR)
        (acme,) = spending(snapshot, ("feature",), LAST_HOUR, tenant="acme").lines
    log.close()

    assert [each.now.calls for each in tenants.lines] == [1, 1]
    assert everybody.now == Spent(2, 200, 40, 0, 0, 0, 2.0)
    assert everybody.lines[0].names[:3] == ("draft", "write", "m-1")
    assert (acme.now.cost_usd, acme.before.cost_usd) == (1.0, 1.0)


class TestMovement:
    def test_the_feature_that_moved_most_is_named_with_its_cause(self, call, said):
        """By how much, in dollars and as a factor, and which model in which node did it."""
        call(70, feature="reply-draft", cost_usd=1.35)
        call(70, feature="search", cost_usd=9.0)
        call(10, feature="reply-draft", cost_usd=4.2)
        call(10, feature="search", cost_usd=9.5)

        assert said() == (
            "reply-draft spent 3.1 times as much as the period before: $4.20, up $2.85; "
            "mostly m-1 in node write."
        )

    def test_a_feature_may_move_down(self, call, said):
        """The largest change counts, whatever its direction."""
        call(70, cost_usd=4.0)
        call(10, cost_usd=1.0)

        assert said().startswith("draft spent 75% less than the period before: $1.00, down $3.00")

    def test_a_change_of_less_than_double_is_told_in_percent(self, call, said):
        """Half as much again is 50 %."""
        call(70, cost_usd=2.0)
        call(10, cost_usd=3.0)

        assert said().startswith("draft spent 50% more than the period before: $3.00, up $1.00")

    def test_a_new_feature_is_new(self, call, said):
        """There is no factor from nothing."""
        call(70, feature="search")
        call(10, feature="search")
        call(10, cost_usd=2.0)

        assert said().startswith("draft is new: it spent $2.00, and nothing in the period before")

    def test_a_feature_that_is_gone_spent_nothing(self, call, said):
        """As far as the trail tells."""
        call(70, cost_usd=2.0)
        call(10, feature="search", cost_usd=0.1)

        assert said().startswith("draft spent nothing, after $2.00 in the period before")

    def test_a_cause_is_named_only_where_there_is_one(self, call, said):
        """Three nodes that share a change are none of them the cause."""
        call(70, cost_usd=1.0)
        for node in ("a", "b", "c"):
            call(10, node=node, cost_usd=2.0)
        call(10, cost_usd=1.0)

        assert said().endswith("$7.00, up $6.00.")

    def test_where_nothing_moved_nobody_is_named(self, call, said):
        """Noise is not news."""
        call(70, cost_usd=1.0)
        call(10, cost_usd=1.001)

        assert said() == "No feature moved: each spent what it did in the period before."

    def test_without_a_period_before_there_is_nothing_to_compare(self, call, said):
        """Said, so that nobody takes it for an increase; the dearest is named all the same."""
        call(10, cost_usd=3.0)
        call(10, feature="search")

        assert said() == (
            "draft spent most: $3.00, 75% of all; nothing was recorded in the period before, to "
            "compare with."
        )

    def test_without_prices_costs_cannot_be_compared(self, call, said):
        """Unknown is not zero."""
        call(10, cost_usd=None)
        call(70, cost_usd=None)

        assert said() == "No model that was called has a price: costs cannot be compared."

    def test_calls_without_a_feature_are_named_so(self, call, said):
        """They may be what moved."""
        call(70, feature=None, cost_usd=1.0)
        call(10, feature=None, cost_usd=4.0)

        assert said().startswith("What names no feature spent 4.0 times as much")
