"""How a header is written: the fields of an event, and those that its position decides."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from mnemoscope.audit.record.header import of_event, of_log, sealed
from mnemoscope.telemetry.event.budget_event import BudgetEvent
from mnemoscope.telemetry.event.event import Deletes, Journalled, OperationClass, Status
from mnemoscope.telemetry.event.kinds import Level
from mnemoscope.telemetry.event.usage import Usage
from tests.kit.lengths import examples
from tests.kit.rfc8785 import canonical
from tests.kit.sample_events import events

PLACE = {
    "detail_commit": "c0",
    "log": "log",
    "prev": "p" * 64,
    "recorded_at": 5,
    "seq": 7,
    "tenant": "t0",
}
ODD = ["%", "%s", "%%s", "%%%%d", "%(seq)s", '"', "\\", "\x00", "\u00e9%\U0001f600", "\ud800", ""]


def filled(header, place=PLACE):
    """Return the header as it is sealed."""
    return sealed(header.fields | place)


class TestOfEvent:
    @settings(max_examples=examples(200), deadline=None)
    @given(event=events)
    def test_any_header_is_canonical(self, event):
        """By another implementation of RFC 8785, whatever the event holds."""
        header = filled(of_event(event, 0))

        assert canonical(json.loads(header)) == header

    @pytest.mark.parametrize("text", ODD)
    def test_no_text_breaks_out_of_its_place(self, event_factory, text):
        """Whatever a name holds, quotes and marks included, it is kept as it is."""
        event = event_factory(
            **dict.fromkeys(("operation", "store", "method", "agent", "feature", "error"), text),
            purpose=text,
            redactions={text: 1},
            usage=Usage(model=text, node=text, namespace=(text,)),
            parts=(
                BudgetEvent(
                    budget=text,
                    level=Level.ALERT,
                    unit="usd",
                    spent=1.5,
                    limit=2,
                    period_s=60,
                    burn_per_hour=9,
                ),
            ),
        )

        header = filled(of_event(event, 0))
        known, clean = json.loads(header), text.encode("utf-8", "replace").decode()
        assert canonical(known) == header
        for name in ("operation", "store", "method", "agent", "feature", "error", "purpose"):
            assert known[name] == clean, name
        assert list(known["redactions"]) == [clean]
        assert known["usage"]["namespace"] == [clean]
        assert known["budget"]["budget"] == clean
        assert (known["detail_commit"], known["tenant"]) == ("c0", "t0")
        assert (known["log"], known["recorded_at"], known["seq"]) == ("log", 5, 7)

    def test_events_that_share_fields_keep_what_is_their_own(self, event_factory):
        """What one event says never shows in another of the same kind."""
        own = [
            {"hits": None, "size_bytes": None, "top_score": None, "purpose": None},
            {"hits": 0, "size_bytes": 2**70, "top_score": 0.1, "purpose": "support"},
            {"hits": 3, "size_bytes": 12, "top_score": float("nan"), "purpose": "p"},
        ]
        found = [json.loads(filled(of_event(event_factory(**each), 2))) for each in own]

        assert [each["hits"] for each in found] == [None, 0, 3]
        assert [each["size_bytes"] for each in found] == [None, 2**53 - 1, 12]
        assert [each["top_score"] for each in found] == [None, "0.1", None]
        assert [each["purpose"] for each in found] == [None, "support", "p"]
        assert len({each["event_id"] for each in found}) == 3

    @pytest.mark.parametrize("name", ["nested", "late", "neutral"])
    @pytest.mark.parametrize("value", [True, False])
    def test_flags_are_kept_apart(self, event_factory, name, value):
        """Events that differ in a flag alone share no fields."""
        assert json.loads(filled(of_event(event_factory(**{name: value}), 0)))[name] is value

    @pytest.mark.parametrize(
        ("name", "values"),
        [("status", Status), ("op_class", OperationClass), ("journal", Journalled)],
    )
    def test_every_word_is_kept(self, event_factory, name, values):
        """Status, class and journal are in the header as they are called."""
        for each in values:
            assert json.loads(filled(of_event(event_factory(**{name: each}), 0)))[name] == each

    @pytest.mark.parametrize("deletes", Deletes)
    def test_how_much_is_deleted_is_sealed(self, event_factory, deletes):
        """A log that was written before headers said so verifies as it did: no key, no change."""
        forget = filled(of_event(event_factory(deletes=deletes), 0))

        assert (json.loads(forget)["deletes"], canonical(json.loads(forget))) == (deletes, forget)
        assert "deletes" not in json.loads(filled(of_event(event_factory(), 0)))

    @pytest.mark.parametrize("customer", ["ada", None])
    def test_who_is_counted(self, event_factory, customer):
        """The header tells how many customers, and not which."""
        known = json.loads(filled(of_event(event_factory(customer=customer), 0)))

        assert known["n_subjects"] == (customer is not None)

    def test_columns_say_what_the_header_says(self, event_factory):
        """What the table repeats comes from the same values."""
        header = of_event(event_factory(feature="f", nested=True, duration_s=0.25), 0)

        known = json.loads(filled(header))
        assert header.columns._asdict() == {name: known[name] for name in header.columns._fields}
        assert (header.kind, header.occurred_us) == (known["kind"], known["occurred_at"])


@pytest.mark.parametrize("text", ODD)
def test_what_is_said_of_the_log_is_kept(text):
    """Its data too may hold anything."""
    header = of_log("test.noted", {"note": text}, writer_id="w", occurred_us=3)

    written = filled(header, {"event_id": "w-log-7", "seq": 7})
    known = json.loads(written)
    assert canonical(known) == written
    assert known["data"] == {"note": text.encode("utf-8", "replace").decode()}
    assert (known["event_id"], known["seq"]) == ("w-log-7", 7)
