"""
The contract of a sink, as checks that any sink can be put to.

Example:
    >>> def test_our_sink(tmp_path):
    ...     written = tmp_path / "events"
    ...     check_sink(lambda: OurSink(written), read=written.read_bytes)
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, Final

from ...telemetry.delivery.sink import EXIT_S, DeliveryError, Sink
from ...telemetry.event.budget_event import BudgetEvent
from ...telemetry.event.event import AUDIT_CHECKPOINT, Event, Journalled, OperationClass, Status
from ...telemetry.event.kinds import Level
from ...telemetry.event.node_run import NodeRun
from ...telemetry.event.subject import Subject, SubjectKeys
from ...telemetry.event.trace_ref import TraceRef
from ...telemetry.event.usage import Usage
from ..privacy.engine.content import to_content

PATIENCE_S: Final = 60.0
"""Seconds after which a step that has not ended counts as one that never ends."""

# Words that no sink writes by itself, so that finding them proves something.
_CUSTOMER: Final = "customer-4711@contract.example"
_CONTENT: Final = "content-that-nobody-opted-in-to"
_KEYS: Final = SubjectKeys(b"keys of the sinks' contract")

_numbers = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkUnderTest:
    """
    A sink as the checks know it.

    Attributes:
        make: Builds a new sink. All that it builds may write to the same place.
        read: Returns what they have written, readable: decompressed, if need be. None: nothing is
            looked for in it.
        content: Whether the sinks are opted in to redacted content.
    """

    make: Callable[[], Sink]
    read: Callable[[], bytes] | None = None
    content: bool = False


def check_sink(
    factory: Callable[[], Sink],
    *,
    read: Callable[[], bytes] | None = None,
    content: bool = False,
) -> None:
    """
    Put a sink to all checks of `SINK_CHECKS`, and report all rules that it breaks at once.

    Args:
        factory: Builds a new sink whose back end takes what is written.
        read: Returns what such sinks have written, readable: decompressed, if need be. None:
            whether a customer's id or content is in it is not checked.
        content: Whether the sink is opted in to redacted content.

    Raises:
        AssertionError: Rules are broken. One line for each.
    """
    under_test = SinkUnderTest(make=factory, read=read, content=content)
    broken = [line for check in SINK_CHECKS if (line := _broken_rule(check, under_test))]
    if broken:
        raise AssertionError("\n".join((f"{len(broken)} rules of a sink are broken:", *broken)))


def _broken_rule(check: Callable[[SinkUnderTest], None], sink: SinkUnderTest) -> str | None:
    name = check.__name__.removeprefix("check_")
    try:
        check(sink)
    except AssertionError as exc:
        return f"  {name}: {exc}"
    except Exception as exc:  # noqa: BLE001 - a sink may fail in any way
        return f"  {name}: raised {type(exc).__qualname__}: {exc}"
    return None


def contract_events() -> tuple[Event, ...]:
    """Return new made-up events of every kind that a sink meets."""
    return (
        _event(hits=3, top_score=0.9, memory_ids=("m-1", "m-2"), redactions={"PERSON": 2}),
        _event(status=Status.EMPTY, hits=0, collection="facts", db_system="database"),
        _event(status=Status.ERROR, error="ConnectionError", late=True),
        _event(status=Status.DEGRADED, neutral=True, nested=True),
        _event(op_class=OperationClass.REMEMBER, operation="upsert_memory", journal=_REPLAYED),
        _event(content=to_content({"query": _CONTENT, "limit": 3}), size_bytes=64),
        _model_event(operation="chat", parts=(Usage(model="m", node="n", cost_usd=0.01),)),
        _model_event(operation="chat", parts=(Usage(model="m", reported=False),)),
        _model_event(operation="execute_node", parts=(NodeRun(1, 0.5),)),
        _model_event(operation="budget", parts=(_BUDGET,)),
        _event(
            op_class=OperationClass.CHECKPOINT,
            operation=AUDIT_CHECKPOINT,
            writer_seq=0,
            collection="log/1",
            hits=4_096,
            memory_ids=("ab" * 32,),
        ),
    )


_REPLAYED: Final = Journalled.REPLAYED
_BUDGET: Final = BudgetEvent(
    budget="b", level=Level.ALERT, unit="usd", spent=8, limit=9, period_s=60, burn_per_hour=1
)


def _event(**given: Any) -> Event:
    number = next(_numbers)
    known: dict[str, Any] = {
        "writer_id": "00000000c0de0001",
        "writer_seq": number,
        "started_ns": 1_700_000_000_000_000_000 + number,
        "duration_s": 0.25,
        "operation": "search_memory",
        "op_class": OperationClass.RECALL,
        "store": "contract",
        "method": "search",
        "status": Status.OK,
        "trace": TraceRef(number, number, parent_span_id=number + 1),
        "subject": Subject(_CUSTOMER, tenant="tenant", keys=_KEYS),
        "tenant": "tenant",
    }
    return Event(**(known | given))


def _model_event(**given: Any) -> Event:
    return _event(op_class=OperationClass.MODEL, store="model", **given)


# -- the checks ----------------------------------------------------------------------------------


def check_has_a_name(under_test: SinkUnderTest) -> None:
    """Check that the sink has a name, the label of its metrics, and says what may be repeated."""
    sink: Any = under_test.make()
    sink.close(EXIT_S)
    _require(isinstance(sink.name, str) and sink.name.strip(), "`name` must be a text, not empty")
    _require(isinstance(sink.idempotent, bool), "`idempotent` must be True or False")


def check_takes_every_kind_of_event(under_test: SinkUnderTest) -> None:
    """Check that each kind of event is taken, alone and in a batch."""
    sink = under_test.make()
    for event in contract_events():
        error = _error_of(partial(sink.write, [event]))
        _require(error is None, f"`write` raised {error!r} for a {event.operation} event")
    sink.write(contract_events())
    _require(sink.flush(EXIT_S), "`flush` must return True once all is delivered")
    sink.close(EXIT_S)


def check_takes_an_empty_batch(under_test: SinkUnderTest) -> None:
    """Check that nothing to write is no error."""
    sink = under_test.make()
    # A lane never does, but a relay or a wrapper of the sink may.
    sink.write([])
    sink.close(EXIT_S)


def check_leaves_events_unchanged(under_test: SinkUnderTest) -> None:
    """Check that events, which all sinks share, are as before after they are written."""
    sink, events = under_test.make(), contract_events()
    # Copied before: a sink that changes a dictionary in place changes it for the others as well.
    before = [_copied(event) for event in events]
    sink.write(events)
    sink.close(EXIT_S)
    _require([_copied(each) for each in events] == before, "`write` must not change an event")


def check_goes_on_after_an_error(under_test: SinkUnderTest) -> None:
    """Check that an event that no back end takes costs that event, and not the next batch."""
    sink = under_test.make()
    error = _error_of(lambda: sink.write([_awkward_event()]))
    _require(
        error is None or isinstance(error, DeliveryError | OSError),
        f"`write` raised {type(error).__qualname__}: raise UnacceptableError for what cannot be "
        "sent, UnavailableError for a back end that is away",
    )
    again = _error_of(lambda: sink.write(contract_events()))
    _require(again is None, f"`write` must take the next batch after an error, raised {again!r}")
    sink.close(EXIT_S)


def check_keeps_people_and_content_out(under_test: SinkUnderTest) -> None:
    """Check that no customer's id is written, and content only where the sink is opted in."""
    if under_test.read is None:
        return
    sink = under_test.make()
    sink.write(contract_events())
    sink.flush(EXIT_S)
    sink.close(EXIT_S)
    written = under_test.read()
    _require(written, "`read` returned nothing, although events were written")
    _require(_CUSTOMER.encode() not in written, "a customer's id is in what the sink wrote")
    _require(
        under_test.content or _CONTENT.encode() not in written,
        "content is in what the sink wrote, which was not opted in to it",
    )


def check_closes_at_any_time(under_test: SinkUnderTest) -> None:
    """Check that closing ends, also without time, before the first write, and twice."""
    # Without one, no connection was ever made, and there is none to close.
    for events in ((), contract_events()):
        sink = under_test.make()
        _within_patience(partial(sink.write, events), "write")
        # Twice: by the host, and again when the process ends.
        for timeout_s in (0.0, EXIT_S):
            _within_patience(partial(sink.close, timeout_s), "close")


def check_survives_a_fork(under_test: SinkUnderTest) -> None:
    """Check that a forked child can write, and its parent still can."""
    if not hasattr(os, "fork"):
        return
    sink = under_test.make()
    sink.write(contract_events())
    _require(_child_writes(sink), "`write` must work in a forked child: see `reset_after_fork`")
    error = _error_of(lambda: sink.write(contract_events()))
    _require(error is None, f"`write` must work in the parent of a fork, raised {error!r}")
    sink.close(EXIT_S)


def check_imports_without_threads(under_test: SinkUnderTest) -> None:
    """Check that importing the sink's module starts no thread: a process may never need it."""
    sink = under_test.make()
    sink.close(EXIT_S)
    module = type(sink).__module__
    script = (
        "import importlib.util as u, sys, threading\n"
        f"if u.find_spec({module.partition('.')[0]!r}): __import__({module!r})\n"
        "sys.exit(threading.active_count() - 1)"
    )
    done = subprocess.run(  # noqa: S603 - the module was imported here already
        [sys.executable, "-c", script],
        # In a process of its own: here it was imported, and threads of others run.
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    _require(done.returncode == 0, f"importing {module} must start no thread, and must not fail")


SINK_CHECKS: Final[Sequence[Callable[[SinkUnderTest], None]]] = (
    check_has_a_name,
    check_takes_every_kind_of_event,
    check_takes_an_empty_batch,
    check_leaves_events_unchanged,
    check_goes_on_after_an_error,
    check_keeps_people_and_content_out,
    check_closes_at_any_time,
    check_survives_a_fork,
    check_imports_without_threads,
)
"""All checks, each of which raises `AssertionError` with one line that names the rule."""


def _require(holds: object, rule: str) -> None:
    if not holds:
        raise AssertionError(rule)


def _error_of(step: Callable[[], object]) -> BaseException | None:
    try:
        step()
    except BaseException as exc:  # noqa: BLE001 - what it raises is what is checked
        return exc
    return None


def _awkward_event() -> Event:
    """Return an event that some formats have no place for."""
    return _event(
        method="lone surrogate \ud800",
        hits=2**70,
        top_score=float("nan"),
        redactions={"PERSON": 2**70},
        run="r" * 100_000,
        content=to_content({"deep": [[[["\ud800"]]]], "wide": ["x" * 10_000] * 10}),
    )


def _copied(event: Event) -> dict[str, Any]:
    """Return the values of *event*, copied where they could be changed in place."""
    names = [name for name in Event.__annotations__ if name not in {"content", "subject"}]
    content = None if event.content is None else deepcopy(event.content.value)
    return {name: deepcopy(getattr(event, name)) for name in names} | {"content": content}


def _within_patience(step: Callable[[], object], name: str) -> None:
    errors: list[BaseException | None] = []
    # On a thread: what never ends must cost this check, and not the run.
    thread = threading.Thread(target=lambda: errors.append(_error_of(step)), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    _require(errors, f"`{name}` must end: it has not in {PATIENCE_S:.0f} s")
    _require(errors[0] is None, f"`{name}` must not raise, raised {errors[0]!r}")


def _child_writes(sink: Sink) -> bool:
    with warnings.catch_warnings():
        # Python warns of a fork beside threads: that a sink survives that is what is checked.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        write = partial(sink.write, contract_events())
        # Without the exit handlers of the parent, its coverage and pytest among them.
        os._exit(_error_of(partial(_within_patience, write, "write")) is not None)
    _pid, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) == 0
