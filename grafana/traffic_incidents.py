"""Injected failures, so that every panel and alert has something to show."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import json
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

from langgraph.store.memory import InMemoryStore

from mnemoscope.demo.embedded_mem0 import embedded_memory
from mnemoscope.demo.faults import FaultMode, StoreFault
from mnemoscope.memory import (
    Approval,
    Facts,
    Fails,
    HeldError,
    Mnemoscope,
    Outcome,
    Phases,
    Point,
    Verdict,
    context,
)
from mnemoscope.memory.rules.decisions import decision_event
from mnemoscope.telemetry.event.verdict_event import Choice

HANG_S = 3.5
"""Longer than the deadline of a recall."""

LATE = "read"
"""The phase of a run that comes to no end."""


@dataclass(frozen=True, kw_only=True)
class Noted:
    """A rule that refuses what is asked by a run that has noted a fact of the rule's name."""

    name: str
    shadow: bool = False
    points = frozenset({Point.MEMORY})
    fails = Fails.CLOSED

    def settings(self) -> Mapping[str, Any]:
        """Return what it was made with."""
        return {"name": self.name}

    def decide(self, facts: Facts) -> Verdict:
        """Refuse, where the fact is there."""
        is_noted = facts.known.get(self.name) is True
        return Verdict(Outcome.REFUSE, "noted") if is_noted else Verdict()


GATE = Approval("profiles", outcome=lambda _text: 0.9, places=["*/profiles"])
"""A gate in front of profiles, of which a human approves every other one."""


class Incidents:
    """
    Every kind of failure, once for each message.

    mem0 is down from the first message on; the CRM is an observed function that calls another
    store, and refuses to delete; a note cannot be redacted; a search covers all customers; a rule
    refuses another, and one holds a profile for a human; a run stays in its phase until that is
    over; now and then an archive hangs, or somebody edits a database.

    Args:
        scope: The scope that guards the stores.
        stores: The demo's stores.
    """

    def __init__(self, scope: Mnemoscope, stores: Any) -> None:
        self._scope = scope
        self._store = stores.store
        self._database = InMemoryStore()
        self._edited = scope.store(self._database)
        self._calls, self._profiles, self._labels = (itertools.count() for _ in range(3))
        observe = scope.observe
        self._contacts = observe(store="crm", operation="search_memory", neutral=list)(self._ask)
        self._archive = observe(store="archive", operation="search_memory", neutral=list)(_hang)
        self._note = observe(store="crm", operation="upsert_memory", neutral=dict)(self._fail)
        self._removal = observe(store="crm", operation="delete_memory")(self._fail)
        self._lame = scope.mem0(lame_memory())
        self._late, self._bodies = contextvars.copy_context(), contextlib.ExitStack()
        self._late.run(self._begin_late)
        StoreFault("mem0", FaultMode.DOWN, delay_s=0).begin(stores.bare["mem0"])

    def happen(self) -> None:
        """Cause each failure once."""
        for incident in self._each():
            with contextlib.suppress(Exception):  # only the alert matters
                incident()

    def _each(self) -> Iterator[Callable[[], Any]]:
        yield self._contacts
        yield self._note
        yield self._removal
        yield self._unredactable
        yield self._everybody
        yield self._against_a_rule
        yield lambda: self._late.run(self._store.search, ("customers", "c-1"), limit=4)
        yield self._held
        if next(self._calls) % 25 in {2, 4, 6}:
            yield Thread(target=self._archive, daemon=True).start  # it hangs
            yield self._edit
            yield self._echo
            yield lambda: self._lame.add("a conversation", user_id="c-1")
            yield self._outcomes

    def _begin_late(self) -> None:
        self._bodies.enter_context(context(run="late"))
        for each in self._scope.rules:
            if isinstance(each, Phases):
                self._bodies.enter_context(each.phase(LATE))

    def _ask(self) -> list[Any]:
        return [*self._store.search(("customers", "c-1"), limit=3)]

    def _edit(self) -> None:
        with context(tenant="demo", customer="c-1"):
            self._edited.put(("profiles", "c-1"), "account", {"text": "as it was written"})
            self._database.put(("profiles", "c-1"), "account", {"text": "as somebody likes it"})
            self._edited.get(("profiles", "c-1"), "account")

    def _echo(self) -> None:
        with context(tenant="demo", customer="c-1", run="echo"):
            self._edited.put(("notes", "c-1"), "first", {"text": "would like a quiet room"})
            self._edited.get(("notes", "c-1"), "first")
            self._edited.put(("notes", "c-1"), "second", {"text": "would like a quiet room"})

    def _outcomes(self) -> None:
        with context(tenant="demo", agent="concierge"):
            for score in (0.9, 0.8, 0.7):
                self._scope.outcome("used", run="scored", score=score)
            self._scope.outcome("corrected", failed_in="librarian", after_s=18_000)
            self._scope.compare_labels({"late invoice": f"label {next(self._labels)}"})
            self._scope.note_progress(1, 10)

    def _fail(self) -> dict[str, Any]:
        raise ConnectionRefusedError(111, "Connection refused")

    def _unredactable(self) -> None:
        self._store.put(("customers", "c-1"), "note", {"text": object()})

    def _everybody(self) -> None:
        with context(tenant="demo", customer="c-1"):
            self._store.search(("customers",), limit=10)

    def _against_a_rule(self) -> None:
        with context(run="against-a-rule"):
            self._scope.note_facts(cautious=True, refused=True)
            self._store.search(("customers", "c-1"), limit=1)

    def _held(self) -> None:
        number = next(self._profiles)
        try:
            self._store.put(("profiles",), f"p-{number}", {"likes": "tea"})
        except HeldError as held:
            if held.approval is not None and number % 2:
                event = decision_event(
                    held.approval,
                    Choice.APPROVE,
                    gate=GATE.name,
                    version=GATE.version,
                    passed=True,
                )
                self._scope.audit.append([event])


def lame_memory() -> Any:
    """Return a mem0 that finds two facts in everything, and whose embedder fails on the first."""
    facts = [{"text": text, "event": "ADD"} for text in ("likes tea", "owns a bicycle")]
    folder = TemporaryDirectory()
    memory = embedded_memory(Path(folder.name))
    weakref.finalize(memory, folder.cleanup)
    embed: Callable[[str, str | None], list[float]] = memory.embedding_model.embed

    def embed_some(text: str, action: str | None = None) -> list[float]:
        if text == facts[0]["text"]:
            raise ConnectionError
        return embed(text, action)

    def embed_none(_texts: list[str], _action: str = "add") -> list[list[float]]:
        raise ConnectionError

    def answer(*_args: Any, **_kwargs: Any) -> str:
        return json.dumps({"memory": facts})

    memory.llm.generate_response = answer
    memory.embedding_model.embed = embed_some
    memory.embedding_model.embed_batch = embed_none
    return memory


def _hang() -> list[Any]:
    time.sleep(HANG_S)
    return []
