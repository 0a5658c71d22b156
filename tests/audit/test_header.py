"""How a header is written: from a form that many events share, and what each fills in."""

from __future__ import annotations

import json

import orjson
import pytest

from mnemoscope.audit.canonical import canonical
from mnemoscope.audit.header import of_event, of_log
from mnemoscope.audit.sealing import draft
from mnemoscope.audit.spool import _packed, _unpacked
from mnemoscope.telemetry.crossing import Crossing, Level
from mnemoscope.telemetry.event import Journalled, OperationClass, Status
from mnemoscope.telemetry.usage import Usage

PLACE = ('"c0"', "log", "p" * 64, 5, 7, '"t0"')
ODD = ["%", "%s", "%%s", "%%%%d", "%(seq)s", '"', "\\", "\x00", "\u00e9%\U0001f600", "\ud800", ""]


def filled(header, place=PLACE):
    """Return the header as it is sealed."""
    return (header.text % place).encode()


class TestOfEvent:
    @pytest.mark.parametrize("text", ODD)
    def test_no_text_breaks_out_of_its_place(self, event_factory, text):
        """Whatever a name holds, a mark of the form included, it is kept as it is."""
        event = event_factory(
            **dict.fromkeys(("operation", "store", "method", "agent", "feature", "error"), text),
            purpose=text,
            redactions={text: 1},
            usage=Usage(model=text, node=text, namespace=(text,)),
            crossing=Crossing(
                budget=text,
                level=Level.ALERT,
                unit="usd",
                spent=1.5,
                limit=2,
                period_s=60,
                burn_per_hour=9,
            ),
        )

        sealed = filled(of_event(event, 0))
        known, clean = json.loads(sealed), text.encode("utf-8", "replace").decode()
        assert canonical(known) == sealed
        for name in ("operation", "store", "method", "agent", "feature", "error", "purpose"):
            assert known[name] == clean, name
        assert list(known["redactions"]) == [clean]
        assert known["usage"]["namespace"] == [clean]
        assert known["budget"]["budget"] == clean
        assert (known["detail_commit"], known["tenant"]) == ("c0", "t0")
        assert (known["log"], known["recorded_at"], known["seq"]) == ("log", 5, 7)

    def test_events_that_share_a_form_keep_what_is_their_own(self, event_factory):
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
        """Forms of events that differ in a flag alone are two."""
        assert json.loads(filled(of_event(event_factory(**{name: value}), 0)))[name] is value

    @pytest.mark.parametrize(
        ("name", "values"),
        [("status", Status), ("op_class", OperationClass), ("journal", Journalled)],
    )
    def test_every_word_is_kept(self, event_factory, name, values):
        """Status, class and journal are in the header as they are called."""
        for each in values:
            assert json.loads(filled(of_event(event_factory(**{name: each}), 0)))[name] == each

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
    header = of_log("log.opened", {"note": text}, writer_id="w", occurred_us=3)

    sealed = filled(header, ("w-log-7", "log", "p" * 64, 5, 7))
    known = json.loads(sealed)
    assert canonical(known) == sealed
    assert known["data"] == {"note": text.encode("utf-8", "replace").decode()}
    assert (known["event_id"], known["seq"]) == ("w-log-7", 7)


@pytest.mark.parametrize("text", ODD)
def test_the_spool_gives_back_what_it_was_given(log, event_factory, text):
    """An event that waited there is sealed as one that did not."""
    usage = Usage(model=text, namespace=(text,), cost_usd=0.1, time_to_first_token_s=0.5)
    given = draft(event_factory(agent=text, purpose=text, redactions={text: 1}, usage=usage))

    back = _unpacked(orjson.loads(orjson.dumps(_packed(given, log.ring))))
    assert (back.header, back.detail) == (given.header, given.detail)
    assert (back.writer_id, back.writer_seq) == (given.writer_id, given.writer_seq)
    assert back.usage.cost_usd == usage.cost_usd
