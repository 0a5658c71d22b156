"""A customer has another pseudonym in every sink, so that no two of them can be joined."""

from __future__ import annotations

import zlib
from itertools import combinations

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.memory import context
from mnemoscope.memory.api import Redacted, Usage
from mnemoscope.telemetry.event.sink_pseudonyms import PSEUDONYM, SinkPseudonyms

ADA = "ada.quimby@example.com"
EVERY_SINK = ("otlp", "prometheus", "logs", "langsmith", "audit")
FROM_THE_STORE = "<EMAIL_ADDRESS_3f9a0c11d2e4b586>"
NAMES = ("tenant", "agent", "feature", "run", "purpose", "collection")


def readable(data: bytes) -> str:
    """Return what is in *data*, packed parts as well; JSON and metrics escape nothing of ours."""
    parts = [data]
    for start in range(len(data)):
        if data[start : start + 2] in {b"\x1f\x8b", b"\x28\xb5"}:
            try:
                parts.append(zlib.decompressobj(31).decompress(data[start:]))
            except zlib.error:
                continue
    return b"\n".join(parts).decode("utf-8", "replace").replace("\\u003c", "<")


def found_in(data: bytes) -> set[str]:
    """Return the pseudonyms in *data*."""
    return set(PSEUDONYM.findall(readable(data).replace("\\u003e", ">")))


def test_no_two_sinks_have_a_pseudonym_in_common(exits, event_factory):
    """In names, ids, collections, content and labels; and none has one of the stores' but audit."""
    bare = InMemoryStore()
    store = exits.scope.store(bare)
    whom = dict.fromkeys(("agent", "feature", "run", "purpose", "customer"), ADA)
    with context(tenant="acme", **whom):
        store.put(("facts", ADA), ADA, {"mail": ADA, "said": f"write to {ADA}"})
        store.get(("facts", ADA), ADA)
        store.search(("facts", ADA), filter={"mail": ADA})
    usage = Usage(model=FROM_THE_STORE, node=FROM_THE_STORE)
    exits.scope._parts.drain.emit(event_factory(feature=FROM_THE_STORE, usage=usage))
    held = {name: found_in(data) for name, data in exits.sinks().items()}

    assert [name for name in EVERY_SINK if held[name]] == list(EVERY_SINK)
    held["stores"] = {FROM_THE_STORE, *found_in(repr(bare._data).encode())}
    shared = {
        pair: held[pair[0]] & held[pair[1]]
        for pair in combinations((*EVERY_SINK, "stores"), 2)
        if pair != ("audit", "stores")  # what it could not find again could not be erased
    }
    assert {pair: both for pair, both in shared.items() if both} == {}


@pytest.mark.parametrize("name", NAMES)
def test_each_name_in_an_event_is_the_sinks_own(subject_keys, event_factory, name):
    """As a whole, and inside a longer name; what is no pseudonym stays."""
    event = event_factory(**{name: f"a/{FROM_THE_STORE}/b <PERSON>"})
    one, other = (
        getattr(SinkPseudonyms(subject_keys, sink).event(event), name) for sink in ("logs", "otlp")
    )

    assert FROM_THE_STORE not in one
    assert one != other
    assert one.startswith("a/<EMAIL_ADDRESS_")
    assert one.endswith(">/b <PERSON>")


def test_ids_usage_and_content_are_the_sinks_own(subject_keys, event_factory):
    """At any depth, as keys and as values, and the same for the same."""
    seen = SinkPseudonyms(subject_keys, "logs").event(
        event_factory(
            memory_ids=("m-1", FROM_THE_STORE),
            usage=Usage(model="m", provider="p", node=FROM_THE_STORE, namespace=(FROM_THE_STORE,)),
            content=Redacted({"a": [{FROM_THE_STORE: f"x {FROM_THE_STORE}"}], "n": 1}, 40),
        )
    )

    own = seen.memory_ids[1]
    assert own != FROM_THE_STORE
    assert PSEUDONYM.fullmatch(own)
    assert (seen.memory_ids[0], seen.usage.node, seen.usage.namespace) == ("m-1", own, (own,))
    assert seen.content.value == {"a": [{own: f"x {own}"}], "n": 1}
    assert seen.content.size_bytes == 40


def test_an_event_without_any_is_passed_on_as_it_is(subject_keys, event_factory):
    """Nearly all are: they are not copied."""
    event = event_factory(run="thread-7", memory_ids=("m-1",), usage=Usage(model="m"))

    assert SinkPseudonyms(subject_keys, "logs").event(event) is event
