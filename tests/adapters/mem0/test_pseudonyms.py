"""A name recalled in March is the name written in January: pseudonyms in mem0, across processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.memory import Mnemoscope, context
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

WRITTEN = "My name is Jennifer Smith and I like tea"
OTHER = "My name is Maria Garcia and I like tea"
ASKED = "JENNIFER  SMITH"


@pytest.fixture
def scopes(tmp_path: Path) -> Iterator[list[Mnemoscope]]:
    """Return two scopes with one key and vault, and redactors of their own."""
    settings = {
        "pii_operators": "*=pseudonym",
        "vault": tmp_path / "vault.db",
        "deadline_recall_s": 0,
        "deadline_remember_s": 0,
    }
    with scope_for_tests(**settings) as (january, _), scope_for_tests(**settings) as (march, _):
        yield [january, march]


def test_a_redacted_name_is_looked_for_as_it_was_stored(
    scopes: list[Mnemoscope], make_memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Written by one redactor, asked for by another: the same word, in a search by words.

    In a search by meaning alone there are no names: two memories that say the same are alike.
    """
    january, march = scopes
    bare = make_memory()
    words: list[str] = []
    monkeypatch.setattr(
        bare.vector_store, "keyword_search", lambda query, **_: words.append(query) or []
    )
    with context(tenant="acme"):
        written = january.mem0(bare)
        written.add(OTHER, user_id="c-1", infer=False)
        written.add(WRITTEN, user_id="c-1", infer=False)
        # Else March's own spelling of the name may be the first one kept.
        assert january.flush(GIVE_UP_S)
        results = march.mem0(bare).search(ASKED, filters={"user_id": "c-1"})["results"]
        [found] = [each["memory"] for each in results if words[0] in each["memory"]]
        shown = march.reveal(found, customer="c-1")

    assert "Jennifer" not in found
    assert shown == WRITTEN


def test_the_name_is_the_same_in_every_process(
    scopes: list[Mnemoscope], make_memory: Any, tmp_path: Path
) -> None:
    """Whatever the seed of its hashes: all they share is the key."""
    code = (
        "from mnemoscope.memory.testing import scope_for_tests\n"
        "with scope_for_tests(pii_operators='*=pseudonym') as (scope, _):\n"
        "    redactor = scope._parts.guards.redactor.redactor\n"
        "    redaction = redactor.begin(tenant='acme', known=['c-1'])\n"
        f"    print(redaction.text({WRITTEN!r}))\n"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    memory = scopes[0].mem0(make_memory())
    with context(tenant="acme"):
        memory.add(WRITTEN, user_id="c-1", infer=False)
        kept = memory.get_all(filters={"user_id": "c-1"})["results"][0]["memory"]

    assert told == [kept, kept]
    assert "<PERSON_" in kept
