"""Tokens as each integration that is installed tells them, by its own function."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from mnemoscope.adapters.langgraph.runs.model_calls import counts_of
from tests.kit.dropped_counts import dropped_count

OPENAI = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 7, "audio_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 12, "audio_tokens": 1},
}
RESPONSES = {
    "input_tokens": 100,
    "output_tokens": 20,
    "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 7},
    "output_tokens_details": {"reasoning_tokens": 12},
}
ANTHROPIC = {
    "input_tokens": 53,
    "output_tokens": 20,
    "cache_read_input_tokens": 40,
    "cache_creation_input_tokens": 7,
    "output_tokens_details": SimpleNamespace(thinking_tokens=12),
}
BY_TIME = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}
BEDROCK = {
    "inputTokens": 53,
    "outputTokens": 20,
    "cacheReadInputTokens": 40,
    "cacheWriteInputTokens": 7,
}
DETAILS = [{"ttl": "5m", "inputTokens": 3}, {"ttl": "1h", "inputTokens": 4}]

TOLD: list[tuple[str, str, Any, dict[str, Any]]] = [
    *(
        ("langchain_openai.chat_models.base", name, used, {"service_tier": tier})
        for name, used in (
            ("_create_usage_metadata", OPENAI),
            ("_create_usage_metadata_responses", RESPONSES),
        )
        for tier in (None, "default", "flex", "priority")
    ),
    *(
        ("langchain_anthropic.chat_models", "_create_usage_metadata", SimpleNamespace(**used), {})
        for used in (ANTHROPIC, {**ANTHROPIC, "cache_creation": BY_TIME})
    ),
    *(
        (
            "langchain_aws.chat_models.bedrock_converse",
            "_extract_usage_metadata",
            {"usage": used},
            {"reasoning_tokens": 12},
        )
        for used in (BEDROCK, {**BEDROCK, "cacheDetails": DETAILS})
    ),
    *(
        ("langchain_groq.chat_models", "_create_usage_metadata", used, {})
        for used in (OPENAI, RESPONSES)
    ),
]


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize(("module", "name", "used", "options"), TOLD)
def test_every_count_of_a_provider_arrives(module, name, used, options):
    """Whatever its integration calls them: what it drops itself is lost, and nothing else."""
    integration = module.partition(".")[0]
    pytest.importorskip(integration)
    dropped = dropped_count(integration)
    passed = {each: value for each, value in options.items() if each != dropped}
    told = getattr(import_module(module), name)(used, **passed)

    expected = {
        "input_tokens": 100,
        "output_tokens": 20,
        "cached_tokens": 40,
        "cache_write_tokens": 7,
        "reasoning_tokens": 12,
    }
    if dropped is not None:
        expected[dropped] = 0
    assert counts_of(told) == expected
