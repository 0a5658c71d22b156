"""
The contract of a store adapter, as a suite of rules that ours and other people's are held to.

Each rule is a function that yields one line for each breach of it; `check_adapter` reports all
breaches of all rules at once. The adapter guards a real client, whose calls are really made.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from ...telemetry.event.event import Event, OperationClass, Status
from ..api import Arguments, Method
from ..decorator import OPERATIONS
from ..errors import ScopeError
from ..limits.policy import FAILS_OPEN
from ..subject_data.records import DataSubject, SubjectDataProvider
from . import two_customers
from .adapter_trial import AdapterCase, Trial, trial
from .broken_store import INNER
from .toxic import READS
from .two_customers import provider_of, records_of

CLASSES: Mapping[str, OperationClass] = {
    **OPERATIONS,
    "create_memory_store": OperationClass.REMEMBER,
    "update_memory_store": OperationClass.REMEMBER,
    "delete_memory_store": OperationClass.FORGET,
    "load_checkpoint": OperationClass.RESUME,
    "save_checkpoint": OperationClass.CHECKPOINT,
    "delete_checkpoint": OperationClass.FORGET,
}
"""Names of operations: OpenTelemetry's for GenAI, and the checkpoints', with their classes."""

PERSONAL = "ada.lovelace@example.com"
"""Planted in calls: no store and no event may have it."""

PLAIN = "tea"
_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})
_SIZED = (str, int, list, tuple, set)
_UNKNOWN = (ValueError, KeyError, TypeError)
"""Exceptions that say nothing of whose they are, but by where they are raised."""

_STORE = re.compile(r"[a-z][a-z0-9_.-]{0,31}")


Rule: TypeAlias = Callable[[AdapterCase, asyncio.Runner], Iterator[str]]


def check_adapter(case: AdapterCase) -> None:
    """
    Hold an adapter to the contract. Not to be called where an event loop runs.

    Raises:
        AssertionError: It breaks a rule. Has one line for each breach.
    """
    with asyncio.Runner() as runner:
        # A store that knows no customer keeps none apart.
        rules = (*RULES, *(two_customers.RULES if case.customer is not None else ()))
        breaches = [breach for rule in rules for breach in _breaches(rule, case, runner)]
    if breaches:
        heading = f"the adapter of {case.adapter.store!r} breaks the contract"
        raise AssertionError("\n  ".join((heading, *breaches)))


def _breaches(rule: Rule, case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    name = rule.__name__.replace("_", " ")
    try:
        for breach in rule(case, runner):
            yield f"{name}: {breach}"
    except Exception as exc:  # noqa: BLE001 - the other rules are still checked
        yield f"{name}: could not be checked ({type(exc).__name__}: {exc})"


# -- what the adapter says -------------------------------------------------------------------------


def it_names_its_store_and_clients(case: AdapterCase, _runner: asyncio.Runner) -> Iterator[str]:
    """The store's name is a metric label: a word, not an address or an id."""
    adapter = case.adapter
    if not _STORE.fullmatch(adapter.store):
        yield f"store={adapter.store!r}: expected a short name in lower case"
    if not adapter.client_types:
        yield "client_types is empty"


def each_public_method_is_guarded_or_says_why_not(
    case: AdapterCase, runner: asyncio.Runner
) -> Iterator[str]:
    """A method that a newer client adds is noticed."""
    left_alone = case.adapter.not_guarded
    with trial(case, runner) as tried:
        # Of the client that is installed: a newer one has methods that nobody has looked at.
        public, rows = set(_public(tried.kind)), tried.rows.keys()
    for name in sorted(public - rows - left_alone.keys()):
        yield f"{name} is neither in the methods table nor in not_guarded"
    for name in sorted(rows - public):
        yield f"{name} is in the methods table, and the client has no such method"
    for name in sorted(rows & left_alone.keys() & public):
        yield f"{name} is both in the methods table and in not_guarded"
    for name, reason in left_alone.items():
        if not reason.strip():
            yield f"{name} is in not_guarded without a reason"
        # An adapter of several kinds of client has reasons for methods that this one lacks.
        clients = (*case.adapter.client_types, tried.kind)
        if name not in case.not_called and not any(hasattr(each, name) for each in clients):
            yield f"{name} is in not_guarded, and no client has such a method"
    for name in sorted(rows - case.calls.keys() - case.not_called.keys()):
        yield f"{name} is guarded, and the case has no call of it"


def each_method_is_described(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """By an operation that the conventions know, and a class that fits it."""
    with trial(case, runner) as tried:
        for name, method in tried.methods():
            expected = CLASSES.get(method.operation)
            if expected is None:
                yield f"{name}: {method.operation!r} is not one of {', '.join(CLASSES)}"
            elif method.op_class is not expected:
                yield f"{name}: {method.operation} is {expected}, not {method.op_class}"
            if method.op_class in FAILS_OPEN:
                if method.neutral is None and not case.adapter.raises.get(name):
                    yield f"{name} fails open: it needs a neutral value, or a reason in `raises`"
            elif method.neutral is not None:
                yield f"{name} fails closed: its neutral value is never given"
            if method.op_class is OperationClass.FORGET and getattr(method, "deletes", "") is None:
                yield f"{name} does not say what it deletes"


# -- the client ------------------------------------------------------------------------------------


def the_guarded_client_is_its_own_class(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """Class, signatures, sync or async, and attributes are those of the client."""
    with trial(case, runner) as tried:
        bare, client = tried.bare, tried.client
        if not isinstance(client, tried.kind):
            yield f"it is no {tried.kind.__name__}"
        for name, method in _public(tried.kind).items():
            ours = getattr(client.__class__, name)
            # Frameworks read signatures to find out what they may pass.
            if inspect.signature(ours) != inspect.signature(method):
                yield f"{name}{inspect.signature(ours)} has another signature"
            if inspect.iscoroutinefunction(ours) is not inspect.iscoroutinefunction(method):
                yield f"{name} is asynchronous in one of the two only"
        for name, value in getattr(bare, "__dict__", {}).items():
            found = getattr(client, name)
            # An attribute that is a client itself may be guarded in turn.
            if found is not value and getattr(found, "__dict__", {}).get(INNER) is not value:
                yield f"its attribute {name} is another object"
        again = tried.scope.guard(client, adapter=case.adapter, **case.options)
        if again is not client:
            yield "guarded twice it is another object"


# -- each call -------------------------------------------------------------------------------------


def each_call_is_told_in_one_event(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """Each call makes one event, of its operation and class. Found and empty differ."""
    found: list[str] = []
    with trial(case, runner) as tried:
        for name, method in tried.methods():
            if method.op_class not in READS:
                continue
            tried.error_of(tried.client, name, case.calls[name](PLAIN))  # "not found" for one
            # A summary that counts answers instead of hits would make every search a find.
            if any(each.hits for each in tried.events()):
                yield f"{name} finds something in an empty store"
        for name, method in tried.methods():
            tried.call(name, case.calls[name](PLAIN))
            events = tried.events()
            if len(events) != 1:
                yield f"{name} is told in {len(events)} events"
                continue
            (event,) = events
            if (event.operation, event.op_class) != (method.operation, method.op_class):
                yield f"{name} is told as {event.operation} ({event.op_class})"
            is_empty = method.op_class is OperationClass.RECALL and event.hits == 0
            if event.status is not (Status.EMPTY if is_empty else Status.OK):
                yield f"{name} is answered, and told as {event.status}"
            found += [name] if event.hits else []
    if not found:
        yield "no method finds what was remembered: does any `summary` count hits?"


def nothing_personal_passes(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """Neither to the store nor into an event, by name, by position or by an unknown name."""
    for by_position in (False, True):
        with trial(case, runner) as tried, tried.spied() as received:
            for name in case.calls:
                received.clear()
                arguments = case.calls[name](PERSONAL)
                # As text: a copy of arguments may hold what cannot be copied, or equals only
                # itself.
                before = repr(arguments)
                tried.call(name, arguments, by_position=by_position)
                how = "by position" if by_position else "by name"
                if not received:
                    yield f"{name} did not reach the store"
                if PERSONAL in "".join(received):
                    yield f"{name}: text that is given {how} reaches the store as it is"
                if PERSONAL in _text_of(tried.events()):
                    yield f"{name}: text that is given {how} is in its event"
                if repr(arguments) != before:
                    yield f"{name} changes the caller's arguments"
            if PERSONAL in repr(tried.client):
                yield "the client's repr shows what is stored"
    with trial(case, runner) as tried, tried.spied() as received:
        for name in case.calls:
            received.clear()
            # A newer client may have a parameter for text that the adapter has never seen.
            strange = {**case.calls[name](PLAIN), "no_such_argument": PERSONAL}
            tried.error_of(tried.client, name, strange)
            if PERSONAL in "".join(received):
                yield f"{name}: text under a name that nobody knows reaches the store as it is"


def a_failing_store_is_survived_or_told(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """Whatever it raises: recall and remember give the neutral value, all others raise it."""
    with trial(case, runner) as tried:
        for name, method in tried.methods():
            arguments = case.calls[name](PLAIN)
            answer = tried.call(name, arguments)
            # With personal data in the message, as stores have it when they quote what they were
            # given.
            for failure in (case.failure(PERSONAL), *(kind(PERSONAL) for kind in _UNKNOWN)):
                # A scope of its own for each: its health must not be that of a store that has just
                # failed.
                with trial(case, runner, bare=tried.bare) as failing, failing.broken(name, failure):
                    if method.op_class in FAILS_OPEN and method.neutral is not None:
                        breaches = _fails_open(failing, name, arguments, answer)
                    else:
                        breaches = _fails_closed(failing, name, arguments, failure)
                    yield from (f"{name} {breach}" for breach in breaches)


def _fails_open(failing: Trial, name: str, arguments: Arguments, answer: Any) -> Iterator[str]:
    try:
        neutral = failing.call(name, arguments)
    except Exception as exc:  # noqa: BLE001 - whatever it is, it should not be raised
        yield f"raises {type(exc).__name__}: is it a row of caller_mistakes?"
        return
    if not _fits(neutral, answer):
        yield f"gives the neutral value {neutral!r}, where the store answers {answer!r}"
    yield from _told_once(failing, Status.DEGRADED)


def _fails_closed(
    failing: Trial, name: str, arguments: Arguments, failure: BaseException
) -> Iterator[str]:
    error = failing.error_of(failing.client, name, arguments)
    if error is not failure:
        yield f"gives {error!r}, where the store raises {failure!r}"
    yield from _told_once(failing, Status.ERROR)


def _told_once(tried: Trial, status: Status) -> Iterator[str]:
    """Yield what is wrong with the events of one call that ended with *status*."""
    events = tried.events()
    statuses = [(each.status, each.neutral) for each in events]
    if statuses != [(status, status is Status.DEGRADED)]:
        yield f"is told as {[str(each) for each, _ in statuses]}: expected one event, {status}"
    if PERSONAL in _text_of(events):
        yield "is told with the message of the store's error"


def a_callers_mistake_is_the_callers(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """An argument that the client does not know raises what it raises without a guard."""
    with trial(case, runner) as tried:
        for name in case.calls:
            mistaken = {**case.calls[name](PLAIN), "no_such_argument": 1}
            expected = tried.error_of(tried.bare, name, mistaken)
            if expected is None:
                continue
            error = tried.error_of(tried.client, name, mistaken)
            if (type(error), str(error)) != (type(expected), str(expected)):
                yield f"{name} raises {error!r}, where the client raises {expected!r}"
            yield from (f"{name} {breach}" for breach in _told_once(tried, Status.ERROR))


def enforced_tenancy_wants_a_customer(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """With ``tenancy="enforce"``, what needs an owner is refused without one."""
    with trial(case, runner, tenancy="enforce") as tried, tried.spied() as received:
        for name, method in tried.methods():
            if not method.needs_owner:
                continue
            arguments = case.calls[name](PLAIN)
            nobodys = {
                each: value
                for each, value in arguments.items()
                if _names_nobody(method, {each: value})
            }
            error = tried.error_of(tried.client, name, nobodys)
            if not isinstance(error, ScopeError):
                yield f"{name} without a customer: expected a ScopeError, not {error!r}"
            if received:
                yield f"{name} without a customer reaches the store"
            if [each.status for each in tried.events()] != [Status.DENIED]:
                yield f"{name} without a customer is not told as denied"


# -- what is held about a person -------------------------------------------------------------------


def what_is_held_is_listed(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """What was remembered about a customer comes page by page, and nobody else's does."""
    if case.customer is None:
        return
    with trial(case, runner) as tried:
        provider = _filled(tried, case)
        if provider is None or provider.unavailable is not None:
            yield "the store knows a customer, and its binding lists nothing about them"
            return
        records = records_of(tried, case.customer)
        if not records:
            yield f"nothing is listed about {case.customer!r}"
        if PERSONAL in repr([each.content for each in records]):
            yield "what is listed was stored as it is"
        if records_of(tried, "somebody-else"):
            yield "something is listed about somebody else"
        if not all(isinstance(each, Path) for each in tried.settled(provider.files())):
            yield "files() returns something else than paths"


def what_is_held_is_erased(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """And stays erased."""
    if case.customer is None:
        return
    with trial(case, runner) as tried:
        provider = _filled(tried, case)
        if provider is None:
            return
        listed = len(records_of(tried, case.customer))
        # More may be: a store keeps what it does not list, such as history.
        if tried.settled(provider.erase(DataSubject(customer=case.customer))).removed < listed:
            yield "less is erased than was listed"
        if records_of(tried, case.customer):
            yield "what was erased is still listed"
        if tried.settled(provider.erase(DataSubject(customer=case.customer))).removed:
            yield "what was erased is erased once more"


RULES: tuple[Rule, ...] = (
    it_names_its_store_and_clients,
    each_public_method_is_guarded_or_says_why_not,
    each_method_is_described,
    the_guarded_client_is_its_own_class,
    each_call_is_told_in_one_event,
    nothing_personal_passes,
    a_failing_store_is_survived_or_told,
    a_callers_mistake_is_the_callers,
    enforced_tenancy_wants_a_customer,
    what_is_held_is_listed,
    what_is_held_is_erased,
)


def _public(kind: type) -> dict[str, Any]:
    members = {name: inspect.getattr_static(kind, name) for name in dir(kind)}
    return {
        name: member
        for name, member in members.items()
        # Statically: a property would be run, and may ask the store.
        if not name.startswith("_") and inspect.isfunction(member)
    }


def _text_of(events: list[Event]) -> str:
    return "".join(f"{each!r}{each.content and each.content.value!r}" for each in events)


def _fits(neutral: Any, answer: Any) -> bool:
    """Tell whether code that takes *answer* can take *neutral*: None is no list and no number."""
    return type(neutral) is type(answer) or (neutral is None and not isinstance(answer, _SIZED))


def _names_nobody(method: Method, arguments: Arguments) -> bool:
    try:
        return method.scope(arguments).customer is None
    except Exception:  # noqa: BLE001 - it needs the others to say
        return False


def _filled(tried: Trial, case: AdapterCase) -> SubjectDataProvider | None:
    """Make every write of the case, and return the provider that lists the records."""
    for name, method in tried.methods():
        if method.op_class in _WRITES:
            tried.call(name, case.calls[name](PERSONAL))
    return provider_of(tried)
