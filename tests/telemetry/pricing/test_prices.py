"""Prices: lookup by the names models go by, cost by kind of token, and files that make no sense."""

from __future__ import annotations

import json

import pytest

from mnemoscope.memory.api import Usage
from mnemoscope.telemetry.pricing.prices import Price, PriceFileError, Prices

TABLE = Prices(
    {
        "gpt-4o": Price(
            input=2.5,
            output=10,
            cached_input=1.25,
            snapshots=("2024-08-06", "2024-11-20"),
            source="openai",
        ),
        "gpt-4o-2024-05-13": Price(input=5, output=15, source="openai"),
        "claude-sonnet-4-5": Price(
            input=3,
            output=15,
            cached_input=0.3,
            cache_write=3.75,
            snapshots=("20250929",),
            source="anthropic",
        ),
        "gemini-2.5-pro": Price(
            input=1.25, output=10, snapshots=("preview-06-05",), source="google"
        ),
        "mistral-large": Price(input=0.5, output=1.5, snapshots=("2512",), source="mistral"),
        "qwen3-max": Price(input=1.2, output=6, source="qwen"),
        "in-house-1": Price(input=7, output=7),
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
        ("global.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("openrouter/anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("models/gemini-2.5-pro-preview-06-05", "gemini-2.5-pro"),
        ("mistral-large-latest", "mistral-large"),
        ("mistral-large-2512", "mistral-large"),
    ],
)
def test_a_snapshot_is_priced_as_its_model(model, row):
    """A listed snapshot, a prefix that leaves the price as it is, and the alias find the row."""
    assert TABLE.price(model) == TABLE.price(row) is not None


def test_a_snapshot_with_a_row_of_its_own_keeps_it():
    """A snapshot that was priced otherwise is not folded into its model."""
    assert TABLE.price("gpt-4o-2024-05-13").input == 5


@pytest.mark.parametrize(
    "model",
    [
        "",
        "fake-model",
        "gpt-4o-mini",
        "ft:gpt-4o:acme::1",
        "claude-sonnet-4",
        "-latest",
        "gpt-4o-2026-01-01",
        "mistral-large-2402",
        "gemini-2.5-pro-preview-03-25",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "mistral.mistral-large-2512-v1:0",
        "groq/qwen3-max",
        "openrouter/qwen/qwen3-max",
        "anthropic/gpt-4o",
        "openrouter/anthropic/claude-sonnet-4.5:free",
    ],
)
def test_an_unknown_model_has_no_cost(model):
    """The cost of what the table has no row for is None, not 0, and not that of its relatives."""
    usage = Usage(model=model, input_tokens=1_000, output_tokens=1_000)

    assert TABLE.cost_usd(usage) is None


@pytest.mark.parametrize("row", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "mistral-large"])
@pytest.mark.parametrize("ending", ["2031-01-31", "20310131", "0131", "131", "preview", "exp"])
def test_a_snapshot_that_no_row_lists_has_no_price(row, ending):
    """It may have been priced otherwise, before or after."""
    assert TABLE.price(f"{row}-{ending}") is None


@pytest.mark.parametrize("host", ["groq", "together", "fireworks", "openrouter", "nvidia"])
def test_what_a_host_of_open_weights_asks_is_not_the_vendors_price(host):
    """Whoever says the model's name: its provider or a prefix."""
    usage = Usage(model="qwen3-max", provider=host, input_tokens=1_000)

    assert TABLE.cost_usd(usage) is None
    assert TABLE.price(f"{host}/qwen3-max") is None


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("qwen3-max", "ollama"),
        ("qwen3:8b", "ollama"),
        ("ollama/mistral-large", None),
        ("ollama_chat/whatever", "openai"),
        ("mistral-large", "vllm"),
    ],
)
def test_a_model_on_ones_own_machine_costs_nothing(model, provider):
    """Nobody asks for a price; why it is 0 stands in the price."""
    usage = Usage(model=model, provider=provider, input_tokens=1_000, output_tokens=1_000)

    assert TABLE.cost_usd(usage) == 0
    assert TABLE.price(model, provider).source == "it runs on a machine of one's own"


def test_what_ollama_serves_itself_is_not_on_ones_own_machine():
    """It has a price that no row tells."""
    assert TABLE.price("gpt-oss:120b-cloud", "ollama") is None


@pytest.mark.parametrize("provider", ["groq", "ollama", "openai", None])
def test_a_users_own_row_holds_whoever_serves_the_model(provider):
    """They know what they pay; and may say it for one host only."""
    usage = Usage(model="in-house-1", provider=provider, input_tokens=1_000_000)

    assert TABLE.cost_usd(usage) == 7


def test_a_users_row_may_be_for_one_host():
    """By the host's name before the model's; the host is a prefix or the provider."""
    prices = Prices({"groq/in-house-1": Price(input=3, output=3)})

    assert prices.price("in-house-1", "groq") == prices.price("groq/in-house-1") is not None
    assert prices.price("in-house-1", "openai") is None


def test_a_fine_tuned_model_has_the_price_of_its_base_when_fine_tuned():
    """Whose it is, and what it is called, is part of its name and not of its price."""
    prices = Prices({"ft:gpt-4o": Price(input=3.75, output=15, snapshots=("2024-08-06",))})

    assert prices.price("ft:gpt-4o-2024-08-06:acme:helper:9f3") == prices.price("ft:gpt-4o")
    assert prices.price("ft:gpt-4o-2024-05-13:acme::9f3") is None


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
        "ft:gpt-4.1-mini-2025-04-14:acme::1",
        "openrouter/openai/gpt-4o",
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


@pytest.mark.parametrize(
    "model",
    ["mistral-large-2402", "gpt-3.5-turbo-0613", "gemini-2.5-flash-preview-04-17", "ollama-like"],
)
def test_the_shipped_table_does_not_fold_older_snapshots(model):
    """They were priced otherwise than their families are today."""
    assert Prices.load().price(model) is None


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

    assert prices.price("gpt-4o").input == 1
    assert prices.price("gpt-4o-2024-11-20") == prices.price("gpt-4o")
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
        (
            {"models": {"m": {"input": 1, "output": 2, "snapshots": "2512"}}},
            "model 'm': snapshots must be a list",
        ),
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
