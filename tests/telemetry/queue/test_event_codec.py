"""The bytes of an event in a file of the relay's."""

from __future__ import annotations

import msgspec
import orjson
import pytest
from hypothesis import given, settings

from mnemoscope.memory.privacy.engine.content import content_again, to_content
from mnemoscope.telemetry.event.event import Event
from mnemoscope.telemetry.event.subject import Subject, SubjectKeys
from mnemoscope.telemetry.queue.codec import FIELDS, EventDecoder, encode
from mnemoscope.telemetry.text import clean_text, json_text
from tests.kit.lengths import examples
from tests.kit.sample_events import events

KEYS = SubjectKeys(b"sixteen bytes or more")


def decoder(fields=FIELDS, keys=KEYS, current=KEYS):
    """Return a decoder of the events of this release."""
    return EventDecoder(fields, keys, current, content_again)


def clean(value):
    """Return *value* without what no UTF-8 holds."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        return {clean(name): clean(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(clean(each) for each in value)
    return value


def shown(event):
    """Return what is to be the same of two events."""
    known = msgspec.structs.asdict(event)
    subject = known.pop("subject")
    contents = [known.pop(each) for each in ("content", "answer", "given")]
    parts = {name: known.pop(name) for name in ("trace", "parent_run")}
    told = {name: each and msgspec.to_builtins(each) for name, each in parts.items()}
    told["tags"] = (told["parent_run"] or {}).pop("tags", None) and event.parent_run.tags
    return clean(
        {
            **known,
            **told,
            "subject": subject and subject.hashed("logs"),
            "contents": [each and orjson.loads(json_text(each.value)) for each in contents],
        }
    )


@given(events)
@settings(max_examples=examples(40))
def test_any_event_comes_back(event):
    """With its customer, and its content as it was redacted; lone surrogates alone are replaced."""
    assert shown(decoder().decode(encode(event))) == shown(event)


def test_a_customer_cannot_be_read_in_it(event_factory):
    """Nor found by the length of what is there instead."""
    short = Subject("ada-in-clear", tenant="acme-in-clear", keys=KEYS)
    long = Subject("ada-in-clear" * 2, tenant="acme-in-clear", keys=KEYS)
    data = encode(event_factory(subject=short))

    assert b"in-clear" not in data
    assert len(data) == len(encode(event_factory(subject=long)))


def test_with_other_keys_it_is_no_event(event_factory):
    """What somebody else enclosed names nobody."""
    data = encode(event_factory(subject=Subject("c-1", tenant=None, keys=KEYS)))

    with pytest.raises(ValueError, match="other keys"):
        decoder(keys=SubjectKeys(b"another secret of ours")).decode(data)


def test_a_customer_is_known_by_the_current_keys(event_factory):
    """After a rotation, files of before name the same pseudonyms as those of today."""
    current = SubjectKeys(b"another secret of ours")
    data = encode(event_factory(subject=Subject("c-1", tenant="acme", keys=KEYS)))
    found = decoder(current=current).decode(data).subject

    assert found.hashed("logs") == Subject("c-1", tenant="acme", keys=current).hashed("logs")


def test_a_field_that_the_reader_lacks_costs_nothing(event_factory):
    """As one of a later release, anywhere among them."""
    event = event_factory(hits=3)
    values = msgspec.msgpack.decode(encode(event))
    data = msgspec.msgpack.encode([*values[:4], "new", *values[4:]])

    assert shown(decoder((*FIELDS[:4], "later", *FIELDS[4:])).decode(data)) == shown(event)


def test_a_field_that_the_writer_lacked_has_its_default(event_factory):
    """As in a file of an earlier release."""
    values = msgspec.msgpack.decode(encode(event_factory(hits=3)))
    at = FIELDS.index("hits")
    data = msgspec.msgpack.encode([*values[:at], *values[at + 1 :]])

    assert decoder((*FIELDS[:at], *FIELDS[at + 1 :])).decode(data).hits is None


def test_an_unfit_field_costs_the_event_one_field(event_factory):
    """A score that is no number, say, of an adapter that nobody has checked."""
    event = event_factory(top_score="high", hits=2)
    found = decoder().decode(encode(event))

    assert (found.top_score, found.hits, found.event_id) == (None, 2, event.event_id)


class Score:
    """A number of a library's own, as NumPy's are."""

    def __float__(self) -> float:
        return 0.25


def test_numbers_of_other_libraries_are_numbers(event_factory):
    """A store returns what it likes."""
    found = decoder().decode(encode(event_factory(scores=(Score(),), memory_ids=("m-1",))))

    assert found.scores == (0.25,)


def test_content_is_as_it_was(event_factory):
    """Nothing is cut a second time."""
    content = to_content({"query": "x" * 70_000})
    found = decoder().decode(encode(event_factory(content=content)))

    assert found.content.value == content.value


def test_the_fields_are_those_of_an_event():
    """They are what files say of themselves."""
    assert Event.__struct_fields__ == FIELDS
