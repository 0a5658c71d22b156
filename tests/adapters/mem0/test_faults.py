"""Slow, dying and exiting stores, and what mem0 does to the process that imports it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from mem0 import AsyncMemory, Memory

from mnemoscope.adapters.mem0.adapter import ADAPTER
from mnemoscope.adapters.toolkit.proxy import guard_of
from mnemoscope.memory import DeadlineExceededError
from mnemoscope.memory.api import OperationClass, Status
from tests.kit.bench import wrapping
from tests.kit.patience import GIVE_UP_S

guarded = wrapping(ADAPTER)

USER = {"user_id": "u-17"}


@pytest.fixture
def hasty(bench):
    """Return a bench whose deadlines are over before anything is."""
    deadlines_s = dict.fromkeys(OperationClass, 0.02)
    return replace(bench, policy=replace(bench.policy, deadlines_s=deadlines_s))


@pytest.fixture
def hung(monkeypatch):
    """Return a function that makes a memory's embedder and store wait until the test is over."""
    gate, inside = threading.Event(), []

    def hang(memory):
        def wait(*_args, **_kwargs):
            inside.append(memory)
            gate.wait(GIVE_UP_S)
            raise ConnectionError

        monkeypatch.setattr(memory.embedding_model, "embed", wait)
        monkeypatch.setattr(memory.vector_store, "list", wait)
        return memory

    hang.gate, hang.inside = gate, inside
    yield hang
    gate.set()


async def test_a_hung_store_does_not_hold_the_agent(kind, make_memory, hung, hasty, events, done):
    """Recall and remember get the neutral value when the deadline is over."""
    memory = guarded(hung(make_memory(kind)), hasty)

    assert await done(memory.search("tea", filters=USER)) == {"results": []}
    assert await done(memory.add("tea", user_id="u-17", infer=False)) == {"results": []}
    assert [(each.status, each.neutral, each.late) for each in events()] == [
        (Status.TIMEOUT, True, True)
    ] * 2


async def test_a_hung_forget_is_never_taken_for_done(kind, make_memory, hung, hasty, events, done):
    """A deletion that does not end in time is an error."""
    memory = guarded(hung(make_memory(kind)), hasty)
    with pytest.raises(DeadlineExceededError):
        await done(memory.delete_all(user_id="u-17"))

    assert [(each.status, each.neutral) for each in events()] == [(Status.TIMEOUT, False)]


async def test_hung_calls_do_not_hold_the_hosts_threads(make_memory, hung, hasty):
    """Many hung calls leave asyncio's few threads to the host, and its exit undelayed."""
    memory = guarded(hung(make_memory(AsyncMemory)), hasty)
    await asyncio.gather(*(memory.search("tea", filters=USER) for _ in range(40)))
    async with asyncio.timeout(GIVE_UP_S):
        assert await asyncio.to_thread(lambda: "free") == "free"
        await asyncio.get_running_loop().shutdown_default_executor()


async def test_a_hung_call_keeps_its_place(make_memory, hung, hasty, eventually):
    """What a thread is still at is in flight, with or without its caller, and then was late."""
    memory = guarded(hung(make_memory(AsyncMemory)), hasty)
    while len(hung.inside) < 3:  # a busy machine may not begin a call before its time is up
        await memory.search("tea", filters=USER)
    guard = guard_of(memory)
    places = guard.limits[OperationClass.RECALL].bulkhead

    assert eventually(lambda: places.in_flight == len(hung.inside))  # others may begin only now
    hung.gate.set()
    assert eventually(lambda: places.in_flight == 0)
    assert eventually(lambda: guard.deadline.late_results == len(hung.inside))


async def test_outside_our_calls_mem0_has_the_hosts_threads(make_memory, bench):
    """A bare memory beside a guarded one works as it did: same pool, context and errors."""
    guarded(make_memory(AsyncMemory), bench)
    bare = make_memory(AsyncMemory)
    names = []
    bare.embedding_model.embed = lambda *_: names.append(threading.current_thread().name)
    with pytest.raises(Exception):  # noqa: B017, PT011 - there is no vector
        await bare.add("tea", user_id="u-17", infer=False)

    assert [each.startswith("asyncio_") for each in names] == [True]


async def test_a_store_that_wants_to_exit_has_failed(
    kind, make_memory, bench, events, done, monkeypatch
):
    """``SystemExit`` out of mem0 ends neither the agent nor its call."""
    bare = make_memory(kind)

    def leave(*_args, **_kwargs):
        sys.exit(1)

    monkeypatch.setattr(bare.embedding_model, "embed", leave)
    memory = guarded(bare, bench)

    assert await done(memory.search("tea", filters=USER)) == {"results": []}
    assert [(each.status, each.error) for each in events()] == [(Status.DEGRADED, "SystemExit")]


async def test_an_interrupt_is_not_swallowed(kind, make_memory, bench, done, monkeypatch):
    """Control-C inside a call ends it, in every class."""
    bare = make_memory(kind)

    class Interrupt(BaseException):
        """As KeyboardInterrupt, which pytest would take for its own."""

    def interrupt(*_args, **_kwargs):
        raise Interrupt

    monkeypatch.setattr(bare.embedding_model, "embed", interrupt)

    with pytest.raises(Interrupt):
        await done(guarded(bare, bench).search("tea", filters=USER))


def test_threads_do_not_lose_rows_in_a_local_qdrant(make_memory, bench, tmp_path):
    """Writes from many threads take turns: an embedded Qdrant loses some otherwise."""
    memory = guarded(make_memory(Memory, path=str(tmp_path)), bench)
    with ThreadPoolExecutor(8) as pool:
        futures = [
            pool.submit(memory.add, f"tea {n}", user_id="u-17", infer=False) for n in range(64)
        ]
        added = [each.result() for each in futures]

    assert all(len(each["results"]) == 1 for each in added)
    assert len(memory.get_all(filters=USER, top_k=100)["results"]) == 64


def in_a_process_of_its_own(tmp_path, code: str, **environment: str) -> str:
    """Run *code* after the bare import of mem0 that it starts with, and return what it prints."""
    removed = {"MEM0_TELEMETRY", *environment}
    inherited = {name: value for name, value in os.environ.items() if name not in removed}
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", textwrap.dedent(code)],
        env={**inherited, "MEM0_DIR": str(tmp_path), **environment},
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )
    return done.stdout.split()


KEEPS_IN_HOUSE = """
    import types
    from mnemoscope.adapters.mem0 import adapter as mem0
    mem0.configure_library()
    from mem0.memory import telemetry
    from mem0.utils import spacy_models
    spacy_models._ensure_model_available = lambda: print("asked for a model")
    print(telemetry.MEM0_TELEMETRY, spacy_models.get_nlp_full(), spacy_models.get_nlp_lemma())
"""


@pytest.mark.parametrize(
    ("set_to", "stays_on"), [({}, "False"), ({"MEM0_TELEMETRY": "true"}, "True")]
)
def test_mem0_is_kept_from_calling_home_and_from_downloading(tmp_path, set_to, stays_on):
    """Its telemetry is off unless the environment says otherwise; no model is fetched in a call."""
    # posthog's thread would wait for the network at exit
    printed = in_a_process_of_its_own(
        tmp_path, KEEPS_IN_HOUSE + "    import os; print(flush=True); os._exit(0)", **set_to
    )

    assert printed == [stays_on, "None", "None"]


QUIET = """
    import logging
    logging.basicConfig(format="%(message)s", stream=__import__("sys").stdout)
    import {first}
    import {second}
    from mem0.memory import telemetry
    print(telemetry.MEM0_TELEMETRY, flush=True)
    import os; os._exit(0)
"""


@pytest.mark.parametrize(
    ("first", "second"), [("mnemoscope.memory", "mem0"), ("mem0", "mnemoscope.memory")]
)
def test_mem0_sends_nothing_from_the_import_on_where_that_is_wanted(tmp_path, first, second):
    """Whatever its own variable says; where mem0 was imported before, a line says that it may."""
    set_to = {"MNEMOSCOPE_CLIENT_TELEMETRY": "off", "MEM0_TELEMETRY": "True"}
    code = QUIET.format(first=first, second=second)
    printed = " ".join(in_a_process_of_its_own(tmp_path, code, **set_to))

    assert printed.endswith("False")
    assert printed.count("came too late: mem0 was imported before") == (first == "mem0")


def test_telemetry_is_switched_off_after_the_import_too(monkeypatch, make_memory, bench):
    """A host that imported mem0 before us is kept in house from the first wrapped client on."""
    from mem0.memory import telemetry

    bare = make_memory(Memory)
    monkeypatch.setattr(telemetry, "MEM0_TELEMETRY", True)
    monkeypatch.delenv("MEM0_TELEMETRY", raising=False)
    guarded(bare, bench)

    assert telemetry.MEM0_TELEMETRY is False


def test_a_model_that_is_loaded_stays(monkeypatch, make_memory, bench):
    """Only what would be downloaded is given up."""
    from mem0.utils import spacy_models

    monkeypatch.setattr(spacy_models, "_nlp_full", model := object())
    monkeypatch.setattr(spacy_models, "_load_failed_full", False)
    guarded(make_memory(AsyncMemory), bench)

    assert spacy_models.get_nlp_full() is model
