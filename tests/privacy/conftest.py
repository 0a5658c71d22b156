"""Everything that leaves a process that remembers: five real sinks, output, errors, stores."""

from __future__ import annotations

import gc
import inspect
import io
import logging
import os
import traceback
import warnings
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import prometheus_client
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics import exposition

from mnemoscope.memory import Mnemoscope, context
from mnemoscope.memory.errors import MnemoscopeError
from mnemoscope.memory.privacy.detectors.finding import DIRECT
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.memory.settings import load_settings
from mnemoscope.memory.testing import breaking
from mnemoscope.telemetry.event.event import Event
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.otlp.settings import TIMEOUT_S
from tests.kit.canaries import SUBJECT, Case, Opaque, key, leaks, places, text
from tests.kit.patience import GIVE_UP_S, UNHURRIED

ALL = "otlp,prometheus,logs,langsmith,audit"
FOR_WHOM = {
    "tenant": key("tenant"),
    "customer": key("customer"),
    "agent": key("agent"),
    "feature": key("feature"),
    "run": key("run"),
    "purpose": text("purpose"),
    "known": (SUBJECT, "Rosalind Quimby"),
}
"""Somebody's context, all of it planted."""


Held: TypeAlias = Callable[[], bytes]
"""All that a place holds, when it is looked at."""


class Exits:
    """
    A scope with all sinks, and whatever came out of it.

    Attributes:
        scope: Wraps the clients of a test.
        stores: A folder for what they store; all files in it are looked through.
        sent: What went to a store over the wire; a test's fake back end appends to it.
        raised: What callers were given in place of an answer.
    """

    def __init__(
        self, scope: Mnemoscope, folder: Path, sinks: dict[str, Held], others: dict[str, Held]
    ) -> None:
        self.scope = scope
        self.stores = folder / "stores"
        self.stores.mkdir()
        self.sent: list[bytes] = []
        self.raised: list[BaseException] = []
        self._folder = folder
        self._sinks = sinks
        self._others = others
        self._shown: dict[str, set[str]] = {}

    async def each_ending(self, client: Any, case: Case, *given: Any) -> Event | None:
        """
        Make the call of *case*: as it is, with the store failing, and with what nobody can redact.

        Returns:
            The event of the first of them.
        """
        method = getattr(client, case.method)

        def called(**instead: Any) -> Any:
            return _called(method, {**case.given(*given), **instead})

        await self.given(called)
        event = self.event
        with self.broken(client, case.method):
            await self.given(called)
        for name in (each for each, planted in case.given(*given).items() if places(planted)):
            await self.given(partial(called, **{name: Opaque(name)}))
        return event

    async def holds(self, case: Case, *clients: Any, given: tuple[Any, ...] = ()) -> None:
        """Assert that no ending of *case* lets anything out; the first of *clients* answers."""
        events = [await self.each_ending(each, case, *given) for each in clients]

        assert events[0] is not None
        assert events[0].method in {case.method, case.told_as}
        assert case.works in {None, events[0].status.is_normal}
        assert self.leaks() == []

    async def lets_out(
        self, case: Case, *clients: Any, given: tuple[Any, ...] = (), but: Iterable[str] = ()
    ) -> None:
        """Assert, as a control, that each canary of *case* is somewhere to be found."""
        for each in clients:
            await self.each_ending(each, case, *given)

        assert case.planted(*(given or ())) - set(but) <= self.leaked_places()

    async def given(self, call: Callable[[], Any]) -> Any:
        """Make *call*, of either colour, on somebody's behalf, and take its error for an answer."""
        try:
            with context(**FOR_WHOM):
                return await _settled(call())
        except Exception as exc:  # noqa: BLE001 - whatever it is, it is looked at
            self.raised.append(exc)
            return exc

    @contextmanager
    def broken(self, client: Any, method: str) -> Iterator[None]:
        """Have *method* of the store below fail while quoting all it was given."""

        def fail(*args: Any, **given: Any) -> Any:
            self.look()
            drawn = [list(each) if inspect.isgenerator(each) else each for each in given.values()]
            handed = f"{args!r} {given!r} {drawn!r}"
            self.sent.append(handed.encode())
            raise ConnectionError(f"could not {method}: {handed}")

        async def afail(*args: Any, **given: Any) -> Any:
            fail(*args, **given)

        asynchronous = inspect.iscoroutinefunction(getattr(client, method))
        with breaking(client, method, afail if asynchronous else fail):
            yield

    def look(self) -> None:
        """Have every object of ours show itself, as a debugger or a careless log line would."""
        for each in gc.get_objects():
            if _is_ours(type(each).__module__):
                self._shown.setdefault(type(each).__qualname__, set()).add(repr(each))

    @property
    def event(self) -> Event | None:
        """What the caller can ask for after the call."""
        return self.scope.last_outcome()

    def leaks(self) -> list[str]:
        """Flush everything, look everywhere, and return what came out, and where."""
        self._flush()
        self.look()
        found = [
            f"{name}: {leak}"
            for name, held in self._outside().items()
            for leak in leaks(held(), keys=True)
        ]
        return found + [
            f"{name}: {leak}" for name, held in self._inside().items() for leak in leaks(held())
        ]

    def leaked_places(self) -> set[str]:
        """Return the places of all canaries that came out."""
        return {each.rpartition(" ")[2] for each in self.leaks() if ": canary from " in each}

    def sinks(self) -> dict[str, bytes]:
        """Flush everything, and return what each sink holds."""
        self._flush()
        return {name: held() for name, held in self._sinks.items()}

    def close(self) -> None:
        """Write no more. Before a store is closed: SQLite does not survive that in mid-replay."""
        self.scope.close(60)

    def _flush(self) -> None:
        assert self.scope.flush(GIVE_UP_S), self.scope._parts.drain.stats()

    def _outside(self) -> dict[str, Held]:
        """Return what may hold neither canaries nor keys."""
        ours = [each for each in self.raised if isinstance(each, MnemoscopeError)]
        shown = {
            f"repr of {kind}": lambda each=reprs: "\n".join(each).encode("utf-8", "replace")
            for kind, reprs in self._shown.items()
        }
        return (self._sinks | shown) | {
            "our errors": lambda: _told(ours),
            "data folder": lambda: _files(self._folder / "data"),
        }

    def _inside(self) -> dict[str, Held]:
        """Return what may hold keys: stores, and what they and their libraries say."""
        theirs = [each for each in self.raised if not isinstance(each, MnemoscopeError)]
        return self._others | {
            "stores": lambda: _files(self.stores),
            "wire": lambda: b"\n".join(self.sent),
            "their errors": lambda: _told(theirs),
            "journal": lambda: _files(self._folder / "journal"),
            "mem0's folder": lambda: _files(Path(os.environ["MEM0_DIR"])),
        }


def _called(method: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Call *method*, by position where it takes no names."""
    taken = inspect.signature(method).parameters.values()
    nameless = [each.name for each in taken if each.kind is each.POSITIONAL_ONLY]
    named = {name: each for name, each in given.items() if name not in nameless}
    return method(*(given[name] for name in nameless), **named)


async def _settled(result: Any) -> Any:
    """Wait for what is awaitable, and take all that is lazy."""
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, AsyncIterator):
        return [each async for each in result]
    return list(result) if isinstance(result, Iterator) else result


def _is_ours(module: Any) -> bool:
    return isinstance(module, str) and module.startswith("mnemoscope.")


def _files(folder: Path) -> bytes:
    files = (each for each in folder.rglob("*") if each.is_file())
    return b"\n".join(each.name.encode() + b"\n" + each.read_bytes() for each in files)


def _told(errors: list[BaseException]) -> bytes:
    """Return what can be read of errors: themselves, their notes, and all they are chained to."""
    told = [
        part
        for exc in errors
        for part in (str(exc), repr(exc), repr(exc.args), *traceback.format_exception(exc))
    ]
    return "\n".join(told).encode("utf-8", "backslashreplace")


class _Records(logging.Handler):
    """Keeps what the loggers named, or all others, were told."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.ours: list[str] = []
        self.theirs: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        kept = self.ours if record.name.startswith("mnemoscope") else self.theirs
        kept.append(self.format(record))


@pytest.fixture
def records() -> Iterator[_Records]:
    """Return what is logged, from DEBUG up, by whom."""
    handler, root = _Records(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def loguru_lines() -> Iterator[io.StringIO]:
    """Return what is logged through the host's loguru."""
    from loguru import logger

    lines = io.StringIO()
    handler = logger.add(lines, level="TRACE", serialize=True)
    yield lines
    logger.remove(handler)


@pytest.fixture
def warned() -> Iterator[list[warnings.WarningMessage]]:
    """Return the warnings, which here are no errors: somebody might have them logged."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        yield caught


@pytest.fixture
def only_new_objects() -> None:
    """Have `Exits.look` see what is made from now on: a control run leaves objects of its own."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def make_exits(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    otlp_grpc: Any,
    http_receiver: Any,
    langsmith_server: Any,
    records: _Records,
    loguru_lines: io.StringIO,
    warned: list[warnings.WarningMessage],
    capfd: pytest.CaptureFixture[str],
    only_new_objects: None,
) -> Iterator[Callable[..., Exits]]:
    """Return a factory of exits: one for each test, redacting or, as a control, not."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # What is looked at takes most of a processor: neither store nor receiver is to be in a hurry.
    for name, seconds in UNHURRIED.items():
        monkeypatch.setenv(name, seconds)
    monkeypatch.setitem(TIMEOUT_S, "METRICS", GIVE_UP_S)
    # Of this test alone: what a control lets out stays in a registry for as long as the process.
    monkeypatch.setattr(prometheus_client, "REGISTRY", CollectorRegistry())
    made: list[Exits] = []
    output: list[str] = []

    def printed() -> bytes:
        output.extend(capfd.readouterr())
        return "\n".join(output).encode()

    def otlp() -> bytes:
        requests = (*otlp_grpc.trace_requests, *otlp_grpc.metric_requests)
        return b"\n".join(each.SerializeToString() for each in requests)

    def langsmith() -> bytes:
        return b"\n".join(f"{p} {h}".encode() + body for p, h, body in http_receiver.requests)

    def audit() -> bytes:
        return b"\n".join(each.read_bytes() for each in tmp_path.glob("audit.db*"))

    sinks = {
        "otlp": otlp,
        "prometheus": _metrics,
        "logs": (tmp_path / "log.jsonl").read_bytes,
        "langsmith": langsmith,
        "audit": audit,
        "output": printed,
        "warnings": lambda: "\n".join(str(each.message) for each in warned).encode(),
        "our log records": lambda: "\n".join(records.ours).encode(),
        "loguru": lambda: loguru_lines.getvalue().encode(),
    }

    others = {"their log records": lambda: "\n".join(records.theirs).encode()}

    def make(*, redacts: bool = True, **given: Any) -> Exits:
        settings = load_settings(
            **{
                "sinks": ALL,
                "content_sinks": "otlp,logs,langsmith,audit",
                "audit_url": f"sqlite:///{tmp_path / 'audit.db'}",
                "audit_pseudonym_key": "00112233445566778899aabbccddeeff",
                "log_file": tmp_path / "log.jsonl",
                "journal": tmp_path / "journal" / "writes",
                "pii_model": "none",
                "prices": None,
                **given,
            }
        )
        scope = Mnemoscope(settings, redactor=None if redacts else _blind())
        made.append(Exits(scope, tmp_path, sinks, others))
        return made[-1]

    yield make
    for each in made:
        each.scope.close(GIVE_UP_S)
        # Their frames hold the scope, and frozen objects them: each later look would read it too.
        each.raised.clear()


def _blind() -> Any:
    """Return a redactor that keeps everything: what a control run runs with."""
    keys = SubjectKeys(b"sixteen bytes or more")
    return build_redactor(model="none", keys=keys, operators=dict.fromkeys(DIRECT, "keep"))


def _metrics() -> bytes:
    """Return what Prometheus scrapes, in both of its formats."""
    registry = prometheus_client.REGISTRY
    return prometheus_client.generate_latest(registry) + exposition.generate_latest(registry)


@pytest.fixture
def exits(make_exits: Callable[..., Exits]) -> Exits:
    """Return the exits of a scope with the default policy."""
    return make_exits()
