"""The files that the build script writes, with their contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from alerting import managed
from board_overview import overview
from board_privacy import privacy as privacy_board
from board_self import itself
from board_spend import spend as spend_board
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from promql import Pace
from rules_latency import latency
from rules_memory import memory
from rules_privacy import privacy
from rules_sinks import sinks
from rules_spend import spend

NOTE = "# Built by grafana/build.py from grafana/rules_*.py: change those.\n"


def files(runbooks: str, speed: int) -> Iterator[tuple[str, str]]:
    """Yield each file's path in this folder, and its content."""
    pace = Pace(speed)
    for board in (overview(), spend_board(), privacy_board(), itself()):
        text = JSONEncoder(sort_keys=True, indent=2).encode(board.build(runbooks))
        yield f"dashboards/{board.name}.json", f"{text}\n"
    groups = [make(pace) for make in (latency, memory, spend, privacy, sinks)]
    for group in groups:
        yield f"alerts/{group.name}.yaml", _yaml(group.document(runbooks, pace))
    yield "provisioning/alerting/rules.yaml", _yaml(managed(groups, runbooks))


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    untyped: Any = dumper
    node: yaml.ScalarNode = untyped.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


_Dumper.add_representer(str, _text)


def _yaml(document: Mapping[str, Any]) -> str:
    return NOTE + yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, width=100, allow_unicode=True
    )
