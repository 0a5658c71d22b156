"""Values of every shape: redacted copies of the same shape, and an error where that is unsure."""

import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import pathlib
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from typing import NamedTuple

import pytest
from pydantic import BaseModel, ConfigDict

from mnemoscope.memory import RedactionError
from tests.kit.call_costs import cost_of, counted_here

MAIL = "ada@example.com"


class Point(NamedTuple):
    id: str
    text: str


class Colour(enum.StrEnum):
    RED = "red"


class Name(str):
    __slots__ = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Fact:
    text: str
    score: float = 0.5
    derived: str = dataclasses.field(init=False, default="x")


class Payload(BaseModel):
    model_config = ConfigDict(extra="allow")
    text: str
    tags: list[str] = []


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1,
        4.2,
        1j,
        decimal.Decimal("1.5"),
        dt.date(2024, 5, 1),
        dt.datetime(2024, 5, 1, tzinfo=dt.UTC),
        dt.time(1),
        dt.timedelta(1),
        uuid.UUID(int=1),
        Colour.RED,
        range(3),
        b"\xff\xfe",
        ...,
        int,
        "plain",
        Name("plain"),
        pathlib.PurePosixPath("/srv/data"),
        [0.1, 0.2],
        [1, 2, 3],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_holds_no_text_passes(redaction, value):
    """Numbers, times and their like come out as the very same object."""
    assert redaction.value(value) is value


@pytest.mark.parametrize(
    "value",
    [
        [MAIL],
        (MAIL,),
        {MAIL},
        frozenset({MAIL}),
        {"a": MAIL},
        {MAIL: 1},
        deque([MAIL], maxlen=3),
        Point("1", MAIL),
        OrderedDict(a=MAIL),
        defaultdict(list, a=MAIL),
        Counter({MAIL: 2}),
        Name(MAIL),
        MAIL.encode(),
        bytearray(MAIL.encode()),
        pathlib.PurePosixPath(f"/home/{MAIL}/x"),
        Fact(MAIL),
        Payload(text=MAIL, tags=[MAIL], other=MAIL),
        [[{"a": ({"b": [MAIL]},)}]],
    ],
    ids=lambda value: type(value).__name__,
)
def test_text_is_found_in_every_shape(redaction, value):
    """The copy has the same type, the text in it is gone, and the caller's object is untouched."""
    before = repr(value)
    redacted = redaction.value(value)

    assert MAIL not in repr(redacted)
    assert "EMAIL_ADDRESS" in repr(redacted)
    assert repr(value) == before
    assert type(redacted) is (str if type(value) is Name else type(value))


def test_containers_are_new_even_where_nothing_changed(redaction):
    """What the caller does to its own object later does not reach the store."""
    value = {"a": ["plain"]}
    redacted = redaction.value(value)

    assert redacted == value
    assert redacted is not value
    assert redacted["a"] is not value["a"]


def test_ip_address_objects_are_identifiers(redaction):
    """They are text in disguise."""
    assert redaction.value(ipaddress.ip_address("203.0.113.7")).startswith("<IP_ADDRESS_")


def test_langchain_messages_keep_their_class(redaction):
    """Messages of a graph's state are redacted in content, names and tool calls."""
    messages = pytest.importorskip(
        "langchain_core.messages", reason="langgraph extra not installed"
    )
    call = {"name": "mail", "args": {"to": MAIL}, "id": "1", "type": "tool_call"}
    redacted = redaction.value(
        messages.AIMessage(content=[{"type": "text", "text": MAIL}], tool_calls=[call])
    )

    assert type(redacted) is messages.AIMessage
    assert MAIL not in repr(redacted)


@counted_here
def test_vectors_cost_what_a_short_list_costs(redaction):
    """A vector is not looked at number by number: no instruction is run for one."""
    costs = {cost_of(lambda each=each: redaction.value([0.1] * each)) for each in (16, 1_536)}

    assert len(costs) == 1


@pytest.mark.parametrize("value", [[0.1, MAIL, 0.2], [1, [MAIL]], [0.5, None, MAIL]])
def test_text_among_numbers_is_found(redaction, value):
    """A list that starts like a vector is one only if all of it is numbers."""
    assert MAIL not in str(redaction.value(value))


def test_numeric_arrays_pass_and_others_do_not(redaction):
    """An array of numbers holds no text; one of objects may."""
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    array = numpy.ones(3)

    assert redaction.value(array) is array
    with pytest.raises(RedactionError, match="numpy"):
        redaction.value(numpy.array([MAIL], dtype=object))


class Opaque:
    def __repr__(self):
        raise AssertionError("must not be called")


@pytest.mark.parametrize(
    "value", [Opaque(), [Opaque()], {"a": Opaque()}, lambda: MAIL, memoryview(b"x"), iter([MAIL])]
)
def test_unknown_types_are_refused_by_name_only(redaction, value):
    """Text might hide in them, so the write is refused, and nothing of them is shown."""
    with pytest.raises(RedactionError) as caught:
        redaction.value(value)

    assert MAIL not in str(caught.value)
    assert caught.value.kind
    assert str(caught.value).endswith(caught.value.kind)


def test_an_error_that_no_type_caused_names_none(redaction):
    """`kind` is the type that could not be redacted, where there is one."""
    with pytest.raises(RedactionError) as caught:
        redaction.value({MAIL: 1, MAIL.upper(): 2})

    assert caught.value.kind is None


def test_callers_can_teach_types(make):
    """A type that the redactor does not know is redacted by what the caller gave for it."""

    class Box:
        def __init__(self, inside):
            self.inside = inside

    redaction = make(rebuild={Box: lambda box, walk: Box(walk(box.inside))}).begin()

    assert redaction.value(Box(["x", MAIL])).inside != ["x", MAIL]


def test_cycles_are_refused(redaction):
    """A value that holds itself ends in an error, not in a hang."""
    value = {"a": []}
    value["a"].append(value)

    with pytest.raises(RedactionError, match="holds itself"):
        redaction.value(value)


def test_the_same_value_twice_is_no_cycle(redaction):
    """Sharing is not holding oneself."""
    shared = [MAIL]

    assert MAIL not in str(redaction.value([shared, shared]))


def test_depth_is_bounded(redaction):
    """Sixty-odd levels pass, a thousand are refused."""
    deep = shallow = MAIL
    for level in range(1_000):
        deep = [deep]
        shallow = [shallow] if level < 60 else shallow

    assert MAIL not in str(redaction.value(shallow))
    with pytest.raises(RedactionError, match="deeper"):
        redaction.value(deep)


def test_keys_that_become_one_are_refused(redaction):
    """Losing an entry in silence is no redaction."""
    with pytest.raises(RedactionError, match="became one"):
        redaction.value({"Ada@example.com": 1, "ada@example.com": 2})


def lying(kind):
    """Return a subclass of *kind* whose methods say that it is harmless, equal and empty."""

    def harmless(_self, *_args):
        return kind(b"x") if kind in {bytes, bytearray} else kind("x") if kind is str else kind()

    said = {
        "__eq__": lambda _self, _other: True,
        "__ne__": lambda _self, _other: False,
        "__hash__": kind.__hash__,
        "__len__": lambda _self: 0,
        "__bool__": lambda _self: False,
        "__contains__": lambda _self, _item: False,
        "__repr__": lambda _self: "x",
        "__str__": lambda _self: "x",
        "__iter__": lambda _self: iter(()),
        "__getitem__": harmless,
        "__setitem__": lambda _self, _key, _item: None,
        **dict.fromkeys(("encode", "decode", "lower", "strip", "split", "copy"), harmless),
        **dict.fromkeys(("clear", "update", "pop", "extend"), lambda _self, *_args: None),
        **dict.fromkeys(("items", "keys", "values"), lambda _self: ()),
        **dict.fromkeys(("isascii", "isprintable", "isspace"), lambda _self: True),
        "__copy__": lambda self: self,
    }
    return type(f"Lying{kind.__name__.title()}", (kind,), said)


LIARS = {
    "str": lying(str)(f"mail {MAIL}"),
    "one id": lying(str)(MAIL),
    "bytes": lying(bytes)(MAIL.encode()),
    "bytearray": lying(bytearray)(MAIL.encode()),
    "list": lying(list)([MAIL]),
    "dict": lying(dict)({"who": MAIL}),
    "key": {lying(str)(MAIL): 1},
    "tuple": lying(tuple)([MAIL]),
    "enum": enum.Enum("Kind", {"who": lying(str)(MAIL)})["who"],
}


def held(value):
    """Return what is really in *value*, by the methods of its base class."""
    if isinstance(value, enum.Enum):
        return held(value.value)
    for kind in (str, bytes, bytearray):
        if isinstance(value, kind):
            return kind.__repr__(value)
    if isinstance(value, dict):
        return [(held(key), held(item)) for key, item in dict.items(value)]
    if isinstance(value, list | tuple):
        kind = list if isinstance(value, list) else tuple
        return [held(each) for each in kind.__iter__(value)]
    return repr(value)


@pytest.mark.parametrize("nested", [lambda value: value, lambda value: {"a": [value]}])
@pytest.mark.parametrize("liar", LIARS)
def test_what_a_value_says_of_itself_is_not_believed(redaction, liar, nested):
    """By whatever of its methods it is asked."""
    try:
        redacted = redaction.value(nested(LIARS[liar]))
    except RedactionError:
        return

    assert MAIL not in str(held(redacted))


@pytest.mark.parametrize("of", ["text", "label", "identifier"])
def test_a_text_that_lies_is_redacted_as_it_is(redaction, of):
    """Wherever an adapter has one text."""
    redacted = getattr(redaction, of)(LIARS["str"])

    assert (type(redacted), MAIL in redacted) == (str, False)


def test_what_a_text_has_beside_itself_goes(redaction):
    """An attribute is not read by what redacts texts."""

    class Noted(str):
        __slots__ = ("__dict__",)

    noted = Noted("tea")
    noted.by = MAIL

    assert type(redaction.value([noted])[0]) is str
