"""Stories of what happens to an application, for each alert: who is told of it, and until when."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field, replace

IS_WHOLE = os.environ.get("RULE_MUTANTS") == "all"
LONG = ("EmptyRecallsJump", "FeatureSpendJump", "LatencyBudget")
"""Alerts whose stories last for days: `make rule-mutants` tells all of them."""

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
            values.append("_" if rise is GAP else f"{value:.10g}")
            value += rise or 0
    return " ".join(values)


def gauge(*phases):
    """Return a gauge's values: *phases* are (steps, value), the value may be GAP."""
    return " ".join(
        "_" if value is GAP else f"{value:.10g}" for steps, value in phases for _ in range(steps)
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """
    One story.

    Attributes:
        alert: Its name, without ours before it.
        story: What happens.
        series: Values by series, one each *step*.
        told: Of how many series it is told.
        at_the_end: Whether that is asked when the story is over, else of any of its times.
        step: Seconds between values.
        value: What the alert's query has for an answer at the end, rounded. None: it is not asked.
    """

    alert: str
    story: str
    series: dict[str, str] = field(repr=False)
    told: int
    at_the_end: bool = False
    step: int = 60
    value: int | None = None

    @property
    def lasts_s(self) -> int:
        """How long the story is."""
        return self.step * (max(len(values.split()) for values in self.series.values()) - 1)


def fires(alert, story, series, step=60, *, told=1, value=None):
    """Return a story of which somebody is told while it happens."""
    return Case(alert=alert, story=story, series=series, told=told, step=step, value=value)


def quiet(alert, story, series, step=60):
    """Return a story of which nobody is ever told."""
    return Case(alert=alert, story=story, series=series, told=0, step=step)


def still(alert, story, series, step=60, *, told=1, value=None):
    """Return a story at the end of which the alert is there."""
    case = fires(alert, story, series, step, told=told, value=value)
    return replace(case, at_the_end=True)


def over(alert, story, series, step=60):
    """Return a story at the end of which no alert is there, whatever was before."""
    return replace(quiet(alert, story, series, step), at_the_end=True)


def in_file(grafana, alert):
    """Return the rules of the file that *alert* is in, as they are shipped."""
    import yaml

    for path in (grafana / "alerts").glob("*.yaml"):
        rules = [
            rule for group in yaml.safe_load(path.read_text())["groups"] for rule in group["rules"]
        ]
        if any(rule.get("alert") == f"Mnemoscope{alert}" for rule in rules):
            return rules
    raise LookupError(alert)


def tell(promtool, case, rules, folder, alerts=None):
    """
    Have promtool tell a story to *rules*, and return the process that ended.

    *alerts* are the names of those that are to be as the story says: else the one it is about.
    """
    asked = alerts or [f"Mnemoscope{case.alert}"]
    exprs = {rule.get("alert"): rule["expr"] for rule in rules}
    (folder / "rules.json").write_text(json.dumps({"groups": [{"name": "told", "rules": rules}]}))
    stories = {
        "rule_files": ["rules.json"],
        "evaluation_interval": f"{case.step}s",
        "tests": [
            {
                "interval": f"{case.step}s",
                "input_series": [
                    {"series": name, "values": values} for name, values in case.series.items()
                ],
                "promql_expr_test": [
                    each for alert in asked for each in _expected(case, alert, exprs[alert])
                ],
            }
        ],
    }
    (folder / "stories.json").write_text(json.dumps(stories))
    return subprocess.run(
        [promtool, "test", "rules", str(folder / "stories.json")],
        capture_output=True,
        text=True,
        check=False,
    )


def _expected(case, alert, expr):
    firing = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
    if not case.at_the_end:
        firing = f"count_over_time({firing}[{case.lasts_s + 1}s])"
    asked = [(f"count({firing} > 0)", case.told or None)]
    if case.value is not None:
        # The name of the alert is in what promtool reports of it.
        asked.append((f'round(max({expr})) or sum(none_of{{alert="{alert}"}})', case.value))
    return [
        {
            "expr": query,
            "eval_time": f"{case.lasts_s}s",
            "exp_samples": [] if value is None else [{"labels": "{}", "value": value}],
        }
        for query, value in asked
    ]


def reads(every, good):
    """Return the series of Qdrant's reads: all of them, and those within a second."""
    labels = 'job="app",store="qdrant",class="recall",operation="search_memory",status="ok"'
    name = "mnemoscope_operation_duration_seconds"
    return {f"{name}_count{{{labels}}}": every, f'{name}_bucket{{{labels},le="1.0"}}': good}


def writes(every, good):
    """Return the series of Qdrant's writes: all of them, and those within ten seconds."""
    labels = 'job="app",store="qdrant",class="remember",operation="add_memory",status="ok"'
    name = "mnemoscope_operation_duration_seconds"
    return {f"{name}_count{{{labels}}}": every, f'{name}_bucket{{{labels},le="10.0"}}': good}


def by_two(series):
    """Return *series*, which are counters, of two processes that share the work."""
    return {
        f'{name.removesuffix("}")},instance="{instance}"}}': _halved(values)
        for name, values in series.items()
        for instance in ("one", "two")
    }


def _halved(values):
    return " ".join(each if each == "_" else f"{float(each) / 2:.10g}" for each in values.split())


def slow(*phases):
    """Return the series of reads and of writes; *phases* are (steps, operations, slow share)."""
    ended = (1, 0, 0)  # what rises in a step is seen in the next
    every = counter(*[(steps, rise) for steps, rise, _share in (*phases, ended)])
    good = counter(*[(steps, rise * (1 - share)) for steps, rise, share in (*phases, ended)])
    return by_two(reads(every, good) | writes(every, good))


def single(times, steps, rise):
    """Return so many phases of *steps*, at the end of each of which one operation is slow."""
    return [phase for _ in range(times) for phase in ((steps - 1, rise, 0), (1, rise, 1 / rise))]


def operations(**by_status):
    """Return the series of a store's operations, by their status."""
    name = 'mnemoscope_operation_duration_seconds_count{job="app",store="mem0",class="remember"'
    return {f'{name},status="{status}"}}': values for status, values in by_status.items()}


def answers(good, unanswered):
    """Return the series of operations that a store answered, and that it did not."""
    return operations(ok=good, degraded=unanswered)


def repeating(measurement):
    """Return the function of series of memories that repeat nothing, and of those that do."""

    def series(good, repeated):
        name, labels = "mnemoscope_event_part_total", 'job="app",part="hygiene"'
        both = zip(good.split(), repeated.split(), strict=True)
        written = " ".join(f"{sum(map(float, each)):.10g}" for each in both)
        return {
            f'{name}{{{labels},measurement="written"}}': written,
            f'{name}{{{labels},measurement="{measurement}"}}': repeated,
        }

    return series


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


def in_tokens(series):
    """Return a budget's series as those of one in tokens."""
    return {name.replace("_usd", "_tokens"): values for name, values in series.items()}


def one(name, values, **labels):
    """Return one series of the job's."""
    text = ",".join(f'{key}="{value}"' for key, value in {"job": "app", **labels}.items())
    return {f"{name}{{{text}}}": values}


HOUR = 60
"""In steps of a minute."""

HALF_A_MINUTE, FIVE_MINUTES, QUARTER, AN_HOUR = 30, 300, 900, 3_600
"""Steps of the longer stories, in seconds."""


def unread(rise, found=None, *, kind="remember", status="ok", store="mem0", **reader):
    """Return eight hours of writes to mem0, so many each 5 minutes, and what recalls found."""
    count, results = "mnemoscope_operation_duration_seconds_count", "mnemoscope_recall_results_sum"
    labels = {"store": "mem0", "class": kind, "status": status}
    series = one(count, counter((97, rise)), **labels)
    return series | (one(results, found, store=store, **reader) if found else {})


PARTS, INTEGRITY = "mnemoscope_event_part_total", "mnemoscope.integrity"


def of_counter(alert, metric, window_min, **labels):
    """Return the near side of an alert on what was counted in a window, be it the first of all."""
    return [
        still(
            alert,
            "the first ever, and the window is not over",
            one(metric, gauge((20, GAP), (window_min - 3, 1)), **labels),
            value=1,
        ),
        over(
            alert,
            "the first ever, before the window",
            one(metric, gauge((20, GAP), (window_min + 4, 1)), **labels),
        ),
        still(
            alert,
            "one more, and the window is not over",
            one(metric, gauge((2 * window_min, 4), (window_min - 3, 5)), **labels),
            value=1,
        ),
        over(
            alert,
            "one more, before the window",
            one(metric, gauge((2 * window_min, 4), (window_min + 4, 5)), **labels),
        ),
        over(alert, "as many as there were", one(metric, gauge((4 * window_min, 4)), **labels)),
        still(
            alert,
            "each of two processes has one more",
            by_two(one(metric, gauge((2 * window_min, 4), (5, 6)), **labels)),
            value=2,
        ),
    ]


def of_gauge(alert, metric, limit, wait_min, **labels):
    """Return the near side of an alert on a gauge that is beyond *limit* for so long."""
    beyond = 1.1 * limit or 1
    return [
        fires(alert, "a tenth beyond", one(metric, gauge((30, beyond)), **labels)),
        *(
            [quiet(alert, "a tenth less", one(metric, gauge((30, 0.9 * limit)), **labels))]
            * bool(limit)
        ),
        over(
            alert,
            "it begins, not long enough ago",
            one(metric, gauge((10, 0), (2 * wait_min, beyond)), **labels),
            HALF_A_MINUTE,
        ),
        still(
            alert,
            "it begins, just long enough ago",
            one(metric, gauge((10, 0), (2 * wait_min + 2, beyond)), **labels),
            HALF_A_MINUTE,
        ),
        fires(
            alert,
            "one process of two",
            one(metric, gauge((30, 0)), instance="one", **labels)
            | one(metric, gauge((30, beyond)), instance="two", **labels),
        ),
    ]


def spool(values, **labels):
    """Return how full the audit spool is."""
    return one("mnemoscope_audit_spool_full_ratio", values, **labels)


def of_spool(alert):
    """Return the near side of the alert on a spool that will be full within the hour."""
    return [
        *of_gauge(alert, "mnemoscope_audit_spool_full_ratio", 0.5, 5),
        still(
            alert,
            "two processes, and one has less room than the other",
            spool(gauge((HOUR, 0.6)), instance="one") | spool(gauge((HOUR, 0.8)), instance="two"),
            value=80,
        ),
        still(alert, "full in fifty minutes", spool(counter((20, 0.0155)))),
        quiet(alert, "full in seventy minutes", spool(counter((15, 0.0125), (30, 0)))),
        *(
            case(
                alert,
                f"ten minutes of events, and {minutes} without",
                spool(counter((40, 0), (20, 0.015), (2 * minutes, 0))),
                HALF_A_MINUTE,
            )
            for case, minutes in ((still, 4), (over, 8))
        ),
    ]


def of_share(alert, series):
    """Return the near side of an alert on more than 5 % of a store's operations."""
    return [
        fires(
            alert,
            "six in a hundred, at once",
            by_two(series(counter((50, 100)), counter((40, 0), (1, 64), (9, 0)))),
        ),
        quiet(
            alert,
            "four and a half in a hundred, at once",
            by_two(series(counter((50, 100)), counter((40, 0), (1, 47), (9, 0)))),
        ),
        quiet(
            alert,
            "four and a half in a hundred, whatever the traffic",
            by_two(
                series(counter((20, 0), (20, 955), (20, 191)), counter((20, 0), (20, 45), (20, 9)))
            ),
        ),
        still(alert, "one in five", by_two(series(counter((20, 80)), counter((20, 20)))), value=20),
        fires(
            alert,
            "low traffic: eleven in ten minutes",
            by_two(series(counter((40, 1)), counter((10, 0), *[(9, 1), (1, 2)] * 3))),
        ),
        fires(
            alert,
            "low traffic: eleven in a minute",
            by_two(series(counter((40, 1)), counter((30, 0), (1, 11), (9, 0)))),
        ),
        quiet(
            alert,
            "low traffic: nine in ten minutes",
            by_two(series(counter((40, 1)), counter((10, 0), *[(9, 1), (1, 0)] * 3))),
        ),
        quiet(
            alert,
            "low traffic: nine in a minute",
            by_two(series(counter((40, 1)), counter((30, 0), (1, 9), (9, 0)))),
        ),
        *(
            case(
                alert,
                f"it begins, and {seconds} seconds pass",
                by_two(
                    series(
                        counter((32 + seconds // 30, 50)),
                        counter((30, 0), (1, 80), (1 + seconds // 30, 0)),
                    )
                ),
                HALF_A_MINUTE,
            )
            for case, seconds in ((over, 90), (still, 150))
        ),
        *(
            case(
                alert,
                f"a burst, and {minutes} minutes pass",
                by_two(
                    series(counter((31 + minutes, 10)), counter((30, 0), (1, 40), (minutes, 0)))
                ),
            )
            for case, minutes in ((still, 14), (over, 17))
        ),
    ]


def aged(steps, age_s):
    """Return an audit trail's series, whose last checkpoint is always of one age."""
    signed = (max(0, 60 * step - age_s) for step in range(steps))
    return one("mnemoscope_audit_checkpoint_timestamp_seconds", " ".join(map(str, signed)))


def recalled(*phases):
    """Return the series of recalls; *phases* are (steps, recalls, share of them that is empty)."""
    every = counter(*[(steps, rise) for steps, rise, _share in (*phases, (1, 0, 0))])
    empty = counter(*[(steps, rise * share) for steps, rise, share in (*phases, (1, 0, 0))])
    return by_two(recalls(every, empty))


def costs(*phases):
    """Return one feature's dollars, which two processes spend; *phases* are (steps, dollars)."""
    return by_two(cost(counter(*phases, (1, 0))))


def outcome(measurement, values):
    """Return what was counted of outcomes."""
    return one(PARTS, values, part="outcome", measurement=measurement)


def of_week(alert, some, every, beyond, within, *, fewest=0, scale=100):
    """
    Return the stories of an alert on a ratio of the last week.

    *beyond* and *within* are ratios just on either side of the limit, times *scale*.
    """

    def weeks(ratio, an_hour, weeks=3):
        steps = 7 * 24 * weeks
        return by_two(
            outcome(every, counter((steps, an_hour)))
            | outcome(some, counter((steps, an_hour * ratio / scale)))
            | outcome("used", counter((steps, 7 * an_hour)))
        )

    hourly = AN_HOUR
    found = [
        still(alert, f"{beyond} of {scale}, for weeks", weeks(beyond, 10), hourly, value=beyond),
        quiet(alert, f"{within} of {scale}, for weeks", weeks(within, 10), hourly),
    ]
    if fewest:
        few, enough = 0.9 * fewest / 168, 1.1 * fewest / 168
        found += [
            quiet(alert, "too few to say", weeks(beyond, few), hourly),
            fires(alert, "just as many as it takes", weeks(beyond, enough), hourly),
        ]
    return found


def success_costs(*phases, an_hour=1.0):
    """Return dollars and successes; *phases* are (hours, dollars for each success)."""
    hours = sum(steps for steps, _usd in phases)
    dollars = counter(*((steps, usd * an_hour) for steps, usd in phases))
    return by_two(cost(dollars) | outcome("success", counter((hours, an_hour))))


DAY = 24
COST_PER_SUCCESS = [
    still(
        "CostPerSuccessJump",
        "1.7 times as much as a week ago, and less than in between and before",
        success_costs((7 * DAY, 20), (3 * DAY, 4), (4 * DAY, 20), (2 * DAY, 7)),
        AN_HOUR,
        value=7,
    ),
    fires("CostPerSuccessJump", "1.6 times", success_costs((9 * DAY, 5), (3 * DAY, 8)), AN_HOUR),
    quiet("CostPerSuccessJump", "1.4 times", success_costs((9 * DAY, 5), (9 * DAY, 7)), AN_HOUR),
    *(
        case(
            "CostPerSuccessJump",
            f"{a_day} successes a day",
            success_costs((9 * DAY, 5), (3 * DAY, 10), an_hour=a_day / DAY),
            AN_HOUR,
        )
        for case, a_day in ((fires, 22), (quiet, 18))
    ),
]


def tokens(*phases):
    """Return an agent's tokens; *phases* are (steps, tokens a minute)."""
    return by_two(one("mnemoscope_agent_tokens_total", counter(*phases), agent="reader"))


TOKEN_SPIKE = [
    still(
        "TokenSpike",
        "eleven times as many for five minutes",
        tokens((120, 1_000), (6, 10_800)),
        value=54_000,
    ),
    quiet("TokenSpike", "nine times as many", tokens((120, 1_000), (20, 9_000))),
    over("TokenSpike", "eleven times as many for ten minutes", tokens((120, 1_000), (11, 11_000))),
    still(
        "TokenSpike",
        "eleven times the mean, and less than once in that hour",
        tokens((120, 1_000), (5, 20_000), (25, 1_000), (6, 33_000)),
    ),
    still(
        "TokenSpike",
        "twelve times as many as in an hour, and more in the hour before",
        tokens((90, 30_000), (75, 1_000), (6, 12_000)),
    ),
    quiet(
        "TokenSpike",
        "much in the hour, and nothing in its last half",
        tokens((120, 3_000), (40, 1_000), (20, 12_000)),
    ),
    fires("TokenSpike", "11,000 tokens", tokens((120, 100), (6, 2_200))),
    quiet("TokenSpike", "9,000 tokens", tokens((120, 100), (6, 1_800))),
]


def durations(*phases):
    """Return an agent's recalls; *phases* are (steps, calls a minute, seconds, share of 3 s)."""
    name, labels = "mnemoscope_agent_duration_seconds", 'job="app",agent="reader",class="recall"'
    count = counter(*((steps, calls) for steps, calls, _s, _share in phases))
    quick = counter(*((steps, calls * (1 - share)) for steps, calls, _s, share in phases))
    spent = counter(*((steps, calls * seconds) for steps, calls, seconds, _share in phases))
    return by_two(
        {
            f'{name}_bucket{{{labels},le="0.1"}}': quick,
            f'{name}_bucket{{{labels},le="5.0"}}': count,
            f'{name}_bucket{{{labels},le="+Inf"}}': count,
            f"{name}_count{{{labels}}}": count,
            f"{name}_sum{{{labels}}}": spent,
        }
    )


AGENT_SLOW = [
    still(
        "AgentSlow",
        "a mean of 0.55 s for five minutes, where nearly all take less than 0.1",
        durations((90, 4, 0.05, 0), (6, 12, 0.55, 1)),
    ),
    quiet("AgentSlow", "a mean of 0.42 s", durations((90, 4, 0.05, 0), (20, 4, 0.42, 0))),
    over(
        "AgentSlow",
        "a mean of 0.55 s for twelve minutes: it was in the hour before",
        durations((90, 4, 0.05, 0), (13, 4, 0.55, 1)),
    ),
    still(
        "AgentSlow",
        "four in ten minutes were much slower, until three minutes ago",
        durations((90, 4, 0.05, 0), (5, 4, 1.5, 0), (4, 4, 0.05, 0)),
    ),
    quiet(
        "AgentSlow",
        "more calls for a while, each a little slower",
        durations((90, 4, 0.05, 0), (5, 12, 0.42, 0), (10, 4, 0.05, 0)),
    ),
    quiet(
        "AgentSlow",
        "one call in ten takes seconds anyway, of half an hour",
        durations((90, 4, 0.05, 0.2), (35, 4, 0.05, 0), (6, 4, 0.55, 0)),
    ),
    still(
        "AgentSlow",
        "one in five took seconds in the hour before this one",
        durations((90, 4, 0.05, 0.2), (70, 4, 0.05, 0), (6, 4, 0.55, 0)),
    ),
    still("AgentSlow", "3 s", durations((90, 4, 0.05, 0), (6, 4, 3, 0)), value=3),
    *(
        case(
            "AgentSlow",
            f"{calls} calls in five minutes",
            durations((90, calls / 5, 0.05, 0), (6, calls / 5, 0.6, 0)),
        )
        for case, calls in ((fires, 11), (quiet, 9))
    ),
    quiet(
        "AgentSlow",
        "one process waits for seconds anyway, and another has most calls",
        {
            f'{name.removesuffix("}")},process="{process}"}}': values
            for process, share, calls in (("quick", 0, 20), ("slow", 1, 12))
            for name, values in durations((90, calls, 0.05, share), (20, calls, 0.6, share)).items()
        },
    ),
]


BURNS_FAST = [
    *(
        case(
            "LatencyBudgetBurnsFast",
            f"{share:.1%} were slow of the last ten minutes, and more of the hour",
            slow((7 * HOUR, 100, 0), (40, 100, 0.4), (10, 100, share)),
            **({"told": 2} if case is still else {}),
        )
        for case, share in ((still, 0.16), (over, 0.13))
    ),
    over(
        "LatencyBudgetBurnsFast",
        "all was slow for ten minutes, until seven minutes ago",
        slow((7 * HOUR, 100, 0), (10, 100, 1), (7, 100, 0)),
    ),
    still(
        "LatencyBudgetBurnsFast",
        "all was slow for ten minutes, until four minutes ago",
        slow((7 * HOUR, 100, 0), (10, 100, 1), (4, 100, 0)),
        told=2,
        value=1667,
    ),
    fires(
        "LatencyBudgetBurnsFast",
        "eleven of the sixty operations of an hour are slow",
        slow((5 * HOUR, 4, 0), (49, 1, 0), (11, 1, 1)),
        told=2,
    ),
    quiet(
        "LatencyBudgetBurnsFast",
        "nine of the sixty operations of an hour are slow",
        slow((5 * HOUR, 4, 0), (51, 1, 0), (9, 1, 1), (5, 1, 0)),
    ),
    *(
        case(
            "LatencyBudgetBurnsFast",
            f"{share:.1%} were slow in the last hour, and more of six hours",
            slow((84, 500, 0), (48, 500, 0.12), (12, 500, share)),
            FIVE_MINUTES,
            **(
                {"told": 2, "value": round(10_000 * (4 * 0.12 + share) / 6)}
                if case is still
                else {}
            ),
        )
        for case, share in ((still, 0.066), (over, 0.054))
    ),
    over(
        "LatencyBudgetBurnsFast",
        "all was slow for an hour, until forty minutes ago",
        slow((84, 500, 0), (12, 500, 1), (8, 500, 0)),
        FIVE_MINUTES,
    ),
    still(
        "LatencyBudgetBurnsFast",
        "all was slow for an hour, until twenty minutes ago",
        slow((84, 500, 0), (12, 500, 1), (4, 500, 0)),
        FIVE_MINUTES,
        told=2,
    ),
    fires(
        "LatencyBudgetBurnsFast",
        "low traffic: eleven operations are slow in six hours",
        slow((80, 1, 0), *single(11, 6, 1)),
        FIVE_MINUTES,
        told=2,
    ),
    quiet(
        "LatencyBudgetBurnsFast",
        "low traffic: nine operations are slow in six hours",
        slow((80, 1, 0), *single(9, 7, 1)),
        FIVE_MINUTES,
    ),
    fires(
        "LatencyBudgetBurnsFast",
        "low traffic: a store never answers",
        by_two(reads(counter(*[(1, 0), (1, 1)] * 72), counter((144, GAP))))
        | by_two(writes(counter(*[(1, 0), (1, 1)] * 72), counter((144, GAP)))),
        FIVE_MINUTES,
        told=2,
    ),
]
"""The near side of each threshold and window of the page."""

BURNS_SLOWLY = [
    *(
        case(
            "LatencyBudgetBurnsSlowly",
            f"{share:.1%} are slow on a calm day after two busy ones",
            slow((288, 3000, 0), (96, 1000, share)),
            QUARTER,
            **({"told": 2, "value": 10_000 * share} if case is fires else {}),
        )
        for case, share in ((fires, 0.033), (quiet, 0.027))
    ),
    *(
        case(
            "LatencyBudgetBurnsSlowly",
            f"{share:.1%} were slow in the last three hours, and more of a calm day",
            slow((288, 3000, 0), (84, 1000, 0.05), (12, 1000, share)),
            QUARTER,
            **({"told": 2} if case is still else {}),
        )
        for case, share in ((still, 0.033), (over, 0.027))
    ),
    over(
        "LatencyBudgetBurnsSlowly",
        "a fifth was slow for four hours of a calm day, until two and a half hours ago",
        slow((288, 3000, 0), (70, 1000, 0), (16, 1000, 0.2), (10, 1000, 0)),
        QUARTER,
    ),
    still(
        "LatencyBudgetBurnsSlowly",
        "a fifth was slow for four hours of a calm day, until an hour and a half ago",
        slow((288, 3000, 0), (74, 1000, 0), (16, 1000, 0.2), (6, 1000, 0)),
        QUARTER,
        told=2,
    ),
    quiet(
        "LatencyBudgetBurnsSlowly",
        "one in twenty is slow for half of a calm day",
        slow((288, 3000, 0), (48, 1000, 0), (48, 1000, 0.05)),
        QUARTER,
    ),
    fires(
        "LatencyBudgetBurnsSlowly",
        "eleven operations are slow on a day of little traffic",
        slow((288, 10, 0), (8, 3, 0), *single(11, 8, 3)),
        QUARTER,
        told=2,
    ),
    quiet(
        "LatencyBudgetBurnsSlowly",
        "nine operations are slow on a day of little traffic",
        slow((288, 10, 0), (6, 3, 0), *single(9, 10, 3)),
        QUARTER,
    ),
    fires(
        "LatencyBudgetBurnsSlowly",
        "a store has not answered since its restart, on a calm day",
        by_two(
            reads(counter((288, 1000), RESTART, (100, 1)), counter((288, 1000), (100, GAP)))
            | writes(counter((288, 1000), RESTART, (100, 1)), counter((288, 1000), (100, GAP)))
        ),
        QUARTER,
        told=2,
    ),
    *(
        case(
            "LatencyBudgetBurnsSlowly",
            f"{share:.1%} are slow for three days",
            slow((150, 1000, 0), (72, 1000, share)),
            AN_HOUR,
            **({"told": 2, "value": 10_000 * share} if case is fires else {}),
        )
        for case, share in ((fires, 0.011), (quiet, 0.009))
    ),
    quiet(
        "LatencyBudgetBurnsSlowly",
        "one and a half in a hundred are slow for forty hours",
        slow((150, 1000, 0), (40, 1000, 0.015)),
        AN_HOUR,
    ),
    *(
        case(
            "LatencyBudgetBurnsSlowly",
            f"{share:.1%} were slow in the last eight hours, and more of three days",
            slow((150, 1000, 0), (66, 1000, 0.013), (8, 1000, share)),
            AN_HOUR,
            **({"told": 2} if case is still else {}),
        )
        for case, share in ((still, 0.011), (over, 0.009))
    ),
    over(
        "LatencyBudgetBurnsSlowly",
        "one in twenty was slow for a day, until eight hours ago",
        slow((150, 1000, 0), (24, 1000, 0.05), (8, 1000, 0)),
        AN_HOUR,
    ),
    still(
        "LatencyBudgetBurnsSlowly",
        "one in twenty was slow for a day, until four hours ago",
        slow((150, 1000, 0), (24, 1000, 0.05), (4, 1000, 0)),
        AN_HOUR,
        told=2,
    ),
    fires(
        "LatencyBudgetBurnsSlowly",
        "eleven operations are slow in three days of little traffic",
        slow((150, 10, 0), *single(11, 6, 10), (2, 10, 0)),
        AN_HOUR,
        told=2,
    ),
    quiet(
        "LatencyBudgetBurnsSlowly",
        "nine operations are slow in three days of little traffic",
        slow((150, 10, 0), *single(9, 7, 10)),
        AN_HOUR,
    ),
    fires(
        "LatencyBudgetBurnsSlowly",
        "a store that is asked five times a day never answers",
        by_two(
            reads(counter(*[(4, 0), (1, 1)] * 16), counter((80, GAP)))
            | writes(counter(*[(4, 0), (1, 1)] * 16), counter((80, GAP)))
        ),
        AN_HOUR,
        told=2,
    ),
    *(
        case(
            "LatencyBudgetBurnsSlowly",
            f"all is slow for {minutes} minutes",
            slow((24, 500, 0), (1 + minutes // 5, 500, 1)),
            FIVE_MINUTES,
            **({"told": 2} if case is still else {}),
        )
        for case, minutes in ((still, 20), (over, 10))
    ),
]
"""The near side of each threshold and window of the ticket."""

NEAR = [
    *of_share("DegradedAnswers", answers),
    *of_share("ErrorsRaised", errors),
    *of_share("MemoryEchoes", repeating("echoes")),
    *of_share("MemoryRepeats", repeating("repeats")),
    *of_counter(
        "PartialWrites",
        "mnemoscope_operation_duration_seconds_count",
        15,
        store="mem0",
        status="partial",
    ),
    *of_counter("WritesLost", "mnemoscope_writes_lost_total", 15, store="mem0"),
    *of_counter("WritesRefused", "mnemoscope_writes_refused_total", 15, store="mem0"),
    *of_counter("TenantTripwire", "mnemoscope_tenant_tripwire_total", 15, store="mem0"),
    *of_counter("IntegrityViolation", PARTS, 15, part=INTEGRITY, measurement="changed"),
    *of_counter("AuditGap", "mnemoscope_audit_gap_events_total", 60),
    *of_counter(
        "EventsDropped", "mnemoscope_sink_dropped_total", 10, sink="otlp", reason="overflow"
    ),
    *of_counter("InternalErrors", "mnemoscope_internal_errors_total", 15, site="guard.report"),
    *of_gauge("JournalStuck", "mnemoscope_journal_oldest_seconds", 900, 5),
    *of_gauge("JournalParked", "mnemoscope_journal_parked", 0, 1, store="mem0"),
    *of_gauge("AuditLag", "mnemoscope_audit_lag_seconds", 60, 5),
    *of_gauge("AuditKeyMissing", "mnemoscope_audit_key_state", 0, 2, state="missing"),
    *of_spool("AuditSpoolFilling"),
    *of_gauge("RelayBehind", "mnemoscope_relay_lag_seconds", 60, 5, sink="otlp"),
    *of_gauge("RelaySilent", "mnemoscope_relay_silent_seconds", 60, 2),
    # -- breakers and sinks, which are down for a part of a window ---------------------------------
    fires(
        "BreakerOpen",
        "open in two of five minutes, half open in the others",
        breaker(gauge(*[(1, 2), (2, 1), (1, 2), (1, 1)] * 6)),
    ),
    quiet("BreakerOpen", "half open for an hour", breaker(gauge((HOUR, 1)))),
    fires("BreakerOpen", "open for six minutes", breaker(gauge((20, 0), (6, 2), (20, 0)))),
    quiet("BreakerOpen", "open for three minutes", breaker(gauge((20, 0), (3, 2), (20, 0)))),
    over(
        "BreakerOpen",
        "most of five minutes, for a minute and a half",
        breaker(gauge((20, 0), (10, 2))),
        HALF_A_MINUTE,
    ),
    still(
        "BreakerOpen",
        "most of five minutes, for two minutes and a half",
        breaker(gauge((20, 0), (12, 2))),
        HALF_A_MINUTE,
    ),
    still("BreakerOpen", "closed for seven minutes", breaker(gauge((20, 0), (10, 2), (7, 0)))),
    over("BreakerOpen", "closed for nine minutes", breaker(gauge((20, 0), (10, 2), (9, 0)))),
    fires(
        "BreakerOpen",
        "that of one process of two",
        one("mnemoscope_breaker_state", gauge((20, 2)), store="m", instance="one", **{"class": "c"})
        | one(
            "mnemoscope_breaker_state", gauge((20, 0)), store="m", instance="two", **{"class": "c"}
        ),
    ),
    fires(
        "SinkDown",
        "down six minutes of eleven",
        one("mnemoscope_sink_down", gauge(*[(6, 1), (5, 0)] * 5), sink="otlp"),
    ),
    quiet(
        "SinkDown",
        "down five minutes of eleven",
        one("mnemoscope_sink_down", gauge(*[(6, 0), (5, 1)] * 5), sink="otlp"),
    ),
    fires(
        "SinkDown",
        "down for ten minutes",
        one("mnemoscope_sink_down", gauge((30, 0), (10, 1), (20, 0)), sink="otlp"),
    ),
    over(
        "SinkDown",
        "most of ten minutes, for four and a half",
        one("mnemoscope_sink_down", gauge((40, 0), (20, 1)), sink="otlp"),
        HALF_A_MINUTE,
    ),
    still(
        "SinkDown",
        "most of ten minutes, for five and a half",
        one("mnemoscope_sink_down", gauge((40, 0), (22, 1)), sink="otlp"),
        HALF_A_MINUTE,
    ),
    still(
        "SinkDown",
        "up again for ten minutes",
        one("mnemoscope_sink_down", gauge((30, 0), (20, 1), (10, 0)), sink="otlp"),
    ),
    over(
        "SinkDown",
        "up again for twelve minutes",
        one("mnemoscope_sink_down", gauge((30, 0), (20, 1), (12, 0)), sink="otlp"),
    ),
    fires(
        "SinkDown",
        "that of one process of two",
        one("mnemoscope_sink_down", gauge((30, 0)), sink="otlp", instance="one")
        | one("mnemoscope_sink_down", gauge((30, 1)), sink="otlp", instance="two"),
    ),
    # -- empty recalls -----------------------------------------------------------------------------
    fires(
        "EmptyRecallsJump",
        "from ten in a hundred to thirty-seven",
        recalled((348, 100, 0.1), (10, 100, 0.37)),
        FIVE_MINUTES,
    ),
    quiet(
        "EmptyRecallsJump",
        "from ten in a hundred to thirty-four",
        recalled((348, 100, 0.1), (10, 100, 0.34)),
        FIVE_MINUTES,
    ),
    quiet(
        "EmptyRecallsJump",
        "from ten in a hundred to fifty-five, for a quarter of an hour",
        recalled((348, 100, 0.1), (3, 100, 0.55), (8, 100, 0.1)),
        FIVE_MINUTES,
    ),
    quiet(
        "EmptyRecallsJump",
        "forty in a hundred are always empty, whatever the traffic",
        recalled((348, 20, 0.4), (24, 400, 0.4), (24, 20, 0.4)),
        FIVE_MINUTES,
    ),
    fires(
        "EmptyRecallsJump",
        "low traffic: fifty-four recalls in half an hour",
        recalled((348, 9, 0), (12, 9, 1)),
        FIVE_MINUTES,
    ),
    quiet(
        "EmptyRecallsJump",
        "low traffic: forty-eight recalls in half an hour",
        recalled((348, 8, 0), (12, 8, 1)),
        FIVE_MINUTES,
    ),
    still(
        "EmptyRecallsJump",
        "worse than yesterday, and better than the day before",
        recalled((288, 100, 0.6), (290, 100, 0), (12, 100, 0.4)),
        FIVE_MINUTES,
        value=40,
    ),
    over(
        "EmptyRecallsJump",
        "worse than this morning, and not than yesterday evening",
        recalled((150, 100, 0.6), (138, 100, 0), (12, 100, 0.4)),
        FIVE_MINUTES,
    ),
    still(
        "EmptyRecallsJump",
        "all are empty, as they were for an hour of yesterday",
        recalled((200, 100, 0.1), (12, 100, 1), (200, 100, 0.1), (12, 100, 1)),
        FIVE_MINUTES,
    ),
    fires(
        "EmptyRecallsJump",
        "all are empty, of a store that is an hour old",
        recalled((8, 100, 0.1), (4, 100, 1)),
        FIVE_MINUTES,
    ),
    quiet(
        "EmptyRecallsJump",
        "all are empty, of a store that is half an hour old",
        recalled((3, 100, 0.1), (4, 100, 1)),
        FIVE_MINUTES,
    ),
    over(
        "EmptyRecallsJump",
        "all are empty, for a quarter of an hour",
        recalled((348, 100, 0.1), (3, 100, 1)),
        FIVE_MINUTES,
    ),
    still(
        "EmptyRecallsJump",
        "all are empty, for twenty-five minutes",
        recalled((348, 100, 0.1), (5, 100, 1)),
        FIVE_MINUTES,
    ),
    fires(
        "StoreFullSoon",
        "thirteen days are left for two hours",
        one("mnemoscope_store_days_to_full", gauge((HOUR, 40), (2 * HOUR, 13)), store="qdrant"),
    ),
    fires(
        "StoreFullSoon",
        "one of two machines sees that it will be full",
        one("mnemoscope_store_days_to_full", gauge((3 * HOUR, 13)), store="qdrant")
        | one("mnemoscope_store_days_to_full", gauge((3 * HOUR, 90)), store="qdrant", instance="b"),
    ),
    quiet(
        "StoreFullSoon",
        "fifteen days are left",
        one("mnemoscope_store_days_to_full", gauge((3 * HOUR, 15)), store="qdrant"),
    ),
    quiet(
        "StoreFullSoon",
        "nothing is foretold",
        one("mnemoscope_store_days_to_full", gauge((3 * HOUR, GAP)), store="qdrant"),
    ),
    quiet(
        "StoreFullSoon",
        "a load of three quarters of an hour, and room was made",
        one(
            "mnemoscope_store_days_to_full",
            gauge((HOUR, 40), (45, 5), (HOUR, 40)),
            store="qdrant",
        ),
    ),
    fires(
        "MemoryUnread",
        "108 writes in six hours, and nobody asks",
        unread(1.5),
        FIVE_MINUTES,
    ),
    still(
        "MemoryUnread",
        "108 writes in six hours, and recalls find nothing",
        unread(1.5, counter((97, 0))),
        FIVE_MINUTES,
        value=108,
    ),
    quiet("MemoryUnread", "94 writes in six hours", unread(1.3), FIVE_MINUTES),
    fires(
        "MemoryUnread",
        "two processes write 54 each",
        by_two(unread(1.5)),
        FIVE_MINUTES,
    ),
    over(
        "MemoryUnread",
        "one memory was found five and a half hours ago",
        unread(1.5, counter((30, 0), (1, 1), (66, 0))),
        FIVE_MINUTES,
    ),
    still(
        "MemoryUnread",
        "the last memory was found six and a half hours ago",
        unread(1.5, counter((17, 1), (80, 0))),
        FIVE_MINUTES,
        value=108,
    ),
    quiet(
        "MemoryUnread",
        "another service finds what this one writes",
        unread(1.5, counter((97, 1)), job="other", service="other"),
        FIVE_MINUTES,
    ),
    fires(
        "MemoryUnread",
        "another environment finds what is in its store of that name",
        unread(1.5, counter((97, 1)), environment="staging"),
        FIVE_MINUTES,
    ),
    fires(
        "MemoryUnread",
        "what is found is in another store",
        unread(1.5, counter((97, 1)), store="qdrant"),
        FIVE_MINUTES,
    ),
    quiet("MemoryUnread", "the writes fail", unread(1.5, status="degraded"), FIVE_MINUTES),
    quiet(
        "MemoryUnread", "they are states of threads", unread(1.5, kind="checkpoint"), FIVE_MINUTES
    ),
    # -- spend -------------------------------------------------------------------------------------
    fires(
        "FeatureSpendJump",
        "3.3 times as much, of two dollars an hour",
        costs((8 * 96, 0.5), (6, 1.65)),
        QUARTER,
        value=7,
    ),
    quiet("FeatureSpendJump", "2.7 times as much", costs((8 * 96, 0.5), (8, 1.35)), QUARTER),
    still(
        "FeatureSpendJump",
        "ten dollars in this hour",
        costs((8 * 96, 0.5), (4, 2.5)),
        QUARTER,
        value=10,
    ),
    over(
        "FeatureSpendJump",
        "2.7 times as much as the mean, at an hour that is calm otherwise",
        costs((94, 0.5), (8, 0.05), (568, 0.5), (8, 0.05), (88, 0.5), (6, 1.25)),
        QUARTER,
    ),
    over(
        "FeatureSpendJump",
        "2.7 times as much as yesterday at this hour",
        costs((672, 0.05), (8, 0.5), (88, 0.05), (6, 1.35)),
        QUARTER,
    ),
    over(
        "FeatureSpendJump",
        "2.7 times as much as a week ago at this hour",
        costs((96, 0.05), (8, 0.5), (664, 0.05), (6, 1.35)),
        QUARTER,
    ),
    fires("FeatureSpendJump", "1.1 dollars an hour", costs((8 * 96, 0.025), (6, 0.275)), QUARTER),
    quiet("FeatureSpendJump", "0.9 dollars an hour", costs((8 * 96, 0.025), (6, 0.225)), QUARTER),
    still(
        "FeatureSpendJump",
        "more than yesterday, and less than the day before",
        costs((8 * 96, 0.1), (96, 1.5), (100, 0.25), (4, 1)),
        QUARTER,
    ),
    over(
        "FeatureSpendJump",
        "more than in the last hours, as last evening was dear",
        costs((6 * 96, 0.075), (8, 0.075), (44, 0.75), (44, 0.075), (6, 0.75)),
        QUARTER,
    ),
    *(
        case(
            "FeatureSpendJump",
            f"four times as much for {quarters / 4} hours, which become usual",
            costs((8 * 96, 0.5), (quarters, 2)),
            QUARTER,
        )
        for case, quarters in ((still, 16), (over, 19))
    ),
    still(
        "FeatureSpendJump",
        "3.7 times as much, and less than in one hour of yesterday",
        costs((704, 0.5), (4, 2.5), (60, 0.5), (6, 1.85)),
        QUARTER,
    ),
    over(
        "FeatureSpendJump",
        "a hundred dollars, and five minutes",
        costs((312, 0.2), (2, 100)),
        FIVE_MINUTES,
    ),
    still(
        "FeatureSpendJump",
        "a hundred dollars, and fifteen minutes",
        costs((312, 0.2), (4, 100)),
        FIVE_MINUTES,
    ),
    still("BudgetSpent", "120 of 100", budget(gauge((20, 120))), value=120),
    fires("BudgetSpent", "110 of 100", budget(gauge((20, 110)))),
    fires("BudgetSpent", "60 cents of 50", budget(gauge((20, 0.6)), limit="0.5")),
    fires("BudgetNearlySpent", "85, told at 75", budget(gauge((20, 85)))),
    fires("BudgetNearlySpent", "45 cents of 50", budget(gauge((20, 0.45)), limit="0.5")),
    fires(
        "BudgetNearlySpent",
        "most of a budget of one token",
        in_tokens(budget(gauge((20, 0.8)), limit="1")),
    ),
    still("BudgetNearlySpent", "80 of 100", budget(gauge((20, 80))), value=80),
    *(
        case
        for alert, spent in (("BudgetSpent", 120), ("BudgetNearlySpent", 90))
        for case in (
            still(
                alert,
                "of its tokens",
                in_tokens(budget(gauge((20, spent)))),
                value=spent,
            ),
            still(
                alert,
                "by one process of two",
                {
                    f'{name.removesuffix("}")},instance="{instance}"}}': values
                    for instance, amount in (("one", spent), ("two", 10))
                    for name, values in budget(gauge((20, amount))).items()
                },
                value=spent,
            ),
            still(
                alert,
                "of its tokens, by one process of two",
                {
                    f'{name.removesuffix("}")},instance="{instance}"}}': values
                    for instance, amount in (("one", spent), ("two", 10))
                    for name, values in in_tokens(budget(gauge((20, amount)))).items()
                },
                value=spent,
            ),
            quiet(
                alert,
                "one process of two has not heard of its higher limit",
                {
                    f'{name.removesuffix("}")},instance="{limit}"}}': values
                    for limit in ("100", "200")
                    for name, values in budget(gauge((20, spent)), limit=limit).items()
                },
            ),
            quiet(
                alert,
                "one process of two has not heard of its higher limit of tokens",
                {
                    f'{name.removesuffix("}")},instance="{limit}"}}': values
                    for limit in ("100", "200")
                    for name, values in in_tokens(budget(gauge((20, spent)), limit)).items()
                },
            ),
        )
    ),
    fires(
        "BudgetSpent",
        "a budget of one token",
        in_tokens(budget(gauge((20, 1)), limit="1")),
    ),
    fires(
        "BudgetNearlySpent",
        "55, which one process of two tells at half",
        {
            f'{name.removesuffix("}")},instance="{at}"}}': values
            for at in ("0.5", "0.9")
            for name, values in budget(gauge((20, 55)), alert_at=at).items()
        },
    ),
    # -- what was signed, or beat, so long ago -----------------------------------------------------
    *(
        case("AuditCheckpointStale", f"always {age_s} seconds old", aged(90, age_s))
        for case, age_s in ((quiet, 800), (fires, 1_000))
    ),
    fires(
        "AuditCheckpointStale",
        "signed in the first second",
        one("mnemoscope_audit_checkpoint_timestamp_seconds", gauge((40, 1))),
    ),
    quiet(
        "AuditCheckpointStale",
        "one process of two signs",
        one("mnemoscope_audit_checkpoint_timestamp_seconds", gauge((90, 60)), instance="one")
        | one("mnemoscope_audit_checkpoint_timestamp_seconds", counter((90, 60)), instance="two"),
    ),
    *(
        case(
            "AuditCheckpointStale",
            f"too old for {seconds} seconds",
            one("mnemoscope_audit_checkpoint_timestamp_seconds", gauge((32 + seconds // 30, 30))),
            HALF_A_MINUTE,
        )
        for case, seconds in ((over, 270), (still, 330))
    ),
    *(
        case(
            "RelaySilent",
            f"its last sign was {minutes} minutes ago",
            one(
                "mnemoscope_relay_beat_timestamp_seconds",
                " ".join([*(str(60 * n) for n in range(30)), *["_"] * minutes]),
            ),
        )
        for case, minutes in ((still, 50), (over, 70))
    ),
    *(
        case(
            "RelaySilent",
            f"its last sign is always {age_s} seconds old",
            one(
                "mnemoscope_relay_beat_timestamp_seconds",
                " ".join(str(30 * n - age_s) for n in range(60)),
            ),
            HALF_A_MINUTE,
        )
        for case, age_s in ((fires, 66), (quiet, 54))
    ),
    quiet(
        "RelaySilent",
        "the relay of one process of two has ended",
        one("mnemoscope_relay_beat_timestamp_seconds", gauge((30, 60)), instance="one")
        | one("mnemoscope_relay_beat_timestamp_seconds", counter((30, 60)), instance="two"),
    ),
]
"""The near side of the thresholds, windows and waits of all other alerts."""

STORIES = [
    *of_week("TaskSuccessLow", "success", "all", 84, 86, fewest=20),
    *of_week("Cascades", "cascade", "all", 11, 9, fewest=20),
    *of_week("LabelsUnstable", "changed_labels", "labels", 6, 4.5),
    *of_week("DetectionSlow", "detected_after_s", "detected", 15_000, 14_000, scale=1),
    *COST_PER_SUCCESS,
    *TOKEN_SPIKE,
    *AGENT_SLOW,
    *of_counter("ScoreFalling", PARTS, 15, part="outcome", measurement="falling_score"),
    *of_counter("BudgetAheadOfGraph", PARTS, 15, part="outcome", measurement="budget_ahead"),
    *NEAR,
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
    *BURNS_FAST,
    *BURNS_SLOWLY,
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
    fires(
        "IntegrityViolation",
        "the first ever",
        one(PARTS, gauge((HOUR, GAP), (20, 1)), part=INTEGRITY, measurement="older"),
    ),
    fires(
        "IntegrityViolation",
        "one more",
        one(PARTS, gauge((HOUR, 4), (20, 5)), part=INTEGRITY, measurement="changed"),
    ),
    quiet(
        "IntegrityViolation",
        "what cannot be compared",
        one(PARTS, gauge((HOUR, GAP), (20, 9)), part=INTEGRITY, measurement="unknown"),
    ),
    quiet(
        "IntegrityViolation",
        "another part",
        one(PARTS, gauge((HOUR, GAP), (20, 9)), part="traffic.written", measurement="writes"),
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
        "AuditSpoolFilling",
        "the database is away, and there is room for forty minutes",
        spool(counter((30, 0), (20, 0.025), (5, 0))),
    ),
    fires(
        "AuditSpoolFilling",
        "the database is away, and half of a day's room is used",
        spool(counter((30, 0), (13 * HOUR, 1 / (24 * HOUR)), (1, 0))),
    ),
    quiet(
        "AuditSpoolFilling",
        "the database is away for an hour of a day's room",
        spool(counter((30, 0), (HOUR, 1 / (24 * HOUR))) + " " + gauge((HOUR, 0))),
    ),
    quiet(
        "AuditSpoolFilling",
        "the database restarts: for four minutes a tenth of the room each",
        spool(gauge((30, 0), (1, 0.1), (1, 0.2), (1, 0.3), (1, 0.4), (HOUR, 0))),
    ),
    quiet(
        "AuditSpoolFilling",
        "flapping: two minutes of events wait, and are written",
        spool(gauge(*[phase for _ in range(30) for phase in ((1, 0.1), (1, 0.2), (2, 0))])),
    ),
    quiet("AuditSpoolFilling", "idle night", spool(gauge((8 * HOUR, 0)))),
    quiet(
        "AuditSpoolFilling",
        "clock jump: nothing is known for forty minutes",
        spool(gauge((20, 0.1), (40, GAP), (HOUR, 0.1))),
    ),
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
