"""How long a store asks to be left alone, out of what each real client raises for it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import requests
from mem0 import AsyncMemoryClient, MemoryClient
from qdrant_client import AsyncQdrantClient, QdrantClient

from mnemoscope.memory.guard.retry_after import retry_after_s
from tests.kit.patience import GIVE_UP_S

IN_A_MINUTE = "Tue, 14 Nov 2023 22:14:20 GMT"


def wall_ns() -> int:
    """Return the time a minute earlier."""
    return 1_700_000_000 * 10**9


def _of_mem0(url: str) -> None:
    memory = MemoryClient(api_key="key", host=url)
    try:
        memory.search("tea", filters={"user_id": "u"})
    finally:
        memory.client.close()


async def _of_async_mem0(url: str) -> None:
    async with AsyncMemoryClient(api_key="key", host=url) as memory:
        await memory.search("tea", filters={"user_id": "u"})


def _of_qdrant(url: str) -> None:
    client = QdrantClient(url=url, check_compatibility=False)
    try:
        client.count("notes")
    finally:
        client.close()


async def _of_async_qdrant(url: str) -> None:
    client = AsyncQdrantClient(url=url, check_compatibility=False)
    try:
        await client.count("notes")
    finally:
        await client.close()


def _of_httpx(url: str) -> None:
    httpx.post(url).raise_for_status()


def _of_requests(url: str) -> None:
    requests.post(url, timeout=GIVE_UP_S).raise_for_status()


CLIENTS = [_of_mem0, _of_async_mem0, _of_qdrant, _of_async_qdrant, _of_httpx, _of_requests]


@pytest.fixture
def raised(http_receiver: Any) -> Callable[..., Any]:
    """Return a function that returns what a client raises when the server is not to be asked."""

    async def ask(client: Callable[[str], Any], status: int, headers: dict[str, str]) -> Exception:
        def answer(handler: Any) -> None:
            is_ping = "/v1/ping/" in handler.path
            body = json.dumps({"org_id": "o", "project_id": "p", "detail": "no"}).encode()
            handler.send_response(200 if is_ping else status)
            for name, value in (headers | {"content-length": str(len(body))}).items():
                handler.send_header(name, value)
            handler.send_header("content-type", "application/json")
            handler.end_headers()
            handler.wfile.write(body)

        http_receiver.answer = answer
        try:
            asked = client(http_receiver.url)
            if inspect.isawaitable(asked):
                await asked
        except Exception as exc:  # noqa: BLE001 - the client's own, whichever it is
            return exc
        raise AssertionError("it was answered")

    return ask


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.__name__)
async def test_seconds_are_found(client, status, raised):
    """In the header, whatever of it the client keeps."""
    exc = await raised(client, status, {"Retry-After": "7"})

    assert retry_after_s(exc, wall_ns=wall_ns) == 7.0


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.__name__)
async def test_a_date_is_found(client, status, raised):
    """But where Qdrant's client drops it: of a 429, it takes seconds alone."""
    exc = await raised(client, status, {"retry-after": IN_A_MINUTE})

    is_dropped = status == 429 and client in {_of_qdrant, _of_async_qdrant}
    assert retry_after_s(exc, wall_ns=wall_ns) == (None if is_dropped else 60.0)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.__name__)
async def test_who_says_nothing_is_not_waited_for(client, raised):
    """No header, no time."""
    assert retry_after_s(await raised(client, 429, {})) is None
