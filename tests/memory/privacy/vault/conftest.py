"""Vaults that are opened with one key after another."""

from __future__ import annotations

import pytest

from tests.kit.patience import GIVE_UP_S
from tests.kit.vault_host import KEY, Host


@pytest.fixture
def path(tmp_path):
    """Return where the vault is."""
    return tmp_path / "vault" / "names.db"


@pytest.fixture
def opened(path):
    """Return how to open the vault with a key, and others before it; they are closed in the end."""
    hosts = []

    def open_with(key=KEY, *previous, **settings):
        named = ",".join(previous) or None
        given = {"audit_pseudonym_key": key, "audit_previous_keys": named} | settings
        hosts.append(Host(path, **given))
        return hosts[-1]

    yield open_with
    for each in hosts:
        each.scope.close(GIVE_UP_S)


@pytest.fixture
def stored():
    """Return how to have a text with a name stored; it returns it as the store was given it."""

    def store(host, **given):
        text = host.write(**given)
        host.scope.flush(GIVE_UP_S)
        return text

    return store
