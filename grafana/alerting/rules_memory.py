"""The alerts about stores that fail, calls that raise, empty recalls, lost writes and junk."""

from __future__ import annotations

from .promql import ORIGIN, WHOLE, RuleSpeed, counted
from .rule import Alert, RecordingRule, RuleGroup

_COUNT = "mnemoscope_operation_duration_seconds_count"
_RESULTS = "mnemoscope_recall_results"
_PARTS = "mnemoscope_event_part_total"
_MEMORY = 'class!="model"'
_CALLED = 'status!~"rejected|refused|denied"'
"""Of a store that raises, the breaker soon lets few calls through: the others say nothing of it."""

_UNANSWERED = 'status=~"degraded|timeout|rejected"'


def memory(pace: RuleSpeed) -> RuleGroup:
    """Return the rules about the stores' answers."""
    return RuleGroup(
        name="memory",
        rules=[
            *_records(pace),
            _degraded(pace),
            _errors(pace),
            _breaker(pace),
            _empty(pace),
            _lost(pace),
            _stuck(pace),
            _parked(pace),
            _full(pace),
            *_repeating_records(pace, "echoes"),
            _echoes(pace),
            *_repeating_records(pace, "repeats"),
            _repeats(pace),
            _partial(pace),
            _unread(pace),
        ],
    )


def _records(pace: RuleSpeed) -> tuple[RecordingRule, ...]:
    every = f"{_COUNT}{{{_MEMORY}}}[{pace('10m')}]"
    unanswered = f"{_COUNT}{{{_MEMORY},{_UNANSWERED}}}[{pace('10m')}]"
    called = f"{_COUNT}{{{_MEMORY},{_CALLED}}}[{pace('10m')}]"
    raised = f'{_COUNT}{{{_MEMORY},status="error"}}[{pace("10m")}]'
    half_hour = pace("30m")
    return (
        *_share_records("store:mnemoscope_unanswered", unanswered, every, by=f"{ORIGIN}, store"),
        *_share_records("store:mnemoscope_errors", raised, called, by=f"{ORIGIN}, store"),
        RecordingRule(
            name="store:mnemoscope_empty_recalls:ratio30m",
            expr=f'sum by ({ORIGIN}, store) (rate({_RESULTS}_bucket{{le="0.0"}}[{half_hour}]))\n'
            f"/ (sum by ({ORIGIN}, store) (rate({_RESULTS}_count[{half_hour}])) > 0)\n",
        ),
        RecordingRule(
            name="store:mnemoscope_recalls:increase30m",
            expr=f"sum by ({ORIGIN}, store) (increase({_RESULTS}_count[{half_hour}]))\n",
        ),
    )


def _share_records(name: str, some: str, every: str, *, by: str) -> tuple[RecordingRule, ...]:
    """Return the two rules that `_share_of_operations` asks for, of the last ten minutes."""
    return (
        RecordingRule(
            name=f"{name}:ratio10m",
            expr=f"sum by ({by}) (rate({some}))\n/ (sum by ({by}) (rate({every})) > 0)\n",
        ),
        RecordingRule(
            name=f"{name}:increase10m",
            expr=f"sum by ({by}) (increase({some}))\n",
        ),
    )


def _degraded(pace: RuleSpeed) -> Alert:
    return _share_of_operations(
        pace,
        "store:mnemoscope_unanswered",
        name="MnemoscopeDegradedAnswers",
        summary="Agents work without {{ $labels.store }}",
        what=" % of the operations of {{ $labels.store }} were not answered by it in the last 10 "
        "minutes: degraded, timed out or rejected.",
    )


def _errors(pace: RuleSpeed) -> Alert:
    return _share_of_operations(
        pace,
        "store:mnemoscope_errors",
        name="MnemoscopeErrorsRaised",
        summary="Calls of {{ $labels.store }} raise errors in the agent",
        what=" % of the operations that reached {{ $labels.store }} raised an error in the last 10 "
        "minutes: its own, or of calls that make no sense to it.",
    )


def _share_of_operations(
    pace: RuleSpeed, recorded: str, *, name: str, summary: str, what: str
) -> Alert:
    """Return an alert on more than 5 % of the operations, and not on a handful of them."""
    return Alert(
        name=name,
        expr=f"100 * {recorded}:ratio10m > 5\nand {recorded}:increase10m >= 10\n",
        wait=pace("2m"),
        hold=pace("5m"),
        severity="warning",
        summary=summary,
        description=WHOLE + what,
        board="overview",
    )


def _breaker(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeBreakerOpen",
        # The mean, because an open breaker lets a trial call through now and then.
        expr=f"max by ({ORIGIN}, store, class) "
        f"(avg_over_time(mnemoscope_breaker_state[{pace('5m')}])) > 1.2\n",
        wait=pace("2m"),
        hold=pace("5m"),
        severity="critical",
        summary="{{ $labels.store }} is not called any more: its {{ $labels.class }} breaker is "
        "open",
        description="The circuit breaker for {{ $labels.class }} operations of "
        "{{ $labels.store }} has been open for most of the last 5 minutes.",
        board="overview",
    )


def _empty(pace: RuleSpeed) -> Alert:
    ratio = "store:mnemoscope_empty_recalls:ratio30m"
    return Alert(
        name="MnemoscopeEmptyRecallsJump",
        expr=f"100 * {ratio}\n"
        f"> 100 * avg_over_time({ratio}[{pace('1d')}] offset {pace('30m')}) + 25\n"
        "and store:mnemoscope_recalls:increase30m >= 50\n",
        wait=pace("10m"),
        severity="warning",
        summary="Recalls of {{ $labels.store }} find nothing more often than they used to",
        description=WHOLE + " % of the recalls of {{ $labels.store }} in "
        "the last 30 minutes found nothing, a quarter more than over the day before.",
        board="overview",
    )


def _lost(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeWritesLost",
        expr=counted("mnemoscope_writes_lost_total", pace("15m"), by=f"{ORIGIN}, store") + " > 0\n",
        severity="warning",
        summary="Memories written to {{ $labels.store }} are lost",
        description=WHOLE + " writes in the last 15 minutes did not reach "
        "{{ $labels.store }} and are not in a journal.",
        board="overview",
    )


def _stuck(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeJournalStuck",
        expr=f"max by ({ORIGIN}) (mnemoscope_journal_oldest_seconds) > 900\n",
        wait=pace("5m"),
        severity="warning",
        summary="Writes have waited in the journal for a quarter of an hour",
        description="The oldest write in the journal of {{ $labels.job }} has waited for "
        "{{ $value | humanizeDuration }}: its store does not take it, or nobody makes it again.",
        board="overview",
    )


def _parked(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeJournalParked",
        # All processes of a machine share a journal, and each tells the same of it.
        expr=f"max by ({ORIGIN}, store) (mnemoscope_journal_parked) > 0\n",
        wait=pace("1m"),
        severity="warning",
        summary="Memories for {{ $labels.store }} wait for somebody to decide",
        description=WHOLE + " writes for {{ $labels.store }} were set aside in the "
        "journal: they failed by themselves, and are not made again.",
        board="overview",
    )


def _full(pace: RuleSpeed) -> Alert:
    return Alert(
        name="MnemoscopeStoreFullSoon",
        # One process of a machine measures, and of several machines each its own view.
        expr=f"min by ({ORIGIN}, store) (mnemoscope_store_days_to_full) < 14\n",
        wait=pace("1h"),
        severity="warning",
        summary="{{ $labels.store }} will be full soon, if it grows on as it did",
        description="By a straight line through its sizes so far {{ $labels.store }} has room for "
        + WHOLE
        + " days more.",
        board="overview",
    )


def _repeating_records(pace: RuleSpeed, measurement: str) -> tuple[RecordingRule, ...]:
    window = pace("10m")
    found = f'{_PARTS}{{part="hygiene",measurement="{measurement}"}}[{window}]'
    written = f'{_PARTS}{{part="hygiene",measurement="written"}}[{window}]'
    return _share_records(f"job:mnemoscope_memory_{measurement}", found, written, by=ORIGIN)


def _echoes(pace: RuleSpeed) -> Alert:
    return _share_of_operations(
        pace,
        "job:mnemoscope_memory_echoes",
        name="MnemoscopeMemoryEchoes",
        summary="Agents store again what they have just recalled",
        what=" % of the memories that were written in the last 10 minutes have a text that the "
        "same run had recalled.",
    )


def _repeats(pace: RuleSpeed) -> Alert:
    return _share_of_operations(
        pace,
        "job:mnemoscope_memory_repeats",
        name="MnemoscopeMemoryRepeats",
        summary="Agents store what their customers' memories have already",
        what=" % of the memories that were written in the last 10 minutes have a text that "
        "another memory of the same customer has.",
    )


def _partial(pace: RuleSpeed) -> Alert:
    partial = f'{_COUNT}{{status="partial"}}'
    return Alert(
        name="MnemoscopePartialWrites",
        expr=counted(partial, pace("15m"), by=f"{ORIGIN}, store") + " > 0\n",
        severity="warning",
        summary="{{ $labels.store }} keeps a part of what it is given, and says that all is well",
        description=WHOLE + " writes in the last 15 minutes were answered by "
        "{{ $labels.store }} and are there in part.",
        board="overview",
    )


def _unread(pace: RuleSpeed) -> Alert:
    window = pace("6h")
    written = f'{_COUNT}{{class="remember",status="ok"}}[{window}]'
    return Alert(
        name="MnemoscopeMemoryUnread",
        # Whoever reads it there: one service may load what another one recalls.
        expr=f"sum by ({ORIGIN}, store) (increase({written})) >= 100\n"
        f"unless on (environment, store) increase({_RESULTS}_sum[{window}]) > 0\n",
        severity="warning",
        summary="{{ $labels.store }} is written to, and no recall finds anything in it",
        description=WHOLE + " writes in the last 6 hours went to {{ $labels.store }}, and no "
        "recall of any service of its environment has found a memory there.",
        board="overview",
    )
