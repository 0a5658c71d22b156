"""Whether the LangSmith sink is wanted, by the variables that switch LangSmith's tracing on."""

from __future__ import annotations

import pytest
from langsmith import utils

from mnemoscope.memory.api import SinkContext
from mnemoscope.telemetry.event.subject import SubjectKeys
from mnemoscope.telemetry.langsmith.factory import TRACING, build


@pytest.fixture
def unnamed(tmp_path, monkeypatch) -> SinkContext:
    """Return the context of a sink that no setting names, in an empty environment."""
    for name in TRACING:
        monkeypatch.delenv(name, raising=False)
    keys = SubjectKeys(bytes(32))
    return SinkContext(settings={}, data_folder=tmp_path, keys=keys, is_named=False)


@pytest.fixture
def langsmith_traces():
    """Return a function that asks LangSmith itself."""
    utils.get_env_var.cache_clear()
    yield lambda: utils.get_env_var("TRACING_V2", utils.get_env_var("TRACING", "")) == "true"
    utils.get_env_var.cache_clear()


@pytest.mark.parametrize("name", TRACING)
def test_each_variable_that_langsmith_reads_switches_it_on(
    unnamed, langsmith_traces, monkeypatch, name
):
    """All four of them, as LangSmith does."""
    monkeypatch.setenv(name, "true")

    assert langsmith_traces()
    assert build(unnamed) is not None


def test_without_any_there_is_no_sink(unnamed, langsmith_traces, monkeypatch):
    """Nor where it is switched off."""
    assert build(unnamed) is None
    monkeypatch.setenv(TRACING[0], "false")

    assert not langsmith_traces()
    assert build(unnamed) is None
