"""Prices: lookup by the names models go by, cost by kind of token, and files that make no sense."""

from __future__ import annotations

import json

import pytest

from mnemoscope.telemetry.event.usage import Usage
from mnemoscope.telemetry.pricing.prices import Price, PriceFileError, Prices

TABLE = Prices(
    {
        "gpt-4o": Price(input=2.5, output=10, cached_input=1.25),
        "gpt-4o-2024-05-13": Price(input=5, output=15),
        "claude-sonnet-4-5": Price(input=3, output=15, cached_input=0.3, cache_write=3.75),
        "gemini-2.5-pro": Price(input=1.25, output=10),
        "mistral-large": Price(input=0.5, output=1.5),
    }
)


@pytest.fixture
def price_file(tmp_path):
    def write(text):
        path = tmp_path / "prices.json"
        path.write_text(text if isinstance(text, str) else json.dumps(text), "utf-8")
        return path

    return write


@pytest.mark.parametrize(
    ("model", "row"),
    [
        ("gpt-4o", "gpt-4o"),
        ("GPT-4o", "gpt-4o"),
        ("gpt-4o-2024-11-20", "gpt-4o"),
        ("openai/gpt-4o-2024-08-06", "gpt-4o"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("models/gemini-2.5-pro-preview-06-05", "gemini-2.5-pro"),
        ("gemini-2.5-pro-002", "gemini-2.5-pro"),
        ("mistral-large-latest", "mistral-large"),
        ("mistral-large-2512", "mistral-large"),
    ],
)
def test_a_snapshot_is_priced_as_its_model(model, row):
    """A dated, prefixed or aliased name finds the row of its model."""
    assert TABLE.price(model) == TABLE.price(row)


def test_a_snapshot_with_a_row_of_its_own_keeps_it():
    """A snapshot that was priced otherwise is not folded into its model."""
    assert TABLE.price("gpt-4o-2024-05-13") == Price(input=5, output=15)


@pytest.mark.parametrize(
    "model", ["", "fake-model", "gpt-4o-mini", "ft:gpt-4o:acme::1", "claude-sonnet-4", "-latest"]
)
def test_an_unknown_model_has_no_cost(model):
    """The cost of a model that is not in the table is None, not 0 and not a neighbour's."""
    usage = Usage(model=model, input_tokens=1_000, output_tokens=1_000)

    assert TABLE.cost_usd(usage) is None


def test_each_kind_of_token_has_its_price():
    """Cached and cache-written input leave the input price; reasoning stays in the output."""
    usage = Usage(
        model="claude-sonnet-4-5",
        input_tokens=1_000_000,
        cached_tokens=400_000,
        cache_write_tokens=100_000,
        output_tokens=200_000,
        reasoning_tokens=150_000,
    )

    assert TABLE.cost_usd(usage) == pytest.approx(0.5 * 3 + 0.4 * 0.3 + 0.1 * 3.75 + 0.2 * 15)


def test_reasoning_may_have_a_price_of_its_own():
    """Where a vendor bills it apart from what the model says; else it costs what output costs."""
    prices = Prices({"thinker": Price(input=0, output=10, reasoning=4)})
    usage = Usage(model="thinker", output_tokens=1_000_000, reasoning_tokens=250_000)

    assert prices.cost_usd(usage) == pytest.approx(0.75 * 10 + 0.25 * 4)


def test_more_reasoning_than_output_is_never_negative():
    """A provider that reports reasoning beside the output is not credited for it."""
    prices = Prices({"thinker": Price(input=0, output=10, reasoning=4)})
    usage = Usage(model="thinker", output_tokens=10, reasoning_tokens=1_000_000)

    assert prices.cost_usd(usage) == pytest.approx(10 * 4 / 1e6)


def test_a_row_without_cache_prices_uses_the_input_price():
    """Cached tokens of a model whose row has no price for them cost what input costs."""
    usage = Usage(model="gemini-2.5-pro", input_tokens=1_000_000, cached_tokens=900_000)

    assert TABLE.cost_usd(usage) == pytest.approx(1.25)


def test_more_cached_than_input_is_never_negative():
    """A provider that reports input without the cached part is not credited for it."""
    usage = Usage(model="gpt-4o", input_tokens=10, cached_tokens=1_000_000)

    assert TABLE.cost_usd(usage) == pytest.approx(1.25)


@pytest.mark.parametrize(
    "model",
    [
        "gpt-5.4-mini",
        "gpt-4o-2024-11-20",
        "claude-opus-4-1-20250805",
        "claude-3-5-sonnet-20241022",
        "gemini-2.5-flash",
        "gemini-3-pro-preview",
        "mistral-medium-latest",
        "deepseek-v4-flash",
        "deepseek-chat",
        "qwen3-max",
    ],
)
def test_the_shipped_table_knows_the_families(model):
    """OpenAI, Anthropic, Google, Mistral, DeepSeek and Qwen are in the file that ships."""
    assert Prices.load().price(model) is not None


def test_every_shipped_row_is_dated_and_sourced():
    """A figure without a date and a source is not a figure."""
    from importlib.resources import files

    document = json.loads(
        files("mnemoscope.telemetry.pricing").joinpath("prices.json").read_text("utf-8")
    )

    for name, row in document["models"].items():
        assert row["source"] in document["sources"], name
        assert len(row["as_of"]) == len("2026-01-31"), name
        assert row.get("cached_input", 0) <= row["input"], name


def test_a_users_file_extends_and_overrides(price_file):
    """Rows of the user's file are added to the shipped ones and win over them."""
    rows = {"gpt-4o": {"input": 1, "output": 2}, "in-house": {"input": 0, "output": 0}}
    prices = Prices.load(price_file({"models": rows}))

    assert prices.price("gpt-4o") == Price(input=1, output=2)
    assert prices.cost_usd(Usage(model="in-house", input_tokens=5)) == 0
    assert prices.price("claude-sonnet-4-5") is not None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "line 1: not JSON"),
        ("[]", 'expected {"models"'),
        ('{"models": []}', 'expected {"models"'),
        ({"models": {"m": 3}}, "model 'm': expected an object"),
        ({"models": {"m": {"input": 1}}}, "model 'm': output missing"),
        ({"models": {"m": {"input": "1", "output": 2}}}, "model 'm': input must be a number"),
        ({"models": {"m": {"input": True, "output": 2}}}, "model 'm': input must be a number"),
        ({"models": {"m": {"input": -1, "output": 2}}}, "model 'm': input must be a number"),
        ('{"models": {"m": {"input": NaN, "output": 2}}}', "model 'm': input must be a number"),
        (
            {"models": {"m": {"input": 1, "output": 2, "reasoning": "3"}}},
            "reasoning must be a number",
        ),
        ({"models": {"m": {"input": 1, "output": 2, "ouput": 3}}}, "model 'm': unknown ouput"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_by_row(price_file, content, says):
    """The error names the file, the row and what was expected."""
    path = price_file(content)
    with pytest.raises(PriceFileError) as seen:
        Prices.load(path)

    assert str(path) in str(seen.value)
    assert says in str(seen.value)


def test_a_missing_file_is_named(tmp_path):
    """A path that does not exist is the user's mistake, said plainly, as a ValueError."""
    with pytest.raises(ValueError, match="cannot be read"):
        Prices.load(tmp_path / "absent.json")
