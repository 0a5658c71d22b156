"""A client guarded by two scopes: each redacts, confines and waits by its own rules."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from mem0 import AsyncMemoryClient

from mnemoscope.memory import Mnemoscope, ScopeError, context, load_settings
from mnemoscope.memory.guard.steps.audit_gate import AwaitAudit
from mnemoscope.memory.testing import AdapterCase, scope_for_tests
from tests.kit.adapter_cases import CASES, hosted_account

pytestmark = pytest.mark.filterwarnings("ignore:`recreate_collection` method is deprecated")

SECRET = "grace.hopper@example.com"
KEEPS = {"pii_operators": "*=keep"}


@pytest.fixture(autouse=True)
def account(monkeypatch):
    """Stand in for the account of the hosted service."""
    monkeypatch.setattr(AsyncMemoryClient, "_validate_api_key", hosted_account)


class OpenStore(InMemoryStore):
    """A store that takes attributes: the original has slots."""


async def awaited(value: Any) -> Any:
    """Return *value*, or what it comes to."""
    if hasattr(value, "__aiter__"):
        return [each async for each in value]
    if inspect.isawaitable(value):
        return await value
    return list(value) if inspect.isgenerator(value) else value


def called(method: Any, arguments: dict[str, Any]) -> Any:
    """Call *method* with *arguments*, those without a name by position."""
    parameters = inspect.signature(method).parameters.values()
    nameless = [each.name for each in parameters if each.kind is each.POSITIONAL_ONLY]
    first = [arguments.pop(name) for name in nameless if name in arguments]
    return method(*first, **arguments)


def record(client: Any, names: list[str]) -> list[str]:
    """Return a list that gets what the bare *client* is called with, by any method of *names*."""
    seen: list[str] = []

    def recorded(method: Any) -> Any:
        def noted(*args: Any, **kwargs: Any) -> Any:
            seen.append(repr((args, kwargs)))
            return method(*args, **kwargs)

        return noted

    for name in names:
        setattr(client, name, recorded(getattr(client, name)))
    return seen


async def reaches(case: AdapterCase, *operators: dict[str, Any]) -> list[str]:
    """Return what reaches the store through scopes with *operators*, the innermost first."""
    client = await awaited(case.make_client())
    if isinstance(client, InMemoryStore):
        client = OpenStore()
    seen = record(client, [*case.calls])
    made = [scope_for_tests(**each) for each in operators]
    guarded = client
    try:
        for each in made:
            scope, _sink = each.__enter__()
            guarded = scope.guard(guarded, adapter=case.adapter, **case.options)
        for name, arguments in case.calls.items():
            await awaited(called(getattr(guarded, name), arguments(SECRET)))
    finally:
        for each in reversed(made):
            each.__exit__(None, None, None)
    return seen


@pytest.mark.long_but_each(4)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("order", [[{}, KEEPS], [KEEPS, {}]], ids=["strict inside", "lax inside"])
async def test_one_scope_does_not_switch_off_anothers_redaction(name, order):
    """Whichever is the outer one: what either replaces does not reach the store."""
    seen = await reaches(CASES[name](), *order)

    assert seen
    assert [call for call in seen if SECRET in call] == []


@pytest.mark.parametrize("name", CASES)
async def test_what_both_scopes_keep_reaches_the_store(name):
    """So what is not seen above was replaced."""
    seen = await reaches(CASES[name](), KEEPS, KEEPS)

    assert any(SECRET in call for call in seen)


def test_one_scope_does_not_switch_off_anothers_tenancy():
    """A call without a customer is refused, though it comes through a scope that only observes."""
    with scope_for_tests() as (lax, _), scope_for_tests(tenancy="enforce") as (strict, _sink):
        store = lax.store(strict.store(InMemoryStore(), customer_at=1))

        with pytest.raises(ScopeError, match="names no customer"):
            store.search(("memories",))
        with context(customer="c-42"):
            assert store.search(("memories",)) == []


def test_one_scope_does_not_switch_off_anothers_durability(tmp_path, monkeypatch):
    """A call waits for the trail that wants it so, whoever else is around it."""
    waits = []
    monkeypatch.setattr(AwaitAudit, "wait", lambda _gate: waits.append("waited"))
    settings = load_settings(
        audit_url=f"sqlite:///{tmp_path / 'audit.db'}",
        audit_spool=tmp_path / "spool",
        audit_mode="durable",
        audit_pseudonym_key="5e" * 16,
        pii_model="none",
        sinks="audit",
    )
    durable = Mnemoscope(settings)
    try:
        with scope_for_tests() as (lax, _sink):
            lax.store(durable.store(InMemoryStore())).put(("notes",), "tea", {"likes": "tea"})
    finally:
        durable.close()

    assert waits == ["waited"]
