"""The environment that the demo runs in, put back as it was afterwards."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

COLLECTORS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
TRACING = ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2")


def recorded_sinks() -> tuple[str, ...]:
    """Return the sinks that go to the demo's recorder: those the user has not pointed elsewhere."""
    own = {
        "otlp": any(os.environ.get(name) for name in COLLECTORS),
        "langsmith": any(os.environ.get(name, "").lower() == "true" for name in TRACING),
    }
    return tuple(name for name, is_own in own.items() if not is_own)


def variables(recorder_url: str, folder: Path, recorded: tuple[str, ...]) -> dict[str, str]:
    """Return what to set so that *recorded* sinks reach the recorder and mem0 stays at home."""
    found = {
        "MEM0_TELEMETRY": "False",
        "MEM0_DIR": os.environ.get("MEM0_DIR") or str(folder / "mem0"),
        "NO_PROXY": ",".join(filter(None, (os.environ.get("NO_PROXY"), "127.0.0.1"))),
    }
    if "otlp" in recorded:
        found |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": recorder_url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        }
    if "langsmith" in recorded:
        found |= {
            "LANGSMITH_ENDPOINT": recorder_url,
            "LANGSMITH_API_KEY": "demo",
            "LANGSMITH_PROJECT": "mnemoscope-demo",
        }
    return found


@contextmanager
def environment(wanted: Mapping[str, str]) -> Generator[None]:
    """Set *wanted* variables for the body."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    _forget_cached()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _forget_cached()


def _forget_cached() -> None:
    utils = sys.modules.get("langsmith.utils")
    if utils is not None:  # it reads each variable once
        utils.get_env_var.cache_clear()
        utils.get_tracer_project.cache_clear()


@contextmanager
def quiet() -> Generator[None]:
    """
    Keep the libraries' logging off the screen for the body.

    mem0 logs what it stores at INFO, and wordllama sets up INFO on standard error for the whole
    process as it is imported, unless the root logger has a handler.
    """
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    try:
        yield
    finally:
        root.removeHandler(silent)
