"""An application with a retention policy, whose trail lives through days as a test says so."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.kit.command_line import run
from tests.kit.elapsed_days import live
from tests.kit.kept_scope import scope_in
from tests.kit.patience import GIVE_UP_S

POLICY = 'purposes: {support: 30d, profile: 2y, "*": 400d}\n'


class KeptWorld:
    """
    A scope with a retention policy, whose trail has a clock that a test turns.

    Attributes:
        scope: The scope.
        now_s: The clock of the trail: seconds since 1970 UTC, its one item.
    """

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        policy: str = POLICY,
        audit_url: str | None = None,
        **settings: Any,
    ) -> None:
        # From now on: stores write their own dates beside.
        self.now_s = [time.time()]
        self._folder = folder
        monkeypatch.setenv("COLUMNS", "80")
        self.policy = folder / "retention.yaml"
        self.policy.write_text(policy)
        if audit_url is not None:
            settings["audit_url"] = audit_url
        self.scope = scope_in(folder, monkeypatch, lambda: int(self.now_s[0] * 1e9), **settings)
        monkeypatch.setattr("mnemoscope.adapters.cli.scope.scope_at", lambda _address: self.scope)

    def flush(self) -> None:
        """Have the trail take all events so far."""
        assert self.scope.flush(timeout_s=GIVE_UP_S)

    def live(self, days: float, *, every_days: float = 7) -> None:
        """Have days pass, in which the trail has an event now and then."""
        self.flush()
        live(self.scope.audit, self.now_s, days, every_days=every_days)

    def command(self, *words: str, **options: Any) -> int:
        """Run ``mnemoscope retention`` with these words, and return its exit code."""
        return run(["retention", *words, "--scope", "app:scope", *options.get("more", ())])

    def plan(self, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
        """Return the plan as the command prints it for programs."""
        capsys.readouterr()
        code = self.command("plan", "--json")
        printed = capsys.readouterr()
        assert code == 0, printed.err
        found: dict[str, Any] = json.loads(printed.out)
        return found

    def going(self, capsys: pytest.CaptureFixture[str]) -> Counter[tuple[str, str, str]]:
        """Return how many records would go, by class, purpose and reason."""
        return _counted(self.plan(capsys)["going"])

    def staying(self, capsys: pytest.CaptureFixture[str]) -> Counter[tuple[str, str, str]]:
        """Return how many stay other than for being young."""
        return _counted(self.plan(capsys)["staying"])

    def sweep(self, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
        """Run the sweeper, and return what it prints for programs, with its exit code."""
        capsys.readouterr()
        code = self.command("run", "--yes", "--json")
        printed = capsys.readouterr()
        assert printed.out, printed.err
        found: dict[str, Any] = json.loads(printed.out)
        return found | {"code": code, "said": printed.err}

    def deletions(self) -> list[Any]:
        """Return the sealed deletions with the purpose of retention."""
        self.flush()
        return [each for each in self.scope.audit.rows() if each.purpose == "retention"]


def _counted(groups: list[dict[str, Any]]) -> Counter[tuple[str, str, str]]:
    found: Counter[tuple[str, str, str]] = Counter()
    for each in groups:
        found[each["class"], each["purpose"], each["why"]] += each["records"]
    return found


def sqlite_at(path: Path) -> sqlite3.Connection:
    """Return a connection that any thread may use."""
    return sqlite3.connect(path, check_same_thread=False, isolation_level=None)
