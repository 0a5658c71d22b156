"""Sentences about values that a schema does not accept: names and types, never a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ...memory.errors import MnemoscopeError
from .changes import Change, ChangeKind
from .schemas import Schema, faults_of, is_of_type

_NAME: Final = re.compile(r"[A-Za-z_][\w-]{0,63}")


class ToolBlockedError(MnemoscopeError):
    """
    A call of a tool is not made, or its answer is not handed on.

    Its message is for the model that made the call: names of parameters are in it, no values.

    Attributes:
        tool: The tool.
        reason: ``drift``, ``arguments``, ``result``, ``disabled`` or ``unknown``.
        may_retry: Whether another call, with other arguments, may be made.
    """

    def __init__(self, tool: str, reason: str, message: str, *, may_retry: bool = False) -> None:
        super().__init__(message)
        self.tool, self.reason, self.may_retry = tool, reason, may_retry


def drift_sentence(change: Change) -> str:
    """Return what a breaking change is, for a model."""
    if change.kind is ChangeKind.LIKELY_RENAME:
        return f"expected parameter '{change.path}', found '{change.now}'"
    return str(change)


def mismatch(schema: Schema, value: Any) -> str | None:
    """Return a sentence about the first thing in *value* that *schema* refuses. None: nothing."""
    try:
        fault: Any = next(faults_of(value, schema), None)
    except ValueError as exc:
        return str(exc)
    if fault is None:
        return None
    path = ".".join(map(str, getattr(fault, "absolute_path", ())))
    match getattr(fault, "validator", None):
        case "required":
            return _missing(fault, path)
        case "additionalProperties":
            return f"unexpected parameter {_quoted(_unknown(fault))}"
        case "type":
            expected = fault.validator_value
            kinds = expected if isinstance(expected, str) else " or ".join(expected)
            return f"'{path}': expected {kinds}, found {_kind(fault.instance)}"
        case rule:
            return f"'{path}': not as its {rule or 'schema'} demands"


def _missing(fault: Any, path: str) -> str:
    lacking = [each for each in fault.validator_value if each not in fault.instance]
    unknown = _unknown(fault)
    names = _quoted(f"{path}.{each}" if path else each for each in lacking)
    return f"expected parameter {names}, found {_quoted(unknown) if unknown else 'none'}"


def _unknown(fault: Any) -> list[str]:
    known: Mapping[str, Any] = fault.schema.get("properties", {})
    unknown = sorted(str(each) for each in fault.instance if each not in known)
    # Names that a model made up: what is no name at all may be somebody's.
    return [each if _NAME.fullmatch(each) else "another" for each in unknown]


def _quoted(names: Any) -> str:
    return ", ".join(f"'{each}'" for each in names)


def _kind(value: Any) -> str:
    kinds = ("boolean", "object", "array", "string", "null")
    return next((each for each in kinds if is_of_type(value, each)), "number")
