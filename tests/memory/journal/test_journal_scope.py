"""The journal of a scope: set by a name, seen in the metrics, left behind at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.langgraph.store.adapter import ADAPTER
from mnemoscope.adapters.toolkit.wrapping import guard_client
from mnemoscope.memory import ConfigurationError, Mnemoscope, load_settings
from mnemoscope.memory.api import Database, Sample
from mnemoscope.memory.health.live_metrics import LiveMetrics
from mnemoscope.memory.journal.journal_file import JournalFile
from mnemoscope.memory.testing import breaking, scope_for_tests
from mnemoscope.telemetry.event.event import Journalled
from tests.kit.patience import GIVE_UP_S


class Plain(InMemoryStore):
    """With attributes of its own, so that it can be broken."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "journal"


def guarded(scope: Mnemoscope, bare: Any, database: Database | None = None) -> Any:
    """Return *bare* behind a guard of *scope*'s that takes it for *database*, or for itself."""

    def bind(client: Any, services: Any, **options: Any) -> Any:
        binding = ADAPTER.bind(client, services, **options)
        return replace(binding, database=database or Database.in_memory(client))

    assert scope._parts is not None
    return guard_client(bare, replace(ADAPTER, bind=bind), scope._parts.services)


def samples_of(scope: Mnemoscope) -> Iterator[Sample]:
    """Return what a scrape of Prometheus shows of *scope*."""
    parts = scope._parts
    assert parts is not None
    others = [each.samples for each in parts.features if each.samples is not None]
    return LiveMetrics(parts.guards, others=others).read()


def figures(scope: Mnemoscope) -> dict[tuple[str, ...], float]:
    assert scope._parts is not None
    return {(each.name, *each.labels.values()): each.value for each in samples_of(scope)}


def test_a_scope_writes_what_it_could_not_when_the_store_is_back(path, eventually):
    """Without anybody calling it again."""
    bare = Plain()
    with scope_for_tests(journal=path) as (scope, sink):
        store = guarded(scope, bare)
        with breaking(store, "put", ConnectionError):
            store.put(("a",), "k", {"v": 1})
        there = eventually(lambda: bare.get(("a",), "k") is not None)
        empty = eventually(
            lambda: figures(scope)["mnemoscope_journal_waiting", "langgraph.store"] == 0
        )
        told = eventually(lambda: scope.flush(GIVE_UP_S) and len(sink.events) > 1)

        assert (there, empty, told) == (True, True, True)
        assert [each.journal for each in sink.events] == [Journalled.APPENDED, Journalled.REPLAYED]


def test_closing_leaves_what_waits_to_the_next_scope(path, eventually):
    """It is made again as soon as that one is used."""
    bare = Plain()
    with scope_for_tests(journal=path) as (scope, _sink):
        store = guarded(scope, bare)
        with breaking(store, "put", ConnectionError):
            store.put(("a",), "k", {"v": 1})
            scope.close()
    with scope_for_tests(journal=path) as (scope, sink):
        guarded(scope, bare).get(("a",), "other")
        told = eventually(lambda: scope.flush(GIVE_UP_S) and len(sink.events) > 1)

        assert told
        assert bare.get(("a",), "k").value == {"v": 1}
        assert Journalled.REPLAYED in {each.journal for each in sink.events}


def test_a_scope_tells_how_much_waits_and_for_how_long(path):
    """For alerts: before the journal is full, and when it cannot be written."""
    with scope_for_tests(journal=path, journal_max_bytes=100_000) as (scope, _sink):
        store = guarded(scope, Plain())
        before = figures(scope)
        with breaking(store, "put", ConnectionError):
            store.put(("a",), "k", {"v": "tea " * 3_000})
            scope._parts.guards.replayer.close(5)
            after = figures(scope)

    waiting = ("mnemoscope_journal_waiting", "langgraph.store")
    assert (before[waiting], after[waiting]) == (0, 1)
    assert after["mnemoscope_journal_bytes",] > before["mnemoscope_journal_bytes",]
    assert after["mnemoscope_journal_limit_bytes",] == 100_000
    assert (
        before["mnemoscope_journal_oldest_seconds",]
        == 0
        < after["mnemoscope_journal_oldest_seconds",]
    )
    assert after["mnemoscope_journal_open",] == 1
    assert after["mnemoscope_journal_parked", "langgraph.store"] == 0


def test_two_scopes_that_share_a_journal_tell_the_same_of_it(path):
    """It is not added up: what waits would be told twice."""
    with scope_for_tests(journal=path) as (one, _), scope_for_tests(journal=path) as (two, _):
        bare = Plain()
        store = guarded(one, bare)
        guarded(two, bare)
        with breaking(store, "put", ConnectionError):
            store.put(("a",), "k", {"v": 1})
            for each in (one, two):
                each._parts.guards.replayer.close(5)
            told = [
                sample
                for each in (one, two)
                for sample in samples_of(each)
                if sample.name.startswith("mnemoscope_journal_")
            ]

    waiting = [each.value for each in told if each.name == "mnemoscope_journal_waiting"]
    assert waiting == [1, 1]
    assert {each.merge for each in told} == {"max"}


def test_without_a_setting_there_is_no_journal(tmp_path):
    """And no figures of one."""
    with scope_for_tests() as (scope, _sink):
        names = {name for name, *_ in figures(scope)}

    assert not any(name.startswith("mnemoscope_journal") for name in names)
    assert list(tmp_path.iterdir()) == []


def test_the_environment_names_the_journal(path, monkeypatch):
    """As every other setting."""
    monkeypatch.setenv("MNEMOSCOPE_JOURNAL", str(path))
    monkeypatch.setenv("MNEMOSCOPE_JOURNAL_MAX_BYTES", "65536")

    settings = load_settings()

    assert (settings.journal, settings.journal_max_bytes) == (path, 65_536)


def test_a_journal_too_small_for_a_write_is_refused(path, monkeypatch):
    """The file itself takes some of the room."""
    monkeypatch.setenv("MNEMOSCOPE_JOURNAL_MAX_BYTES", "65535")

    with pytest.raises(ConfigurationError, match="MNEMOSCOPE_JOURNAL_MAX_BYTES"):
        load_settings()


@pytest.mark.parametrize("mistake", ["a folder", "below a file"])
def test_a_path_that_can_never_be_a_journal_is_refused_at_once(tmp_path, mistake):
    """By name, as the scope is made."""
    path = tmp_path / "here"
    if mistake == "a folder":
        path.mkdir()
    else:
        path.touch()
        path /= "journal"

    with pytest.raises(ConfigurationError, match="here"), scope_for_tests(journal=path):
        pass


def test_a_full_disk_keeps_nobody_from_starting(path, monkeypatch, caplog):
    """The journal is tried again; meanwhile writes are lost and counted, which is said at once."""

    def full(_file: JournalFile) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(JournalFile, "open", full)
    with scope_for_tests(journal=path) as (scope, sink):
        (said,) = (each for each in caplog.messages if "MNEMOSCOPE_JOURNAL" in each)
        store = guarded(scope, Plain())
        with breaking(store, "put", ConnectionError):
            store.put(("a",), "k", {"v": 1})
        scope.flush(GIVE_UP_S)

        assert str(path) in said
        assert "no space left on device" in said
        assert "are lost" in said
        assert [each.journal for each in sink.events] == [Journalled.LOST]
        assert scope._parts.faults.counts["journal.open"] > 0


def test_a_disabled_scope_makes_no_file(path):
    """Nothing at all happens."""
    with scope_for_tests(journal=path, disabled=True):
        pass

    assert not path.parent.exists()
