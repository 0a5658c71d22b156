"""Redaction of long content: off the event loop, within the deadline, and bounded."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest

from mnemoscope.memory import (
    ContentTooLargeError,
    DeadlineExceededError,
    RedactionTimeoutError,
)
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.building.compose import REDACTIONS
from mnemoscope.memory.privacy.engine import engine as engines
from mnemoscope.memory.privacy.engine.redaction import SHORT_CHARS, CallBound
from mnemoscope.memory.privacy.engine.redactor import Limits, build_redactor
from tests.kit.patience import GIVE_UP_S

RECALL, REMEMBER, FORGET = OperationClass.RECALL, OperationClass.REMEMBER, OperationClass.FORGET
MAIL = "ada@example.com"
DOCUMENT = "Serendipity told us of an invoice and that it is late, as it always was. " * 28
NO_DEADLINES = dict.fromkeys(OperationClass, 0.0)


def documents(count):
    """Return texts of 2 kB, each another."""
    return [f"{number} {DOCUMENT}{MAIL}" for number in range(count)]


class Searches:
    """The texts that were searched: how long each was and on which thread."""

    def __init__(self):
        self.threads = set()
        self.longest = Counter()

    def note(self, what, text):
        """Note one search."""
        self.threads.add(threading.current_thread())
        self.longest[what] = max(self.longest[what], len(text))


@pytest.fixture
def searches(monkeypatch):
    """Return what the engine searches from now on."""
    seen = Searches()

    def watched(name, position=1):
        original = getattr(engines.Engine, name)

        def search(*args):
            seen.note(name, args[position])
            return original(*args)

        monkeypatch.setattr(engines.Engine, name, search)

    watched("_find")
    watched("_ask")
    return seen


class FakePipeline:
    """A language model that finds nothing, and notes what it is shown."""

    context_words = 10

    def __init__(self, searches):
        self.searches = searches

    def find(self, texts):
        self.searches.note("model", "".join(texts))
        return [[] for _ in texts]


@pytest.fixture
def fresh(subject_keys):
    """Return a function that makes redactors with nothing in their caches."""
    return lambda **given: build_redactor(
        **{"model": "none", "keys": subject_keys, "limits": Limits(max_chars=2_000_000), **given}
    )


@pytest.fixture
def with_model(fresh, searches, tmp_path):
    """Return a redactor whose language model notes what it is shown."""
    redactor = fresh(model=f"en={tmp_path}")
    (model,) = redactor._models.values()
    model._load = lambda _source, _language: FakePipeline(searches)
    return redactor


async def put(guard, operation, reach):
    return await reach(guard, operation, lambda arguments: arguments["texts"])


def writing(make_operation, texts, **given):
    given = {"name": "put", "op_class": REMEMBER, **given}
    return make_operation({"texts": texts}, **given)


async def test_the_detectors_are_imported_on_a_worker(make_guard, make_operation, fresh, searches):
    """A loop would stand still for as long as it takes."""
    guard = make_guard(redactor=fresh(), deadlines_s=NO_DEADLINES)

    async def store(arguments):
        return arguments["texts"]

    stored = await guard.acall(writing(make_operation, ["mail ada@example.com"]), store)

    assert stored == ["mail <EMAIL_ADDRESS>"]
    assert threading.current_thread() not in searches.threads


@pytest.mark.parametrize("model", [False, True], ids=["patterns", "model"])
async def test_what_is_searched_at_once_is_bounded(
    make_guard, make_operation, request, fresh, searches, model
):
    """A hundred documents of 2 kB: each pattern and the model see a few thousand characters."""
    redactor = request.getfixturevalue("with_model") if model else fresh()
    redactor.explain("the first text of a process is searched on a worker")
    guard = make_guard(redactor=redactor, deadlines_s=NO_DEADLINES)

    async def store(arguments):
        return arguments["texts"]

    stored = await guard.acall(writing(make_operation, documents(100)), store)

    assert all(each.endswith("<EMAIL_ADDRESS>") for each in stored)
    assert searches.threads > {threading.current_thread()}
    assert searches.longest["_ask"] <= 4_096
    assert searches.longest["model"] <= 2_000
    assert bool(searches.longest["model"]) is model


async def test_the_loops_thread_searches_little(make_guard, make_operation, fresh, monkeypatch):
    """No more than 4,096 characters before the rest goes to another thread."""
    guard, here, searched = make_guard(redactor=fresh()), threading.current_thread(), []
    find = engines.Engine._find

    def spy(self, text, *rest):
        if threading.current_thread() is here:
            searched.append(len(text))
        return find(self, text, *rest)

    monkeypatch.setattr(engines.Engine, "_find", spy)

    async def store(arguments):
        return arguments["texts"]

    await guard.acall(writing(make_operation, documents(100)), store)
    await guard.acall(writing(make_operation, ["tiny"] * 50_000), store)
    await guard.acall(writing(make_operation, ["x" * 100_000]), store)

    assert sum(searched) <= SHORT_CHARS


async def test_the_model_is_never_asked_on_the_loops_thread(
    make_guard, make_operation, with_model, searches
):
    """Not even for one short text."""
    guard = make_guard(redactor=with_model)

    async def store(arguments):
        return arguments["texts"]

    searched = []
    note = searches.note
    searches.note = lambda what, text: (
        searched.append((what, threading.current_thread())) or note(what, text)
    )
    await guard.acall(writing(make_operation, ["Then Temperance moved to Ruritania"]), store)

    asked = [thread for what, thread in searched if what == "model"]
    assert asked
    assert threading.current_thread() not in asked


@pytest.fixture
def loading(fresh, tmp_path):
    """Return a redactor whose model is loaded when the test says so."""
    redactor, go = fresh(model=f"en={tmp_path}"), threading.Event()
    (model,) = redactor._models.values()

    def load(_source, _language):
        assert go.wait(GIVE_UP_S)
        return FakePipeline(Searches())

    model._load, redactor.go = load, go
    yield redactor
    go.set()


@pytest.mark.parametrize("op_class", [RECALL, REMEMBER, FORGET])
async def test_loading_a_model_counts_against_the_deadline(
    make_guard, make_operation, reach, loading, events_of, op_class
):
    """A call that comes too early ends as its class does: nothing passes without the model."""
    guard = make_guard(redactor=loading, deadlines_s={op_class: 0.05})
    neutral = None if op_class is FORGET else lambda _arguments: None
    operation = writing(
        make_operation, ["Homero moved to Ruritania"], op_class=op_class, neutral=neutral
    )
    asked = []
    if op_class is FORGET:
        with pytest.raises(DeadlineExceededError):
            await reach(guard, operation, asked.append)
    else:
        assert await reach(guard, operation, asked.append) is None

    (event,) = events_of(guard)
    assert (asked, event.status) == ([], Status.TIMEOUT)


async def test_a_call_waits_for_a_model_that_is_loaded_in_time(
    make_guard, make_operation, reach, loading, eventually
):
    """Within its deadline, on a thread that is not its own."""
    guard = make_guard(redactor=loading)
    threading.Timer(0.05, loading.go.set).start()

    stored = await put(guard, writing(make_operation, ["mail ada@example.com"]), reach)

    assert stored == ["mail <EMAIL_ADDRESS>"]
    assert eventually(lambda: loading.is_prepared)


async def test_a_call_without_a_deadline_waits_for_a_model(make_guard, make_operation, loading):
    """It has all the time that loading takes."""
    guard = make_guard(redactor=loading, deadlines_s=NO_DEADLINES)
    threading.Timer(0.05, loading.go.set).start()

    stored = guard.call(writing(make_operation, ["mail ada@example.com"]), lambda given: given)

    assert stored == {"texts": ["mail <EMAIL_ADDRESS>"]}


async def test_short_content_stays_where_it_is(make_guard, search, fresh, searches):
    """A thread costs more than the search of a sentence."""
    guard = make_guard(redactor=fresh(), deadlines_s=NO_DEADLINES)

    async def store(_arguments):
        return ["tea"]

    await guard.acall(search, store)

    assert searches.threads <= {threading.current_thread()}


@pytest.mark.parametrize("chars", [65_536, 300_000])
async def test_a_very_long_text_is_searched_in_parts(
    make_guard, make_operation, reach, fresh, searches, chars
):
    """No pattern is shown all of it, and all of it is searched."""
    guard = make_guard(redactor=fresh(), deadlines_s=NO_DEADLINES)
    filler = DOCUMENT * (chars // len(DOCUMENT))
    text = f"{MAIL} {filler}{MAIL} {filler}{MAIL}"

    (stored,) = await put(guard, writing(make_operation, [text]), reach)

    assert stored == text.replace(MAIL, "<EMAIL_ADDRESS>")
    assert searches.longest["_find"] <= engines.WINDOW_CHARS
    assert searches.longest["_ask"] <= 4_096


@pytest.mark.parametrize("shift", range(0, 40, 7))
def test_nothing_is_lost_between_two_parts(fresh, shift):
    """Wherever a part of a very long text ends."""
    at = engines.WINDOW_CHARS - shift
    filler = ("and so on " * (at // 10 + 1))[:at]
    planted = "My card is 4556 7375 8689 9855, mail ada.lovelace@example.com."
    redacted = fresh().begin().text(f"{filler} {planted} {filler}")

    assert not any(part in redacted for part in ("8689", "lovelace", "example.com"))


@pytest.fixture
def stuck(monkeypatch, fresh):
    """Return a redactor that waits in each search on a worker until the test lets it go."""
    redactor, go, find = fresh(), threading.Event(), engines.Engine._find
    redactor.searched, here = [], threading.current_thread()

    def search(self, text, *rest):
        if threading.current_thread() is not here:
            redactor.searched.append(len(text))
            assert go.wait(GIVE_UP_S)
        return find(self, text, *rest)

    monkeypatch.setattr(engines.Engine, "_find", search)
    redactor.go = go
    yield redactor
    go.set()


@pytest.mark.parametrize("op_class", [REMEMBER, FORGET])
async def test_a_redaction_that_takes_too_long_ends_at_the_deadline(
    make_guard, make_operation, reach, stuck, events_of, op_class, eventually
):
    """As a timeout, in the way of its class: the store is not asked, nothing raw is told."""
    guard = make_guard(redactor=stuck, deadlines_s={op_class: 0.05})
    neutral = (lambda _arguments: None) if op_class is REMEMBER else None
    operation = writing(make_operation, documents(50), op_class=op_class, neutral=neutral)
    asked = []
    if op_class is REMEMBER:
        assert await reach(guard, operation, asked.append) is None
    else:
        with pytest.raises(DeadlineExceededError):
            await reach(guard, operation, asked.append)
    stuck.go.set()

    (event,) = events_of(guard)
    assert asked == []
    assert (event.status, event.content) == (Status.TIMEOUT, None)
    assert event.error == "mnemoscope.memory.errors.RedactionTimeoutError"
    assert guard.limits[op_class].bulkhead.in_flight == 0
    assert eventually(lambda: len(guard.deadline._workers._idle) == 1)
    assert len(stuck.searched) <= 1  # of fifty: nobody waits for the others


async def test_a_call_that_comes_before_the_detectors_says_how_to_wait_for_them(
    make_guard, make_operation, reach, fresh, monkeypatch
):
    """That it should send less would be wrong: nothing is redacted before they are loaded."""
    redactor, go = fresh(), threading.Event()
    make = redactor._make_engine

    def make_late(*given):
        assert go.wait(GIVE_UP_S)
        return make(*given)

    monkeypatch.setattr(redactor, "_make_engine", make_late)
    guard = make_guard(redactor=redactor, deadlines_s={FORGET: 0.05})

    try:
        with pytest.raises(RedactionTimeoutError, match=r"wait for scope\.prepare\(\)"):
            await put(guard, writing(make_operation, documents(1), op_class=FORGET), reach)
    finally:
        go.set()


async def test_a_few_long_contents_are_redacted_at_once(
    make_bench, make_operation, stuck, eventually
):
    """The others wait for a place: threads would only take the processor from each other."""
    bench = make_bench(redactor=stuck)
    guards = [bench.guard(name) for name in ("crm", "notes")]
    places = bench.parts.guards.redactions

    async def store(arguments):
        return arguments["texts"]

    before = threading.active_count()
    tasks = [
        asyncio.create_task(guard.acall(writing(make_operation, documents(3)), store))
        for guard in guards
        for _ in range(20)
    ]
    await asyncio.to_thread(eventually, lambda: len(stuck.searched) == REDACTIONS)
    assert await asyncio.to_thread(eventually, lambda: places.waiting == 40 - REDACTIONS)
    threads = threading.active_count() - before
    stuck.go.set()
    stored = await asyncio.gather(*tasks)

    assert all(text.endswith("<EMAIL_ADDRESS>") for texts in stored for text in texts)
    assert threads <= REDACTIONS + 2  # and those that this test waits on
    assert places.in_flight == 0


async def test_who_waits_for_a_place_too_long_ends_at_the_deadline(
    make_guard, make_operation, stuck, events_of
):
    """As who is redacted too long: the store is not asked."""
    guard = make_guard(redactor=stuck, deadlines_s={REMEMBER: 0.2})
    operation = writing(make_operation, documents(3), neutral=lambda _arguments: None)
    asked = []

    async def store(arguments):
        asked.append(arguments)

    await asyncio.gather(*(guard.acall(operation, store) for _ in range(REDACTIONS + 3)))
    stuck.go.set()

    assert asked == []
    assert [event.status for event in events_of(guard)] == [Status.TIMEOUT] * (REDACTIONS + 3)


async def test_a_cancelled_call_leaves_its_redaction(make_guard, make_operation, stuck, eventually):
    """The event says so, and the thread stops at the next text."""
    guard = make_guard(redactor=stuck)

    async def store(arguments):
        return arguments["texts"]

    task = asyncio.create_task(guard.acall(writing(make_operation, documents(50)), store))
    await asyncio.to_thread(eventually, lambda: bool(stuck.searched))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    stuck.go.set()

    assert eventually(lambda: len(guard.deadline._workers._idle) == 1)
    assert len(stuck.searched) == 1


BOUNDED = CallBound(10_000)


@pytest.mark.parametrize(
    "texts", [["x y " * 3_000], documents(20), ["tea?"] * 2_000], ids=["one", "many", "tiny"]
)
async def test_too_much_is_refused(make_guard, make_operation, reach, fresh, events_of, texts):
    """Neither stored nor told, and the event says why."""
    guard = make_guard(redactor=fresh(), bound=BOUNDED)
    asked = []

    assert await reach(guard, writing(make_operation, texts), asked.append) == []
    assert asked == []
    (event,) = events_of(guard)
    assert event.status is Status.REFUSED
    assert event.error.endswith("ContentTooLargeError")


async def test_too_much_is_raised_where_a_class_fails_closed(
    make_guard, make_operation, reach, fresh
):
    """With a reason and without the text."""
    guard = make_guard(redactor=fresh(), bound=BOUNDED)
    operation = writing(
        make_operation, documents(20), op_class=OperationClass.CHECKPOINT, neutral=None
    )
    with pytest.raises(ContentTooLargeError, match="more than 10,000 characters") as seen:
        await put(guard, operation, reach)

    assert MAIL not in str(seen.value)


async def test_too_much_is_cut_where_that_is_asked_for(
    make_guard, make_operation, reach, fresh, events_of
):
    """What fits is redacted, the rest is replaced, and the event counts it."""
    guard = make_guard(redactor=fresh(), bound=CallBound(5_000, cuts=True))

    stored = await put(guard, writing(make_operation, documents(4)), reach)

    assert [len(each) > 1_900 for each in stored] == [True, True, False, False]
    assert stored[0].endswith("<EMAIL_ADDRESS>")
    assert stored[3] == "<OVERSIZE>"
    assert not any("ada@" in each for each in stored)
    (event,) = events_of(guard)
    assert event.redactions == {"EMAIL_ADDRESS": 2, "OVERSIZE": 2}
    assert event.status is Status.OK


async def test_a_long_chat_is_stored_without_its_names(
    make_guard, make_operation, reach, fresh, events_of
):
    """However often they are repeated: no clock decides whether it is stored."""
    guard = make_guard(redactor=fresh())

    (stored,) = await put(guard, writing(make_operation, ["Anna: ok\nJan: yes\n" * 500]), reach)

    (event,) = events_of(guard)
    assert (event.status, event.redactions) == (Status.OK, {"PERSON": 1_000})
    assert "Anna" not in stored
    assert "Jan" not in stored


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
async def test_a_failed_redaction_still_makes_labels(
    make_guard, make_operation, reach, fresh, events_of, error
):
    """The event of a refused call has its labels, whatever they take to search."""
    guard = make_guard(redactor=fresh())

    def redact(_arguments, redaction):
        redaction.text("x" * (SHORT_CHARS - 100))
        raise error

    label = "passport 123456789 " + "and so on " * 20
    operation = writing(make_operation, [], redact=redact, collection=lambda _arguments: label)
    if error is ValueError:
        assert await put(guard, operation, reach) == []
    else:
        with pytest.raises(KeyboardInterrupt):
            await put(guard, operation, reach)

    (event,) = events_of(guard)
    assert event.collection
    assert "123456789" not in event.collection
    assert not event.collection.startswith("[REDACTED")


async def test_labels_and_later_items_are_not_counted(make_guard, make_operation, reach, fresh):
    """The bound is of what a call carries as it is made."""
    guard = make_guard(redactor=fresh(), bound=BOUNDED)

    def redact(arguments, redaction):
        return arguments | {"texts": redaction.iterate(arguments["texts"])}

    operation = writing(make_operation, documents(20), redact=redact)
    stored = await reach(guard, operation, lambda arguments: list(arguments["texts"]))

    assert len(stored) == 20
