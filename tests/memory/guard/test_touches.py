"""What a deletion covers of the writes that were asked for before it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.memory.api import Touches
from mnemoscope.memory.guard.touches import UNTOLD, Covered
from mnemoscope.memory.journal.records import Apart, Sealer, read_touches

NO, MAYBE, YES = Covered.NO, Covered.MAYBE, Covered.YES


def of(*records, within="", **more):
    """Return what touches these records."""
    return Touches(within=within, records=frozenset(records), **more)


def by(*owners, **more):
    """Return what touches whatever is of these owners."""
    return Touches(owners=frozenset(owners), **more)


ALL = Touches(everything=True)


@pytest.mark.parametrize(
    ("waiting", "later", "holds_back", "is_apart"),
    [
        (of("1"), of("2"), False, True),
        (of("1"), of("1"), False, False),
        (of("1"), of("1", within="b"), False, False),
        (of("1"), UNTOLD, False, False),
        (UNTOLD, of("1"), False, False),
        (of("1", unknown=True), of("2"), False, False),
        (by("user_id=ada"), by("user_id=ada"), True, False),
        (by("user_id=ada"), by("user_id=bob"), False, True),
        (by("user_id=ada"), by("agent_id=tea"), True, False),
        (by("user_id=ada"), of("1"), True, False),
    ],
)
def test_what_waits_holds_back_what_may_be_of_its_record(waiting, later, holds_back, is_apart):
    """But for what nothing can be told of: that would hold back everybody's."""
    assert waiting.holds_back(later) is holds_back
    assert waiting.is_apart_from(later) is is_apart


@pytest.mark.parametrize(
    ("deletion", "write", "covered"),
    [
        # records
        (of("1"), of("1"), YES),
        (of("1", "2"), of("1"), YES),
        (of("1"), of("1", "2"), MAYBE),
        (of("1"), of("2"), NO),
        (of("1"), of(), MAYBE),
        (of(), of("1"), MAYBE),
        # collections, which may have two names
        (of("1", within="a"), of("1", within="a"), YES),
        (of("1", within="a"), of("1", within="b"), MAYBE),
        (of("1", within="a"), of("2", within="b"), NO),
        (of("1", within="a"), of("1"), MAYBE),
        (of("1"), of("1", within="a"), YES),
        # everything
        (ALL, of("1", within="a"), YES),
        (ALL, UNTOLD, YES),
        (Touches(within="a", everything=True), of("1", within="a"), YES),
        (Touches(within="a", everything=True), of("1", within="a", unknown=True), YES),
        (Touches(within="a", everything=True), of("1", within="b"), MAYBE),
        (Touches(within="a", everything=True), UNTOLD, MAYBE),
        # a part
        (of("1", partly=True), of("1"), MAYBE),
        (of("1", partly=True), of("2"), NO),
        (Touches(everything=True, partly=True), of("1"), MAYBE),
        # what cannot be told
        (UNTOLD, of("1"), MAYBE),
        (UNTOLD, UNTOLD, MAYBE),
        (of("1"), UNTOLD, MAYBE),
        (of("1", unknown=True), of("1"), YES),
        (of("1", unknown=True), of("2"), MAYBE),
        (of("1"), of("1", unknown=True), MAYBE),
        (of("1"), of("2", unknown=True), MAYBE),
        # owners
        (by("user_id=a"), by("user_id=a"), YES),
        (by("user_id=a"), by("user_id=a", "run_id=r"), YES),
        (by("user_id=a", "run_id=r"), by("user_id=a"), MAYBE),
        (by("user_id=a"), by("user_id=b"), NO),
        (by("user_id=a", "run_id=r"), by("user_id=b", "run_id=r"), NO),
        (by("user_id=a"), by("agent_id=a"), MAYBE),
        (by("user_id=a"), by("user_id=a", unknown=True), MAYBE),
        (by("user_id=a"), by("user_id=b", unknown=True), MAYBE),
        (by("user_id=a"), of("1"), MAYBE),
        (of("1"), by("user_id=a"), MAYBE),
        (by("user_id=a=b"), by("user_id=a=c"), NO),
        (by("user_id=a"), by("user_id=a", "user_id=b"), YES),
        (by("user_id=a", partly=True), by("user_id=a", "user_id=b"), MAYBE),
        (by("user_id=a", "user_id=b"), by("user_id=a"), NO),
        (Touches(owners=frozenset({"user_id=a"}), records=frozenset({"1"})), of("1"), YES),
    ],
)
def test_a_deletion_covers(deletion, write, covered):
    """A write is dropped only where it is certain, and overtaken only where it is certainly not."""
    assert deletion.covers(write) is covered
    assert _is_apart(deletion, write) == (covered is NO)


def _is_apart(deletion, write):
    """Tell what the texts alone tell, as they stand in a journal."""
    sealer = Sealer(bytes(32))
    return Apart(read_touches(sealer.touched(deletion)))(sealer.touched(write))


_names = st.frozensets(st.sampled_from("12"), max_size=2)
_owners = st.frozensets(st.sampled_from(["u=a", "u=b", "r=a"]), max_size=2)
_any = st.builds(
    Touches,
    within=st.sampled_from(["", "a", "b"]),
    records=_names,
    owners=_owners,
    everything=st.booleans(),
    partly=st.booleans(),
    unknown=st.booleans(),
)
_writes = st.builds(Touches, within=st.sampled_from(["", "a"]), records=_names, owners=_owners)


@given(_any, _writes)
def test_what_is_not_known_of_a_write_makes_nothing_certain(deletion, write):
    """Told less, it is never dropped or overtaken where it was not before."""
    less = Touches(within=write.within, records=write.records, owners=write.owners, unknown=True)
    told, untold = deletion.covers(write), deletion.covers(less)

    assert untold in {told, MAYBE}


@given(_any, _any)
def test_what_the_text_tells_apart_is_apart(deletion, write):
    """It is a short cut, and no other answer."""
    assert not _is_apart(deletion, write) or deletion.covers(write) is NO


@given(_any, _writes)
def test_a_part_covers_nothing_for_certain(deletion, write):
    """Of a record of which a part is deleted, the rest is written before."""
    part = Touches(
        within=deletion.within,
        records=deletion.records,
        owners=deletion.owners,
        everything=deletion.everything,
        partly=True,
        unknown=deletion.unknown,
    )

    assert part.covers(write) in {deletion.covers(write), MAYBE} - {YES}
