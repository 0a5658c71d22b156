"""The alerts of a watchdog over agents: tokens, scores, budgets and latency that run away."""

from __future__ import annotations

from typing import Final

from .promql import ORIGIN, WHOLE, RuleSpeed, counted
from .rule import Alert, RecordingRule, RuleGroup

_BY: Final = f"{ORIGIN}, agent"
_TOKENS: Final = "agent:mnemoscope_tokens:increase5m"
_SECONDS: Final = "agent:mnemoscope_seconds:mean5m"
_CALLS: Final = "agent:mnemoscope_calls:increase5m"
_USUAL: Final = "agent:mnemoscope_seconds:p95_1h"
_DURATION: Final = "mnemoscope_agent_duration_seconds"
_OUTCOME: Final = 'mnemoscope_event_part_total{{part="outcome",measurement="{}"}}'


def watchdog(pace: RuleSpeed) -> RuleGroup:
    """Return the rules about agents that run away."""
    return RuleGroup(
        name="watchdog",
        rules=[
            RecordingRule(
                name=_TOKENS,
                expr=f"sum by ({_BY}) (increase(mnemoscope_agent_tokens_total[{pace('5m')}]))\n",
            ),
            RecordingRule(
                name=_SECONDS,
                expr=f"sum by ({_BY}, class) (rate({_DURATION}_sum[{pace('5m')}]))\n"
                f"/ sum by ({_BY}, class) (rate({_DURATION}_count[{pace('5m')}]))\n",
            ),
            RecordingRule(
                name=_CALLS,
                expr=f"sum by ({_BY}, class) (increase({_DURATION}_count[{pace('5m')}]))\n",
            ),
            RecordingRule(
                name=_USUAL,
                expr=f"histogram_quantile(0.95, sum by ({_BY}, class, le) "
                f"(rate({_DURATION}_bucket[{pace('1h')}])))\n",
            ),
            Alert(
                name="MnemoscopeTokenSpike",
                expr=f"{_TOKENS}\n"
                f"> 10 * avg_over_time({_TOKENS}[{pace('1h')}] offset {pace('5m')})\n"
                f"and {_TOKENS} > 10000\n",
                severity="critical",
                summary="{{ $labels.agent }} uses ten times its tokens",
                description=f"{WHOLE} tokens of {{{{ $labels.agent }}}} in 5 minutes: more than "
                "ten times its mean over the hour before.",
                board="spend",
            ),
            Alert(
                name="MnemoscopeScoreFalling",
                expr=counted(_OUTCOME.format("falling_score"), pace("15m"), by=ORIGIN) + " > 0\n",
                severity="warning",
                summary="The score of a run fell twice in a row",
                description=f"{WHOLE} times in 15 minutes the score that was posted for a run was "
                "lower than the one before, and that lower than its own.",
                board="spend",
            ),
            Alert(
                name="MnemoscopeBudgetAheadOfGraph",
                expr=counted(_OUTCOME.format("budget_ahead"), pace("15m"), by=ORIGIN) + " > 0\n",
                severity="warning",
                summary="A graph is not half done, and most of a budget is spent",
                description=f"{WHOLE} times in 15 minutes more than 80 % of a budget was spent "
                "with less than 50 % of the graph done.",
                board="spend",
            ),
            Alert(
                name="MnemoscopeAgentSlow",
                expr=f"{_SECONDS} > 5 * ({_USUAL} offset {pace('5m')})\nand {_CALLS} >= 10\n",
                severity="warning",
                summary="{{ $labels.agent }} waits five times as long as its slow calls do",
                description="{{ $labels.class }} operations of {{ $labels.agent }} take "
                "{{ $value | humanizeDuration }} in the mean of 5 minutes: more than five times "
                "their p95 over the hour before.",
                board="spend",
            ),
        ],
    )
