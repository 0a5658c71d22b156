"""The files that the build script writes, with their contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from board_clickhouse import audit_copy
from board_overview import overview
from board_privacy import privacy as privacy_board
from board_self import itself
from board_spend import spend as spend_board
from boards import Board
from catalogue_form import exported
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from mnemoscope.alerting.kubernetes import config_map, prometheus_rule
from mnemoscope.alerting.objectives import Objectives
from mnemoscope.alerting.promql import RuleSpeed
from mnemoscope.alerting.rule import managed
from mnemoscope.alerting.rules import groups, rule_file
from mnemoscope.alerting.runbooks import FILE
from mnemoscope.alerting.yaml_text import yaml_text

NOTE = "# Built by grafana/build_all.py from {source}: change those.\n"
RULES, BOARDS = "grafana/alerting/rules_*.py", "grafana/board_*.py"


def catalogue(runbooks: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each file for Grafana's catalogue, and its content."""
    for board in _boards():
        yield f"mnemoscope-{board.name}.json", exported(_json(board, runbooks))


def files(runbooks: str, speed: int) -> Iterator[tuple[str, str]]:
    """Yield each file's path in this folder, and its content."""
    maps: list[str] = []
    for board in _boards():
        yield f"dashboards/{board.name}.json", _json(board, runbooks)
        # No address of this stack is one in a cluster.
        maps.append(yaml_text(config_map(board.name, _json(board, FILE))))
    yield "kubernetes/dashboards.yaml", NOTE.format(source=BOARDS) + "---\n".join(maps)
    pace = RuleSpeed(speed)
    every = groups(Objectives(), pace)
    for group in every:
        yield f"alerts/{group.name}.yaml", _yaml(rule_file([group], runbooks, pace))
    yield "kubernetes/rules.yaml", _yaml(prometheus_rule(rule_file(every, FILE, pace)))
    yield "provisioning/alerting/rules.yaml", _yaml(managed(every, runbooks))


def _boards() -> Sequence[Board]:
    return overview(), spend_board(), privacy_board(), itself(), audit_copy()


def _json(board: Board, runbooks: str) -> str:
    return f"{JSONEncoder(sort_keys=True, indent=2).encode(board.build(runbooks))}\n"


def _yaml(document: Mapping[str, Any]) -> str:
    return NOTE.format(source=RULES) + yaml_text(document)
