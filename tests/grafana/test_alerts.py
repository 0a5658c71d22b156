"""Every alert, by `promtool test rules`: fires when it should, stays quiet when it should."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field

import pytest

yaml = pytest.importorskip("yaml", reason="dependency group grafana")

RESTART = "restart"
"""The process begins anew: its counters are at 0 again."""

GAP = None
"""Nobody scraped: the process was away, or a clock jumped."""


def counter(*phases):
    """Return a counter's values: *phases* are (steps, rise per step), (steps, GAP), or RESTART."""
    value, values = 0, []
    for phase in phases:
        if phase == RESTART:
            value = 0
            continue
        steps, rise = phase
        for _ in range(steps):
            values.append("_" if rise is GAP else f"{value:g}")
            value += rise or 0
    return " ".join(values)


def gauge(*phases):
    """Return a gauge's values: *phases* are (steps, value), the value may be GAP."""
    return " ".join(
        "_" if value is GAP else f"{value:g}" for steps, value in phases for _ in range(steps)
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """
    One story.

    Attributes:
        alert: Its name, without ours before it.
        story: What happens.
        series: Values by series, one each *step*.
        fires: Whether anybody is told, at any time.
        step: Seconds between values.
    """

    alert: str
    story: str
    series: dict[str, str] = field(repr=False)
    fires: bool
    step: int = 60

    @property
    def lasts_s(self) -> int:
        """How long the story is."""
        return self.step * (max(len(values.split()) for values in self.series.values()) - 1)


def fires(alert, story, series, step=60):
    return Case(alert=alert, story=story, series=series, fires=True, step=step)


def quiet(alert, story, series, step=60):
    return Case(alert=alert, story=story, series=series, fires=False, step=step)


def reads(every, good):
    """Return the series of Qdrant's reads: all of them, and those within a second."""
    labels = 'job="app",store="qdrant",class="recall",operation="search_memory",status="ok"'
    name = "mnemoscope_operation_duration_seconds"
    return {f"{name}_count{{{labels}}}": every, f'{name}_bucket{{{labels},le="1.0"}}': good}


def operations(**by_status):
    """Return the series of a store's operations, by their status."""
    name = 'mnemoscope_operation_duration_seconds_count{job="app",store="mem0",class="remember"'
    return {f'{name},status="{status}"}}': values for status, values in by_status.items()}


def answers(good, unanswered):
    """Return the series of operations that a store answered, and that it did not."""
    return operations(ok=good, degraded=unanswered)


def recalls(every, empty):
    """Return the series of a store's answered recalls."""
    name, labels = "mnemoscope_recall_results", 'job="app",store="mem0"'
    return {
        f"{name}_count{{{labels}}}": every,
        f'{name}_bucket{{{labels},le="0.0"}}': empty,
    }


def errors(good, raised):
    """Return the series of operations that a store answered, and that raised."""
    return operations(ok=good, error=raised)


def breaker(values):
    """Return a breaker's series: 0 closed, 1 half open, 2 open."""
    return {'mnemoscope_breaker_state{job="app",store="mem0",class="recall"}': values}


def cost(values):
    """Return one feature's dollars."""
    return {'mnemoscope_cost_usd_total{job="app",model="m",feature="reply"}': values}


def budget(spent, limit="100", alert_at="0.75"):
    """Return a budget's series."""
    steps = len(spent.split())
    return {
        'mnemoscope_budget_spent_usd{job="app",budget="day"}': spent,
        'mnemoscope_budget_limit_usd{job="app",budget="day"}': " ".join([limit] * steps),
        'mnemoscope_budget_alert_ratio{job="app",budget="day"}': " ".join([alert_at] * steps),
    }


def one(name, values, **labels):
    """Return one series of the job's."""
    text = ",".join(f'{key}="{value}"' for key, value in {"job": "app", **labels}.items())
    return {f"{name}{{{text}}}": values}


HOUR = 60
"""In steps of a minute."""

FIVE_MINUTES, QUARTER = 300, 900
"""Steps of the longer stories, in seconds."""

STORIES = [
    # -- latency -----------------------------------------------------------------------------------
    fires(
        "LatencyBudgetBurnsFast",
        "all reads turn slow",
        reads(counter((3 * HOUR, 60)), counter((2 * HOUR, 60), (HOUR, 0))),
    ),
    # 15 times too fast over an hour, and 2.5 times over six: the long windows tell nobody.
    fires(
        "LatencyBudgetBurnsFast",
        "one read in five is slow for 45 minutes",
        reads(counter((7 * HOUR, 100), (45, 100)), counter((7 * HOUR, 100), (45, 80))),
    ),
    quiet(
        "LatencyBudgetBurnsFast",
        "a little less of the reads is slow for 45 minutes: 13.5 times too fast",
        reads(counter((7 * HOUR, 100), (45, 100)), counter((7 * HOUR, 100), (45, 82))),
    ),
    # 6.7 times too fast over six hours, and 8 times over one: the short windows tell nobody.
    fires(
        "LatencyBudgetBurnsFast",
        "one read in twelve is slow for five hours",
        reads(counter((84, 500), (60, 500)), counter((84, 500), (60, 460))),
        step=FIVE_MINUTES,
    ),
    quiet(
        "LatencyBudgetBurnsFast",
        "a little less of the reads is slow for five hours: 5.7 times too fast",
        reads(counter((84, 500), (60, 500)), counter((84, 500), (60, 466))),
        step=FIVE_MINUTES,
    ),
    fires(
        "LatencyBudgetBurnsFast",
        "a store never answers from the start",
        reads(counter((HOUR, 60)), counter((HOUR, GAP))),
    ),
    fires(
        "LatencyBudgetBurnsFast",
        "a tenth is slow for hours",
        reads(counter((96, 300)), counter((96, 270))),
        FIVE_MINUTES,
    ),
    quiet(
        "LatencyBudgetBurnsFast",
        "one in fifty is slow",
        reads(counter((96, 250)), counter((96, 245))),
        FIVE_MINUTES,
    ),
    quiet(
        "LatencyBudgetBurnsFast",
        "low traffic: three reads, all slow",
        reads(counter((HOUR, 0), (3, 1), (2 * HOUR, 0)), counter((3 * HOUR, 0))),
    ),
    quiet(
        "LatencyBudgetBurnsFast",
        "idle night",
        reads(counter((12, 300), (96, 0)), counter((12, 300), (96, 0))),
        FIVE_MINUTES,
    ),
    quiet(
        "LatencyBudgetBurnsFast",
        "restart",
        reads(
            counter((HOUR, 60), (3, GAP), RESTART, (HOUR, 60)),
            counter((HOUR, 60), (3, GAP), RESTART, (HOUR, 60)),
        ),
    ),
    quiet(
        "LatencyBudgetBurnsFast",
        "clock jump: forty minutes missing",
        reads(
            counter((HOUR, 60), (40, GAP), (HOUR, 60)), counter((HOUR, 60), (40, GAP), (HOUR, 60))
        ),
    ),
    quiet(
        "LatencyBudgetBurnsFast",
        "flapping: slow for a minute of each hour",
        reads(
            counter((5 * HOUR, 60)),
            counter(*[phase for _ in range(5) for phase in ((59, 60), (1, 0))]),
        ),
    ),
    fires(
        "LatencyBudgetBurnsSlowly",
        "four in a hundred are slow for a day",
        reads(counter((110, 900)), counter((110, 864))),
        QUARTER,
    ),
    quiet(
        "LatencyBudgetBurnsSlowly",
        "one in two hundred is slow",
        reads(counter((400, 1000)), counter((400, 995))),
        QUARTER,
    ),
    quiet(
        "LatencyBudgetBurnsSlowly",
        "low traffic: three slow reads in three days",
        reads(counter((100, 0), (3, 1), (200, 0)), counter((303, 0))),
        QUARTER,
    ),
    quiet(
        "LatencyBudgetBurnsSlowly",
        "idle night, and a restart in the morning",
        reads(
            counter((60, 900), (40, 0), RESTART, (60, 900)),
            counter((60, 900), (40, 0), RESTART, (60, 900)),
        ),
        QUARTER,
    ),
    # -- memory ------------------------------------------------------------------------------------
    fires(
        "DegradedAnswers",
        "a store fails for twenty minutes",
        answers(counter((HOUR, 60), (20, 0)), counter((HOUR, 0), (20, 60))),
    ),
    quiet(
        "DegradedAnswers",
        "low traffic: two of three fail",
        answers(counter((HOUR, 0), (1, 1), (20, 0)), counter((HOUR, 0), (2, 1), (20, 0))),
    ),
    quiet(
        "DegradedAnswers",
        "idle night",
        answers(counter((HOUR, 60), (8 * HOUR, 0)), counter((9 * HOUR, 0))),
    ),
    quiet(
        "DegradedAnswers",
        "restart of an agent that had trouble yesterday",
        answers(counter((HOUR, 60), RESTART, (HOUR, 60)), counter((HOUR, 0), RESTART, (HOUR, 0))),
    ),
    quiet(
        "DegradedAnswers",
        "flapping: one in a hundred fails, again and again",
        answers(counter((3 * HOUR, 99)), counter((3 * HOUR, 1))),
    ),
    fires(
        "ErrorsRaised",
        "every call makes no sense since a deployment",
        errors(counter((HOUR, 60), (20, 0)), counter((HOUR, 0), (20, 60))),
    ),
    fires(
        "ErrorsRaised",
        "its breaker opens: a probe every five seconds raises, all else is refused",
        errors(counter((30, 600), (30, 0)), counter((30, 0), (30, 12)))
        | operations(rejected=counter((30, 0), (30, 588))),
    ),
    quiet(
        "ErrorsRaised",
        "low traffic: two of three raise",
        errors(counter((HOUR, 0), (1, 1), (20, 0)), counter((HOUR, 0), (2, 1), (20, 0))),
    ),
    quiet(
        "ErrorsRaised",
        "one in a hundred raises, again and again",
        errors(counter((3 * HOUR, 99)), counter((3 * HOUR, 1))),
    ),
    fires("BreakerOpen", "open for ten minutes", breaker(gauge((10, 0), (10, 2)))),
    fires(
        "BreakerOpen",
        "open, and half open now and then to see",
        breaker(gauge((10, 0), *[phase for _ in range(5) for phase in ((3, 2), (1, 1))])),
    ),
    quiet("BreakerOpen", "open for a minute", breaker(gauge((10, 0), (1, 2), (20, 0)))),
    quiet(
        "BreakerOpen",
        "flapping: open every other minute",
        breaker(gauge(*[phase for _ in range(60) for phase in ((1, 2), (1, 0))])),
    ),
    quiet("BreakerOpen", "closed all night", breaker(gauge((8 * HOUR, 0)))),
    quiet(
        "BreakerOpen",
        "open, restart, closed",
        breaker(gauge((10, 0), (2, 2), (3, GAP), (30, 0))),
    ),
    fires(
        "EmptyRecallsJump",
        "a tenth was empty, now nearly all are",
        recalls(counter((360, 50)), counter((348, 5), (12, 45))),
        FIVE_MINUTES,
    ),
    quiet(
        "EmptyRecallsJump",
        "half were always empty",
        recalls(counter((360, 50)), counter((360, 25))),
        FIVE_MINUTES,
    ),
    quiet(
        "EmptyRecallsJump",
        "low traffic: the only two recalls of an hour find nothing",
        recalls(counter((340, 50), (2, 1), (12, 0)), counter((340, 5), (2, 1), (12, 0))),
        FIVE_MINUTES,
    ),
    quiet(
        "EmptyRecallsJump",
        "idle night",
        recalls(counter((240, 50), (96, 0)), counter((240, 5), (96, 0))),
        FIVE_MINUTES,
    ),
    quiet(
        "EmptyRecallsJump",
        "restart",
        recalls(counter((312, 50), RESTART, (24, 50)), counter((312, 5), RESTART, (24, 5))),
        FIVE_MINUTES,
    ),
    fires(
        "WritesLost",
        "the first write that is lost: its counter is born at 1",
        one("mnemoscope_writes_lost_total", gauge((HOUR, GAP), (20, 1)), store="mem0"),
    ),
    quiet(
        "WritesLost",
        "restart: at 0 again",
        one("mnemoscope_writes_lost_total", gauge((HOUR, 0), (3, GAP), (HOUR, 0)), store="mem0"),
    ),
    fires(
        "JournalStuck",
        "a store is away for an hour",
        one("mnemoscope_journal_oldest_seconds", counter((HOUR, 60))),
    ),
    quiet(
        "JournalStuck",
        "a store is away for ten minutes, again and again",
        one(
            "mnemoscope_journal_oldest_seconds",
            gauge(*[(1, 60 * n) for _ in range(6) for n in range(10)]),
        ),
    ),
    quiet("JournalStuck", "idle night", one("mnemoscope_journal_oldest_seconds", gauge((480, 0)))),
    fires(
        "JournalParked",
        "the first write that is set aside, once the store has kept writes before",
        one("mnemoscope_journal_parked", gauge((HOUR, 0), (10, 1)), store="mem0"),
    ),
    fires(
        "JournalParked",
        "a process starts with one in its journal",
        one("mnemoscope_journal_parked", gauge((HOUR, GAP), (10, 1)), store="mem0"),
    ),
    quiet(
        "JournalParked",
        "none",
        one("mnemoscope_journal_parked", gauge((3 * HOUR, 0)), store="mem0"),
    ),
    quiet(
        "JournalParked",
        "dropped at once by whoever looked",
        one("mnemoscope_journal_parked", gauge((20, 0), (1, 1), (20, 0)), store="mem0"),
    ),
    # -- spend -------------------------------------------------------------------------------------
    fires(
        "FeatureSpendJump",
        "two dollars an hour for a week, then ten",
        cost(counter((8 * 96, 0.5), (8, 2.5))),
        QUARTER,
    ),
    quiet(
        "FeatureSpendJump",
        "every day is like the last: night, then a dear morning",
        cost(counter(*[phase for _ in range(9) for phase in ((48, 0), (48, 1))])),
        QUARTER,
    ),
    quiet(
        "FeatureSpendJump",
        "every Monday is dear",
        cost(counter((96, 3), (6 * 96, 0.3), (96, 3))),
        QUARTER,
    ),
    quiet(
        "FeatureSpendJump",
        "low traffic: from a cent to ten",
        cost(counter((8 * 96, 0.0025), (96, 0.025))),
        QUARTER,
    ),
    quiet("FeatureSpendJump", "a new feature has no past", cost(counter((40, 5))), QUARTER),
    quiet(
        "FeatureSpendJump",
        "restart",
        cost(counter((8 * 96, 0.5), (2, GAP), RESTART, (20, 0.5))),
        QUARTER,
    ),
    quiet(
        "FeatureSpendJump",
        "clock jump: two hours missing",
        cost(counter((8 * 96, 0.5), (8, GAP), (20, 0.5))),
        QUARTER,
    ),
    fires("BudgetNearlySpent", "75 of 100", budget(gauge((10, 50), (10, 75)))),
    quiet("BudgetNearlySpent", "74 of 100", budget(gauge((20, 74)))),
    fires("BudgetNearlySpent", "55, told at half", budget(gauge((20, 55)), alert_at="0.5")),
    quiet("BudgetNearlySpent", "85, told at 90", budget(gauge((20, 85)), alert_at="0.9")),
    quiet("BudgetNearlySpent", "spent already: the other alert tells", budget(gauge((20, 120)))),
    fires("BudgetSpent", "100 of 100", budget(gauge((10, 90), (10, 100)))),
    quiet("BudgetSpent", "85 of 100", budget(gauge((20, 85)))),
    quiet("BudgetSpent", "a budget of nothing is no budget", budget(gauge((20, 5)), limit="0")),
    quiet("BudgetSpent", "idle night after a new period", budget(gauge((10, 90), (480, 0)))),
    # -- privacy -----------------------------------------------------------------------------------
    *(
        story
        for alert, metric in (
            ("WritesRefused", "mnemoscope_writes_refused_total"),
            ("TenantTripwire", "mnemoscope_tenant_tripwire_total"),
        )
        for story in (
            fires(
                alert, "the first ever", one(metric, gauge((HOUR, GAP), (20, 1)), store="qdrant")
            ),
            fires(alert, "one more", one(metric, gauge((HOUR, 4), (20, 5)), store="qdrant")),
            quiet(alert, "none", one(metric, gauge((3 * HOUR, 0)), store="qdrant")),
            quiet(
                alert,
                "restart: at 0 again",
                one(metric, gauge((HOUR, 0), (3, GAP), (HOUR, 0)), store="qdrant"),
            ),
        )
    ),
    fires("AuditLag", "ten minutes behind", one("mnemoscope_audit_lag_seconds", gauge((20, 600)))),
    quiet(
        "AuditLag",
        "flapping: behind for a minute, now and then",
        one(
            "mnemoscope_audit_lag_seconds",
            gauge(*[phase for _ in range(30) for phase in ((2, 90), (2, 1))]),
        ),
    ),
    quiet(
        "AuditLag",
        "clock jump: an hour, for one scrape",
        one("mnemoscope_audit_lag_seconds", gauge((20, 0), (1, 3600), (20, 0))),
    ),
    quiet("AuditLag", "idle night", one("mnemoscope_audit_lag_seconds", gauge((8 * HOUR, 0)))),
    fires(
        "AuditGap",
        "events are declared missing",
        one("mnemoscope_audit_gap_events_total", gauge((20, 0), (20, 17))),
    ),
    quiet(
        "AuditGap",
        "restart: at 0 again",
        one("mnemoscope_audit_gap_events_total", gauge((20, 0), (3, GAP), (HOUR, 0))),
    ),
    fires(
        "AuditCheckpointStale",
        "signed once, and never again",
        one("mnemoscope_audit_checkpoint_timestamp_seconds", gauge((40, 60))),
    ),
    quiet(
        "AuditCheckpointStale",
        "idle night: signed every minute all the same",
        one("mnemoscope_audit_checkpoint_timestamp_seconds", counter((1, 60), (8 * HOUR, 60))),
    ),
    quiet(
        "AuditCheckpointStale",
        "never sealed: no age",
        one("mnemoscope_audit_checkpoint_timestamp_seconds", gauge((HOUR, 0))),
    ),
    quiet(
        "AuditCheckpointStale",
        "clock jump: signed in the future",
        one("mnemoscope_audit_checkpoint_timestamp_seconds", gauge((HOUR, 90_000))),
    ),
    quiet(
        "AuditCheckpointStale",
        "restart that takes ten minutes",
        one(
            "mnemoscope_audit_checkpoint_timestamp_seconds",
            counter((HOUR, 60), (10, GAP)) + " " + " ".join(str(60 * n) for n in range(70, 100)),
        ),
    ),
    fires(
        "AuditKeyMissing",
        "the key is gone",
        one("mnemoscope_audit_key_state", gauge((10, 0), (10, 1)), state="missing"),
    ),
    quiet(
        "AuditKeyMissing",
        "there is one, made on first use",
        one("mnemoscope_audit_key_state", gauge((20, 1)), state="generated")
        | one("mnemoscope_audit_key_state", gauge((20, 0)), state="missing"),
    ),
    # -- sinks -------------------------------------------------------------------------------------
    fires(
        "SinkDown",
        "down for half an hour",
        one("mnemoscope_sink_down", gauge((10, 0), (30, 1)), sink="otlp"),
    ),
    quiet(
        "SinkDown",
        "down for two minutes",
        one("mnemoscope_sink_down", gauge((10, 0), (2, 1), (20, 0)), sink="otlp"),
    ),
    quiet(
        "SinkDown",
        "flapping: down one minute in three",
        one(
            "mnemoscope_sink_down",
            gauge((15, 0), *[phase for _ in range(30) for phase in ((1, 1), (2, 0))]),
            sink="otlp",
        ),
    ),
    quiet("SinkDown", "idle night", one("mnemoscope_sink_down", gauge((8 * HOUR, 0)), sink="otlp")),
    fires(
        "EventsDropped",
        "the first drop",
        one(
            "mnemoscope_sink_dropped_total",
            gauge((HOUR, GAP), (5, 64)),
            sink="otlp",
            reason="overflow",
        ),
    ),
    quiet(
        "EventsDropped",
        "none since the restart",
        one(
            "mnemoscope_sink_dropped_total",
            gauge((HOUR, 0), (3, GAP), (HOUR, 0)),
            sink="otlp",
            reason="exit",
        ),
    ),
    fires(
        "RelayBehind",
        "ten minutes behind with one sink",
        one("mnemoscope_relay_lag_seconds", gauge((20, 600)), sink="otlp"),
    ),
    quiet(
        "RelayBehind",
        "flapping: behind for a minute, now and then",
        one(
            "mnemoscope_relay_lag_seconds",
            gauge(*[phase for _ in range(30) for phase in ((2, 90), (2, 1))]),
            sink="otlp",
        ),
    ),
    quiet(
        "RelayBehind",
        "idle night",
        one("mnemoscope_relay_lag_seconds", gauge((8 * HOUR, 0)), sink="otlp"),
    ),
    fires(
        "RelaySilent",
        "its processes see it for ten minutes",
        one("mnemoscope_relay_silent_seconds", gauge((20, 1), (10, 600))),
    ),
    fires(
        "RelaySilent",
        "nobody else can tell, and it is gone",
        one("mnemoscope_relay_beat_timestamp_seconds", counter((20, 60), (20, GAP))),
    ),
    quiet(
        "RelaySilent",
        "a restart that takes a minute",
        one("mnemoscope_relay_silent_seconds", gauge((20, 1), (1, 61), (20, 1))),
    ),
    quiet(
        "RelaySilent",
        "idle night",
        one("mnemoscope_relay_beat_timestamp_seconds", counter((1, 60), (8 * HOUR, 60))),
    ),
    fires(
        "InternalErrors",
        "the first error",
        one("mnemoscope_internal_errors_total", gauge((HOUR, GAP), (5, 1)), site="guard.report"),
    ),
    quiet(
        "InternalErrors",
        "none",
        one("mnemoscope_internal_errors_total", gauge((3 * HOUR, 0)), site="guard.report"),
    ),
]


def _file_of(alert, grafana):
    return next(
        path
        for path in (grafana / "alerts").glob("*.yaml")
        if f"alert: Mnemoscope{alert}\n" in path.read_text()
    )


@pytest.mark.parametrize("case", STORIES, ids=lambda case: f"{case.alert}: {case.story}")
def test_an_alert_tells_its_story(case, grafana, promtool, tmp_path):
    """It fires at some time in the stories that are for it, and at no time in the others."""
    ever = (
        f'count(count_over_time(ALERTS{{alertname="Mnemoscope{case.alert}",'
        f'alertstate="firing"}}[{case.lasts_s + 1}s]) > 0) > bool 0'
    )
    story = {
        "rule_files": [str(_file_of(case.alert, grafana))],
        "evaluation_interval": f"{case.step}s",
        "tests": [
            {
                "interval": f"{case.step}s",
                "input_series": [
                    {"series": name, "values": values} for name, values in case.series.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": ever,
                        "eval_time": f"{case.lasts_s}s",
                        "exp_samples": [{"labels": "{}", "value": 1}] if case.fires else [],
                    }
                ],
            }
        ],
    }
    file = tmp_path / "story.yaml"
    file.write_text(yaml.safe_dump(story))

    ended = subprocess.run(
        [promtool, "test", "rules", str(file)], capture_output=True, text=True, check=False
    )

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

    assert {case.alert for case in STORIES if case.fires} == alerts
    assert {case.alert for case in STORIES if not case.fires} == alerts


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
