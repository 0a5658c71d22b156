"""The files that the build script writes, with their contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from board_clickhouse import audit_copy
from board_overview import overview
from board_privacy import privacy as privacy_board
from board_self import itself
from board_spend import spend as spend_board
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from mnemoscope.alerting.kubernetes import config_map, prometheus_rule
from mnemoscope.alerting.objectives import Objectives
from mnemoscope.alerting.promql import RuleSpeed
from mnemoscope.alerting.rule import managed
from mnemoscope.alerting.rules import groups, rule_file
from mnemoscope.alerting.runbooks import FILE
from mnemoscope.alerting.yaml_text import yaml_text

NOTE = "# Built by grafana/build.py from {source}: change those.\n"
RULES, BOARDS = "grafana/alerting/rules_*.py", "grafana/board_*.py"


def files(runbooks: str, speed: int) -> Iterator[tuple[str, str]]:
    """Yield each file's path in this folder, and its content."""
    maps: list[str] = []
    for board in (overview(), spend_board(), privacy_board(), itself(), audit_copy()):
        text = JSONEncoder(sort_keys=True, indent=2).encode(board.build(runbooks))
        yield f"dashboards/{board.name}.json", f"{text}\n"
        # No address of this stack is one in a cluster.
        linked = JSONEncoder(sort_keys=True, indent=2).encode(board.build(FILE))
        maps.append(yaml_text(config_map(board.name, f"{linked}\n")))
    yield "kubernetes/dashboards.yaml", NOTE.format(source=BOARDS) + "---\n".join(maps)
    pace = RuleSpeed(speed)
    every = groups(Objectives(), pace)
    for group in every:
        yield f"alerts/{group.name}.yaml", _yaml(rule_file([group], runbooks, pace))
    yield "kubernetes/rules.yaml", _yaml(prometheus_rule(rule_file(every, FILE, pace)))
    yield "provisioning/alerting/rules.yaml", _yaml(managed(every, runbooks))


def _yaml(document: Mapping[str, Any]) -> str:
    return NOTE.format(source=RULES) + yaml_text(document)
