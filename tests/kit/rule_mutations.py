"""Rules that are wrong in one place: each number, window and operator of an alert, in turn."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Rule = Mapping[str, Any]
Rules = Sequence[Rule]

_TOKEN = re.compile(
    r"""
    (?P<text>"(?:\\.|[^"\\])*")
    | (?P<window>\b\d+[smhdw]\b)
    | (?P<number>\b\d+(?:\.\d+)?\b)
    | (?P<name>[a-zA-Z_][\w:]*)
    | (?P<operator>>=|<=|==|!=|=~|!~|[-+*/<>=])
    """,
    re.VERBOSE,
)
_SWAPPED: Mapping[str, Sequence[str]] = {
    "and": ("or", "unless"),
    "or": ("and", "unless"),
    "unless": ("and", "or"),
    ">": ("<",),
    "<": (">",),
    ">=": ("<",),
    "<=": (">",),
    "==": ("!=",),
    "!=": ("=",),
    "=": ("!=",),
    "=~": ("!~",),
    "!~": ("=~",),
    "+": ("-",),
    "-": ("+",),
    "*": ("/",),
    "/": ("*",),
    "max": ("min",),
    "min": ("max",),
    "sum": ("max",),
    "avg_over_time": ("max_over_time",),
    "max_over_time": ("min_over_time",),
}
_MORE, _LESS = 1.25, 0.8
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_WINDOW = re.compile(r"(.*[a-z])(\d+[mhd])")
"""The name of a recorded series ends with the window that it is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """
    An alert that is wrong in one place: its own, or one of what is recorded for it.

    Attributes:
        name: Its name, as no other has it.
        change: The rule that is wrong, what was there, and what is there instead.
        rules: The alert, and what is recorded for it alone, under names of its own.
    """

    name: str
    change: str
    rules: Rules


def mutants(alert: Rule, rules: Rules) -> Iterator[Mutant]:
    """Yield each way in which *alert*, of a file with *rules*, is wrong in one place."""
    recorded = {rule["record"] for rule in rules if "record" in rule}
    wanted = needed([alert], rules)
    number = 0
    for place, rule in enumerate(wanted):
        for change, wrong in _wrong(rule, recorded):
            number += 1
            yield Mutant(
                name=f"Mutant{number}x",
                change=f"{name_of(rule)}: {change}",
                rules=_renamed([*wanted[:place], wrong, *wanted[place + 1 :]], place, number),
            )


def name_of(rule: Rule) -> str:
    """Return the name of a rule."""
    return str(rule.get("alert") or rule["record"])


def needed(alerts: Rules, rules: Rules) -> list[Rule]:
    """Return *alerts* and what is recorded for them, in the order of their file."""
    names = {name for alert in alerts for name in _names(alert)}
    for rule in reversed(rules):
        if rule.get("record") in names:
            names.update(_names(rule))
    return [rule for rule in rules if rule in alerts or rule.get("record") in names]


def _names(rule: Rule) -> list[str]:
    return [each["name"] for each in _TOKEN.finditer(rule["expr"]) if each["name"]]


def _renamed(rules: Rules, place: int, number: int) -> list[Rule]:
    """Return the alert and whatever depends on the rule at *place*, under names of their own."""
    own = {name_of(rules[place])}
    for rule in rules:
        if own & set(_names(rule)):
            own.add(name_of(rule))
    return [_with_own_names(rule, own, number) for rule in rules if name_of(rule) in own]


def _with_own_names(rule: Rule, own: set[str], number: int) -> Rule:
    def renamed(found: re.Match[str]) -> str:
        return f"{found[0]}:mutant{number}" if found["name"] in own else found[0]

    expr = _TOKEN.sub(renamed, rule["expr"])
    if "alert" in rule:
        return {**rule, "alert": f"Mutant{number}x", "expr": expr}
    return {**rule, "record": f"{rule['record']}:mutant{number}", "expr": expr}


def _wrong(rule: Rule, recorded: set[str]) -> Iterator[tuple[str, Rule]]:
    expr = rule["expr"]
    for found in _TOKEN.finditer(expr):
        before, after = expr[: found.start()], expr[found.end() :]
        for instead in _instead(found, recorded):
            shown = " ".join(f"{before[-45:]}[{found[0]} -> {instead}]{after[:25]}".split())
            yield shown, {**rule, "expr": before + instead + after}
    for key in rule.keys() & {"for", "keep_firing_for"}:
        for other in _windows(rule[key]):
            yield f"{key}: {rule[key]} -> {other}", {**rule, key: other}


def _instead(found: re.Match[str], recorded: set[str]) -> Sequence[str]:
    token = found[0]
    match found.lastgroup:
        case "window":
            return _windows(token)
        case "number" if float(token) == 0:
            return ("1",)
        case "number":
            return [f"{float(token) * by:.10g}" for by in (_MORE, _LESS)]
        case "name" if token in recorded and (parts := _WINDOW.fullmatch(token)):
            return _neighbours(token, parts[1], recorded)
        case "name" | "operator":
            return _SWAPPED.get(token, ())
        case _:
            return ()


def _neighbours(series: str, stem: str, recorded: set[str]) -> list[str]:
    """Return what is recorded alike, over the next shorter window and over the next longer one."""
    alike = sorted(
        (each for each in recorded if (parts := _WINDOW.fullmatch(each)) and parts[1] == stem),
        key=lambda each: _seconds(each.removeprefix(stem)),
    )
    place = alike.index(series)
    return alike[max(0, place - 1) : place] + alike[place + 1 : place + 2]


def _seconds(window: str) -> int:
    return int(window[:-1]) * _UNITS_S[window[-1]]


def _windows(window: str) -> tuple[str, str]:
    """Return twice *window*, and half of it."""
    seconds = _seconds(window)
    return f"{2 * seconds}s", f"{seconds // 2}s"
