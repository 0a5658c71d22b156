"""State of every type that LangGraph's serializer stores: redacted, or refused by its name."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import pathlib
import re
import types
import uuid
from collections import ChainMap, Counter, OrderedDict, UserDict, defaultdict, deque
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import attrs
import numpy as np
import pytest
from langchain_core.documents import Document
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.store.base import GetOp, Item
from langgraph.types import Overwrite, PregelTask, StateSnapshot, TimeoutPolicy
from pydantic import BaseModel, PrivateAttr, SecretStr
from pydantic.v1 import BaseModel as FirstModel

from mnemoscope.adapters.langgraph.checkpoint.adapter import ADAPTER
from mnemoscope.memory import RedactionError
from tests.kit.bench import wrapping

guarded = wrapping(ADAPTER)
MAIL = "ada@example.com"
CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"}}

pytestmark = pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")


class Pair(NamedTuple):
    id: str
    index: int


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    id: str


@dataclasses.dataclass
class Noting:
    id: str

    def __post_init__(self) -> None:
        self.noted = self.id


@attrs.define
class Attrs:
    id: str


class Second(BaseModel):
    id: str
    _held: str = PrivateAttr(default=MAIL)


class First(FirstModel):
    id: str


class Customer(enum.Enum):
    ADA = MAIL


class Wrapping(BaseException):
    def __init__(self, told: str) -> None:
        super().__init__("failed")
        self.told = told

    def __repr__(self) -> str:
        return self.told


class Slotted:
    __slots__ = ("__mail", "_id")

    def __init__(self, mail: str) -> None:
        self.__mail = self._id = mail


class Below(Slotted):
    __slots__ = ("more",)


class Listed(list[Any]):
    pass


class Kept(dict[str, Any]):
    pass


class Zone(dt.tzinfo):
    def utcoffset(self, _when: Any) -> dt.timedelta:
        return dt.timedelta(0)

    def tzname(self, _when: Any) -> str:
        return MAIL


def with_attribute(value: Any) -> Any:
    value.told = MAIL
    return value


NOW = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
SNAPSHOT: dict[str, Any] = {
    "values": {"id": MAIL},
    "next": (MAIL,),
    "config": {"configurable": {"note": MAIL}},
    "metadata": {"note": MAIL},
    "created_at": None,
    "parent_config": None,
    "tasks": (PregelTask("1", MAIL, (), error=ValueError(MAIL), result={"id": MAIL}),),
    "interrupts": (),
}

TEXTS: dict[str, Any] = {
    "str": MAIL,
    "bytes": MAIL.encode(),
    "bytes, not UTF-8": b"\xff\xfe\x00" + MAIL.encode() + b"\xff",
    "UTF-16": MAIL.encode("utf-16-le"),
    "bytearray": bytearray(MAIL.encode()),
    "memoryview": memoryview(MAIL.encode()),
    "list": [MAIL],
    "tuple": (MAIL,),
    "set": {MAIL},
    "frozenset": frozenset({MAIL}),
    "deque": deque([MAIL]),
    "dict": {"id": MAIL},
    "dict key": {MAIL: 1},
    "OrderedDict": OrderedDict(id=MAIL),
    "defaultdict": defaultdict(list, id=MAIL),
    "Counter": Counter({MAIL: 2}),
    "ChainMap": ChainMap({"id": MAIL}),
    "UserDict": UserDict(id=MAIL),
    "mappingproxy": types.MappingProxyType({"id": MAIL}),
    "SimpleNamespace": types.SimpleNamespace(id=MAIL),
    "list subclass": with_attribute(Listed([MAIL])),
    "dict subclass": with_attribute(Kept(id=MAIL)),
    "namedtuple": Pair(MAIL, 1),
    "dataclass": Frozen(MAIL),
    "dataclass, attribute": Noting(MAIL),
    "attrs": Attrs(MAIL),
    "pydantic": Second(id=MAIL),
    "pydantic v1": First(id=MAIL),
    "SecretStr": SecretStr(MAIL),
    "enum": Customer.ADA,
    "Path": pathlib.Path("/home") / MAIL,
    "pattern": re.compile(re.escape(MAIL)),
    "pattern of bytes": re.compile(re.escape(MAIL).encode()),
    "IPv4Address": ipaddress.ip_address("203.0.113.77"),
    "IPv4Interface": ipaddress.ip_interface("203.0.113.77/24"),
    "IPv4Network": ipaddress.ip_network("203.0.113.77/32"),
    "IPv6Address": ipaddress.ip_address("2001:db8::203:113:77"),
    "timezone": dt.timezone(dt.timedelta(0), MAIL),
    "time": dt.time(1, tzinfo=dt.timezone(dt.timedelta(0), MAIL)),
    "tzinfo": Zone(),
    "slice": slice(MAIL),
    "numpy str": np.str_(MAIL),
    "numpy strings": np.array([MAIL]),
    "numpy bytes": np.array([MAIL.encode()]),
    "numpy objects": np.array([MAIL], dtype=object),
    "numpy uint8": np.frombuffer(MAIL.encode(), dtype=np.uint8),
    "numpy record": np.array([(MAIL,)], dtype=[("id", "U40")]),
    "exception": ValueError(MAIL),
    "exception, attribute": Wrapping(MAIL),
    "exception group": ExceptionGroup("x", [ValueError(MAIL)]),
    "OSError": FileNotFoundError(2, "no", MAIL),
    "Document": Document(MAIL, id=MAIL, metadata={"id": MAIL}),
    "Item": Item(value={"id": MAIL}, key=MAIL, namespace=(MAIL,), created_at=NOW, updated_at=NOW),
    "GetOp": GetOp((MAIL,), MAIL),
    "Overwrite": Overwrite({"id": MAIL}),
    "DeltaSnapshot": _DeltaSnapshot({"id": MAIL}),
    "StateSnapshot": StateSnapshot(**SNAPSHOT),
    "object": Slotted(MAIL),
    "object, below": Below(MAIL),
}
"""By name, values that hold an address, in a way that some serializer would write."""

NO_TEXT: dict[str, Any] = {
    "None": None,
    "bool": True,
    "int": 10**15,
    "float": 1.5,
    "complex": 1j,
    "Decimal": decimal.Decimal("1.5"),
    "Fraction": Fraction(1, 3),
    "range": range(3),
    "slice": slice(1, 3),
    "bytes": bytes(range(256)),
    "datetime": NOW,
    "date": NOW.date(),
    "time": dt.time(1, tzinfo=dt.UTC),
    "timedelta": dt.timedelta(1),
    "timezone": dt.timezone(dt.timedelta(hours=2)),
    "ZoneInfo": ZoneInfo("Europe/Berlin"),
    "UUID": uuid.UUID(int=1),
    "enum": enum.Enum("Colour", {"RED": "red"}).RED,
    "pattern": re.compile(r"\d+(\.\d+)?"),
    "Path": pathlib.PurePosixPath("/srv/data"),
    "numpy scalar": np.int64(3),
    "numpy float": np.float32(0.5),
    "numpy array": np.ones((2, 2)),
    "numpy image": np.zeros((4, 4), dtype=np.uint8),
    "TimeoutPolicy": TimeoutPolicy(),
}


@pytest.fixture
def make_saver(bench):
    """Return a factory of guarded savers and of what they store, as bytes."""

    def make(*, pickle_fallback: bool) -> tuple[Any, Any]:
        bare = InMemorySaver(serde=JsonPlusSerializer(pickle_fallback=pickle_fallback))
        return guarded(bare, bench), bare

    return make


def stored(bare: InMemorySaver) -> bytes:
    """Return all that a saver has, as bytes."""
    return repr((dict(bare.blobs), dict(bare.writes), dict(bare.storage))).encode()


def put(saver: Any, value: Any) -> None:
    """Store *value* in a channel and as a write."""
    checkpoint = empty_checkpoint() | {"channel_values": {"held": value}}
    saver.put(CONFIG, checkpoint, {"source": "loop", "step": 1, "parents": {}}, {"held": "1"})
    saver.put_writes(CONFIG, [("held", value)], "task")


def raised_by(saver: Any, value: Any) -> Exception | None:
    """Store *value* and return the error, if it was not stored."""
    try:
        put(saver, value)
    except Exception as exc:  # noqa: BLE001 - the test says which are right
        return exc
    return None


@pytest.mark.parametrize("pickle_fallback", [False, True])
@pytest.mark.parametrize("name", TEXTS)
def test_text_of_any_type_is_redacted_or_refused(name, pickle_fallback, make_saver):
    """It is stored without what it says, or the error names the type that could not be redacted."""
    saver, bare = make_saver(pickle_fallback=pickle_fallback)
    refusal = raised_by(saver, TEXTS[name])
    if isinstance(refusal, RedactionError):
        told = str(refusal)
        assert refusal.kind
        assert refusal.kind in told
        assert MAIL not in told
    elif refusal is not None:  # the serializer's own: it has no form for the type
        bare_one = make_saver(pickle_fallback=pickle_fallback)[1]
        assert type(raised_by(bare_one, TEXTS[name])) is type(refusal)
    held = stored(bare)

    assert MAIL.encode() not in held
    assert MAIL.encode("utf-16-le") not in held
    assert b"203.0.113.77" not in held
    assert repr(MAIL.replace(".", r"\.")).encode()[1:-1] not in held


@pytest.mark.parametrize("name", NO_TEXT)
def test_what_holds_no_text_is_stored_as_it_is(name, make_saver):
    """The guarded saver has the very bytes that the bare one has."""
    saver, bare = make_saver(pickle_fallback=True)
    put(saver, NO_TEXT[name])
    other = make_saver(pickle_fallback=True)[1]
    put(other, NO_TEXT[name])

    assert bare.blobs == other.blobs
    assert len(bare.writes) == 1
    assert list(bare.writes.values()) == list(other.writes.values())


def test_every_type_of_the_serializer_is_tried():
    """A type that a later version stores without being asked is tried here, or named."""
    from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES

    def names(value: Any) -> set[str]:
        return {each.__name__ for each in type(value).__mro__}

    tried = {name for each in (*TEXTS.values(), *NO_TEXT.values()) for name in names(each)}
    messages = {name for module, name in SAFE_MSGPACK_TYPES if "messages" in module}
    elsewhere = messages | {"Send", "Interrupt", "Command"}  # in tests/privacy/test_structure.py
    same = {"compile": "Pattern", "IPv6Interface": "IPv6Address", "IPv6Network": "IPv4Network"}
    same |= {"PregelTask": "StateSnapshot", "WindowsPath": "PosixPath"}

    stored_by_it = {same.get(name, name) for _module, name in SAFE_MSGPACK_TYPES}
    assert stored_by_it - tried - elsewhere == set()
