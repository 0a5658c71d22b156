"""``mnemoscope vault rotate``."""

from __future__ import annotations

import json
import os

import pytest

from mnemoscope.adapters.cli.root import run
from tests.kit.patience import GIVE_UP_S
from tests.kit.vault_host import KEY, NAME, Host

OTHER = "ffeeddccbbaa99887766554433221100"


@pytest.fixture
def path(tmp_path, monkeypatch):
    """Return the vault that the environment names, with two customers under the first key."""
    for name in [each for each in os.environ if each.startswith("MNEMOSCOPE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    path = tmp_path / "vault" / "names.db"
    monkeypatch.setenv("MNEMOSCOPE_VAULT", str(path))
    host = Host(path)
    for customer in ("c-1", "c-2"):
        host.write(customer=customer)
    host.scope.close(GIVE_UP_S)
    return path


@pytest.fixture
def rotate(path, monkeypatch, capfd):
    """Return how to run it with keys: the exit code, what it printed, what it said beside."""

    def call(*arguments, key=OTHER, previous=""):
        monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", key)
        monkeypatch.setenv("MNEMOSCOPE_AUDIT_PREVIOUS_KEYS", previous)
        code = run(["vault", "rotate", *arguments])
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return call


def test_the_old_key_can_be_dropped_afterwards(rotate, path):
    """All is revealed with the new one alone."""
    code, out, err = rotate(previous=KEY)
    host = Host(path, audit_pseudonym_key=OTHER)
    old = Host(path)
    shown = host.reveal(old.write())
    for each in (host, old):
        each.scope.close(GIVE_UP_S)

    assert (code, out, err) == (0, "2 customers are under the current key now\n", "")
    assert NAME in shown


def test_what_does_not_open_is_told(rotate, path):
    """With an exit code, and what to do; then it is done."""
    code, out, err = rotate("--json")

    assert (code, json.loads(out)) == (3, {"rewrapped": 0, "unreadable": 2, "dropped": 0})
    assert "MNEMOSCOPE_AUDIT_PREVIOUS_KEYS" in err
    assert rotate(previous=KEY)[0] == 0


def test_what_does_not_open_is_dropped_if_that_is_said(rotate):
    """And then all opens."""
    code, out, _err = rotate("--drop-unreadable")

    assert (code, out) == (0, "0 customers are under the current key now, 2 were dropped\n")
    assert rotate()[0] == 0


@pytest.mark.parametrize(
    ("name", "value", "code", "said"),
    [
        ("MNEMOSCOPE_VAULT", "", 4, "MNEMOSCOPE_VAULT"),
        ("MNEMOSCOPE_VAULT", "nowhere/names.db", 2, "unable to open"),
        ("MNEMOSCOPE_AUDIT_PREVIOUS_KEYS", "zz", 4, "MNEMOSCOPE_AUDIT_PREVIOUS_KEYS"),
    ],
)
def test_a_mistake_is_told_in_one_line(path, monkeypatch, capfd, name, value, code, said):
    """And nothing is made."""
    monkeypatch.chdir(path.parent)
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", KEY)
    monkeypatch.setenv(name, value)
    ended = run(["vault", "rotate"])
    err = capfd.readouterr().err

    assert (ended, err.count("\n")) == (code, 1)
    assert said in err
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_without_a_key_none_is_made(path, tmp_path, capfd):
    """One that was made now would open nothing."""
    assert run(["vault", "rotate"]) == 4
    assert "no key" in capfd.readouterr().err
    assert not (tmp_path / "data").exists()
