"""The demo's surge: one feature's spend triples, the last screen and ``spend`` name it."""

from __future__ import annotations

import json
import re

import pytest

from mnemoscope.adapters.cli.root import run
from mnemoscope.demo import DemoOptions
from mnemoscope.demo.surge import Surge, Tokens
from mnemoscope.memory import ConfigurationError, context

pytestmark = pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")


@pytest.fixture
def surged(demo, short, tmp_path, monkeypatch):
    """A run of the demo in which drafting triples half-way, and is kept."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "5e" * 32)
    return demo(conversation=short, out=tmp_path / "out", surge="draft")


def test_the_last_screen_and_spend_name_the_feature(surged, capfd):
    """The screen says which it was and how to ask; asking says the same."""
    said = " ".join(surged.said.split())
    assert "From half-way on, reply-draft used 3 times its tokens." in said
    assert "→ reply-draft spent" in said
    assert "mostly scripted-concierge in node write." in said

    (command,) = re.findall(r"mnemoscope (spend --since \S+Z) --audit-url", said)
    url = f"sqlite:///{surged.out}/audit.db"
    assert run([*command.split(), "--audit-url", url, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)

    assert found["moved"]["feature"] == "reply-draft"
    assert found["moved"]["node"] == "write"
    assert round(found["moved"]["factor"], 1) == 3
    assert found["total_before"]["calls"] == found["total"]["calls"] == 12


def test_tokens_triple_from_the_beginning_on_and_for_one_feature():
    """Three times what a call used before, however long it is now; all else is what it is."""
    surge, short, long = Surge("draft"), Tokens(10, 2, 4, 1), Tokens(30, 4, 8, 3)
    with context(feature="reply-draft"):
        before = [surge.tokens(short), surge.tokens(long)]
        surge.begin()
        since = [surge.tokens(short), surge.tokens(long)]
    with context(feature="reply-outline"):
        other = surge.tokens(short)

    assert before == [short, long]
    assert since == [Tokens(60, 9, 18, 6)] * 2
    assert other == short


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"surge": "everything"}, "--surge takes one of draft, outline"),
        ({"surge": "draft", "model": "openai:gpt-5"}, "--surge works with the scripted model only"),
    ],
)
def test_what_cannot_surge_is_a_mistake(given, says):
    """In one line, before anything runs."""
    with pytest.raises(ConfigurationError, match=says):
        DemoOptions(**given)
