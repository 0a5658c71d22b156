"""Runs of the demo, made once and looked at by many tests."""

from __future__ import annotations

import gc
import io
import json
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from mnemoscope.demo import DemoOptions, run_demo
from tests.kit.patience import GIVE_UP_S

SHORT = {
    "speaker_a": "Ada Novak",
    "speaker_b": "Bob Lind",
    "session_1_date_time": "noon",
    "session_1": [
        {"speaker": "Ada Novak", "dia_id": "D1:1", "text": "I like green tea."},
        {"speaker": "Bob Lind", "dia_id": "D1:2", "text": "I rise late. When is breakfast?"},
        {"speaker": "Ada Novak", "dia_id": "D1:3", "text": "Do you remember what I drink?"},
        {"speaker": "Bob Lind", "dia_id": "D1:4", "text": "I love the heat. And is there a sauna?"},
    ],
    "session_2_date_time": "evening",
    "session_2": [
        {"speaker": "Ada Novak", "dia_id": "D2:1", "text": "I have an old dog. May I bring it?"},
        {
            "speaker": "Bob Lind",
            "dia_id": "D2:2",
            "text": "I drive an electric car. Where do I charge it?",
        },
        {"speaker": "Ada Novak", "dia_id": "D2:3", "text": "What tea was it that I like?"},
        {"speaker": "Bob Lind", "dia_id": "D2:4", "text": "I have no cash. Can I pay by card?"},
    ],
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """
    One run of the demo.

    Attributes:
        code: Its exit code.
        said: What it printed.
        out: The folder that it kept, if it was asked to.
        metrics: What it added to the metrics text, by name and labels.
        threads: Threads that it left.
    """

    code: int
    said: str
    out: Path | None
    metrics: Counter[tuple[str, frozenset[tuple[str, str]]]]
    threads: list[threading.Thread]

    @property
    def figures(self) -> dict[str, Any]:
        return json.loads(self.said)

    def lines(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / name).read_bytes().splitlines()]

    def rows(self, query: str) -> list[Any]:
        connection = sqlite3.connect(self.out / "audit.db")
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()


def _counters() -> Counter[tuple[str, frozenset[tuple[str, str]]]]:
    families = text_string_to_metric_families(generate_latest().decode())
    return Counter(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in families
            for sample in family.samples
            if sample.name.startswith("mnemoscope_")
        }
    )


def _run(width: int = 80, **options: Any) -> Run:
    screen, counted, threads = io.StringIO(), _counters(), set(threading.enumerate())
    code = run_demo(DemoOptions(**options), Console(file=screen, width=width))
    added = _counters()
    added.subtract(counted)
    return Run(
        code=code,
        said=screen.getvalue(),
        out=options.get("out"),
        metrics=added,
        threads=_living(set(threading.enumerate()) - threads),
    )


def _living(threads: set[threading.Thread]) -> list[threading.Thread]:
    gc.collect()  # the scope's idle workers go with the scope
    for thread in threads:
        thread.join(GIVE_UP_S)
    return [thread for thread in threads if thread.is_alive()]


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Run]:
    """Return a function that runs the demo, with patterns alone: no model to load."""
    monkeypatch.chdir(tmp_path)  # where an export is kept
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    return _run


@pytest.fixture
def short(tmp_path: Path) -> Path:
    """Return a conversation of eight messages."""
    path = tmp_path / "short.json"
    path.write_text(json.dumps(SHORT))
    return path


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one worker run the demo whole, for all tests that look at what it left."""
    for each in items:
        if {"kept", "left"}.intersection(getattr(each, "fixturenames", ())):
            each.add_marker(pytest.mark.xdist_group("whole demo"))


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run the demo as it ships, once, with all that it keeps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "5e" * 32)
        # On a slow machine it takes more than the minute after which the audit trail is signed.
        patch.setattr("mnemoscope.audit.sink.factory.CHECKPOINT_EVERY_S", 1.0)
        return _run(out=tmp_path_factory.mktemp("demo") / "out", json=True)


@pytest.fixture(scope="session")
def left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run the demo to the end at which a customer leaves, once, with all that it keeps."""
    folder = tmp_path_factory.mktemp("left")
    (folder / "short.json").write_text(json.dumps(SHORT))
    asked = {"conversation": folder / "short.json", "export": True, "erase": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_PII_MODEL", "none")
        patch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "5e" * 32)
        yield _run(out=folder / "out", json=True, **asked)
