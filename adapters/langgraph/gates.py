"""
Two gates for nodes of a graph, each of which leaves a certificate that anybody can check.

A gate looks at what a node returns, per thread, and routes the graph out of a loop, or away from a
state that must not be. It changes nothing, and no error of its own reaches the graph. A certificate
is JSON: who has it makes the check again, in another process, without the gate.
"""

from __future__ import annotations

import inspect
import json
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from operator import mul
from typing import Any, Final, Generic, Protocol, TypeVar, cast

from langchain_core.runnables.config import var_child_runnable_config

from ...memory.errors import ConfigurationError
from ...memory.rules.rule import ALLOW, Facts, Fails, Rule, Verdict
from ...memory.rules.run_facts import MOST_RUNS, normalised
from ...telemetry.event.verdict_event import Outcome, Point
from ..toolkit.type_guards import is_dict

__all__ = ["Certificate", "certificate_from"]

N = TypeVar("N", bound=Callable[..., Any])
S = TypeVar("S")

EPHEMERAL: Final = ""
"""Stands for the thread of runs that have none."""

STABILITY: Final = "behavioral_stability_windowed"
INTEGRITY: Final = "langgraph_state_integrity"


class GateScope(Protocol):
    """The part of a scope that gates use."""

    def tell_verdict(self, rule: Rule, facts: Facts) -> Verdict:
        """Have *rule* decide, and tell what it says as a sealed event."""
        ...

    def note_fault(self, site: str, exc: BaseException) -> None:
        """Count an error of ours."""
        ...


@dataclass(frozen=True, slots=True)
class Certificate:
    """
    What a gate has found, with the figures that it follows from.

    Attributes:
        theorem: What is claimed.
        parameters: The figures, as JSON types.
        holds: Whether the claim holds of them.
    """

    theorem: str
    parameters: Mapping[str, Any]
    holds: bool

    def text(self) -> str:
        """Return the certificate as JSON."""
        known = {"theorem": self.theorem, "parameters": self.parameters, "holds": self.holds}
        return json.dumps(known, sort_keys=True)

    def verify(self) -> bool:
        """Return whether its figures lead to what it says, by the theorem's own predicate."""
        return predicate(self.theorem, self.parameters) == self.holds


def certificate_from(text: str) -> Certificate:
    """
    Return the certificate that `Certificate.text` wrote.

    Raises:
        ValueError: It is none.
    """
    try:
        known = json.loads(text)
        return Certificate(known["theorem"], dict(known["parameters"]), bool(known["holds"]))
    except (KeyError, TypeError) as exc:
        raise ValueError("this is no certificate: expected what Certificate.text() wrote") from exc


def predicate(theorem: str, parameters: Mapping[str, Any]) -> bool:
    """
    Return whether *theorem* holds of *parameters*. Of no signals it does not.

    Raises:
        ValueError: There is no such theorem, or the parameters are not its own.
    """
    try:
        if theorem == STABILITY:
            signals = parameters["signal_values"]
            return bool(signals) and bool(max(signals) <= parameters["threshold"])
        if theorem == INTEGRITY:
            return all(held for _name, held in parameters["invariant_results"])
    except (KeyError, TypeError) as exc:
        raise ValueError(f"these are no parameters of {theorem}") from exc
    raise ValueError("there is no such theorem: expected one of the gates'")


class _Threads(Generic[S]):
    """The state of each thread, the latest `MOST_RUNS`. Thread-safe."""

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make
        self._of: OrderedDict[str, S] = OrderedDict()
        self.guard = threading.RLock()

    def of(self, thread: str) -> S:
        """Return the state of a thread."""
        found = self._of.setdefault(thread, self._make())
        self._of.move_to_end(thread)
        if len(self._of) > MOST_RUNS:
            self._of.popitem(last=False)
        return found

    def known(self, thread: str) -> S | None:
        """Return the state of a thread, if it has any."""
        return self._of.get(thread)

    def clear(self, thread: str | None) -> None:
        """Forget a thread, or all."""
        with self.guard:
            if thread is None:
                self._of.clear()
            else:
                self._of.pop(thread, None)


@dataclass(slots=True)
class _Signals:
    texts: deque[tuple[float, ...]]
    integrals: deque[float]
    is_stagnant: bool = False


class StagnationGate:
    """
    Finds threads whose nodes say nothing new any more.

    Each text has a novelty: one less its likeness to the likest of the earlier ones. The gate fires
    when a running mean of it stays below a threshold.

    Args:
        embed: Returns the vector of a text: a model of yours.
        threshold: Novelty, 0 to 1, below which nothing new is said.
        critical_duration: Turns one after the other.
        window_size: Texts that a text is compared with.
        alpha: Weight of the latest text in the running mean.
        text_of: Reads the text from what a node returns. None: its last message, or its values.
        scope: Tells of each certificate as a sealed verdict. None: nobody does.
        name: Its name in events and metrics.

    Raises:
        ConfigurationError: A figure makes no sense.
    """

    def __init__(
        self,
        embed: Callable[[str], Iterable[float]] | None = None,
        *,
        threshold: float = 0.2,
        critical_duration: int = 3,
        window_size: int = 10,
        alpha: float = 0.5,
        text_of: Callable[[Any], str] | None = None,
        scope: GateScope | None = None,
        name: str = "stagnation",
    ) -> None:
        if not (0 < threshold < 1 and 0 < alpha <= 1):
            raise ConfigurationError("threshold and alpha must be shares, above 0")
        if critical_duration < 1 or window_size < 1:
            raise ConfigurationError("critical_duration and window_size must be at least 1")
        self.name, self.shadow = name, True
        self.points, self.fails = frozenset[Point](), Fails.OPEN
        self._figures = (threshold, critical_duration)
        self._alpha, self._embed = alpha, embed
        self._text_of, self._scope = text_of or _text_of, scope
        self._threads = _Threads(lambda: _Signals(deque(maxlen=window_size), deque(maxlen=64)))
        self._certificates: deque[Certificate] = deque(maxlen=MOST_RUNS)

    def settings(self) -> dict[str, Any]:
        """Return the figures that its verdicts follow from."""
        return dict(zip(("threshold", "critical_duration"), self._figures, strict=True))

    def decide(self, facts: Facts, /) -> Verdict:
        """Return the verdict on the signals among *facts*."""
        known, (threshold, count) = facts.known, self._figures
        signals = [value for n in range(count) if isinstance(value := known.get(f"s{n}"), float)]
        if len(signals) < count or min(signals) <= 1.0 - threshold:
            return ALLOW
        return Verdict(Outcome.STOP, "stagnant", {"least_signal": min(signals)})

    def observe(self, text: str, *, thread: str = EPHEMERAL) -> bool:
        """Take the next text of a thread, and return whether the thread is stagnant."""
        if self._embed is None:
            return False
        vector, (threshold, count) = normalised(self._embed(text)), self._figures
        with self._threads.guard:
            state = self._threads.of(thread)
            likeness = max((sum(map(mul, vector, each)) for each in state.texts), default=0.0)
            novelty = min(1.0, max(0.0, 1.0 - likeness))
            before = state.integrals[-1] if state.integrals else 1.0
            state.texts.append(vector)
            state.integrals.append(self._alpha * novelty + (1 - self._alpha) * before)
            latest = list(state.integrals)[-count:]
            was, now = state.is_stagnant, len(latest) == count and max(latest) < threshold
            state.is_stagnant = now
        if now and not was:
            self._certify(tuple(1.0 - each for each in latest), 1.0 - threshold)
        return now

    def _certify(self, signals: tuple[float, ...], threshold: float) -> None:
        parameters = {"signal_values": signals, "threshold": threshold}
        certificate = Certificate(STABILITY, parameters, predicate(STABILITY, parameters))
        self._certificates.append(certificate)
        _tell(self._scope, self, {f"s{n}": each for n, each in enumerate(signals)})

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """One for each time that a thread became stagnant, oldest first."""
        return tuple(self._certificates)

    def is_stagnant_for(self, thread: str = EPHEMERAL) -> bool:
        """Return whether a thread is stagnant now."""
        state = self._threads.known(thread)
        return state is not None and state.is_stagnant

    def reset(self, thread: str | None = None) -> None:
        """Forget a thread, or all. Certificates stay."""
        self._threads.clear(thread)

    def wrap(self, node: N) -> N:
        """Return *node*, watched."""
        return _watched(node, self._see, self._scope)

    def _see(self, output: Any, thread: str) -> None:
        self.observe(self._text_of(output), thread=thread)

    def edge(self, *, forward: str, break_to: str) -> Callable[..., str]:
        """Return a conditional edge: to *break_to* while the thread is stagnant."""
        return _edge(self.is_stagnant_for, forward, break_to)


class IntegrityGate:
    """
    Checks what nodes return against invariants, and remembers the threads that broke one.

    Args:
        invariants: Each a name, which is shown, and a function that returns whether it holds of
            what a node returned. One that raises does not hold.
        scope: Tells of each certificate as a sealed verdict. None: nobody does.
        name: Its name in events and metrics.
    """

    def __init__(
        self,
        invariants: Sequence[tuple[str, Callable[[Any], bool]]] = (),
        *,
        scope: GateScope | None = None,
        name: str = "integrity",
    ) -> None:
        self.name, self.shadow = name, True
        self.points, self.fails = frozenset[Point](), Fails.CLOSED
        self._invariants, self._scope = tuple(invariants), scope
        self._threads: _Threads[list[Certificate]] = _Threads(list)
        self._certificates: deque[Certificate] = deque(maxlen=MOST_RUNS)

    def settings(self) -> dict[str, Any]:
        """Return nothing: its verdicts follow from the facts alone."""
        return {}

    def decide(self, facts: Facts, /) -> Verdict:
        """Return the verdict on the results among *facts*."""
        broken = sum(held is False for held in facts.known.values())
        return Verdict(Outcome.STOP, "violated", {"broken": broken}) if broken else ALLOW

    def check(self, output: Any, *, thread: str = EPHEMERAL) -> bool:
        """Check what a node returned, and return whether all invariants hold."""
        results = [(name, _holds(test, output)) for name, test in self._invariants]
        parameters = {"invariant_results": tuple(results), "all_passed": False}
        if predicate(INTEGRITY, parameters):
            return True
        with self._threads.guard:
            of_thread = self._threads.of(thread)
            if of_thread:
                return False
            of_thread.append(Certificate(INTEGRITY, parameters, holds=False))
        self._certificates.append(of_thread[0])
        _tell(self._scope, self, {f"i{place}": held for place, (_n, held) in enumerate(results)})
        return False

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """One for each thread that broke an invariant, oldest first."""
        return tuple(self._certificates)

    def is_violated_for(self, thread: str = EPHEMERAL) -> bool:
        """Return whether a thread has broken an invariant."""
        return bool(self._threads.known(thread))

    def reset(self, thread: str | None = None) -> None:
        """Forget a thread, or all. Certificates stay."""
        self._threads.clear(thread)

    def wrap(self, node: N) -> N:
        """Return *node*, watched."""
        return _watched(node, self._see, self._scope)

    def _see(self, output: Any, thread: str) -> None:
        self.check(output, thread=thread)

    def edge(self, *, forward: str, break_to: str) -> Callable[..., str]:
        """Return a conditional edge: to *break_to* once the thread has broken an invariant."""
        return _edge(self.is_violated_for, forward, break_to)


def _holds(test: Callable[[Any], bool], output: Any) -> bool:
    try:
        return bool(test(output))
    except Exception:  # noqa: BLE001 - what cannot be told does not hold
        return False


def _tell(scope: GateScope | None, gate: Any, known: Mapping[str, Any]) -> None:
    if scope is not None:
        scope.tell_verdict(gate, Facts(Point.NODE, known=known))


def _watched(node: N, see: Callable[[Any, str], None], scope: GateScope | None) -> N:
    """Return *node*, plain or a coroutine function, with what it returns shown to *see*."""

    def show(output: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        try:
            see(output, _thread(args, kwargs))
        except Exception as exc:  # noqa: BLE001 - a gate never breaks the graph
            if scope is not None:
                scope.note_fault("rules.gate", exc)
        return output

    if inspect.iscoroutinefunction(node) or inspect.iscoroutinefunction(
        getattr(node, "__call__", None)  # noqa: B004 - whether it can be awaited
    ):

        @wraps(node)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return show(await node(*args, **kwargs), args, kwargs)

        return cast("N", awaited)

    @wraps(node)
    def called(*args: Any, **kwargs: Any) -> Any:
        return show(node(*args, **kwargs), args, kwargs)

    return cast("N", called)


def _edge(is_broken: Callable[[str], bool], forward: str, break_to: str) -> Callable[..., str]:
    def route(_state: Any, *args: Any, **kwargs: Any) -> str:
        return break_to if is_broken(_thread(args, kwargs)) else forward

    return route


def _thread(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return LangGraph's id of the thread: from the config that the code is given, or runs in."""
    for each in (*args, *kwargs.values(), var_child_runnable_config.get()):
        settings = _dict(_dict(each).get("configurable"))
        if (thread := settings.get("thread_id")) is not None:
            return str(thread)
    return EPHEMERAL


def _dict(value: Any) -> dict[str, Any]:
    return value if is_dict(value) else {}


def _text_of(output: Any) -> str:
    """Return the text of the last message that a node returns, or else of its values."""
    if isinstance(output, Mapping):
        known = cast("Mapping[str, Any]", output)
        messages = known.get("messages")
        if isinstance(messages, list) and messages:
            last = cast("Sequence[Any]", messages)[-1]
            return str(getattr(last, "content", last))
        return "\n".join(str(each) for each in known.values())
    return str(output)
