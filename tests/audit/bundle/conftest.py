"""A log, and what makes a bundle of it."""

from __future__ import annotations

import json
import zipfile
from typing import Any

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.bundle.contract import Request
from mnemoscope.audit.bundle.notice import ART_15, CONTROLLER, Notice
from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.bundle.writing import write_bundle
from mnemoscope.memory.api import SubjectRecord

ADA = "ada@example.com"
NOTICE = Notice(
    controller={name: f"the {name}" for name in CONTROLLER},
    art15={name: f"the {name}" for name in ART_15},
)
"""An operator who states everything."""


def a_record(name, content="likes tea", *, kind="memory"):
    """Return a record that a store holds."""
    moment = "2026-11-01T10:00:00+00:00"
    return SubjectRecord(
        kind=kind, id=name, collection="facts", content=content, created=moment, updated=moment
    )


class Store:
    """A store that holds some things, and may fail on the way."""

    unavailable = None
    title = "Facts about you"

    def __init__(self, name, *things, fails: Exception | None = None):
        self.name = self.store = name
        self._things, self._fails = things, fails

    def records(self):
        yield from self._things
        if self._fails:
            raise self._fails


class Read:
    """A bundle that was read again."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as archive:
            self.files: dict[str, bytes] = {name: archive.read(name) for name in archive.namelist()}

    def json(self, name) -> Any:
        return json.loads(self.files[name])

    def lines(self, name) -> list[Any]:
        return [json.loads(line) for line in self.files[name].splitlines()]

    def text(self, name) -> str:
        return self.files[name].decode()

    @property
    def page(self) -> str:
        return self.files["README.html"].decode()


@pytest.fixture
def stated():
    """Return what an operator states who states everything."""
    return NOTICE


@pytest.fixture
def log(tmp_path, subject_keys):
    log = AuditLog(tmp_path / "audit.db", subject_keys)
    yield log
    log.close()


@pytest.fixture
def bundled(log, tmp_path):
    """Return what writes a bundle about Ada, or whom it is told."""
    path = tmp_path / "out" / "export.zip"
    path.parent.mkdir()

    def bundled(*stores, customer=ADA, tenant="acme", **request):
        asked = Request(
            **{
                "request_id": "20261101-0a0b0c0d",
                "generated_us": 1_800_000_000_000_000,
                "version": "0.1",
                "notice": NOTICE,
                **request,
            }
        )
        with source(log, customer, tenant) as found:
            return write_bundle(
                path,
                asked,
                found.evidence,
                history=found.history,
                subject=found.subject,
                stores=stores,
            )

    return bundled


@pytest.fixture
def read(bundled):
    """Return what writes a bundle, and reads it again."""

    def read(*stores, **options):
        return Read(bundled(*stores, **options).path)

    return read


@pytest.fixture
def read_at():
    """Return what reads the bundle at a path."""
    return Read


@pytest.fixture
def things():
    """Return what makes stores and records in them."""
    return Store, a_record
