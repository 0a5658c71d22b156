"""
Degraded checkpoints against a model, under any order of outages, deletions and others' changes.

When it is quiet and the database is back, nothing deleted is there, no write of ours is missing
without an event, and a thread that somebody else changed meanwhile has only theirs.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from mnemoscope.adapters.langgraph.checkpoint import adapter as langgraph_checkpoint
from mnemoscope.adapters.langgraph.checkpoint.lost import ThreadChangedError
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import BreakerPolicy, Policy, StoreUnavailableError
from mnemoscope.memory.api import Database, OperationClass
from mnemoscope.memory.guard.call import last_event
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.event.event import Journalled
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.bench import Bench, wrapping
from tests.kit.lengths import examples
from tests.kit.patience import GIVE_UP_S
from tests.kit.unplugged_savers import Memory, checkpoint, somebody_else, thread

guarded = wrapping(langgraph_checkpoint.ADAPTER)
KEYS = SubjectKeys(b"sixteen bytes or more")
POLICY = Policy(
    deadlines_s=dict.fromkeys(OperationClass, 0.0),
    checkpoint_pauses_s=(),
    breaker=BreakerPolicy(minimum_calls=10_000, window_calls=10_000),
)
REFUSED = ConnectionError, StoreUnavailableError, ThreadChangedError
THREADS = st.sampled_from(["t-1", "t-2"])
OURS = st.sampled_from(["first", "second"])


@lru_cache(maxsize=1)
def redactor():
    return build_redactor(model="none", keys=KEYS)


class NoThread:
    def watch(self, waiting): ...
    def close(self, timeout_s): ...


class Flaky(Memory):
    """Takes a write and fails after it, where it is told to."""

    fails_after = False

    def put(self, *args, **kwargs):
        config = super().put(*args, **kwargs)
        self._fail()
        return config

    def put_writes(self, *args, **kwargs):
        super().put_writes(*args, **kwargs)
        self._fail()

    def _fail(self):
        if self.fails_after:
            raise ConnectionError


class Home:
    """What the clients of one database have in common."""


class Threads(RuleBasedStateMachine):
    """
    Two threads, two degraded wrappers of their database, a plain one, and an unguarded client.

    Attributes:
        runs: What each wrapper's run of a thread would make its next checkpoint on.
        waiting: Writes of ours that wait, by thread.
        bases: What the first of them was made on, where the database has it.
        forbidden: Writes that were deleted.
        others: Writes that must not be in a thread, since somebody else changed it meanwhile.
        given_up: Of these, those on which nothing may be made any more.
        theirs: What somebody else wrote, by thread.
        ours: What the wrappers were told is written or waits.
    """

    def __init__(self):
        super().__init__()
        self.numbers = count(1)
        self.now = 0.0
        self.sink = CapturingSink()
        self.drain = Drain([self.sink])
        self.bench = Bench(
            redactor=redactor(), drain=self.drain, keys=KEYS, policy=POLICY, clock=lambda: self.now
        )
        self.bench.replayer = NoThread()
        self.bare = Flaky()
        self.other = somebody_else(self.bare)
        self.runs = {}
        self.waiting = defaultdict(set)
        self.bases = {}
        self.forbidden, self.others, self.ours = set(), defaultdict(set), {}
        self.theirs, self.given_up = defaultdict(set), defaultdict(set)

    @initialize()
    def wrap(self):
        """Wrap three clients of the database."""
        home, known = Home(), langgraph_checkpoint.database_of
        clients = [self.bare, self._client(), self._client()]
        langgraph_checkpoint.database_of = lambda _saver: Database.in_memory(home)
        try:
            first, second, plain = (
                guarded(each, self.bench, degraded=number < 2)
                for number, each in enumerate(clients)
            )
        finally:
            langgraph_checkpoint.database_of = known
        self.home, self.savers = home, {"first": first, "second": second, "plain": plain}

    def _client(self):
        client = Flaky()
        client.storage, client.writes, client.blobs = (
            self.bare.storage,
            self.bare.writes,
            self.bare.blobs,
        )
        client.plug = self.bare.plug
        return client

    # -- what the database has -----------------------------------------------------------------

    def content(self):
        """Return all that is in the database, by the thread."""
        found = defaultdict(set)
        for name, places in self.bare.storage.items():
            for checkpoints in places.values():
                found[name] |= set(checkpoints)
        for (name, _place, _step), writes in self.bare.writes.items():
            found[name] |= {channel for _task, channel, _value, _path in writes.values()}
        return found

    def _head(self, name):
        return max(self.bare.storage.get(name, {}).get("", {}), default=None)

    # -- ours ----------------------------------------------------------------------------------

    @rule(who=OURS, name=THREADS)
    def read(self, who, name):
        """Begin a run, on the latest checkpoint."""
        try:
            found = self.savers[who].get_tuple(thread(name))
        except REFUSED:
            self.runs.pop((who, name), None)
            return
        self.runs[who, name] = None if found is None else found.checkpoint["id"]

    @rule(who=OURS, name=THREADS)
    def put(self, who, name):
        """Have a run make a checkpoint."""
        if (who, name) not in self.runs:
            return
        made_on, number = self.runs[who, name], next(self.numbers)
        item = f"{number:06}"
        ids = {"thread_id": name, "checkpoint_ns": ""}
        config = {"configurable": ids if made_on is None else {**ids, "checkpoint_id": made_on}}
        metadata = {"source": "loop", "step": number}
        if self._ours(
            name,
            item,
            made_on,
            lambda: self.savers[who].put(config, checkpoint(item), metadata, {"value": item}),
        ):
            self.runs[who, name] = item
        else:
            del self.runs[who, name]

    @rule(who=OURS, name=THREADS)
    def put_writes(self, who, name):
        """Have a run write on top of its checkpoint."""
        if self.runs.get((who, name)) is None:
            return
        item = f"w{next(self.numbers):06}"
        ids = {**thread(name)["configurable"], "checkpoint_ns": ""}
        made_on = self.runs[who, name]
        config = {"configurable": {**ids, "checkpoint_id": made_on}}
        self._ours(
            name,
            item,
            made_on,
            lambda: self.savers[who].put_writes(config, [(item, "v")], f"task {item}"),
        )

    def _ours(self, name, item, made_on, write):
        try:
            write()
        except REFUSED:
            return False
        assert made_on not in self.given_up[name]
        self.ours[item] = name
        if last_event.get().journal is Journalled.APPENDED and self._is_behind(name):
            if not self.waiting[name]:
                self.bases[name] = made_on
            self.waiting[name].add(item)
            if self.others[name, "changed"]:
                self._is_others(name, {item})
        return True

    def _is_others(self, name, items):
        self.others[name] |= items - self.content()[name]

    # -- somebody else's -----------------------------------------------------------------------

    @rule(name=THREADS)
    def they_put(self, name):
        """Have somebody else go on with a thread."""
        item, head = f"{next(self.numbers):06}", self._head(name)
        ids = {"thread_id": name, "checkpoint_ns": ""}
        config = {"configurable": ids if head is None else {**ids, "checkpoint_id": head}}
        self.other.put(config, checkpoint(item), {"source": "loop"}, {"value": item})
        self._they(name, item)

    @rule(name=THREADS)
    def they_answer(self, name):
        """Have somebody else's run begin on the latest checkpoint."""
        if (head := self._head(name)) is None:
            return
        item = f"w{next(self.numbers):06}"
        ids = {**thread(name)["configurable"], "checkpoint_ns": "", "checkpoint_id": head}
        self.other.put_writes({"configurable": ids}, [(item, "v")], f"task {item}")
        self._they(name, item)

    def _they(self, name, item):
        self.theirs[name].add(item)
        if self.waiting[name]:
            self.others[name, "changed"] = {True}
            self._is_others(name, self.waiting[name])

    # -- deletions -----------------------------------------------------------------------------

    @rule(who=st.sampled_from(["first", "second", "plain"]), name=THREADS)
    def delete(self, who, name):
        """Delete a thread: what waits never comes, whether or not the database is reached."""
        there = self.content()
        waited = set(self.waiting[name])
        try:
            self.savers[who].delete_thread(name)
        except REFUSED:
            self.forbidden |= waited - there[name]
        else:
            self._deleted(name, there[name] | waited)
        self._drained(name)

    @rule(name=THREADS)
    def they_delete(self, name):
        """Delete a thread behind our backs."""
        content = self.content()
        there = content[name]
        if not content[name]:
            return
        base = self.bases.get(name) if self.waiting[name] else None
        self.other.delete_thread(name)
        if base in content[name]:
            self._deleted(name, there | self.waiting[name])
        else:  # what waits was made on nothing: nobody here can know that it was there meanwhile
            self._deleted(name, there - self.waiting[name])
            self.others[name] -= self.waiting[name]
        self.others[name, "changed"] = set()  # what they changed before cannot be seen any more

    def _deleted(self, name, items):
        self.forbidden |= items
        self.theirs[name].clear()
        self.given_up[name].clear()

    def _drained(self, name):
        self.waiting[name].clear()
        self.bases.pop(name, None)
        self.others[name, "changed"] = set()

    # -- the database --------------------------------------------------------------------------

    @rule(who=OURS, name=THREADS, what=st.sampled_from(["put", "answer", "delete", "nothing"]))
    def outage(self, who, name, what):
        """Have a run go on without the database, and somebody else do something meanwhile."""
        self.comes_back()
        if what == "answer" and self._head(name) is None:
            self.they_put(name)
        self.read(who, name)
        self.goes_away()
        self.put(who, name)
        self.put_writes(who, name)
        if what != "nothing":
            {"put": self.they_put, "answer": self.they_answer, "delete": self.they_delete}[what](
                name
            )
        self.put(who, name)

    @rule()
    def goes_away(self):
        """Unplug the database for our clients."""
        self.bare.plug.out = True

    @rule()
    def comes_back(self):
        """Plug it in again."""
        self.bare.plug.out = False

    @rule(is_so=st.booleans())
    def fails_after(self, is_so):
        """Have it take writes and fail to say so; or no more."""
        Flaky.fails_after = is_so

    @rule(who=OURS)
    def replay(self, who):
        """Look whether it is back, through one of the wrappers."""
        self.now += 10
        guard_of(self.savers[who]).waiting[0].replay()
        for name in ("t-1", "t-2"):
            if not self._is_behind(name):
                if self.others[name, "changed"]:
                    self.given_up[name] |= self.waiting[name] - self.content()[name]
                self._drained(name)

    def _is_behind(self, name):
        return guard_of(self.savers["first"]).waiting[0]._overlay.is_behind(name)

    # -- in the end ----------------------------------------------------------------------------

    def teardown(self):
        """Come to rest, with the database back or with the scope closed, and compare."""
        if not hasattr(self, "savers"):
            return
        Flaky.fails_after = False
        if self.bare.plug.out and next(self.numbers) % 2:
            self.bench.parts.close(1)
        self.bare.plug.out = False
        for _ in range(4):
            for who in ("first", "second"):
                self.replay(who)
        assert self.drain.flush(GIVE_UP_S)
        self.drain.close(1)
        self._compare()

    def _compare(self):
        there, lost = self.content(), self._told_as_lost()
        everywhere = set().union(*there.values())

        assert [guard_of(self.savers[each]).waits for each in ("first", "second")] == [0, 0]
        assert self.forbidden & everywhere == set()
        assert set(self.ours) - everywhere - lost - self.forbidden == set()
        for name in ("t-1", "t-2"):
            assert self.others[name] & there[name] == set()
            assert self.theirs[name] <= there[name]
        assert there.keys() <= {"t-1", "t-2"}

    def _told_as_lost(self):
        told = [each for each in self.sink.events if each.journal is Journalled.LOST]
        found = set()
        for each in told:
            content = each.content.value
            if each.method == "put":
                found.add(f"{content['step']:06}")
            else:
                found |= set(content["channels"])
        return found


TestThreads = Threads.TestCase
TestThreads.settings = settings(max_examples=examples(150), stateful_step_count=30, deadline=None)


def test_a_second_conflict_forgets_nothing_of_the_first():
    """A run that stands on what the first one gave up may not go on after the second."""
    state = Threads()
    state.wrap()
    for who in ("first", "second"):
        state.outage(who, "t-1", "put")
        state.comes_back()
        state.replay("first")

    state.put("first", "t-1")

    assert ("first", "t-1") not in state.runs
    state.teardown()


def test_a_thread_that_was_changed_and_deleted_begins_anew():
    """Nobody can see that it was changed; what waited is lost, as of any thread that is gone."""
    state = Threads()
    state.wrap()
    state.they_put(name="t-1")
    state.outage(name="t-1", what="put", who="first")
    state.comes_back()
    state.they_delete(name="t-1")
    state.replay(who="first")
    state.put(name="t-1", who="first")
    state.teardown()
