"""The environment variables and logging that the demo sets, and restores afterwards."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mnemoscope.telemetry.langsmith.factory import TRACING

COLLECTORS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
NO_TRACER = {"LANGSMITH_TRACING_V2": "false"}
"""
Switches LangChain's own tracer off, which would send every prompt unredacted.

This name goes before the others of its kind. `tracing_context` would silence our sink as well.
"""


def recorded_sinks() -> tuple[str, ...]:
    """Return the sinks that go to the demo's recorder: those without an address of the user's."""
    own = {
        "otlp": any(os.environ.get(name) for name in COLLECTORS),
        "langsmith": any(os.environ.get(name, "").lower() == "true" for name in TRACING),
    }
    return tuple(name for name, is_own in own.items() if not is_own)


def variables(recorder_url: str, folder: Path, recorded: tuple[str, ...]) -> dict[str, str]:
    """Return the variables that send *recorded* sinks to the recorder and keep mem0 offline."""
    found = {
        **NO_TRACER,
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
    """Set *wanted* variables while the body runs."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    _clear_cache()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _clear_cache()


def _clear_cache() -> None:
    utils = sys.modules.get("langsmith.utils")
    if utils is not None:  # it caches each variable
        utils.get_env_var.cache_clear()
        utils.get_tracer_project.cache_clear()


@contextmanager
def quiet() -> Generator[None]:
    """
    Keep the libraries' logging off the screen while the body runs.

    mem0 logs what it stores at INFO, and importing wordllama sends INFO of the whole process to
    standard error unless the root logger has a handler.
    """
    root, silent = logging.getLogger(), logging.NullHandler()
    root.addHandler(silent)
    try:
        yield
    finally:
        root.removeHandler(silent)
