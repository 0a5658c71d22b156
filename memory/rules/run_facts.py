"""The facts of the runs that are under way: bounded, and of numbers and hashes only."""

from __future__ import annotations

import math
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from operator import mul
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec
import orjson
from msgspec.structs import asdict

from ...telemetry.event.usage import Usage
from ...telemetry.event.verdict_event import Point
from ...telemetry.process.fork import reset_after_fork
from ...telemetry.text import json_text
from ..errors import RuleError, StoppedError
from .rule import LONGEST_TEXT, MOST_KNOWN, MOST_TURNS, Fact, Facts, Turn, facts_from

MOST_TRUST: Final = 4
"""The trust of a person's input, which a run begins with; 0 is what is not known."""

MOST_RUNS: Final = 4_096
"""Runs that facts are kept of: the one that was idle the longest goes first."""

MOST_GONE: Final = 65_536
"""Runs of which is kept that there were facts: they are not known from their start any more."""

RunKey: TypeAlias = tuple[str | None, str]
"""A tenant, and the name of a run, thread or graph of theirs."""

MOST_DONE: Final = 4_096
"""Things done that a run knows again: the one that was done longest ago is forgotten first."""

SAME_TEXT: Final = 0.8
"""Likeness from which a text says what the node has said before."""

_MOST_NODES = 256
_MOST_TEXTS = 6
_MOST_STREAMS = 64
_MOST_PARTS = 8
_HASH_BYTES = 8


class KeyedHashes:
    """
    Keyed hashes of names, ids and arguments: equal in every process that has the key.

    Args:
        key: The key.
    """

    def __init__(self, key: bytes) -> None:
        self._keyed = blake2b(key=key, digest_size=_HASH_BYTES)
        self.of_name = lru_cache(4_096)(self.of_text)

    def of_text(self, text: str) -> str:
        """Return the hash of *text*: 16 hex digits."""
        return self.of_bytes(text.encode("utf-8", "surrogatepass"))

    def of_json(self, value: Any) -> str:
        """Return the hash of *value* as JSON, the order of keys left out."""
        digest = self._keyed.copy()
        try:
            digest.update(orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str))
        except TypeError:
            digest.update(json_text(value).encode())
        return digest.hexdigest()

    def of_bytes(self, data: bytes) -> str:
        """Return the hash of *data*: 16 hex digits."""
        digest = self._keyed.copy()  # half of the time of making one with the key
        digest.update(data)
        return digest.hexdigest()


class RunCounts(msgspec.Struct):
    """What is counted of a run, under the names that `Facts` has for it."""

    cost_usd: float = 0.0
    unpriced_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    node_ends: int = 0
    recalls: int = 0
    writes: int = 0
    errors: int = 0
    iteration: int = 0

    def add(self, other: RunCounts) -> None:
        """Add the counts of *other*."""
        for name in RunCounts.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Earlier(RunCounts):
    """
    What was done in a run before, by other processes.

    Attributes:
        events: That it was counted of. None: the run begins here.
        elapsed_s: Seconds that they were at work.
        nodes: Runs of each node, by the hash of its name.
    """

    events: int = 0
    elapsed_s: float = 0.0
    nodes: Counter[str] = msgspec.field(default_factory=Counter[str])


class Calm(NamedTuple):
    """
    Until when a run is far from the limits of its phases.

    Attributes:
        known: The facts by name that this was found with: others say something else.
        until_s: Monotonic seconds.
    """

    known: Mapping[str, Fact]
    until_s: float
    cost_usd: float


class RunFacts:
    """
    The facts of one run, as they grow. Not thread-safe.

    Args:
        now: Monotonic seconds.
        is_whole: Whether nothing was known of it before, and forgotten.

    Attributes:
        counts: What was counted.
        turns: The latest ends of nodes, oldest first.
        known: Facts by name. Replaced on each change, never changed.
        is_whole: Whether all of it is known, from its start, as far as this process can tell.
        seen: Numbered on each change: of two copies, the one that saw more is the later one.
        stopped: What ends the run: the error's class, rule and reason.
        escalation: The `OpenEscalation` that it waits for. None: it waits for none.
        best: The best answer of the caller's and how good it is. Kept in memory alone.
        returns_best: Whether it ends with that answer.
        streams: When the latest chunk of each stream of a model came.
        calm: Until when it is far from the limits of its phases. None: not known, as where its
            time at work was set anew.
        reported: Reasons in shadow that were told already: a run would have been stopped once.
        least: How far the least trusted of what it has read is to be trusted. Of all runs of a
            thread: each goes on with what the others have read.
        name: Its own or its thread's. None: it is of one graph run, in one process.
        is_opened: Whether it is known what other processes have read in it.
        is_read: Whether it was asked what other processes have done in it.
        has_turns: Whether a graph works on it, whose nodes end.
        lacks_earlier: Whether not all of that is known. It says nothing of what was read.
    """

    lacks_earlier = False
    has_turns = False
    is_opened = False
    is_read = False
    name: str | None = None

    def __init__(self, now: float, *, is_whole: bool = True) -> None:
        self._roots: deque[object] = deque(maxlen=_MOST_PARTS)
        self._is_loaded = False
        self.least = MOST_TRUST
        self._reset(now, is_whole=is_whole)

    def _reset(self, now: float, *, is_whole: bool = True) -> None:
        self.counts, self.is_whole = RunCounts(), is_whole
        self.turns: tuple[Turn, ...] = ()
        self.known: Mapping[str, Fact] = {}
        self.calm: Calm | None = None
        self._begun, self._earlier_s, self._latest = now, 0.0, now
        self._iterations = Counter[str]()
        self._texts: dict[str, deque[tuple[float, ...]]] = {}
        self.streams: dict[object, float] = {}
        self.seen = 0
        self.stopped: tuple[type[RuleError], str, str] | None = None
        self.escalation: Any = None
        self.best: tuple[float, Any] | None = None
        self.returns_best = False
        self.reported: set[tuple[str, str]] = set()
        self._done: OrderedDict[str, None] = OrderedDict()
        self._again = Counter[str]()
        self._calls: dict[object, str] = {}
        self._clear_turn()

    def _clear_turn(self) -> None:
        self._found: deque[str] = deque(maxlen=MOST_KNOWN)
        self._written: deque[str] = deque(maxlen=MOST_KNOWN)
        self._likeness: float | None = None
        self._quality: float | None = None

    def enter(self, root: object, now: float, *, resumes: bool, named: bool) -> bool:
        """
        Note that the graph run *root* works on it, and return whether that is new.

        A new input begins a new run of a thread. One that is resumed goes on, and so does one that
        the caller named.
        """
        if root in self._roots:
            return False
        is_first = not self._roots
        self._roots.append(root)
        self.has_turns = True
        if not (resumes or named):
            if not self.is_whole:
                self.least = 0
            self._reset(now)
        elif resumes:
            self._earlier_s = self.elapsed_s(self._latest)
            self._begun, self.calm, self.stopped = now, None, None
            if is_first and not self.seen:
                self.is_whole = False
        return True

    def ended_by(self) -> RuleError | None:
        """Return the error that ends the run, made anew: one that was raised holds frames."""
        if self.stopped is None:
            return None
        kind, rule, reason = self.stopped
        error = kind(rule, reason)
        if isinstance(error, StoppedError) and self.returns_best and self.best is not None:
            error.best = self.best[1]
        return error

    def elapsed_s(self, now: float) -> float:
        """Return the seconds that it has been at work."""
        return self._earlier_s + max(0.0, now - self._begun)

    def at(self, point: Point, what: str, now: float) -> Facts:
        """Return the facts for a decision."""
        return Facts(
            point,
            what,
            is_whole=self.is_whole and not self.lacks_earlier,
            elapsed_s=self.elapsed_s(now),
            turns=self.turns,
            stale=self._again.total(),
            repeats=max(self._again.values(), default=0),
            known=self.known,
            silent_s=self.silent_s(now),
            **asdict(self.counts),
        )

    @property
    def facts(self) -> Facts:
        """The facts as of its latest change."""
        return self.at(Point.NODE, "", self._latest)

    def silent_s(self, now: float) -> float:
        """Return for how long that stream of a model was silent which was so the longest."""
        return now - min(self.streams.values(), default=now)

    # -- what was done -----------------------------------------------------------------------------

    def heard(self, call: object, now: float) -> None:
        """Note a chunk of a model's stream."""
        if call in self.streams or len(self.streams) < _MOST_STREAMS:
            self.streams[call] = now

    def forget_streams(self) -> None:
        """Wait for no chunk any more."""
        self.streams.clear()

    def model_ended(
        self, usage: Usage | None, now: float, *, failed: bool, call: object = None
    ) -> None:
        """Count a model call."""
        self.streams.pop(call, None)
        counts, cost = self.counts, None if usage is None else usage.cost_usd
        counts.model_calls += 1
        counts.cost_usd += cost or 0.0
        counts.unpriced_calls += cost is None
        if usage is not None:
            counts.input_tokens += usage.input_tokens
            counts.output_tokens += usage.output_tokens
        self._ended(now, failed=failed)

    def _ended(self, now: float, *, failed: bool) -> None:
        self.counts.errors = self.counts.errors + 1 if failed else 0
        self.seen, self._latest = self.seen + 1, now

    def tool_begun(self, call: object, call_hash: str) -> None:
        """Note a tool call by the hash of its name and arguments."""
        self._calls[call] = call_hash
        if len(self._calls) > _MOST_STREAMS:
            del self._calls[next(iter(self._calls))]

    def tool_ended(self, call: object, answer_hash: str, now: float, *, failed: bool) -> None:
        """Count a tool call, by the hash of its answer."""
        self.did(f"{self._calls.pop(call, '')}:{answer_hash}")
        self.counts.tool_calls += 1
        self._ended(now, failed=failed)

    def did(self, done: str, *, is_alike: bool = False) -> None:
        """Note something done, by its hash; *is_alike*: it is like what was done before."""
        if done in self._done or is_alike:
            self._again[done] += 1
        else:
            self._again.clear()
        self._done[done] = None
        self._done.move_to_end(done)
        if len(self._done) > MOST_DONE:
            gone, _none = self._done.popitem(last=False)
            self._again.pop(gone, None)

    def recalled(self, ids: Sequence[str], now: float) -> None:
        """Count a recall by the ids that it found, if any: they are hashed as the turn ends."""
        if ids:
            self._found.extend(ids)
            self.counts.recalls += 1
            self.seen, self._latest = self.seen + 1, now

    def wrote(self, content_hash: str, now: float) -> None:
        """Count a write by the hash of what it wrote. Empty: no turn is made of it."""
        if content_hash:
            self._written.append(content_hash)
        self.counts.writes += 1
        self.seen, self._latest = self.seen + 1, now

    def said(self, node: str, vector: Iterable[float]) -> float | None:
        """Return how like a text of a node is to its earlier ones. Of several the newest counts."""
        text, texts = normalised(vector), self._texts.setdefault(node, deque(maxlen=_MOST_TEXTS))
        likeness = max((sum(map(mul, text, each)) for each in texts), default=None)
        if likeness is not None:
            before = self._likeness
            self._likeness = likeness if before is None else min(likeness, before)
        texts.append(text)
        if len(self._texts) > _MOST_NODES:
            del self._texts[next(iter(self._texts))]
        return likeness

    def node_ended(self, node: str, hashes: KeyedHashes, now: float, *, failed: bool) -> None:
        """Count the end of a node: a turn."""
        runs = self._iterations[node] + 1
        if runs > 1 or len(self._iterations) < _MOST_NODES:
            self._iterations[node] = runs
        for kind, each in (("found", self._found), ("written", self._written)):
            if each:
                self.did(hashes.of_json([kind, *each]))
        turn = Turn(node, self._likeness, self._quality)
        self._clear_turn()
        self.turns = (*self.turns[1 - MOST_TURNS :], turn)
        counts = self.counts
        counts.node_ends += 1
        counts.iteration = max(counts.iteration, runs)
        counts.errors = counts.errors or int(failed)  # what failed within it is counted already
        self.seen, self._latest = self.seen + 1, now

    def note(self, known: Mapping[str, Fact]) -> None:
        """
        Keep facts by name.

        Raises:
            ValueError: There are too many, or one is no number, flag or short code.
        """
        if not all(map(_is_fact, known.values())):
            raise ValueError("a fact must be a number, a flag or a code of 64 characters")
        more = {**self.known, **known}
        if len(more) > MOST_KNOWN:
            raise ValueError(f"a run may have {MOST_KNOWN} facts of its own")
        self.known = more
        quality = known.get("quality")
        if isinstance(quality, int | float):
            self._quality = float(quality)
        self.seen += 1

    def note_answer(self, answer: Any, quality: float) -> None:
        """Keep *answer* if it is the best so far, and its quality as a fact."""
        if self.best is None or quality > self.best[0]:
            self.best = quality, answer
        self.note({"quality": quality})

    # -- across processes --------------------------------------------------------------------------

    def add_earlier(self, earlier: Earlier) -> None:
        """Add what was done before, in other processes; unless a checkpoint has brought it."""
        if self._is_loaded:
            return
        self.lacks_earlier = True  # what was noted, and how its turns ended, is not in the trail
        self._iterations += earlier.nodes
        self._earlier_s += earlier.elapsed_s
        self.calm = None
        counts = self.counts
        is_over = counts.model_calls or counts.tool_calls
        errors = counts.errors + (0 if is_over else earlier.errors)
        counts.add(earlier)
        counts.errors = errors
        counts.node_ends += earlier.nodes.total()
        counts.iteration = max(self._iterations.values(), default=0)

    def dump(self, now: float, run: str) -> str:
        """Return all of it as text, for whoever resumes the run, whose name has the hash *run*."""
        facts = self.at(Point.NODE, "", now).text()
        known = {"facts": facts, "least": self.least, "nodes": self._iterations, "seen": self.seen}
        return json_text({**known, "run": run})

    def load(self, text: str, now: float, run: str) -> None:
        """
        Take what `dump` returned in another process, unless as much or more is known here.

        Of another run of the same thread it says what its state has read, and not what this run,
        whose name has the hash *run*, has read elsewhere.

        Raises:
            ValueError: It is no such text.
        """
        found = orjson.loads(text)
        seen, facts = int(found["seen"]), facts_from(found["facts"])
        # Of two copies the one that saw more is the later one, and each has read what it has read.
        self.least = min(self.least, int(found.get("least", 0)))
        self.is_opened = self.is_opened or found.get("run") == run
        self._is_loaded = True
        if seen <= self.seen:
            return
        self.counts = RunCounts(*[getattr(facts, each) for each in RunCounts.__struct_fields__])
        self.is_whole, self.turns, self.known = facts.is_whole, facts.turns, facts.known
        self._earlier_s, self.calm = facts.elapsed_s, None
        self._iterations = Counter({str(name): int(runs) for name, runs in found["nodes"].items()})
        self._begun, self._latest, self.seen = now, now, seen


def normalised(vector: Iterable[float]) -> tuple[float, ...]:
    """Return *vector* at the length 1."""
    numbers = tuple(map(float, vector))
    length = math.hypot(*numbers) or 1.0
    return tuple([each / length for each in numbers])


def _is_fact(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_TEXT
    return value is None or isinstance(value, bool | int | float)


class RunsUnderWay:
    """
    The facts of all runs of one scope, the latest `MOST_RUNS`. Thread-safe.

    Args:
        clock: Monotonic seconds.

    Attributes:
        at_work: The facts of the run that each watched graph works on which has not ended, by
            LangChain's id of it.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.forked()
        reset_after_fork(self)

    def forked(self) -> None:
        """Forget all runs in a forked child: they go on in the parent."""
        self._runs: OrderedDict[RunKey, RunFacts] = OrderedDict()
        self._gone: OrderedDict[RunKey, None] = OrderedDict()
        self.at_work: dict[object, RunFacts] = {}
        # Re-entrant: the collector may end a run in here.
        self.guard = threading.RLock()

    def of(self, key: RunKey | None) -> RunFacts:
        """Return the facts of a run, to be used under `guard`. None: of no run, and not kept."""
        if key is None:
            return RunFacts(self._clock())
        found = self._runs.get(key)
        if found is None:
            found = self._runs[key] = RunFacts(self._clock(), is_whole=key not in self._gone)
            if len(self._runs) > MOST_RUNS:
                gone, _facts = self._runs.popitem(last=False)
                self._gone[gone] = None
                if len(self._gone) > MOST_GONE:
                    self._gone.popitem(last=False)
        else:
            self._runs.move_to_end(key)
        return found

    def known(self, key: RunKey) -> RunFacts | None:
        """Return the facts of a run, if there are any."""
        return self._runs.get(key)

    def keys(self) -> list[RunKey]:
        """Return the names of all runs, to be used under `guard`."""
        return [*self._runs]

    def all(self) -> list[RunFacts]:
        """Return the facts of all runs, to be used under `guard`."""
        return [*self._runs.values()]
