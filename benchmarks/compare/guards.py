"""
What becomes of a memory, and of an agent, under each guard: questions whose good answer is yes.

It is run in an environment with other guards, by ``python guards.py NAME``, and prints its answers
as JSON. A tool that only traces changes none of them: that is the guard ``none``.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager, suppress
from importlib.metadata import version
from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore

ADDRESS = "ada.oxblood@note.example"
FALSE = "Acme is paid to account 6666."
PATIENCE_S = 6.0


class State(TypedDict):
    text: str


class Broken(InMemoryStore):
    """A store that raises, or answers late."""

    late_s = 0.0

    def batch(self, ops: Any) -> Any:
        time.sleep(self.late_s)
        if not self.late_s:
            raise ConnectionError("the store is down")
        return super().batch(ops)


@contextmanager
def nobody(**_who: str) -> Any:
    """Name nobody, as where there is no guard."""
    yield


def plain(each: Any) -> Any:
    """Return a client as it is."""
    return each


class Bare:
    """No guard, and what the others change of it."""

    package = ""

    def __init__(self) -> None:
        self.who: Callable[..., Any] = nobody
        self.saver: Callable[[Any], Any] = plain

    def store(self, inner: Any, _tenant: str = "acme") -> Any:
        return inner

    def read(self) -> Any:
        """Return a context in which a page was read."""
        return nobody()


class Mnemoscope(Bare):
    package = "mnemoscope"

    def __init__(self) -> None:
        from mnemoscope.memory import Origin, Trust, configure, context

        self.origin = Origin(demands={"payments": Trust.INTERNAL_TOOL})
        self.trust = Trust.EXTERNAL_TOOL
        self.scope = configure(
            sinks="audit", pii_model="none", tenancy="enforce", rules=[self.origin]
        )
        self.who, self.saver = context, self.scope.checkpointer

    def store(self, inner: Any, _tenant: str = "acme") -> Any:
        return self.scope.store(inner, customer_at=1)

    def read(self) -> Any:
        return self.origin.reading(self.trust)


class Tenancy(Bare):
    package = "langgraph-tenancy"

    def __init__(self) -> None:
        from langgraph_tenancy import TenantScopedCheckpointer, TenantScopedStore

        super().__init__()
        self.saver, self.scoped = TenantScopedCheckpointer, TenantScopedStore

    def store(self, inner: Any, tenant: str = "acme") -> Any:
        return self.scoped(inner).for_tenant(tenant)


class GuardedWrites:
    """A store behind agent-memory-guard, by the pattern of its documentation for stores."""

    def __init__(self, inner: Any) -> None:
        from agent_memory_guard import MemoryGuard, Policy

        self.inner, self.guard = inner, MemoryGuard(policy=Policy.strict())
        self.get, self.search = inner.get, inner.search

    def put(self, namespace: Any, key: str, value: Any) -> None:
        self.guard.write(key, value["text"])  # raises where it is refused
        self.inner.put(namespace, key, {"text": self.guard.read(key)})


class MemoryGuard(Bare):
    package = "agent-memory-guard"

    def store(self, inner: Any, _tenant: str = "acme") -> Any:
        return GuardedWrites(inner)


GUARDS = {each.package or "none": each for each in (Bare, Mnemoscope, Tenancy, MemoryGuard)}
NOTES = ("notes", "c-42")


def note(guard: Bare, inner: Any, text: str, tenant: str = "acme") -> Any:
    """Write a note of a customer, and return the guarded store."""
    store = guard.store(inner, tenant)
    with guard.who(tenant=tenant, customer="c-42", run="r-1"):
        store.put(NOTES, "last", {"text": text})
    return store


def graph_of(guard: Bare) -> tuple[Any, Any]:
    """Return a graph and its saver as it is."""
    inner = InMemorySaver()
    builder = StateGraph(State)
    builder.add_node("draft", lambda state: {"text": f"Said: {state['text']}"})
    builder.add_edge(START, "draft")
    return builder.compile(checkpointer=guard.saver(inner)), inner


def thread_of(tenant: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": "t-1", "tenant_id": tenant}}


def keeps_an_address_out_of_a_store(guard: Bare) -> bool:
    inner = InMemoryStore()
    note(guard, inner, f"Write to {ADDRESS}")
    (kept,) = inner.search(())  # past whatever guards it
    return ADDRESS not in str(kept.value)


def keeps_an_address_out_of_a_checkpoint(guard: Bare) -> bool:
    graph, inner = graph_of(guard)
    with guard.who(tenant="acme", customer="c-42"):
        graph.invoke({"text": f"Write to {ADDRESS}"}, thread_of("acme"))
    return ADDRESS.encode() not in repr((inner.storage, inner.blobs)).encode()


def keeps_a_thread_from_another_tenant(guard: Bare) -> bool:
    graph, _inner = graph_of(guard)
    with guard.who(tenant="acme", customer="c-42"):
        graph.invoke({"text": "tea"}, thread_of("acme"))
    with guard.who(tenant="other", customer="c-7"), suppress(Exception):
        return not graph.get_state(thread_of("other")).values
    return True


def keeps_a_memory_from_another_customer(guard: Bare) -> bool:
    inner = InMemoryStore()
    note(guard, inner, "tea")
    store = guard.store(inner, "other")
    with guard.who(tenant="other", customer="c-7"), suppress(Exception):
        return store.get(NOTES, "last") is None
    return True


def their_attacks_it_keeps_out(guard: Bare) -> str:
    """Of agent-memory-guard's own benchmark: what was planted is not what is stored."""
    return _of_their_corpus(guard, malicious=True)


def their_harmless_texts_it_stores_whole(guard: Bare) -> str:
    """Of the same: a guard that refuses everything would be a good one by the attacks alone."""
    return _of_their_corpus(guard, malicious=False)


def _of_their_corpus(guard: Bare, *, malicious: bool) -> str:
    from agent_memory_guard.bench.scenarios import default_corpus

    corpus = [each for each in default_corpus() if each.malicious is malicious]
    good = 0
    for scenario in corpus:
        inner = InMemoryStore()
        store = guard.store(inner)
        for step in scenario.steps:
            with suppress(Exception), guard.who(tenant="acme", customer="c-42", run=scenario.id):
                store.put(NOTES, step.key, {"text": step.value})
        stored = "".join(str(each.value["text"]) for each in inner.search((), limit=100))
        last = scenario.steps[-1].value
        good += scenario.canary not in stored if malicious else stored.endswith(last)
    return f"{good} of {len(corpus)}"


def keeps_what_a_page_said_from_a_payment(guard: Bare) -> bool:
    inner = InMemoryStore()
    with guard.who(run="r-1"), guard.read():
        store = note(guard, inner, FALSE)
    with guard.who(tenant="acme", customer="c-42", run="r-2", purpose="payments"):
        return not store.search(NOTES)


def goes_on_without_the_store(guard: Bare) -> bool:
    store = guard.store(Broken())
    try:
        with guard.who(tenant="acme", customer="c-42"):
            return store.search(NOTES) == []
    except ConnectionError:
        return False


def does_not_wait_for_a_store_that_hangs(guard: Bare) -> bool:
    inner = Broken()
    inner.late_s = PATIENCE_S
    store = guard.store(inner)
    began = time.monotonic()
    with guard.who(tenant="acme", customer="c-42"):
        store.search(NOTES)
    return time.monotonic() - began < PATIENCE_S


QUESTIONS = (
    keeps_an_address_out_of_a_store,
    keeps_an_address_out_of_a_checkpoint,
    keeps_a_thread_from_another_tenant,
    keeps_a_memory_from_another_customer,
    their_attacks_it_keeps_out,
    their_harmless_texts_it_stores_whole,
    keeps_what_a_page_said_from_a_payment,
    goes_on_without_the_store,
    does_not_wait_for_a_store_that_hangs,
)


def main(name: str) -> None:
    """Ask all questions of the guard of that name."""
    made = GUARDS[name]
    answers = {each.__name__.replace("_", " "): each(made()) for each in QUESTIONS}
    told = {"version": version(made.package) if made.package else "", "answers": answers}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
