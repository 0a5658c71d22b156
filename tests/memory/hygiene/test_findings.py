"""What is wrong with one person's memories, kind by kind, and what is not."""

from __future__ import annotations

from typing import Any

import pytest

from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.hygiene import Ailment, Deed, StoredText, examine, recall_use

pytest.importorskip("rapidfuzz", reason="near duplicates are an extra: mnemoscope[hygiene]")

DAY_US = 86_400_000_000
NOW_US = 1_000 * DAY_US
TEXT = "Likes green tea in the morning"


def at(memory_id: str) -> tuple[str, str | None, str]:
    """Return the address of a memory."""
    return "store", "facts", memory_id


def deed(op: str, *ids: str, day: float = 999, run: str | None = "r", **known: Any) -> Deed:
    """Return an operation of a day."""
    given = {"status": Status.OK, "texts": (), "hashes": ()} | known
    return Deed(
        event_id=f"{op}-{'-'.join(ids)}",
        op_class=OperationClass(op),
        store="store",
        run=None if run is None else (None, run),
        at_us=round(day * DAY_US),
        memories=tuple(map(at, ids)),
        **given,
    )


def found(*deeds: Deed, stored: list[StoredText] | None = None) -> dict[Ailment, list[list[str]]]:
    """Return the ids of the memories of each finding, by kind."""
    kinds: dict[Ailment, list[list[str]]] = {}
    for each in examine(deeds, stored, now_us=NOW_US):
        kinds.setdefault(each.ailment, []).append([memory[2] for memory in each.memories])
    return kinds


def test_nothing_is_wrong_with_memories_that_differ():
    """And are recalled."""
    writes = [
        deed("remember", "a", texts=(TEXT,)),
        deed("remember", "b", texts=("Owns a bicycle that is blue",)),
    ]

    assert found(*writes, deed("recall", "a", "b")) == {}


def test_an_echo_is_known_by_hashes():
    """Of what the same run recalled before; not of what it recalled after."""
    recall = deed("recall", "a", day=1, hashes=(("h1", "h2"),))
    write = deed("remember", "b", day=2, hashes=(("h2",),))

    assert found(recall, write) == {Ailment.ECHO: [["a", "b"]]}
    assert found(recall._replace(at_us=3 * DAY_US), write) == {}
    assert found(recall, write._replace(run=(None, "other"))) == {}
    assert found(recall, write._replace(run=("tenant", "r"))) == {}


@pytest.mark.parametrize("said", [TEXT.upper(), "In the morning likes green tea"])
def test_an_echo_is_known_by_what_the_trail_has(said):
    """Also in other words, of what was written before."""
    deeds = [
        deed("remember", "a", day=1, run="first", texts=(TEXT,)),
        deed("recall", "a", day=2),
        deed("remember", "b", day=3, texts=(said,)),
    ]

    assert [*found(*deeds)[Ailment.ECHO]] == [["a", "b"]]


def test_of_duplicates_the_oldest_stays():
    """It supersedes the others, whose recalls are their cost."""
    deeds = [
        deed("remember", "a", day=998, texts=(TEXT,)),
        deed("remember", "b", day=999, run="other", texts=(TEXT.lower(),)),
        deed("recall", "b", run="third"),
        deed("recall", "b", run="third"),
    ]
    (duplicate,) = examine(deeds, None, now_us=NOW_US)

    assert duplicate.ailment is Ailment.DUPLICATE
    assert duplicate.keep == at("a")
    assert (duplicate.recalls, duplicate.tokens) == (2, 2 * (len(TEXT) // 4))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Lives in flat number 12 in the old house on Mill Road since spring", "13"),
        ("She does not want to be called in the evening by the sales team", "not "),
        ("Likes green tea", "green"),
        ("The plan for part b of the house in Mill Road is done, but for the garden", "c"),
    ],
)
def test_what_differs_in_a_number_a_denial_or_the_word_that_counts_is_no_duplicate(one, other):
    """One word is all the difference there is between two facts."""
    changed = {
        "13": one.replace("12", "13"),
        "not ": one.replace("not ", ""),
        "green": "",
        "c": one.replace(" b ", " c "),
    }
    second = changed[other] or "Likes black tea"
    writes = [deed("remember", "a", texts=(one,)), deed("remember", "b", texts=(second,))]

    assert found(*writes, deed("recall", "a", "b")) == {}


def test_near_duplicates_need_the_word_of_nobody():
    """The same words in another order, with a few changed."""
    one = "Caroline went to a support group yesterday and it was powerful"
    other = "Yesterday Caroline went to the support group, it was so powerful"
    writes = [deed("remember", "a", texts=(one,)), deed("remember", "b", run="x", texts=(other,))]

    assert found(*writes, deed("recall", "a", "b")) == {Ailment.NEAR_DUPLICATE: [["a", "b"]]}


def test_what_was_never_recalled_is_told_when_it_is_old():
    """A recall may name the collection above."""
    old = deed("remember", "a", "b", day=1, texts=("Plays the oboe", "Works at night"))
    above = deed("recall", "b", day=2)._replace(memories=(("store", None, "b"),))
    young = deed("remember", "c", day=999)

    assert found(old, above, young) == {Ailment.NEVER_RECALLED: [["a"]]}


def test_a_deleted_memory_is_no_finding():
    """By its id, or with all others."""
    write = deed("remember", "a", day=1, texts=(TEXT,))
    other = deed("remember", "b", day=1, run="x", texts=(TEXT,))

    assert found(write, other, deed("forget", "a", "b", day=2)) == {}
    assert found(write, other, deed("forget", day=2, is_whole=True)) == {}


def test_a_partial_write_is_told():
    """By its status, or by what is stored of a write that failed."""
    partial = deed("remember", "a", status=Status.PARTIAL)
    failed = deed("remember", status=Status.DEGRADED, texts=(TEXT, "Plays the oboe", "Has a dog"))
    stored = [StoredText(at("x"), TEXT), StoredText(at("a"), "other")]

    assert found(partial, deed("recall", "a"), failed, stored=stored) == {
        Ailment.PARTIAL: [["a"], ["x"]]
    }
    assert Ailment.PARTIAL not in found(failed, stored=[])
    assert Ailment.PARTIAL not in found(
        failed, stored=[StoredText(at(text), text) for text in failed.texts]
    )


def test_what_a_deletion_of_all_has_left_is_told():
    """Memories from before it that are still stored; not those that came after it."""
    deeds = [deed("remember", "a", day=1), deed("forget", day=2, is_whole=True)]
    stored = [
        StoredText(at("a"), TEXT, created_us=DAY_US),
        StoredText(at("b"), "Has a dog since spring", created_us=3 * DAY_US),
        StoredText(at("c"), "Nobody knows when", created_us=None),
    ]

    assert found(*deeds, stored=stored) == {Ailment.LEFT: [["a"]]}


def test_what_is_gone_without_a_deletion_is_told():
    """As far as its store was read."""
    deeds = [deed("remember", "a"), deed("remember", "b"), deed("recall", "a", "b")]

    assert found(*deeds, stored=[StoredText(at("a"), TEXT)]) == {Ailment.GONE: [["b"]]}
    assert found(*deeds, stored=[]) == {}


def test_what_memories_are_worth():
    """How often they were found, in how many runs, and the tokens that this brought."""
    deeds = [
        deed("remember", "a", "b", texts=("x" * 40, "y" * 80)),
        deed("recall", "a", run="one"),
        deed("recall", "a", run="two"),
        deed("recall", run="three"),
        deed("recall", "gone", run="two"),
    ]

    assert recall_use(deeds, None) == (2, 1, 3, 2, 20)
    assert recall_use(deeds, [StoredText(at("a"), "x" * 40)]) == (1, 1, 3, 2, 20)


def test_no_text_is_in_a_repr():
    """Neither a person's words nor ids."""
    write = deed("remember", "wolfram@example.com", texts=("wolframite",))
    (finding,) = examine([write._replace(at_us=1)], None, now_us=NOW_US)

    shown = f"{finding!r} {StoredText(at('wolfram@example.com'), 'wolframite')!r}"
    assert "wolfram@" not in shown
    assert "wolframite" not in f"{shown} {write!r}".replace(write.event_id, "")
