"""The parts of events: what features say about a call, through sinks and files."""

from __future__ import annotations

import msgspec
import pytest

from mnemoscope.audit.record.sealing import draft
from mnemoscope.memory.api import EventPart, MemoryLabel
from mnemoscope.memory.privacy.engine.content import content_again
from mnemoscope.telemetry.event.node_run import NodeRun
from mnemoscope.telemetry.event.part import UnknownPart
from mnemoscope.telemetry.event.phase import OperationPhase, OperationPhases
from mnemoscope.telemetry.event.sink_pseudonyms import SinkPseudonyms
from mnemoscope.telemetry.event.spared import Spared
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.event.tool_run import ToolRun
from mnemoscope.telemetry.event.usage import Usage
from mnemoscope.telemetry.logs.sink import fields
from mnemoscope.telemetry.otlp.conventions.attributes import span_attributes
from mnemoscope.telemetry.queue.codec import FIELDS, EventDecoder, encode

KEYS = SubjectKeys(b"sixteen bytes or more")
PSEUDONYM = "<PERSON_0123456789abcdef>"


class Review(EventPart, tag="acme.review", frozen=True):
    """A part of another package."""

    by: str
    share: float = 0.5
    places: tuple[str, ...] = ()

    def fields(self):
        """Return the fields of log records."""
        return {"reviewed_by": self.by, "status": "reviewed"}

    def measurements(self):
        """Return what is added up."""
        return {"reviews": 1}

    def sealed(self):
        """Return what is sealed."""
        return {"share": self.share}

    def detail(self):
        """Return what may be erased."""
        return {"by": self.by}


def decoded(data, names=FIELDS):
    """Return the event of *data*, whose fields have *names*."""
    return EventDecoder(names, KEYS, KEYS, content_again).decode(data)


def shown(event):
    """Return what sinks show of *event*, and what the trail keeps of it."""
    row = draft(event)
    record = fields(event, content=False)
    return record, span_attributes(event), row.header.fields, row.detail


def test_a_part_is_found_by_its_kind(event_factory):
    """None: the event has none."""
    event = event_factory(parts=(Spared("conserve"), Review("ada")))

    assert event.part(Review) == Review("ada")
    assert event.part(MemoryLabel) is None


def test_a_part_shows_by_default_as_attributes_of_its_fields(event_factory):
    """One method of it is enough for logs, traces and LangSmith."""
    event = event_factory(parts=(Review("ada"),))

    assert fields(event, content=False)["reviewed_by"] == "ada"
    assert span_attributes(event)["mnemoscope.reviewed_by"] == "ada"


def test_a_field_of_the_event_counts_before_that_of_a_part(event_factory):
    """No feature can say that a call ended otherwise."""
    assert fields(event_factory(parts=(Review("ada"),)), content=False)["status"] == "ok"


def test_what_another_package_seals_stands_by_itself(event_factory):
    """Under the name of its part: it cannot take the place of a field of the trail's own."""
    header = draft(event_factory(parts=(Review("ada"),))).header.fields

    assert header["parts"] == {"acme.review": {"share": "0.5"}}


def test_what_another_package_says_is_erasable(event_factory):
    """It stands in the detail, also of an event that has nothing else there."""
    detail = draft(event_factory(subject=None, parts=(Review("ada"),))).detail

    assert msgspec.json.decode(detail)["parts"] == {"acme.review": {"by": "ada"}}


def test_a_part_of_another_package_shows_the_same_out_of_a_file(event_factory):
    """Though the process that reads it may not have the package."""
    event = event_factory(parts=(Spared("conserve"), Review("ada")))
    read = decoded(encode(event))

    assert shown(read) == shown(event)
    assert [dict(each.measurements()) for each in read.parts] == [{}, {"reviews": 1}]
    assert decoded(encode(read)).parts == read.parts


def test_a_part_of_a_later_release_is_carried_on(event_factory):
    """It shows nowhere, and is in the next file as it was in the first one."""
    event = event_factory(parts=(Spared("conserve"),), hits=3)
    values = msgspec.msgpack.decode(encode(event))
    later = {"type": "later", "n": 1}
    at = FIELDS.index("parts")
    values[at].append(later)
    read = decoded(msgspec.msgpack.encode(values))

    assert read.parts == (Spared("conserve"), UnknownPart(later))
    assert shown(read) == shown(event)
    assert msgspec.msgpack.decode(encode(read))[at] == values[at]


@pytest.mark.parametrize(
    ("name", "value", "part"),
    [
        ("iteration", 3, NodeRun(3)),
        ("usage", {"model": "m", "input_tokens": 5}, Usage(model="m", input_tokens=5)),
        ("tool_call", ["t-1", 5, None], ToolRun("t-1", 5)),
        ("mode", "conserve", Spared("conserve")),
        ("label", ["person", 4, ["t"]], MemoryLabel("person", 4, ("t",))),
        (
            "phases",
            [{"name": "embed", "method": "embed", "started_ns": 1, "duration_s": 0.5}],
            OperationPhases((OperationPhase("embed", "embed", 1, 0.5),)),
        ),
    ],
)
def test_a_field_of_an_earlier_release_is_the_part_that_it_became(event_factory, name, value, part):
    """In a file that it has written."""
    at = FIELDS.index("parts")
    values = msgspec.msgpack.decode(encode(event_factory()))
    values[at] = value

    assert decoded(
        msgspec.msgpack.encode(values), (*FIELDS[:at], name, *FIELDS[at + 1 :])
    ).parts == (part,)


@pytest.mark.parametrize("parts", [None, 3, "parts", [3, None]])
def test_what_is_no_part_costs_the_event_nothing_else(event_factory, parts):
    """A damaged file is read as far as it can be."""
    values = msgspec.msgpack.decode(encode(event_factory(hits=3)))
    values[FIELDS.index("parts")] = parts

    assert decoded(msgspec.msgpack.encode(values)).hits == 3


def test_the_pseudonyms_in_a_part_are_those_of_the_sink(event_factory):
    """As in the names of the event itself."""
    sink = SinkPseudonyms(KEYS, "logs")
    (part,) = sink.event(event_factory(parts=(Review(PSEUDONYM, 0.5, (PSEUDONYM,)),))).parts

    assert part == Review(sink.text(PSEUDONYM), 0.5, (sink.text(PSEUDONYM),))
    assert part.by != PSEUDONYM
