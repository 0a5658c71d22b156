"""
Latency objectives in YAML, as people keep them.

    default:
      read: {target: 99%, within: 1s}
      write: {target: 99%, within: 10s}
    stores:
      qdrant:
        recall: {target: 99.9%, within: 100ms}
        write: none

`read` stands for recall and resume, `write` for remember, checkpoint and forget; a class by its own
name wins over them. What is not stated is as in `Objectives`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from mnemoscope.telemetry.event.kinds import OperationClass

from .objectives import CLASSES, READ, WRITE, Given, Objective, Objectives, ObjectivesError

if TYPE_CHECKING:
    import yaml

_GROUPS: Final = {"read": READ, "write": WRITE} | {each.value: (each,) for each in CLASSES}
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?) ?(us|µs|ms|s|m)")
_UNITS_S: Final = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}
_SHARE: Final = re.compile(r"(\d+(?:\.\d+)?) ?%")
_LONGEST_NAME: Final = 80


def read_objectives(path: Path) -> Objectives:
    """
    Return the objectives in the YAML file *path*.

    Raises:
        ObjectivesError: It is no YAML, or says something that is not understood.
        OSError: It cannot be read.
    """
    document = _loaded(path.read_text(encoding="utf-8"))
    given = _mapping(document, "the file", {"default", "stores"})
    stores = _mapping(given.get("stores", {}), "stores")
    usual = Objectives().default
    return Objectives(
        default={**usual, **dict(_classes(given.get("default", {}), "default"))},
        stores={
            _store(name): dict(_classes(each, f"stores.{name}")) for name, each in stores.items()
        },
    )


def _loaded(text: str) -> Any:
    try:
        import yaml
    except ImportError:
        raise ObjectivesError(
            "reading objectives needs PyYAML: pip install 'mnemoscope[rules]'"
        ) from None
    try:
        return yaml.load(text, _strict_loader())  # noqa: S506 - a safe loader, made stricter
    except yaml.MarkedYAMLError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else 1
        raise ObjectivesError(f"line {line} is not understood: {exc.problem}") from None
    except yaml.YAMLError:
        raise ObjectivesError("this is no YAML: a character is not allowed in it") from None


def _strict_loader() -> type[yaml.SafeLoader]:
    """Return a loader that takes no key twice, of which YAML's own would forget the first."""
    import yaml

    class Strict(yaml.SafeLoader):
        def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's signature
            keys = [key.value for key, _value in node.value if isinstance(key, yaml.ScalarNode)]
            if len(keys) != len(set(keys)):
                raise yaml.constructor.ConstructorError(
                    None, None, "a name is there twice", node.start_mark
                )
            return super().construct_mapping(node, deep)

    return Strict


def _mapping(found: Any, where: str, known: set[str] | None = None) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise ObjectivesError(f"{where} must have lines such as name: value")
    for name in cast("dict[object, Any]", found):
        if not isinstance(name, str) or (known is not None and name not in known):
            expected = "text" if known is None else " or ".join(sorted(known))
            raise ObjectivesError(f"{where}: a name is not known; it must be {expected}")
    return cast("dict[str, Any]", found)


def _store(name: str) -> str:
    if not 0 < len(name) <= _LONGEST_NAME:
        raise ObjectivesError("the name of a store must be 1 to 80 characters")
    return name


def _classes(found: Any, where: str) -> Iterator[tuple[OperationClass, Objective | None]]:
    """Yield the objective of each class: first those of the groups, which single ones replace."""
    given = _mapping(found, where, set(_GROUPS))
    for name in sorted(given, key=lambda name: len(_GROUPS[name]), reverse=True):
        objective = _objective(given[name], f"{where}.{name}")
        yield from ((each, objective) for each in _GROUPS[name])


def _objective(found: Any, where: str) -> Objective | None:
    if found == "none":
        return None
    given = _mapping(found, where, {"target", "within"})
    if len(given) != 2:  # noqa: PLR2004 - target and within
        raise ObjectivesError(f"{where} must be none, or state both target and within")
    target = _SHARE.fullmatch(str(given["target"]))
    within = _TIME.fullmatch(str(given["within"]))
    if target is None:
        raise ObjectivesError(f"{where}.target must be a share such as 99% or 99.9%")
    if within is None:
        raise ObjectivesError(f"{where}.within must be a time such as 250ms or 1s")
    try:
        return Objective(
            target=round(float(target[1]) / 100, 8),
            within_s=round(float(within[1]) * _UNITS_S[within[2]], 9),
        )
    except ObjectivesError as exc:
        raise ObjectivesError(f"{where}: {exc}") from None


def template(given: Given | None = None) -> str:
    """Return an objectives file that says what is in force without one."""
    usual = given or Objectives().default
    lines = ["default:"]
    for name in ("read", "write"):
        objective = usual[_GROUPS[name][0]]
        if objective is not None:
            target = objective.target_text.replace(" ", "")
            lines.append(f"  {name}: {{target: {target}, within: {objective.within_text}}}")
    return "\n".join([*lines, "stores: {}", ""])
