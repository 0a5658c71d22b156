"""
Synthetic events of an agent fleet, as one SELECT that ClickHouse and PostgreSQL both understand.

All is arithmetic on whole numbers, so that both make the same events of the same numbers: thirty
days with working hours, tenants, agents and features of which few do most, latencies with a long
tail, a store whose recall rots in the last ten days, and an agent that is slow for one afternoon.
"""

# ruff: noqa: S608 - all of it is written here

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DAYS: Final = 30
START_US: Final = 1_793_491_200_000_000
"""Midnight of 2026-11-01, UTC: a month of thirty days."""
DAY_US: Final = 86_400_000_000
ORIGIN: Final = "mnemoscope/synthetic"

_MODELS = ("large-2", "small-2", "mini-1", "long-1", "code-1", "old-1")
_STORES = ("mem0", "qdrant", "langgraph.store", "crm")


@dataclass(frozen=True)
class Dialect:
    """
    The words in which two databases differ.

    Attributes:
        divide: Division of whole numbers.
        xor: Exclusive or.
        shift: Shift to the right.
        pick: One of several texts, by its place from 0.
        text: A number as text.
    """

    divide: str
    xor: str
    shift: str
    pick: str
    text: str
    numbers: str

    def hashed(self, of: str, salt: int) -> str:
        """Return 32 bits that look random, of a number below 2³¹."""
        first = f"({of} * 2654435761 + {salt * 40503}) % 4294967296"
        second = f"({self.xor.format(f'({first})', self._shifted(first, 15))} * 1540483477)"
        mixed = f"{second} % 4294967296"
        return self.xor.format(f"({mixed})", self._shifted(mixed, 13))

    def _shifted(self, of: str, bits: int) -> str:
        return self.shift.format(f"({of})", bits)

    def over(self, one: str, other: str) -> str:
        """Return *one* divided by *other*, whole."""
        return self.divide.format(f"({one})", f"({other})")

    def few(self, bits: str, many: int) -> str:
        """Return a number below *many*, the low ones much more often, of 16 bits."""
        return self.over(f"{self.over(f'{bits} * {bits}', '65536')} * {many}", "65536")

    def chosen(self, place: str, texts: tuple[str, ...]) -> str:
        """Return the text at *place*, from 0."""
        return self.pick.format(", ".join(f"'{each}'" for each in texts), place)


CLICKHOUSE: Final = Dialect(
    divide="intDiv({}, {})",
    xor="bitXor({}, {})",
    shift="bitShiftRight({}, {})",
    pick="[{}][toInt64({}) + 1]",
    text="toString({})",
    numbers="SELECT toInt64(number) AS seq FROM numbers({}, {})",
)
POSTGRES: Final = Dialect(
    divide="({} / {})",
    xor="({} # {})",
    shift="({} >> {})",
    pick="(ARRAY[{}])[{} + 1]",
    text="cast({} AS text)",
    numbers="SELECT generate_series(cast({0} AS bigint), {0} + {1} - 1) AS seq",
)


def synthetic_events(sql: Dialect, first: int, count: int, total: int) -> str:
    """
    Return a SELECT of events, one a row, with the names of `COLUMNS`.

    Args:
        sql: The words of the database.
        first: The first number of these.
        count: How many.
        total: How many there are in the thirty days.
    """
    bits = {name: sql.hashed("seq", salt) for salt, name in enumerate("abcdef", 1)}
    low, high = (lambda of: f"({of} % 65536)"), (lambda of: sql.shift.format(of, 16))
    random = ", ".join(f"{low(of)} AS {name}0, {high(of)} AS {name}1" for name, of in bits.items())
    per_day = -(-total // DAYS)
    # Three quarters of a day's events come between eight and twenty o'clock.
    eighths = sql.over(f"(seq % {per_day}) * 8000000", str(per_day))
    hour_us = 3_600_000_000
    in_day = (
        f"CASE WHEN part < 1000000 THEN {sql.over(f'part * {8 * hour_us}', '1000000')} "
        f"WHEN part < 7000000 THEN {8 * hour_us} + "
        f"{sql.over(f'(part - 1000000) * {2 * hour_us}', '1000000')} "
        f"ELSE {20 * hour_us} + {sql.over(f'(part - 7000000) * {4 * hour_us}', '1000000')} END"
    )
    numbered = (
        f"SELECT seq, {random}, {sql.over('seq', str(per_day))} AS day, {eighths} AS part "
        f"FROM ({sql.numbers.format(first, count)}) AS numbered"
    )
    # Of a hundred operations 62 search, 14 write, 4 delete, 20 call a model.
    kinds = (
        f"SELECT *, a0 % 100 AS dice, {START_US} + day * {DAY_US} + {in_day} AS occurred_us, "
        f"{sql.few('b0', 40)} AS agent_no, {sql.few('b1', 25)} AS feature_no, "
        f"{sql.few(sql.over('c0 * c0', '65536'), 2000)} AS tenant_no, c1 % 4 AS store_no "
        f"FROM ({numbered}) AS numbered"
    )
    classes = (
        "SELECT *, CASE WHEN dice < 62 THEN 'recall' WHEN dice < 76 THEN 'remember' "
        "WHEN dice < 80 THEN 'forget' ELSE 'model' END AS op_class, "
        # One store forgets from day to day; one agent is slow on an afternoon.
        "CASE WHEN store_no = 1 AND day >= 20 THEN 60 + (day - 20) * 20 ELSE 60 END "
        "AS empty_of_1000, "
        f"CASE WHEN agent_no = 7 AND occurred_us >= {START_US + 25 * DAY_US + 13 * hour_us} "
        f"AND occurred_us < {START_US + 25 * DAY_US + 17 * hour_us} THEN 4 ELSE 1 END AS slow "
        f"FROM ({kinds}) AS kinds"
    )
    tail = sql.over(sql.over("d0 * d0", "65536") + " * d0", "65536")
    outcomes = (
        "SELECT *, CASE WHEN a1 < 400 THEN 'error' WHEN a1 < 700 THEN 'timeout' "
        "WHEN a1 < 1100 THEN 'degraded' "
        "WHEN op_class = 'recall' AND e0 % 1000 < empty_of_1000 THEN 'empty' ELSE 'ok' END "
        "AS status, "
        f"({sql.over(f'(1000 + 500 * store_no) * (65536 + 24 * {tail})', '65536')} "
        "* CASE op_class WHEN 'model' THEN 400 WHEN 'recall' THEN 1 ELSE 4 END + d1 % 500) * slow "
        "AS duration_us "
        f"FROM ({classes}) AS classes"
    )
    is_recall = "op_class = 'recall' AND status = 'ok'"
    is_model = "op_class = 'model'"
    most = "(CASE WHEN store_no = 1 AND day >= 20 THEN 5900 - (day - 20) * 200 ELSE 5900 END)"
    spread = f"(65536 - {sql.over('f0 * f0', '65536')})"
    top_score = f"4000 + {sql.over(f'{most} * {spread}', '65536')}"
    shown = {
        "seq": "seq",
        "occurred_us": "occurred_us",
        "recorded_us": "occurred_us + 40000",
        "operation": "CASE op_class WHEN 'recall' THEN 'search_memory' WHEN 'remember' THEN "
        "'create_memory' WHEN 'forget' THEN 'delete_memory' ELSE 'chat' END",
        "op_class": "op_class",
        "store": f"CASE WHEN {is_model} THEN 'langgraph.model' ELSE "
        f"{sql.chosen('store_no', _STORES)} END",
        "status": "status",
        "duration_us": "duration_us",
        "agent": f"concat('agent-', {sql.text.format('agent_no')})",
        "feature": f"concat('feature-', {sql.text.format('feature_no')})",
        "purpose": f"concat('purpose-', {sql.text.format('feature_no % 5')})",
        "tenant": f"concat('{'0' * 28}', {sql.text.format('1000 + tenant_no')})",
        "hits": f"CASE WHEN {is_recall} THEN 1 + e1 % 10 WHEN op_class = 'recall' AND status = "
        "'empty' THEN 0 END",
        "top_score_10000": f"CASE WHEN {is_recall} THEN {top_score} END",
        "size_bytes": f"CASE WHEN {is_recall} THEN 120 + (1 + e1 % 10) * "
        f"(100 + {sql.over('f1', '100')}) WHEN op_class = 'remember' THEN 80 + f1 % 900 END",
        "model": f"CASE WHEN {is_model} THEN {sql.chosen(sql.few('e0', 6), _MODELS)} END",
        "node": f"CASE WHEN {is_model} THEN concat('node-', {sql.text.format(sql.few('e1', 12))}) "
        "END",
        "input_tokens": f"CASE WHEN {is_model} THEN 200 + {sql.over('f0 * f0', '500000')} END",
        "output_tokens": f"CASE WHEN {is_model} THEN 20 + {sql.over('f1', '80')} END",
        # The newest model has no price.
        "cost_micro_usd": f"CASE WHEN {is_model} AND {sql.few('e0', 6)} < 5 THEN "
        f"(200 + {sql.over('f0 * f0', '500000')}) * (6 - {sql.few('e0', 6)}) END",
    }
    chosen = ", ".join(f"{of} AS {name}" for name, of in shown.items())
    return f"SELECT {chosen} FROM ({outcomes}) AS outcomes"
