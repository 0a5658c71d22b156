"""
The contract of a store adapter where two customers share a store, under ``tenancy="enforce"``.

One customer's memories are written. Then another makes the same calls, in each way that could reach
them, and nothing of theirs may be handed out or changed. The ways are made from the case's own
calls: whoever writes a case cannot forget one.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from contextvars import copy_context
from typing import Any, TypeAlias

from ...telemetry.event.event import OperationClass
from ..api import Arguments, Method
from ..context import context
from ..errors import ScopeError
from ..subject_data.records import PAGE_SIZE, DataSubject, SubjectDataProvider, SubjectRecord
from .adapter_trial import AdapterCase, Trial, trial
from .answers import renamed
from .toxic import READS

THEIRS = "oolong"
"""A word in all that the customer of the case wrote, and in nothing else."""

OURS = "rooibos"
_AT_ONCE = 100
_WRITES = frozenset({OperationClass.REMEMBER, OperationClass.CHECKPOINT})
_PATIENT = {f"deadline_{each.value}_s": 60.0 for each in (*READS, *_WRITES, OperationClass.FORGET)}
"""Of calls: one that is late on a busy machine answers nothing, which looks like a change."""

Build: TypeAlias = Callable[["_Owned", str, str], Arguments | None]
"""Returns the arguments of a method, with a text in them. None: this way does not fit it."""


def each_customer_is_served(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """Each call that names the customer of its context is made, and finds what they wrote."""
    found = False
    with _owned(case, runner) as owned:
        for name, method in owned.methods.items():
            if not owned.names_customer(name):
                continue
            answer = owned.ask(name, case.calls[name](THEIRS), case.customer)
            if isinstance(answer, ScopeError):
                yield f"{name} is refused to the customer whom it names ({answer})"
            # Else every check below would pass: where nothing is found, nothing is handed out.
            found |= method.op_class in READS and THEIRS in repr(answer)
    if not found:
        yield "no read finds what its own customer wrote, so nothing shows what others would find"


def nothing_is_another_customers(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """Whoever is named, whatever ids are given, in batches, and inside of another call."""
    for way, build in _WAYS.items():
        yield from (f"{each}, {way}" for each in _attacked(case, runner, build))
    nested = _attacked(case, runner, _naming_nobody, is_nested=True)
    yield from (f"{each}, inside of another call" for each in nested)


def _attacked(
    case: AdapterCase, runner: asyncio.Runner, build: Build, *, is_nested: bool = False
) -> Iterator[str]:
    # First: a case may know what is in the latest store that it made.
    with _owned(case, runner) as empty:
        reads = [name for name, each in empty.methods.items() if each.op_class in READS]
        blank = {
            name: empty.asked(name, arguments, is_nested=is_nested)
            for name in reads
            if (arguments := build(empty, name, THEIRS)) is not None
        }
    with _owned(case, runner) as owned:
        yield from owned.attacked(build, blank, is_nested=is_nested)


def no_id_is_another_customers(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """Not one that looks like theirs to a database, a path or a pattern."""
    with _owned(case, runner) as owned:
        for hostile in _hostile(owned.customer):
            owned.other = hostile
            found = list(owned.attacked(_naming_itself, {}, looks_once=True))
            yield from (f"{each}, to the id {hostile!a}" for each in found)


def customers_are_served_at_once(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """A hundred calls of two customers: each is answered, and with what is its own."""
    with _owned(case, runner) as owned:
        owned.fill()
        for name, method in owned.methods.items():
            if method.op_class not in READS or not owned.names_customer(name):
                continue
            if THEIRS not in repr(owned.ask(name, case.calls[name](THEIRS), case.customer)):
                continue
            mine, others = owned.at_once(name)
            if (lost := sum(THEIRS not in repr(each) for each in mine)) > 0:
                yield f"{name}: {lost} of {len(mine)} calls at once do not find what is there"
            if any(THEIRS in repr(each) for each in others):
                yield f"{name} hands out another customer's memories, called at once"
            return


def an_erasure_is_of_one_customer(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """Nothing of theirs goes with somebody whose id looks like theirs."""
    with _owned(case, runner) as owned:
        owned.fill()
        provider = provider_of(owned.tried)
        if provider is None or provider.unavailable is not None:
            return
        before = owned.held()
        others = (owned.other, *_hostile(owned.customer))
        # A store may strip ids, as mem0 does: the two are one customer there.
        for other in (each for each in others if each.strip() != case.customer):
            with suppress(Exception):  # an id that the store cannot have is refused
                owned.tried.settled(provider.erase(DataSubject(customer=other)))
        if owned.held() != before:
            yield "an erasure of somebody else takes this customer's memories too"


def tenants_are_kept_apart(case: AdapterCase, runner: asyncio.Runner) -> Iterator[str]:
    """A call that names another tenant than its context is refused; events have the context's."""
    with trial(case, runner, tenancy="enforce") as tried:
        for name, method in tried.methods():
            named = _scope_of(method, case.calls[name](OURS)).tenant
            for tenant in ("acme", "globex"):
                with context(tenant=tenant, customer=case.customer):
                    error = tried.error_of(tried.client, name, case.calls[name](OURS))
                tenants = {each.tenant for each in tried.events()} - {tenant}
                if tenants - {named}:
                    yield f"{name} is told of another tenant than its context's"
                if named not in {None, tenant} and not isinstance(error, ScopeError):
                    yield f"{name} names a tenant, and is served in the context of another"


RULES: tuple[Callable[[AdapterCase, asyncio.Runner], Iterator[str]], ...] = (
    each_customer_is_served,
    nothing_is_another_customers,
    no_id_is_another_customers,
    customers_are_served_at_once,
    an_erasure_is_of_one_customer,
    tenants_are_kept_apart,
)


def provider_of(tried: Trial) -> SubjectDataProvider | None:
    """Return what lists the records of the store, if its binding has it."""
    return next(iter(tried.scope.subject_data.named().values()), None)


def records_of(tried: Trial, customer: str) -> list[SubjectRecord]:
    """
    Return what the store's binding lists about *customer*.

    Raises:
        AssertionError: A page is larger than a page may be.
    """
    provider = provider_of(tried)
    records: list[SubjectRecord] = []
    after: Any | None = None
    while provider is not None and provider.unavailable is None:
        page = tried.settled(provider.page(DataSubject(customer=customer), after))
        if len(page.records) > PAGE_SIZE:
            raise AssertionError(
                f"a page has {len(page.records)} records: expected {PAGE_SIZE} at most"
            )
        records += page.records
        if (after := page.after) is None:
            break
    return records


@contextmanager
def _owned(case: AdapterCase, runner: asyncio.Runner) -> Generator[_Owned]:
    with trial(case, runner, tenancy="enforce", **_PATIENT) as tried:
        yield _Owned(case, tried)


class _Owned:
    """A trial in which the case's customer has memories, and another wants them."""

    def __init__(self, case: AdapterCase, tried: Trial) -> None:
        self.case, self.tried = case, tried
        self.customer = case.customer or ""
        # One begins with the other: a store that compares prefixes is found out.
        self.other = f"{self.customer}0"
        self.methods: Mapping[str, Method] = dict(tried.methods())
        self._is_filled = False

    def names_customer(self, name: str) -> bool:
        scope = _scope_of(self.methods[name], self.case.calls[name](THEIRS))
        return bool(scope.customer == self.customer)

    def ask(self, name: str, arguments: Arguments, customer: str | None) -> Any:
        """Return what a call in the context of *customer* answers or raises."""
        return self._answer_of(customer, lambda: self.tried.call(name, arguments))

    @staticmethod
    def _answer_of(customer: str | None, ask: Callable[[], Any]) -> Any:
        try:
            with nullcontext() if customer is None else context(customer=customer):
                return ask()
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is looked at
            return exc

    def fill(self) -> None:
        """Write the customer's memories, in their context, unless they are there."""
        # Before the first time nothing is asked: a store that keeps answers would go on to say no.
        if self._is_filled and THEIRS in repr(self.held()):
            return
        self._is_filled = True
        for name, method in self.methods.items():
            if method.op_class in _WRITES and not method.unconfined:
                self.ask(name, self.case.calls[name](THEIRS), self.customer)

    def attacked(
        self,
        build: Build,
        blank: Mapping[str, list[Any]],
        *,
        is_nested: bool = False,
        looks_once: bool = False,
    ) -> Iterator[str]:
        """
        Yield what another customer reads or changes by calls that *build* makes.

        Args:
            build: Makes the arguments.
            blank: What reads are answered while nobody has memories, as far as that is known.
            is_nested: Each call is made inside of another.
            looks_once: Look for changes after all calls, not after each: which it was is not told.
        """
        self.fill()
        before = self.held()
        # Reads first: a write of the attack's own would be found by them.
        for name, method in sorted(self.methods.items(), key=self._changes):
            if (arguments := build(self, name, _text_of(method))) is None:
                continue
            answers = self.asked(name, arguments, is_nested=is_nested)
            if any(self._tells(each) for each in answers):
                yield f"{name} hands out another customer's memories"
            elif name in blank and any(map(_differs, answers, blank[name])):
                yield f"{name} answers otherwise where another customer has memories"
            if not looks_once and self.held() != before:
                yield f"{name} changes another customer's memories"
                return  # what is found out after this would be of other memories
        if looks_once and self.held() != before:
            yield "a call changes another customer's memories"

    def asked(self, name: str, arguments: Arguments, *, is_nested: bool) -> list[Any]:
        """Return what the other customer is answered."""
        if not is_nested:
            return [self.ask(name, arguments, self.other)]
        nobodys = [None] if self.methods[name].needs_owner else []
        return [self._nested(name, arguments, who) for who in (self.other, *nobodys)]

    @staticmethod
    def _changes(row: tuple[str, Method]) -> bool:
        return row[1].op_class not in READS

    def at_once(self, name: str) -> tuple[list[Any], list[Any]]:
        """Return the answers of calls of two customers that are made at once."""
        calls: list[tuple[str, Arguments]] = [
            (who, renamed(self.case.calls[name](THEIRS), self.customer, who))
            for _ in range(_AT_ONCE // 2)
            # In turn, so that any two that are next to each other are of different customers.
            for who in (self.customer, self.other)
        ]
        if inspect.iscoroutinefunction(getattr(self.tried.client, name)):
            answers = self.tried.runner.run(self._gathered(name, calls), context=copy_context())
        else:
            # A thread for each, so that all are under way at once.
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                asked = [threads.submit(self.ask, name, given, who) for who, given in calls]
                answers = [each.result() for each in asked]
        return answers[::2], answers[1::2]

    async def _gathered(self, name: str, calls: list[tuple[str, Arguments]]) -> list[Any]:
        async def one(customer: str, arguments: Arguments) -> Any:
            with context(customer=customer):
                return await getattr(self.tried.client, name)(**arguments)

        return await asyncio.gather(*[one(*each) for each in calls], return_exceptions=True)

    def _nested(self, name: str, arguments: Arguments, customer: str | None) -> Any:
        """Return what a call answers that is made from inside of an observed function."""
        method = getattr(self.tried.client, name)
        observe = self.tried.scope.observe(store="outer", operation="delete_memory")

        @observe
        def called() -> Any:
            return method(**arguments)

        @observe
        async def awaited() -> Any:
            return await method(**arguments)

        outer = awaited if inspect.iscoroutinefunction(method) else called
        return self._answer_of(customer, lambda: self.tried.settled(outer()))

    def held(self) -> list[list[str]]:
        """Return what is known of the customer, whatever is asked."""
        listed = [_words((each.id, each.content)) for each in records_of(self.tried, self.customer)]
        read = [
            _words(self.ask(name, self.case.calls[name](THEIRS), self.customer))
            for name in self.methods
            if self.methods[name].op_class in READS and self.names_customer(name)
        ]
        return sorted(listed) + read

    def _tells(self, answer: Any) -> bool:
        return THEIRS in repr(answer) and not isinstance(answer, Exception)


def _scope_of(method: Method, arguments: Arguments) -> Any:
    try:
        return method.scope(arguments)
    except ScopeError:
        return method.scope({})


def _text_of(method: Method) -> str:
    """Return the text of an attack: what was written, to find it, or another, to replace it."""
    return OURS if method.op_class in _WRITES else THEIRS


def _differs(answer: Any, other: Any) -> bool:
    # Nothing is the same as a refusal: that there is no such memory is told by neither.
    if answer is None or isinstance(answer, Exception):
        return False
    return _words(answer) != _words(other)


def _words(answer: Any) -> list[str]:
    """Return the words in an answer, sorted: of what is equally near, each may come first."""
    return sorted(re.split(r"\W+", repr(answer)))


def _naming_itself(owned: _Owned, name: str, text: str) -> Arguments:
    given: Arguments = renamed(owned.case.calls[name](text), owned.customer, owned.other)
    return given


def _naming_nobody(owned: _Owned, name: str, text: str) -> Arguments:
    def names_customer(given: Arguments) -> bool:
        if renamed(given, owned.customer, "") != given:
            return True
        # By what the adapter reads off it as well: a client's filter may have the id escaped.
        try:
            return bool(_scope_of(owned.methods[name], given).customer == owned.customer)
        except Exception:  # noqa: BLE001 - of an adapter that reads the other arguments as well
            return False

    given = owned.case.calls[name](text).items()
    return {each: x for each, x in given if not names_customer({each: x})}


def _naming_both(owned: _Owned, name: str, text: str) -> Arguments | None:
    theirs, given = owned.case.calls[name](text), _naming_itself(owned, name, text)
    batches = {each: x + theirs[each] for each, x in given.items() if x.__class__ is list}
    return {**given, **batches} if batches else None


_WAYS: Mapping[str, Build] = {
    "naming the other": lambda owned, name, text: owned.case.calls[name](text),
    "naming itself, by the other's ids": _naming_itself,
    "naming nobody": _naming_nobody,
    "naming both in one batch": _naming_both,
}


def _hostile(customer: str) -> list[str]:
    """Return ids of other customers that a store may take for that of *customer*, or for all."""
    behind = ("' OR '1'='1", '"} OR {"', "\x00", "%", "?", ".*", "/..", "\u200b")
    whole = ["%", "_" * len(customer), ".*", "..", "null", "None", "0", customer[:-1]]
    around = [f"../{customer}", f" {customer}\n", *(customer + each for each in behind)]
    return [*whole, customer.swapcase(), *around]
