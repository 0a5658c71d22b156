"""Roles: who may do what, how often and how much, and the grants that runs act under."""

from __future__ import annotations

import hmac
import random
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import defaultdict, deque

import msgspec
import pytest
from langgraph.store.base import GetOp, PutOp
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import (
    Action,
    ConfigurationError,
    Facts,
    Outcome,
    Point,
    RefusedError,
    Role,
    Roles,
    context,
    granted,
)
from mnemoscope.memory.api import PASSES
from mnemoscope.memory.testing import scope_for_tests
from mnemoscope.telemetry.event.verdict_event import VerdictEvent
from tests.kit.event_parts import parts_of

KEY = bytes(range(32))
NOTES = "langgraph.store/notes"
READER = Role(recall=(NOTES,))
WRITER = Role(recall=(NOTES,), remember=("langgraph.store/*",))


@pytest.fixture
def make_store():
    """Return a function that guards a store with roles, and gives `told`, the verdicts so far."""
    scopes = []

    def make(roles):
        scopes.append(scope_for_tests(rules=[roles]))
        scope, sink = scopes[-1].__enter__()

        def told():
            assert scope.flush()
            return parts_of(sink.events, VerdictEvent)

        return scope.store(InMemoryStore()), told

    yield make
    for each in scopes:
        each.__exit__(None, None, None)


class TestRole:
    def test_what_it_names_is_done_and_all_else_is_refused(self, make_store):
        """By class and place; a recall finds nothing, other operations raise."""
        store, told = make_store(Roles({"writer": WRITER}))
        with context(agent="writer"):
            store.put(("notes",), "1", {"tea": True})
            store.put(("others",), "1", {"tea": True})
            assert store.get(("notes",), "1").value == {"tea": True}
            assert store.get(("others",), "1") is None
            with pytest.raises(RefusedError):
                store.delete(("notes",), "1")
        assert [each.reason for each in told()] == ["out_of_role"] * 2

    def test_the_caller_is_not_told_why(self, make_store):
        """The reason, the role and the place are in the audit trail alone."""
        store, told = make_store(Roles({"reader": READER}))
        with context(agent="reader"), pytest.raises(RefusedError, match=r"^not available$"):
            store.put(("notes",), "1", {})
        (verdict,) = told()
        assert (verdict.rule, verdict.outcome) == ("roles", Outcome.REFUSE)
        assert verdict.evidence["roles.role"] == "reader"

    def test_whoever_has_no_role_is_refused(self, make_store):
        """No agent, and one whose name is no role's."""
        store, told = make_store(Roles({"reader": READER}))
        assert store.get(("notes",), "1") is None
        with context(agent="somebody"):
            assert store.get(("notes",), "1") is None
        assert [each.reason for each in told()] == ["no_role"] * 2

    @pytest.mark.parametrize(
        ("ops", "is_done"),
        [
            ([PutOp(("notes",), "1", {})], True),
            ([PutOp(("notes",), "1", {}), GetOp(("notes",), "1")], True),
            ([PutOp(("notes",), "1", {}), GetOp(("others",), "1")], False),
            ([PutOp(("notes",), "1", {}), PutOp(("notes",), "2", None)], False),
        ],
    )
    def test_each_operation_of_a_batch_is_looked_at(self, make_store, ops, is_done):
        """What may not be done by itself may not be done among others either."""
        store, told = make_store(Roles({"writer": WRITER}))
        with context(agent="writer"):
            if is_done:
                store.batch(ops)
            else:
                with pytest.raises(RefusedError):
                    store.batch(ops)
        assert bool(told()) is not is_done

    def test_an_operation_that_cannot_be_told_is_refused(self):
        """What a call asks of the store is known, or it is not done."""
        roles = Roles({"reader": Role(recall=("*",))})
        with context(agent="reader"):
            known = roles.witness(Action(Point.MEMORY))
        assert roles.decide(Facts(Point.MEMORY, known=known)).reason == "out_of_role"

    def test_in_shadow_it_only_tells(self, make_store):
        """For the first week."""
        store, told = make_store(Roles({"reader": READER}, shadow=True))
        with context(agent="reader"):
            store.put(("notes",), "1", {})
        assert [each.reason for each in told()] == ["out_of_role"]

    def test_verdicts_are_made_again_from_what_was_told(self, make_store):
        """From the facts and the settings alone, without the key."""
        made = Roles({"reader": READER}, key=KEY)
        store, told = make_store(made)
        grant = made.grant("reader", agent="reader")
        with context(agent="reader"), granted(grant), pytest.raises(RefusedError):
            store.put(("notes",), "1", {})
        (verdict,) = told()
        again = Roles(**made.settings())
        facts = msgspec.json.decode(verdict.facts, type=Facts)
        assert again.decide(facts).reason == verdict.reason


class TestLimits:
    def test_so_many_operations_in_a_minute(self, make_store, clock):
        """Those that were refused do not count: it recovers."""
        role = Role(recall=("*",), remember=("*",), per_minute=3)
        store, told = make_store(Roles({"busy": role}, clock=clock, ticks=clock))
        with context(agent="busy"):
            store.put(("notes",), "1", {"tea": True})
            found = [store.get(("notes",), "1") is not None for _ in range(5)]
            clock.now += 61
            assert store.get(("notes",), "1") is not None
        assert found == [True, True, False, False, False]
        assert {each.reason for each in told()} == {"too_often"}

    def test_so_many_bytes_in_a_minute(self, make_store, clock):
        """Of answers: the one that goes past it is the last."""
        role = Role(recall=("*",), remember=("*",), bytes_per_minute=1_500)
        store, told = make_store(Roles({"greedy": role}, clock=clock, ticks=clock))
        with context(agent="greedy"):
            store.put(("notes",), "1", {"text": "x" * 1_000})
            found = [store.get(("notes",), "1") is not None for _ in range(4)]
            clock.now += 61
            assert store.get(("notes",), "1") is not None
        assert found == [True, True, False, False]
        assert {each.reason for each in told()} == {"too_much"}

    def test_an_answer_that_can_be_read_once_is_not_read(self, clock):
        """Such as the checkpoints that a checkpointer lists."""
        answer = iter(["x"])
        roles = Roles({}, clock=clock, ticks=clock)
        roles.seen(Action(Point.MEMORY, call=_Call("recall", "notes", answer)))
        assert list(answer) == ["x"]

    def test_each_agent_has_its_own(self, make_store, clock):
        """And each tenant's."""
        role = Role(recall=("*",), per_minute=1)
        store, told = make_store(Roles({"a": role, "b": role}, clock=clock, ticks=clock))
        for agent, tenant in (("a", None), ("b", None), ("a", "t-1"), ("a", "t-2")):
            with context(agent=agent, tenant=tenant):
                store.get(("notes",), "1")
        assert told() == []


class TestGrant:
    def test_a_run_acts_under_the_role_of_its_grant(self, make_store):
        """Whatever its agent is called."""
        roles = Roles({"reader": READER, "writer": WRITER}, key=KEY)
        store, told = make_store(roles)
        with context(agent="reader"), granted(roles.grant("writer", agent="reader")):
            store.put(("notes",), "1", {})
        assert told() == []

    def test_without_one_nothing_is_allowed(self, make_store):
        """The name of an agent is no role where there are grants."""
        store, told = make_store(Roles({"reader": READER}, key=KEY))
        with context(agent="reader"):
            store.get(("notes",), "1")
        assert [each.reason for each in told()] == ["no_grant"]

    def test_one_that_has_expired_is_refused(self, make_store, clock):
        """To the second."""
        roles = Roles({"reader": READER}, key=KEY, clock=clock, ticks=clock)
        store, told = make_store(roles)
        with context(agent="a"), granted(roles.grant("reader", agent="a", for_s=300)):
            clock.now += 299.9
            store.get(("notes",), "1")
            assert told() == []
            clock.now += 0.1
            store.get(("notes",), "1")
        assert [each.reason for each in told()] == ["expired_grant"]

    @pytest.mark.parametrize("bound", ["agent", "tenant", "purpose", "run"])
    def test_one_that_is_used_elsewhere_is_refused(self, make_store, bound):
        """By another agent, for another tenant or purpose, or in another run."""
        given = {"agent": "a", "tenant": "t", "purpose": "p", "run": "r"}
        roles = Roles({"reader": READER}, key=KEY)
        store, told = make_store(roles)
        grant = roles.grant("reader", **given)
        with context(**given), granted(grant):
            store.get(("notes",), "1")
        assert told() == []
        with context(**{**given, bound: "another"}), granted(grant):
            store.get(("notes",), "1")
        assert [each.reason for each in told()] == ["grant_of_another"]

    def test_the_agent_of_an_argument_is_not_asked(self):
        """A model may fill in arguments: it could name another agent."""
        roles = Roles({"reader": READER})
        with context(agent="somebody"), scope_for_tests(rules=[roles]) as (scope, _sink):
            known = roles.witness(Action(Point.MEMORY, scope=_scope_of("reader")))
            assert scope
        assert known == {"roles.problem": "no_role"}

    def test_one_that_was_widened_is_refused(self, make_store):
        """Any other role, agent, run or time, and any other byte."""
        roles = Roles({"reader": READER, "writer": WRITER}, key=KEY)
        store, told = make_store(roles)
        grant = roles.grant("reader", agent="a")
        said, signature = grant.split(".")
        claims = msgspec.json.decode(urlsafe_b64decode(said))
        role, agent, tenant, purpose, run, expires_s, issued_s = claims
        wider = [
            ("writer", agent, tenant, purpose, run, expires_s, issued_s),
            (role, agent, tenant, purpose, "r-2", expires_s, issued_s),
            (role, agent, tenant, purpose, run, expires_s + 1e6, issued_s),
        ]
        texts = [urlsafe_b64encode(msgspec.json.encode(each)).decode() for each in wider]
        forged = [f"{each}.{signature}" for each in texts]
        other = {at: "A" if grant[at] != "A" else "B" for at in range(8)}
        forged += [grant[:at] + letter + grant[at + 1 :] for at, letter in other.items()]
        forged += ["", ".", "a.b.c", said, f"{said}.", "\N{SNOWMAN}.", f".{signature}"]
        forged.append(Roles({"writer": WRITER}, key=bytes(32)).grant("writer", agent="a"))
        with context(agent="a"):
            for each in forged:
                with granted(each):
                    store.get(("notes",), "1")
        assert [each.reason for each in told()] == ["forged_grant"] * len(forged)

    def test_a_grant_ends_with_its_block(self, make_store):
        """And blocks nest."""
        roles = Roles({"reader": READER, "writer": WRITER}, key=KEY)
        store, told = make_store(roles)
        with context(agent="a"), granted(roles.grant("writer", agent="a")):
            with granted(roles.grant("reader", agent="a")), pytest.raises(RefusedError):
                store.put(("notes",), "1", {})
            store.put(("notes",), "1", {})
        assert len(told()) == 1

    @pytest.mark.parametrize(
        ("key", "role", "for_s", "expected"),
        [
            (None, "reader", 300, "give Roles a key"),
            (KEY, "admin", 300, "no role admin"),
            (KEY, "reader", 3_601, "up to 3600 seconds"),
            (KEY, "reader", 0, "up to 3600 seconds"),
        ],
    )
    def test_one_that_makes_no_sense_is_not_made(self, key, role, for_s, expected):
        """It says what to do."""
        with pytest.raises(ConfigurationError, match=expected):
            Roles({"reader": READER}, key=key).grant(role, agent="a", for_s=for_s)


class TestFile:
    def test_roles_are_read_from_a_file(self, tmp_path):
        """A table for each."""
        file = tmp_path / "roles.toml"
        file.write_text('[reader]\nrecall = ["qdrant/notes"]\nper_minute = 30\n')
        assert (
            Roles(file).settings()
            == Roles({"reader": Role(recall=("qdrant/notes",), per_minute=30)}).settings()
        )

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("[reader", "cannot be read .TOMLDecodeError."),
            ("reader = 1", "the role reader makes no sense"),
            ("[reader]\nrecal = []", "the role reader makes no sense"),
            ("[reader]\nrecall = 'x'", "the role reader makes no sense"),
        ],
    )
    def test_one_that_makes_no_sense_is_refused(self, tmp_path, text, expected):
        """When it is read, in one line."""
        file = tmp_path / "roles.toml"
        file.write_text(text)
        with pytest.raises(ConfigurationError, match=expected):
            Roles(file)

    def test_one_that_is_not_there_is_refused(self, tmp_path):
        """Nobody has a role by mistake."""
        with pytest.raises(ConfigurationError, match="FileNotFoundError"):
            Roles(tmp_path / "none.toml")

    def test_a_short_key_is_refused(self):
        """It could be guessed."""
        with pytest.raises(ConfigurationError, match="31 bytes"):
            Roles({}, key=bytes(31))


def test_it_decides_as_an_independent_reading_of_the_file(clock):
    """Of 100,000 random calls, by role, class, place, time and grant, none differs."""
    dice = random.Random(7)  # noqa: S311 - no secret
    roles = Roles(_random_roles(dice), key=KEY, clock=clock, ticks=clock)
    written = roles.settings()["roles"]
    calls = {(each, at): _Call(each, at) for each in _CLASSES for at in _PLACES}
    agents = [f"agent-{number}" for number in range(6)]
    grants = {}
    done = defaultdict(deque)
    differ = allowed = 0
    for _ in range(100_000):
        clock.now += dice.choice((0, 0, 0, 1, 3))
        agent = dice.choice(agents)
        if agent not in grants or dice.random() < 0.01:
            role, for_s = dice.choice([*written]), dice.randint(1, 120)
            grants[agent] = roles.grant(role, agent=agent, for_s=for_s), role, clock.now + for_s
        owner = agent if dice.random() < 0.95 else dice.choice(agents)
        grant, role, expires_s = grants.get(owner, ("none", "", 0))
        op_class, place = dice.choice(_CLASSES), dice.choice(_PLACES)
        asked = Action(Point.MEMORY, operations=(calls[op_class, place],), store="s")
        with context(agent=agent), granted(grant):
            known = roles.witness(asked)
        decided = roles.decide(Facts(Point.MEMORY, known=known))
        is_allowed = known is PASSES or decided.outcome is Outcome.ALLOW
        expected = (
            owner == agent
            and role != ""
            and clock.now < expires_s
            and any(re.fullmatch(_regex(each), f"s/{place}") for each in written[role][op_class])
            and _has_left(written[role]["per_minute"], done[agent], clock.now)
        )
        if expected:
            done[agent].append(clock.now)
        allowed += expected
        differ += expected is not is_allowed
    assert differ == 0
    assert allowed > 2_000


_CLASSES = ("recall", "remember", "forget", "resume", "checkpoint")
_PLACES = ("notes", "notes/a", "profile/1", "", "x")


def _random_roles(dice):
    patterns = ("s/notes", "s/notes/*", "s/*", "*", "s/profile/?", "t/*", "s/")
    return {
        f"role-{number}": {
            **{each: tuple(dice.sample(patterns, dice.randint(0, 2))) for each in _CLASSES},
            "per_minute": dice.choice((None, 5, 50)),
        }
        for number in range(5)
    }


def _regex(pattern):
    return re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")


def _has_left(limit, times, now):
    # A minute has 60 buckets of a second, and one that is being filled.
    while times and int(times[0]) < int(now) - 60:
        times.popleft()
    return limit is None or len(times) < limit


class _Call:
    """As much of a call as roles look at."""

    arguments = joins = asks = None

    def __init__(self, op_class, place, result=None):
        self.result = result
        self.method = self
        self.op_class = op_class
        self.collection = lambda _arguments: place


def _scope_of(agent):
    with context(agent=agent) as scope:
        return scope


class TestTime:
    """Grants, and clocks that are not to be trusted."""

    @pytest.fixture
    def clocks(self, clock):
        """Return a clock that somebody may set, and one that nobody can."""
        return clock, type(clock)()

    @staticmethod
    def signed(key, **changed):
        """Return a grant that another program has signed, with a key that it was given."""
        claims = {
            "role": "reader",
            "agent": "a",
            "tenant": None,
            "purpose": None,
            "run": None,
            "expires_s": 300.0,
            "issued_s": 0.0,
            **changed,
        }
        said = msgspec.json.encode([*claims.values()])
        signature = hmac.digest(key, b"mnemoscope grant\0" + said, "sha256")
        return b".".join(map(urlsafe_b64encode, (said, signature))).decode()

    @pytest.mark.parametrize(
        ("expires_s", "issued_s", "reason"),
        [
            (300, 0, None),
            (3_600, 0, None),
            (3_600 + 30, 30, None),  # by a clock that is half a minute ahead
            (3_600, -1, "long_grant"),
            (3_700, 0, "long_grant"),
            (10**9, 0, "long_grant"),
            (10**9, 10**9 - 300, "early_grant"),
            (400, 100, "early_grant"),
            (0, -300, "expired_grant"),
        ],
    )
    def test_the_checker_bounds_what_is_signed(
        self, make_store, clocks, expires_s, issued_s, reason
    ):
        """For an hour at most, from now on: whoever has the key may have another program."""
        roles = Roles({"reader": READER}, key=KEY, clock=clocks[0], ticks=clocks[1])
        store, told = make_store(roles)
        base = clocks[0].now
        grant = self.signed(KEY, expires_s=base + expires_s, issued_s=base + issued_s)
        with context(agent="a"), granted(grant):
            store.get(("notes",), "1")
        assert [each.reason for each in told()] == ([] if reason is None else [reason])

    @pytest.mark.parametrize("seed", range(5))
    def test_a_clock_that_is_set_revives_and_extends_nothing(self, make_store, clocks, seed):
        """A grant that has ended has ended; one holds no longer than it says, by any clock."""
        dice, (clock, ticks) = random.Random(seed), clocks  # noqa: S311 - the same in every run
        roles = Roles({"reader": READER}, key=KEY, clock=clock, ticks=ticks)
        store, told = make_store(roles)
        begun, ended = ticks.now, False
        with context(agent="a"), granted(roles.grant("reader", agent="a", for_s=300)):
            for _ in range(60):
                passed_s = dice.choice([0, 1, 20])
                ticks.now += passed_s
                clock.now += passed_s + dice.choice([0, 0, -3_600, -400, -30, 30, 400])
                before = len(told())
                store.get(("notes",), "1")
                is_refused = len(told()) > before
                assert is_refused or not ended
                assert is_refused or ticks.now - begun < 300
                ended = ended or is_refused
        assert ended

    def test_a_clock_that_was_ahead_once_ends_what_was_used_meanwhile_alone(
        self, make_store, clocks
    ):
        """By a day, for one look: what others have signed before and after holds."""
        clock, ticks = clocks
        roles = Roles({"reader": READER}, key=KEY, clock=clock, ticks=ticks)
        store, told = make_store(roles)
        base = clock.now

        def is_refused(run, made_at=base):
            times, before = {"issued_s": made_at, "expires_s": made_at + 300}, len(told())
            with context(agent="a", run=run), granted(self.signed(KEY, run=run, **times)):
                store.get(("notes",), "1")
            return len(told()) > before

        assert not is_refused("used")
        assert not is_refused("used before")
        clock.now += 86_400
        assert is_refused("used")
        clock.now -= 86_400
        assert is_refused("used")
        assert not any(map(is_refused, ("unused", "used before")))
        assert not is_refused("made after", base + 1)
        ticks.now += 300
        assert is_refused("used before")

    def test_no_grant_holds_longer_than_it_says_after_a_clock_is_put_right(
        self, make_store, clocks
    ):
        """A minute ahead and back, a minute later: it ends as it would have."""
        clock, ticks = clocks
        roles = Roles({"reader": READER}, key=KEY, clock=clock, ticks=ticks)
        store, told = make_store(roles)
        clock.now += 60
        with context(agent="a"), granted(roles.grant("reader", agent="a", for_s=100)):
            store.get(("notes",), "1")
            clock.now -= 20
            ticks.now += 99
            store.get(("notes",), "1")
            assert told() == []
            ticks.now += 1
            store.get(("notes",), "1")
        assert [each.reason for each in told()] == ["expired_grant"]
