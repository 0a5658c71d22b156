"""What is wrong with the memories of one person, from what was done and what is stored."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from ...telemetry.event.kinds import OperationClass, Status
from .likeness import alike, is_like
from .part import plain

DAY_US: Final = 86_400_000_000
CHARACTERS_A_TOKEN: Final = 4


class Ailment(StrEnum):
    """
    A kind of finding.

    Attributes:
        ECHO: Written with a text that the same run had recalled, or in other words.
        DUPLICATE: Another memory of the person has the same text.
        NEAR_DUPLICATE: Another one says the same in other words.
        NEVER_RECALLED: Written long ago, and never recalled since.
        PARTIAL: A write of which the store has a part alone.
        LEFT: Still stored, though a deletion of all of them succeeded later.
        GONE: Not stored any more, and no deletion is known.
        WRONG_DIMENSION: The store's embedder makes vectors of another length than its collection
            has: no recall finds anything.
    """

    ECHO = "echo"
    DUPLICATE = "duplicate"
    NEAR_DUPLICATE = "near_duplicate"
    NEVER_RECALLED = "never_recalled"
    PARTIAL = "partial"
    LEFT = "left"
    GONE = "gone"
    WRONG_DIMENSION = "wrong_dimension"


Address: TypeAlias = tuple[str, str | None, str]
"""Store, collection and id of a memory."""


class Deed(NamedTuple):
    """
    One operation, as the trail has it. Its `repr` shows nothing of it.

    Attributes:
        event_id: Of its event.
        run: Tenant and run. None: it is of no run.
        at_us: When it ended, microseconds since 1970 UTC.
        memories: What it found, wrote or deleted.
        hashes: Keyed hashes of the texts of each, where the scope watched them.
        texts: Of a write: what it wrote in each memory; where it names none, what it would have
            written.
        is_whole: A deletion of all that its scope names.
    """

    event_id: str
    op_class: OperationClass
    status: Status
    store: str
    run: tuple[str | None, str] | None
    at_us: int
    memories: tuple[Address, ...]
    hashes: tuple[tuple[str, ...], ...] = ()
    texts: tuple[str, ...] = ()
    is_whole: bool = False

    def __repr__(self) -> str:
        """Return the event's id."""
        return f"Deed({self.event_id})"


class StoredText(NamedTuple):
    """
    A memory as its store has it now. Its `repr` shows nothing of it.

    Attributes:
        created_us: When the store says that it was written. None: it does not.
    """

    address: Address
    text: str
    created_us: int | None = None

    def __repr__(self) -> str:
        """Return a constant."""
        return "StoredText(...)"


@dataclass(frozen=True, slots=True)
class HygieneFinding:
    """
    One thing that is wrong. It has ids, never a text.

    Attributes:
        memories: What it is about, the one that should stay first, where one should.
        events: Ids of the events that show it.
        recalls: How often the memories but the first were recalled.
        tokens: Tokens that those recalls brought into prompts, about.
        keep: The memory that supersedes the others. None: nothing supersedes them.
        note: Store, collection and numbers that show it, where it is about no memory.
    """

    ailment: Ailment
    memories: tuple[Address, ...] = field(repr=False)
    events: tuple[str, ...] = ()
    recalls: int = 0
    tokens: int = 0
    keep: Address | None = field(default=None, repr=False)
    note: str = ""


class RecallUse(NamedTuple):
    """
    What a person's memories are worth: how often they were found, and what that brought.

    Attributes:
        memories: That are there.
        ever_recalled: Of these.
        recalls: Memories that recalls have found, each time counted.
        runs: That recalled any: answers, where an application has a run for each.
        tokens: That recalls brought into prompts, about.
    """

    memories: int
    ever_recalled: int
    recalls: int
    runs: int
    tokens: int


class _Ledger:
    """What is known of each memory of one person after all that was done."""

    def __init__(self, deeds: Iterable[Deed]) -> None:
        self.deeds = sorted(deeds, key=lambda deed: deed.at_us)
        self.texts: dict[Address, str] = {}
        self.written_us: dict[Address, int] = {}
        self.recalls: dict[Address, int] = defaultdict(int)
        self.wholesale: list[Deed] = []
        self._places: dict[tuple[str, str], list[Address]] = defaultdict(list)
        for deed in self.deeds:
            self._apply(deed)

    def _apply(self, deed: Deed) -> None:
        if not deed.status.is_normal:
            return
        if deed.op_class is OperationClass.RECALL:
            for each in map(self.resolved, deed.memories):
                self.recalls[each] += 1
        elif deed.op_class is OperationClass.REMEMBER:
            self._remember(deed)
        elif deed.is_whole:
            self.wholesale.append(deed)
            for each in [each for each in self.written_us if each[0] == deed.store]:
                self._drop(each)
        else:
            for each in deed.memories:
                self._drop(each)

    def _remember(self, deed: Deed) -> None:
        for place, each in enumerate(deed.memories):
            if each not in self.written_us:
                self.written_us[each] = deed.at_us
                self._places[each[0], each[2]].append(each)
            if place < len(deed.texts):
                self.texts[each] = deed.texts[place]

    def resolved(self, address: Address) -> Address:
        """Return where a memory was written that was found at *address*, which may be above it."""
        store, above, memory_id = address
        written = self._places[store, memory_id]
        if address in written:
            return address
        return next((each for each in written if (each[1] or "").startswith(above or "")), address)

    def _drop(self, address: Address) -> None:
        self.texts.pop(address, None)
        self.written_us.pop(address, None)

    def cost(self, addresses: Iterable[Address], texts: Mapping[Address, str]) -> tuple[int, int]:
        """Return how often these were recalled, and about how many tokens that brought."""
        recalls = {each: self.recalls[each] for each in addresses}
        sizes = {each: len(texts.get(each, "")) // CHARACTERS_A_TOKEN for each in recalls}
        return sum(recalls.values()), sum(recalls[each] * sizes[each] for each in recalls)


def recall_use(deeds: Iterable[Deed], stored: Sequence[StoredText] | None) -> RecallUse:
    """Return what one person's memories are worth; *stored* as for `examine`."""
    ledger = _Ledger(deeds)
    texts = ledger.texts if stored is None else {each.address: each.text for each in stored}
    there = set(ledger.written_us if stored is None else texts)
    recalls, tokens = ledger.cost(list(ledger.recalls), ledger.texts | texts)
    found = [deed for deed in ledger.deeds if deed.op_class is OperationClass.RECALL]
    return RecallUse(
        memories=len(there),
        ever_recalled=sum(ledger.recalls[each] > 0 for each in there),
        recalls=recalls,
        runs=len({deed.run for deed in found if deed.memories}),
        tokens=tokens,
    )


def examine(
    deeds: Iterable[Deed],
    stored: Sequence[StoredText] | None,
    *,
    now_us: int,
    unused_days: int = 90,
    nears: bool = True,
) -> list[HygieneFinding]:
    """
    Return what is wrong with one person's memories.

    Args:
        deeds: All that was done to them, as far as it is known.
        stored: What their stores have now. None: these were not asked, and the trail's word counts.
        now_us: Microseconds since 1970 UTC.
        unused_days: Days without a recall from which a memory counts as never recalled.
        nears: Look for the same in other words, too.

    Raises:
        ConfigurationError: rapidfuzz is not installed, and *nears*.
    """
    ledger = _Ledger(deeds)
    texts = ledger.texts if stored is None else {each.address: each.text for each in stored}
    found = [*_echoes(ledger, nears=nears), *_duplicates(ledger, texts, nears=nears)]
    found += _never_recalled(ledger, texts, now_us - unused_days * DAY_US)
    found += _partial(ledger, texts)
    if stored is not None:
        found += [*_left(ledger, stored), *_gone(ledger, stored)]
    return found


def _echoes(ledger: _Ledger, *, nears: bool) -> Iterator[HygieneFinding]:
    hashes: dict[object, dict[str, Address]] = defaultdict(dict)
    said: dict[object, dict[Address, str]] = defaultdict(dict)
    for deed in ledger.deeds:
        if deed.run is None or not deed.status.is_normal:
            continue
        if deed.op_class is OperationClass.RECALL:
            for place, each in enumerate(map(ledger.resolved, deed.memories)):
                for one in deed.hashes[place] if place < len(deed.hashes) else ():
                    hashes[deed.run][one] = each
                if each in ledger.texts:
                    said[deed.run][each] = ledger.texts[each]
        elif deed.op_class is OperationClass.REMEMBER:
            yield from _echoes_of(ledger, deed, hashes[deed.run], said[deed.run], nears=nears)


def _echoes_of(
    ledger: _Ledger,
    deed: Deed,
    hashes: Mapping[str, Address],
    said: Mapping[Address, str],
    *,
    nears: bool,
) -> Iterator[HygieneFinding]:
    for place, each in enumerate(deed.memories):
        of = deed.hashes[place] if place < len(deed.hashes) else ()
        source = next((hashes[one] for one in of if one in hashes), None)
        if source is None and place < len(deed.texts):
            others = [address for address in said if address != each]
            text = plain(deed.texts[place])
            same = [at for at in others if plain(said[at]) == text]
            like = is_like(text, [said[at] for at in others]) if nears and not same else None
            source = same[0] if same else None if like is None else others[like]
        if source is not None and source != each:
            recalls, tokens = ledger.cost([each], ledger.texts)
            yield HygieneFinding(
                Ailment.ECHO, (source, each), (deed.event_id,), recalls, tokens, source
            )


def _duplicates(
    ledger: _Ledger, texts: Mapping[Address, str], *, nears: bool
) -> Iterator[HygieneFinding]:
    by_text: dict[tuple[str, str], list[Address]] = defaultdict(list)
    for address, text in texts.items():
        if said := plain(text):
            by_text[address[0], said].append(address)
    for same in by_text.values():
        if len(same) > 1:
            yield _superseding(ledger, Ailment.DUPLICATE, same, texts)
    if not nears:
        return
    for store in {address[0] for address in texts}:
        # One of each text: the others are told above.
        each = [same[0] for (of, _text), same in by_text.items() if of == store]
        for places in alike([texts[address] for address in each]):
            group = [each[place] for place in places]
            yield _superseding(ledger, Ailment.NEAR_DUPLICATE, group, texts)


def _superseding(
    ledger: _Ledger, ailment: Ailment, group: Sequence[Address], texts: Mapping[Address, str]
) -> HygieneFinding:
    """Return the finding that one of *group* supersedes the others: the oldest of them."""
    ranked = sorted(group, key=lambda each: (ledger.written_us.get(each, 0), each[2]))
    recalls, tokens = ledger.cost(ranked[1:], texts)
    return HygieneFinding(ailment, tuple(ranked), (), recalls, tokens, ranked[0])


def _never_recalled(
    ledger: _Ledger, texts: Mapping[Address, str], before_us: int
) -> Iterator[HygieneFinding]:
    for address, written_us in ledger.written_us.items():
        if written_us < before_us and not ledger.recalls[address] and address in texts:
            yield HygieneFinding(Ailment.NEVER_RECALLED, (address,))


def _partial(ledger: _Ledger, texts: Mapping[Address, str]) -> Iterator[HygieneFinding]:
    stored = {(address[0], plain(text)): address for address, text in texts.items()}
    for deed in ledger.deeds:
        if deed.op_class is not OperationClass.REMEMBER:
            continue
        if deed.status is Status.PARTIAL:
            yield HygieneFinding(Ailment.PARTIAL, deed.memories, (deed.event_id,))
        elif not deed.status.is_normal and len(deed.texts) > 1:
            there = [stored.get((deed.store, plain(text))) for text in deed.texts]
            kept = tuple(each for each in there if each is not None)
            if 0 < len(kept) < len(deed.texts):
                yield HygieneFinding(Ailment.PARTIAL, kept, (deed.event_id,))


def _left(ledger: _Ledger, stored: Sequence[StoredText]) -> Iterator[HygieneFinding]:
    for deletion in ledger.wholesale:
        left = tuple(
            each.address
            for each in stored
            if each.address[0] == deletion.store
            and each.address not in ledger.written_us
            and each.created_us is not None
            and each.created_us < deletion.at_us
        )
        if left:
            yield HygieneFinding(Ailment.LEFT, left, (deletion.event_id,))


def _gone(ledger: _Ledger, stored: Sequence[StoredText]) -> Iterator[HygieneFinding]:
    there = {each.address[::2] for each in stored}
    stores = {each.address[0] for each in stored}
    for address in ledger.written_us:
        if address[0] in stores and address[::2] not in there:
            yield HygieneFinding(Ailment.GONE, (address,))
