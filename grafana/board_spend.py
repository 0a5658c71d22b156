"""The dashboard Spend: cost by feature, node and model, and budgets."""

from __future__ import annotations

from boards import FEATURE, JOB, Board, Row
from panels import BAD, GOOD, ODD, About, AnyPanel, Query, figure, lines

_TOKENS = "mnemoscope_tokens_total"
_COST = "mnemoscope_cost_usd_total"
_HOUR = 3600


def spend() -> Board:
    """Return the dashboard that alerts about spend link to."""
    return Board(
        name="spend",
        title="Spend",
        about="What model calls cost, which feature, node and model made them, and since when.",
        since="now-24h",
        rows=(
            Row(title="Which feature caused it?", panels=_features()),
            Row(title="Which agent caused it?", panels=_agents()),
            Row(title="What becomes of results?", panels=_outcomes()),
            Row(title="Against its own past", panels=_past()),
            Row(title="Budgets", panels=_budgets()),
            Row(title="What do rules decide?", panels=_rules()),
            Row(title="What is left to humans?", panels=_approvals()),
            Row(title="Where do the tokens go?", panels=_tokens()),
            Row(title="How long do models and nodes take?", panels=_times()),
        ),
    )


def _cost_of(label: str) -> str:
    return f"sum by ({label}) (rate({_COST}{{{FEATURE}}}[$__rate_interval])) * {_HOUR}"


def _features() -> tuple[AnyPanel, ...]:
    cost = f"sum by (feature) (increase({_COST}{{{FEATURE}}}[$__range]))"
    return (
        figure(
            About(
                title="Most expensive feature in this window",
                shows="The feature that cost most in the window above, US dollars by the price "
                "table.",
                act="compare it with its own past below: the most expensive need not have grown.",
                unit="currencyUSD",
            ),
            Query(expr=f"topk(1, {cost})", legend="{{feature}}"),
            named=True,
        ),
        lines(
            About(
                title="Cost by feature",
                shows="US dollars per hour. `outer/inner` is a feature inside another.",
                act="the band that grew is the feature. Its nodes are below; its traces show "
                "the prompts' sizes.",
                unit="currencyUSD",
            ),
            Query(expr=_cost_of("feature"), legend="{{feature}}"),
            stacked=True,
        ),
        lines(
            About(
                title="Cost by model",
                shows="US dollars per hour.",
                act="an unexpected model is a changed default or a fallback.",
                unit="currencyUSD",
            ),
            Query(expr=_cost_of("model"), legend="{{model}}"),
            stacked=True,
        ),
    )


def _agents() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Cost by agent",
                shows="US dollars per hour of each agent, as `context(agent=...)` names it.",
                act="the agent that grew is the one to look at: its tokens and its p95 are beside.",
                unit="currencyUSD",
                span=8,
            ),
            Query(
                expr="sum by (agent) "
                f"(rate(mnemoscope_agent_cost_usd_total{{{JOB}}}[$__rate_interval])) * {_HOUR}",
                legend="{{agent}}",
            ),
            stacked=True,
        ),
        lines(
            About(
                title="Tokens by agent",
                shows="Input and output tokens per second of each agent.",
                act="a jump is a loop or a prompt that grew: `mnemoscope audit deviations` names "
                "the runs.",
                unit="short",
                span=8,
            ),
            Query(
                expr="sum by (agent) "
                f"(rate(mnemoscope_agent_tokens_total{{{JOB}}}[$__rate_interval]))",
                legend="{{agent}}",
            ),
            stacked=True,
        ),
        lines(
            About(
                title="Operations of agents, p95",
                shows="Seconds that an operation of each agent takes, by its class.",
                act="one agent alone: its queries changed. All of them: a store or model is slow, "
                "see Memory overview.",
                unit="s",
                span=8,
            ),
            *(
                Query(
                    expr="histogram_quantile(0.95, sum by (agent, class, le) (rate("
                    f"mnemoscope_agent_duration_seconds_bucket{{{JOB},class{which}}}"
                    "[$__rate_interval])))",
                    legend="{{agent}} {{class}}",
                )
                for which in ('="model"', '!="model"')
            ),
        ),
    )


def _outcomes() -> tuple[AnyPanel, ...]:
    posted = f'mnemoscope_event_part_total{{{JOB},part="outcome",measurement'
    return (
        lines(
            About(
                title="Outcomes",
                shows="What applications posted of their runs' results in the last hour.",
                act="fewer `used`, or more `falling_score` and `cascade`: `mnemoscope audit show "
                "--run` has a run's memory.",
                unit="short",
                span=12,
            ),
            Query(
                expr=f'sum by (measurement) (increase({posted}!="detected_after_s"}}[1h]))',
                legend="{{measurement}}",
            ),
        ),
        lines(
            About(
                title="Cost of a success",
                shows="US dollars of all model calls for each successful outcome of the window.",
                act="a rise is a dearer prompt or fewer successes: the panels around say which.",
                unit="currencyUSD",
                span=12,
            ),
            Query(
                expr=f"sum(increase({_COST}{{{JOB}}}[$__range])) / "
                f'sum(increase({posted}="success"}}[$__range]))',
                legend="a success",
            ),
        ),
    )


def _past() -> tuple[AnyPanel, ...]:
    hour = f"increase({_COST}{{{FEATURE}}}[1h]"
    return (
        lines(
            About(
                title="This hour, yesterday's, last week's",
                shows="US dollars in the hour before each moment, beside the same hour one day and "
                "one week earlier.",
                act="above both it is growth or a loop, not the time of day: the next panel shows "
                "the feature.",
                unit="currencyUSD",
                span=12,
            ),
            Query(expr=f"sum({hour}))", legend="now"),
            Query(expr=f"sum({hour} offset 1d))", legend="yesterday"),
            Query(expr=f"sum({hour} offset 1w))", legend="last week"),
        ),
        lines(
            About(
                title="Ratio to yesterday, by feature",
                shows="Cost of the last hour divided by that of the same hour yesterday.",
                act="at 3 an alert fires. Look for a longer prompt, an endless loop, a cache that "
                "is not used any more.",
                unit="none",
                span=12,
                steps={2: ODD, 3: BAD},
            ),
            Query(
                expr=f"sum by (feature) ({hour})) / (sum by (feature) ({hour} offset 1d)) > 0)",
                legend="{{feature}}",
            ),
        ),
    )


def _rules() -> tuple[AnyPanel, ...]:
    verdicts = f"mnemoscope_verdicts_total{{{JOB}}}"
    return (
        lines(
            About(
                title="Verdicts by rule",
                shows="Decisions of rules in the last 15 minutes that were no plain allow.",
                act="`mnemoscope audit verdicts` shows each, with the facts that it was made on.",
                unit="short",
            ),
            Query(
                expr=f"sum by (rule, outcome) (increase({verdicts}[15m]))",
                legend="{{rule}}: {{outcome}}",
            ),
            stacked=True,
        ),
        lines(
            About(
                title="Shadow against real",
                shows="What rules in shadow would have decided in the last 15 minutes, beside what "
                "the others did decide.",
                act="take a rule out of shadow once what it would do is what you want.",
                unit="short",
            ),
            Query(
                expr="sum by (rule, would) "
                f'(increase(mnemoscope_verdicts_total{{{JOB}, outcome="shadow"}}[15m]))',
                legend="{{rule}} would {{would}}",
            ),
            Query(
                expr="sum by (outcome) "
                f'(increase(mnemoscope_verdicts_total{{{JOB}, outcome!="shadow"}}[15m]))',
                legend="{{outcome}}",
            ),
        ),
        lines(
            About(
                title="Runs by phase and mode",
                shows="Runs that are in a phase now, by how much they may still do: `normal`, "
                "`conserve` (searches find fewer), `synthesis_only` (no memory), `terminate`.",
                act="a phase that is seldom `normal` has too small an envelope, or work that "
                "belongs into another.",
                unit="short",
            ),
            Query(
                expr=f"sum by (phase, mode) (mnemoscope_phase_runs{{{JOB}}})",
                legend="{{phase}}: {{mode}}",
            ),
            stacked=True,
        ),
    )


def _approvals() -> tuple[AnyPanel, ...]:
    return (
        lines(
            About(
                title="Agreement with humans",
                shows="Share of humans' decisions that agree with what each gate would have done, "
                "of those that count, and whether it goes on by itself: 1 is auto, 0 is shadow.",
                act="below 0.8 a gate is back in shadow by itself. `mnemoscope approvals "
                "agreement` has the counts; look at what was edited before changing a prompt.",
                unit="percentunit",
                steps={0: BAD, 0.8: GOOD},
            ),
            Query(
                expr=f"max by (rule) (mnemoscope_approval_agreement_ratio{{{JOB}}})",
                legend="{{rule}}",
            ),
            Query(
                expr=f"max by (rule) (mnemoscope_approval_auto{{{JOB}}})",
                legend="{{rule}}: auto",
            ),
        ),
        lines(
            About(
                title="Held, waiting for a human",
                shows="Memory writes and drafts that each rule holds, and nobody has decided yet.",
                act="`mnemoscope approvals list` names them. One that only grows needs more "
                "reviewers, or a gate that holds less.",
                unit="short",
            ),
            Query(
                expr=f"max by (rule) (mnemoscope_approvals_waiting{{{JOB}}})",
                legend="{{rule}}",
            ),
            stacked=True,
        ),
    )


def _budgets() -> tuple[AnyPanel, ...]:
    used = " or ".join(f"{_of('spent', unit)} / ({_of('limit', unit)} > 0)" for unit in _UNITS)
    return (
        lines(
            About(
                title="Budgets used",
                shows="Share of each budget that is spent in the period that ends now. Budgets "
                "count per process: this is the process that spent most. And the "
                "share from which on each needs attention, its `alert_at`.",
                act="above 1 the budget's `on_exceeded` applies: the runbook says how to raise it, "
                "the features above show what used it up.",
                unit="percentunit",
                steps={0.75: ODD, 1: BAD},
            ),
            Query(expr=used, legend="{{budget}}"),
            Query(
                expr=f"max by (budget) (mnemoscope_budget_alert_ratio{{{JOB}}})",
                legend="{{budget}} alerts at",
            ),
        ),
        *(_amounts(unit) for unit in _UNITS),
        _calls(
            "crossings",
            "Levels crossed",
            shows="Times a budget went past one of its levels, in the window.",
            act="a level crossed every period is a budget that is too small, or a feature that is "
            "too expensive.",
            by="budget, level",
        ),
        _calls(
            "refused_calls",
            "Calls not made",
            shows="Model calls in the window that were stopped because their budget was spent.",
            act="agents raise BudgetExceededError for these: raise the budget, or let the feature "
            "wait.",
        ),
        _calls(
            "unpriced_calls",
            "Calls a budget could not count",
            shows="Model calls in the window that a budget covers and whose cost is unknown.",
            act="the budget is spent faster than it shows: give the model a price in "
            "MNEMOSCOPE_PRICES.",
        ),
    )


_UNITS = {"usd": "currencyUSD", "tokens": "short"}
"""A budget's unit, and Grafana's id of it."""


def _of(what: str, unit: str) -> str:
    return f"max by (budget) (mnemoscope_budget_{what}_{unit}{{{JOB}}})"


def _amounts(unit: str) -> AnyPanel:
    word = {"usd": "US dollars", "tokens": "Tokens"}[unit]
    return lines(
        About(
            title=f"{word}: spent, limit, pace",
            shows="The spend of each budget in the period that ends now, its limit, and the cost "
            "of an hour at the current rate.",
            act="act on a line that will reach its limit before the period ends.",
            unit=_UNITS[unit],
        ),
        Query(expr=_of("spent", unit), legend="{{budget}} spent"),
        Query(expr=_of("limit", unit), legend="{{budget}} limit"),
        Query(expr=_of("burn", f"{unit}_per_hour"), legend="{{budget}} an hour"),
    )


def _calls(name: str, title: str, *, shows: str, act: str, by: str = "budget") -> AnyPanel:
    series = f"mnemoscope_budget_{name}_total{{{JOB}}}"
    legend = " ".join(f"{{{{{label}}}}}" for label in by.split(", "))
    return lines(
        About(title=title, shows=shows, act=act, unit="short"),
        Query(expr=f"sum by ({by}) (increase({series}[$__range]))", legend=legend),
    )


def _tokens() -> tuple[AnyPanel, ...]:
    def rate(kind: str, by: str = "model") -> str:
        return f'sum by ({by}) (rate({_TOKENS}{{{FEATURE},type="{kind}"}}[$__rate_interval]))'

    return (
        *(_tokens_by(label) for label in ("feature", "node", "model")),
        lines(
            About(
                title="Cached share of the input",
                shows="Share of the input that came from the provider's cache, by model; and input "
                "written to it.",
                act="a drop means that prompts no longer begin alike: something variable, such as "
                "a date, moved to their front.",
                unit="percentunit",
                span=8,
            ),
            Query(expr=f"{rate('cached')} / ({rate('input')} > 0)", legend="{{model}} read"),
            Query(
                expr=f"{rate('cache_write')} / ({rate('input')} > 0)", legend="{{model}} written"
            ),
        ),
        lines(
            About(
                title="Reasoning share of the output",
                shows="Share of the output that is reasoning, by model.",
                act="it is billed: a rise is another effort setting or harder questions.",
                unit="percentunit",
                span=8,
            ),
            Query(expr=f"{rate('reasoning')} / ({rate('output')} > 0)", legend="{{model}}"),
        ),
        lines(
            About(
                title="Calls without a price or usage",
                shows="Tokens per second of models without a price, and model calls per second "
                "whose provider reported no usage.",
                act="add the model to a file and name it in MNEMOSCOPE_PRICES; make the client "
                "request usage in streams.",
                unit="short",
                span=8,
            ),
            Query(
                expr="sum by (model) "
                f"(rate(mnemoscope_unpriced_tokens_total{{{JOB}}}[$__rate_interval]))",
                legend="{{model}} tokens",
            ),
            Query(
                expr="sum by (model) "
                f"(rate(mnemoscope_unreported_calls_total{{{JOB}}}[$__rate_interval]))",
                legend="{{model}} calls",
            ),
        ),
    )


def _tokens_by(label: str) -> AnyPanel:
    return lines(
        About(
            title=f"Tokens by {label}",
            shows=f"Input and output tokens per second, by {label}, including cached input and "
            "reasoning.",
            act="growing input is context that is never trimmed; growing output is a prompt that "
            "requests more.",
            unit="short",
        ),
        Query(
            expr=f"sum by ({label}, type) (rate({_TOKENS}"
            f'{{{FEATURE},type=~"input|output"}}[$__rate_interval]))',
            legend=f"{{{{{label}}}}} {{{{type}}}}",
        ),
        stacked=True,
    )


def _times() -> tuple[AnyPanel, ...]:
    def quantile(of: float, name: str, by: str) -> str:
        series = f"mnemoscope_{name}_seconds_bucket{{{JOB}}}"
        return f"histogram_quantile({of}, sum by ({by}, le) (rate({series}[$__rate_interval])))"

    first = "time_to_first_token"
    runs, dear = "mnemoscope_loop_iterations", "mnemoscope_iteration_cost_usd"
    return (
        lines(
            About(
                title="Time to first token",
                shows="Seconds until a model's first chunk, p50 and p95.",
                act="the provider is slow, or the prompt grew: compare with tokens by model.",
                unit="s",
                span=12,
            ),
            Query(expr=quantile(0.5, first, "model"), legend="{{model}} p50"),
            Query(expr=quantile(0.95, first, "model"), legend="{{model}} p95", exemplars=True),
        ),
        lines(
            About(
                title="Nodes of the graph, p95",
                shows="Seconds that one run of each node takes.",
                act="the trace that a dot links to shows the slowest node and the store or model "
                "that it waits for.",
                unit="s",
                span=12,
            ),
            Query(expr=quantile(0.95, "node_duration", "node"), legend="{{node}}", exemplars=True),
        ),
        lines(
            About(
                title="Model calls, tools, nodes and graphs, p95",
                shows="Seconds that each takes, by operation: chat is a model call, invoke_agent a "
                "graph, with all that they wait for.",
                act="if invoke_agent rises and chat does not, it is a store: see Memory overview.",
                unit="s",
                span=24,
            ),
            Query(
                expr="histogram_quantile(0.95, sum by (operation, le) (rate("
                f'mnemoscope_operation_duration_seconds_bucket{{{JOB},class="model"}}'
                "[$__rate_interval])))",
                legend="{{operation}}",
                exemplars=True,
            ),
        ),
        lines(
            About(
                title="Loops: runs of a node within one run of its graph, p95",
                shows="Number of the node's run within its graph's run, 95th percentile.",
                act="a rise is an endless loop: give the graph a recursion limit and look at one "
                "trace.",
                unit="short",
                span=12,
                steps={20: ODD},
            ),
            Query(
                expr="histogram_quantile(0.95, sum by (node, le) "
                f"(rate({runs}_bucket{{{JOB}}}[$__rate_interval])))",
                legend="{{node}}",
            ),
        ),
        lines(
            About(
                title="Cost of one run of a node",
                shows="Mean US dollars of the model calls in one run of each node.",
                act="a more expensive node has a longer prompt or another model; the previous "
                "panel shows nodes that run more often.",
                unit="currencyUSD",
                span=12,
            ),
            Query(
                expr=f"sum by (node) (rate({dear}_sum{{{JOB}}}[$__rate_interval])) / "
                f"(sum by (node) (rate({dear}_count{{{JOB}}}[$__rate_interval])) > 0)",
                legend="{{node}}",
            ),
        ),
    )
