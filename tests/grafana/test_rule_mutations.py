"""Every number, window and operator of the alerts matters: wrong, it spoils a story."""

from __future__ import annotations

import re

import pytest

from tests.kit.alert_stories import IS_WHOLE, LONG, STORIES, in_file, tell
from tests.kit.rule_mutations import mutants, needed

pytest.importorskip("yaml", reason="dependency group grafana")

ALERTS = sorted({case.alert for case in STORIES if IS_WHOLE or not case.alert.startswith(LONG)})
AT_ONCE = 60
"""Mutants that are told a story together."""


@pytest.mark.timeout(0 if IS_WHOLE else 600)
@pytest.mark.parametrize("alert", ALERTS)
@pytest.mark.long_but(ALERTS[0])
def test_every_mutant_of_an_alert_spoils_a_story(alert, grafana, promtool, tmp_path):
    """Twice and half a window, a quarter more or a fifth less, another operator: all of them."""
    rules = in_file(grafana, alert)
    (shipped,) = (rule for rule in rules if rule.get("alert") == f"Mnemoscope{alert}")
    left = {each.name: each for each in mutants(shipped, rules)}
    assert left

    cases = [case for case in STORIES if case.alert == alert]
    for case in sorted(cases, key=lambda case: case.lasts_s / case.step):
        names = list(left)
        for start in range(0, len(names), AT_ONCE):
            told = names[start : start + AT_ONCE]
            own = [rule for name in told for rule in left[name].rules]
            ended = tell(promtool, case, [*needed([shipped], rules), *own], tmp_path, told)
            spoilt = set(re.findall(r"Mutant\d+x", ended.stdout + ended.stderr))
            assert spoilt or not ended.returncode, ended.stdout + ended.stderr
            left = {name: each for name, each in left.items() if name not in spoilt}

    assert [each.change for each in left.values()] == []
