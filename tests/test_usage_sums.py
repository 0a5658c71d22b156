"""
Wherever usage is added up, all of it is: each sum in the source is spoilt, and must show.

A sum is spoilt by a minus in its place, or by the loss of one of its sides.
"""

from __future__ import annotations

import ast
import importlib
import types
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import openai
import pytest

from mnemoscope.adapters.langgraph.runs.meter import Totals
from mnemoscope.adapters.mem0.model_usage import _hear_embeddings
from mnemoscope.adapters.mem0.provider_answer import CURRENT, ProviderAnswer
from mnemoscope.audit.bundle.summary import ModelUse
from mnemoscope.audit.queries.spending import Spent
from mnemoscope.memory import Budget, Facts, Point, Stopping
from mnemoscope.memory.api import KeyedHashes, RunFacts, Status, Usage
from mnemoscope.memory.budgets.budgets import _BudgetSpend
from mnemoscope.memory.rules.earlier_facts import earlier
from mnemoscope.memory.rules.run_facts import Earlier
from mnemoscope.memory.testing import GoldenTrace
from mnemoscope.telemetry.event.usage import TOKENS
from mnemoscope.telemetry.langsmith import runs as langsmith_runs
from mnemoscope.telemetry.otlp.conventions import openinference, semconv
from mnemoscope.telemetry.pricing.prices import Price, Prices
from mnemoscope.telemetry.prometheus import sink as prometheus_sink

ROOT = Path(__file__).parents[1]
ROOMS = ("adapters", "audit", "memory", "telemetry")
FIRST = Usage(
    model="m",
    input_tokens=1009,
    output_tokens=211,
    cached_tokens=307,
    cache_write_tokens=103,
    reasoning_tokens=53,
)
SECOND = Usage(
    model="m",
    input_tokens=2003,
    output_tokens=401,
    cached_tokens=503,
    cache_write_tokens=197,
    reasoning_tokens=89,
)
SUM = {name: getattr(FIRST, name) + getattr(SECOND, name) for name in TOKENS}


def tokens_of(found):
    """Return the tokens of whatever counts them."""
    return {name: getattr(found, name) for name in TOKENS if hasattr(found, name)}


def with_tokens_of():
    assert tokens_of(SECOND.with_tokens_of(FIRST)) == SUM


def totals():
    counted = Totals()
    counted.add(FIRST)
    counted.add(SECOND)
    assert tokens_of(counted) == tokens_of(counted.by_node[""]) == SUM


def facts_of_a_run():
    facts = RunFacts(0.0)
    facts.model_ended(FIRST, 1.0, failed=False)
    facts.model_ended(SECOND, 2.0, failed=False)
    assert (facts.facts.input_tokens, facts.facts.output_tokens) == (3012, 612)


def facts_of_a_run_before():
    about = {"writer": "w", "occurred_at": 1, "duration_us": 1, "operation": "chat", "status": "ok"}
    headers = [about | {"usage": tokens_of(each) | {"cost_usd": None}} for each in (FIRST, SECOND)]
    found = earlier(headers, KeyedHashes(b"key"))
    assert (found.input_tokens, found.output_tokens) == (3012, 612)


def facts_of_a_run_that_goes_on():
    facts = RunFacts(0.0)
    facts.model_ended(FIRST, 1.0, failed=False)
    facts.add_earlier(Earlier(events=1, input_tokens=2003, output_tokens=401))
    assert (facts.facts.input_tokens, facts.facts.output_tokens) == (3012, 612)


def models_in_an_export():
    counted = ModelUse()
    for each in (FIRST, SECOND):
        counted.add_usage(tokens_of(each))
    assert (counted.input_tokens, counted.output_tokens) == (3012, 612)


def tokens_spent():
    assert Spent(**tokens_of(FIRST)).tokens == 1220


def budget_in_tokens():
    spend = _BudgetSpend(Budget(tokens=10**6), 0.0)
    assert spend._amount(FIRST) == 1220


def total_for_langsmith():
    assert langsmith_runs._usage(FIRST)["total_tokens"] == 1220


def total_for_openinference():
    assert openinference.consumed(FIRST)[semconv.LLM_TOKENS_TOTAL] == 1220


def tokens_without_a_price():
    seen = []
    series = SimpleNamespace(series=lambda *_labels: SimpleNamespace(inc=seen.append))
    prometheus_sink._count_usage(SimpleNamespace(tokens=series, unpriced=series), FIRST, None)
    assert seen == [1009, 211, 307, 103, 53, 1220]


def tokens_of_an_agent():
    seen = []
    series = SimpleNamespace(series=lambda *_labels: SimpleNamespace(inc=seen.append))
    metrics = SimpleNamespace(agent_tokens=series, agent_cost=series)
    prometheus_sink._count_agent(metrics, FIRST, "desk")
    assert seen == [1220]


def tokens_of_a_golden_trace():
    calls = [SimpleNamespace(started_ns=n, usage=each) for n, each in enumerate((FIRST, SECOND))]
    assert GoldenTrace.of(calls).tokens == 3624


def tokens_of_a_run_in_the_trail():
    spent = Spent.of_call(FIRST, Status.OK)
    assert spent.unpriced_tokens == 1220


def tokens_that_a_run_was_granted():
    stopping = Stopping(max_output_tokens=1000)
    for spent, outcome in ((1000, "allow"), (1210, "allow"), (1211, "stop")):
        known = {"more.tokens": 211}
        facts = Facts(Point.MODEL, output_tokens=spent, known=known)
        assert stopping.decide(facts).outcome == outcome


def cost():
    price = Price(input=2.0, output=8.0, cached_input=0.5, cache_write=3.0, reasoning=16.0)
    fresh, answer = 1009 - 307 - 103, 211 - 53
    dollars = fresh * 2.0 + 307 * 0.5 + 103 * 3.0 + answer * 8.0 + 53 * 16.0
    assert Prices({"m": price}).cost_usd(FIRST) == pytest.approx(dollars / 1e6, rel=1e-12)


CHECKS = {
    Usage.with_tokens_of: with_tokens_of,
    Totals.count: totals,
    RunFacts.model_ended: facts_of_a_run,
    earlier: facts_of_a_run_before,
    RunFacts.add_earlier: facts_of_a_run_that_goes_on,
    ModelUse.add_usage: models_in_an_export,
    Spent.tokens.fget: tokens_spent,
    _BudgetSpend._amount: budget_in_tokens,
    langsmith_runs._usage: total_for_langsmith,
    openinference.consumed: total_for_openinference,
    prometheus_sink._count_usage: tokens_without_a_price,
    prometheus_sink._count_agent: tokens_of_an_agent,
    GoldenTrace.of.__func__: tokens_of_a_golden_trace,
    Prices.cost_usd: cost,
    Spent.of_call.__func__: tokens_of_a_run_in_the_trail,
    Stopping._hard: tokens_that_a_run_was_granted,
}
"""What shows that a function adds up all of the usage."""


def functions(tree: ast.AST, name: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions of a module, with their qualified names."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from functions(node, f"{name}.{node.name}".lstrip("."))
        if isinstance(node, ast.FunctionDef):
            yield f"{name}.{node.name}".lstrip("."), node


def sums(qualname: str, function: ast.FunctionDef) -> list[int]:
    """Return where a function adds up tokens, as places in `ast.walk`."""
    return [
        place
        for place, node in enumerate(ast.walk(function))
        if isinstance(node, (ast.AugAssign, ast.BinOp))
        if isinstance(node.op, (ast.Add, ast.Sub))
        if "_tokens" in qualname + ast.unparse(node)
    ]


def places() -> Iterator[tuple[str, str, int, str]]:
    """Yield module, function, place and way of each sum that is to be spoilt."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if "_tokens" not in text:
                continue
            module = ".".join(("mnemoscope", *path.relative_to(ROOT).with_suffix("").parts))
            for qualname, function in functions(ast.parse(text)):
                for place in sums(qualname, function):
                    yield from ((module, qualname, place, how) for how in ("sign", "left", "right"))


class Spoil(ast.NodeTransformer):
    """Spoils one sum."""

    def __init__(self, found: ast.AugAssign | ast.BinOp, how: str) -> None:
        self._found, self._how = found, how

    def visit(self, node: ast.AST) -> ast.AST:
        """Return what is there instead of *node*."""
        if node is not self._found:
            return self.generic_visit(node)
        if self._how == "sign":
            node.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        elif isinstance(node, ast.BinOp):
            return node.left if self._how == "right" else node.right
        elif self._how == "right":
            return ast.copy_location(ast.Pass(), node)
        else:
            return ast.copy_location(ast.Assign([node.target], node.value), node)
        return node


def code_of(module: types.CodeType, qualname: str) -> types.CodeType:
    """Return the code of a function in that of its module."""
    for each in module.co_consts:
        if isinstance(each, types.CodeType):
            if each.co_qualname == qualname:
                return each
            if qualname.startswith(f"{each.co_qualname}."):
                return code_of(each, qualname)
    raise LookupError(qualname)


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda check: check.__name__)
def test_usage_is_added_up(check):
    """All of it, of each kind of tokens."""
    check()


@pytest.mark.parametrize(("module", "qualname", "place", "how"), list(places()))
def test_a_sum_that_is_spoilt_shows(module, qualname, place, how, monkeypatch):
    """Each sum of tokens that there is: a new one has no check, and fails here."""
    owner = importlib.import_module(module)
    names = {f"{each.__module__}:{each.__qualname__}": each for each in CHECKS}
    function = names[f"{module}:{qualname}"]
    tree = ast.parse(Path(owner.__file__).read_text(encoding="utf-8"))
    found = list(ast.walk(dict(functions(tree))[qualname]))[place]
    spoilt = ast.fix_missing_locations(Spoil(found, how).visit(tree))

    code = code_of(compile(spoilt, owner.__file__, "exec"), qualname)
    monkeypatch.setattr(function, "__code__", code)
    with pytest.raises(AssertionError):
        CHECKS[function]()


def test_the_parts_of_a_batch_of_embeddings_are_one_call():
    """Each response of OpenAI's client adds its tokens to those before."""
    parts = iter((1009, 2003))

    def respond(_request):
        used = next(parts)
        usage = {"prompt_tokens": used, "total_tokens": used}
        data = [{"object": "embedding", "index": 0, "embedding": [0.5]}]
        return httpx.Response(200, json={"data": data, "model": "e-1", "usage": usage})

    http = httpx.Client(transport=httpx.MockTransport(respond))
    client = openai.OpenAI(api_key="key", http_client=http)
    _hear_embeddings(client)
    token = CURRENT.set(answer := ProviderAnswer())
    try:
        for _ in range(2):
            client.embeddings.create(input=["tea"], model="e-1")
    finally:
        CURRENT.reset(token)

    assert (answer.model, answer.usage.input_tokens) == ("e-1", 3012)
