"""Canonical JSON by the letter of RFC 8785, slowly: what sealed headers are compared with."""

from __future__ import annotations

import json
from typing import Any


def canonical(value: Any) -> bytes:
    """Return *value* as canonical JSON: strings, whole numbers, booleans, null, lists, dicts."""
    return _text(value).encode()


def _text(value: Any) -> str:
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be"))
        return "{" + ",".join(f"{_text(key)}:{_text(each)}" for key, each in items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    if isinstance(value, float):
        raise TypeError("a sealed header holds no fractions")
    return json.dumps(value, ensure_ascii=False)
