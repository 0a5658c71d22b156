"""Verdicts of all rules in runs made at random: made again from the trail, and changed facts."""

from __future__ import annotations

import json
import os
from random import Random

import orjson
import pytest

from mnemoscope.adapters.cli.audit.verdicts import kinds_of
from mnemoscope.adapters.cli.root import run
from tests.kit.gate_trail import Answer, recheck
from tests.kit.rule_runs import KINDS, change_one, live

pytestmark = pytest.mark.long

LEAST = 900


@pytest.fixture(scope="module")
def trail(tmp_path_factory):
    """Return the address of a trail that a few worlds have left."""
    url = f"sqlite:///{tmp_path_factory.mktemp('worlds')}/audit.db"
    live(url, LEAST)
    return url


@pytest.fixture
def printed(trail, monkeypatch, capfd):
    """Return the exit code of the command without a scope, and the verdicts that it prints."""
    for name in list(os.environ):
        if name.startswith("MNEMOSCOPE_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", "ab" * 32)
    code = run(["audit", "verdicts", "--audit-url", trail, "--json"])
    return code, json.loads(capfd.readouterr().out)


def test_all_verdicts_of_all_rules_are_made_again(printed):
    """At memory operations, models, nodes and tools, by every kind of rule, without a scope."""
    code, verdicts = printed

    assert [each for each in verdicts if each["recomputed"] != "same"] == []
    assert code == 0
    assert len(verdicts) >= LEAST
    assert {each["kind"] for each in verdicts} == KINDS
    assert {each["point"] for each in verdicts} == {"memory", "model", "node", "tool"}


def test_any_one_fact_that_is_changed_is_named(printed):
    """Whether the verdict follows from it or not."""
    rng, unnamed = Random(7), []  # noqa: S311 - the same in every run
    kinds = kinds_of(None)
    for each in printed[1]:
        name, facts = change_one(rng, each["facts"])
        found = recheck({**each, "facts": facts}, kinds)
        if found.answer is not Answer.DIFFERS or name not in found.why.split(";")[0]:
            unnamed.append((each["kind"], name, found))

    assert unnamed == []


def test_changed_settings_are_named(printed):
    """They are what a verdict was made of as well."""
    kinds = kinds_of(None)
    for each in printed[1]:
        settings = {**orjson.loads(each["settings"]), "name": "of another rule"}
        found = recheck({**each, "settings": orjson.dumps(settings).decode()}, kinds)
        assert found.answer is Answer.DIFFERS
        assert found.why.startswith("changed after it was sealed: settings")
