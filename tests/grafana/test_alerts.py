"""Every alert, by `promtool test rules`: fires when it should, stays quiet when it should."""

from __future__ import annotations

import re

import pytest

from tests.kit.alert_stories import IS_WHOLE, LONG, STORIES, in_file, tell
from tests.kit.rule_mutations import needed

yaml = pytest.importorskip("yaml", reason="dependency group grafana")


def told_here():
    """Return the stories that are told in every run: of those that last for days, four an alert."""
    of_days = [case for case in STORIES if case.alert.startswith(LONG)]
    few = [
        case
        for alert in {case.alert: None for case in of_days}
        for fires in (True, False)
        for case in [x for x in of_days if x.alert == alert and bool(x.told) == fires][:2]
    ]
    return [case for case in STORIES if IS_WHOLE or case not in of_days or case in few]


@pytest.mark.long_but_each(5)
@pytest.mark.parametrize("case", told_here(), ids=lambda case: f"{case.alert}: {case.story}")
def test_an_alert_tells_its_story(case, grafana, promtool, tmp_path):
    """It is there when the story says so, and at no time in a story that is not for it."""
    rules = in_file(grafana, case.alert)
    alerts = [rule for rule in rules if rule.get("alert") == f"Mnemoscope{case.alert}"]

    ended = tell(promtool, case, needed(alerts, rules), tmp_path)

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_every_alert_has_a_story_in_which_it_fires_and_one_in_which_it_does_not(grafana):
    """No alert is without a specification."""
    alerts = {
        rule["alert"].removeprefix("Mnemoscope")
        for path in (grafana / "alerts").glob("*.yaml")
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
        if "alert" in rule
    }

    assert {case.alert for case in STORIES if case.told} == alerts
    assert {case.alert for case in STORIES if not case.told} == alerts


def shipped(grafana):
    """Return every alert that is shipped."""
    return [
        rule
        for path in (grafana / "alerts").glob("*.yaml")
        for group in yaml.safe_load(path.read_text())["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]


def test_values_are_told_as_people_say_them(grafana):
    """Counts and shares as whole numbers, times and dollars as such: nobody lost 13.17 writes."""
    told = {
        value
        for alert in shipped(grafana)
        for text in alert["annotations"].values()
        for value in re.findall(r"\$?{{[^}]*\$value[^}]*}}", text)
    }

    assert told == {
        '{{ printf "%.0f" $value }}',
        "{{ $value | humanizeDuration }}",
        "${{ $value | humanize }}",
    }


def test_an_alert_about_a_store_names_it(grafana):
    """In its first line, which is all that a telephone shows."""
    about = [each for each in shipped(grafana) if "$labels.store" in str(each["annotations"])]

    assert len(about) > 8
    assert [
        each["alert"]
        for each in about
        if "{{ $labels.store }}" not in each["annotations"]["summary"]
    ] == []
