"""The contract of a tool: its name and schemas as a server listed them, and a hash of all that."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from ..toolkit.type_guards import is_dict
from .changes import (
    Change,
    ChangeKind,
    changes_of_arguments,
    changes_of_results,
    severity_of,
)
from .schemas import Schema, canonical, encoded


class ToolContract(msgspec.Struct, frozen=True, kw_only=True):
    """
    A snapshot of one tool.

    Attributes:
        tool: Its name.
        version_hash: SHA-256 of schemas and description, in hexadecimal; the same for schemas that
            differ in the order of keys or in white space.
        captured_at: When, in ISO 8601, UTC.
        parameters: Its input schema.
        output: Its output schema. None: it declares none.
        description: For a model, white space made even.
        version: The version that the server gives it, if it does.
        hints: What the server says of it: ``readOnlyHint``, ``destructiveHint``.
    """

    tool: str
    version_hash: str
    captured_at: str
    parameters: Schema
    output: Schema | None = None
    description: str = ""
    version: str | None = None
    hints: Mapping[str, bool] = {}

    @classmethod
    def of(cls, listed: Any) -> ToolContract:
        """Return the contract of a tool as ``tools/list`` answers it."""
        tool: dict[str, Any] = listed.model_dump(by_alias=True, mode="json", exclude_none=True)
        parameters, output = tool["inputSchema"], tool.get("outputSchema")
        description = " ".join(str(tool.get("description", "")).split())
        hints = cast("dict[str, Any]", tool.get("annotations") or {})
        said = canonical({"parameters": parameters, "output": output, "description": description})
        return cls(
            tool=tool["name"],
            version_hash=hashlib.sha256(encoded(said).encode()).hexdigest(),
            captured_at=datetime.now(UTC).isoformat(timespec="seconds"),
            parameters=parameters,
            output=output,
            description=description,
            version=_version(tool.get("_meta")),
            hints={name: each for name, each in hints.items() if isinstance(each, bool)},
        )


def changes_between(old: ToolContract | None, new: ToolContract | None) -> list[Change]:
    """Return what has changed of one tool, the gravest first. None: it is not there."""
    if old is None or new is None:
        kind = ChangeKind.TOOL_ADDED if old is None else ChangeKind.TOOL_REMOVED
        return [] if old is new else [Change(kind=kind, severity=severity_of(kind))]
    if old.version_hash == new.version_hash:
        return []
    found = [
        *changes_of_arguments(old.parameters, new.parameters),
        *changes_of_results(old.output, new.output),
    ]
    if old.description != new.description:
        kind = ChangeKind.DESCRIPTION_CHANGED
        found.append(Change(kind=kind, severity=severity_of(kind)))
    return sorted(found, key=lambda each: -each.severity)


def _version(meta: Any) -> str | None:
    said = meta.get("fastmcp") if is_dict(meta) else None
    return str(said["version"]) if is_dict(said) and "version" in said else None
