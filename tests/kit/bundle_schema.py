"""The JSON Schema of exports that is in the package, applied to a document."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import pytest


@cache
def schema() -> dict[str, Any]:
    """Return it."""
    found: dict[str, Any] = json.loads(
        (files("mnemoscope.audit.bundle") / "bundle.schema.json").read_text(encoding="utf-8")
    )
    return found


def wrong_by(name: str) -> Callable[[Any], list[str]]:
    """Return what tells where a document is not what the definition *name* says, and why."""
    jsonschema = pytest.importorskip("jsonschema", reason="dependency group grafana")
    whole = {**schema(), "$ref": f"#/$defs/{name}"}
    validator = jsonschema.Draft202012Validator(whole)
    return lambda document: [
        f"{each.json_path}: {each.validator}" for each in validator.iter_errors(document)
    ]
