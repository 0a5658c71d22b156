"""mem0's hosted service, with memories of several users: what it documents, and what it hides."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import httpx

from tests.kit.hosted_service import documented

TODAY = dt.date(2026, 11, 24)
_LOGICAL = {"AND": all, "OR": any}


class HostedMemories:
    """
    A transport's handler that keeps memories.

    Memories that have expired are not listed, searched or deleted with their user unless the
    request asks for them by ``show_expired``, or by their ids.

    Args:
        account: What it answers to a ping.
        first_id: The id of the first memory.

    Attributes:
        rows: The memories, by id.
    """

    def __init__(self, account: dict[str, Any], first_id: str | None = None) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self._account = account
        self._next_id = first_id
        self._users: set[str] = set()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        verb, path = request.method, request.url.path
        body = json.loads(request.content) if request.content else {}
        if path == "/v1/ping/":
            return httpx.Response(200, json=self._account)
        if path == "/v3/memories/add/":
            self._add(body)
        if path in {"/v3/memories/", "/v3/memories/search/"}:
            return httpx.Response(200, json=documented(request, self._found(body)))
        if path == "/v1/entities/":
            return httpx.Response(200, json=self._entities())
        if path == "/v1/batch/":
            self._batch(verb, body)
        if path.startswith("/v1/memories/"):
            return self._one(request, body)
        if verb == "DELETE" and path.startswith("/v2/entities/user/"):
            user = _segments(request)[4]
            self._users -= {user}
            self._drop(lambda row: row["user_id"] == user)
        return httpx.Response(200, json=documented(request))

    def _add(self, body: dict[str, Any]) -> None:
        memory_id, self._next_id = self._next_id or str(uuid.uuid4()), None
        user = body.get("user_id", (body.get("filters") or {}).get("user_id"))
        self._users |= {user}
        self.rows[memory_id] = {
            "id": memory_id,
            "memory": " ".join(each["content"] for each in body["messages"]),
            "user_id": user,
            "metadata": body.get("metadata"),
            "expiration_date": body.get("expiration_date"),
            "score": 0.5,
        }

    def _found(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        shows = body.get("show_expired", False)
        return [
            row
            for row in self.rows.values()
            if (shows or not _is_expired(row)) and _matches(row, body.get("filters") or {})
        ]

    def _entities(self) -> dict[str, Any]:
        users = sorted(self._users)
        entities = [{"id": f"e-{each}", "name": each, "type": "user"} for each in users]
        return {"count": len(entities), "results": entities}

    def _batch(self, verb: str, body: dict[str, Any]) -> None:
        for each in body["memories"]:
            if verb == "DELETE":
                self.rows.pop(each["memory_id"], None)
            elif each["memory_id"] in self.rows:
                self.rows[each["memory_id"]]["memory"] = each["text"]

    def _one(self, request: httpx.Request, body: dict[str, Any]) -> httpx.Response:
        memory_id, *rest = _segments(request)[3:]
        if not memory_id:
            user = request.url.params.get("user_id")
            self._drop(lambda row: user in {None, row["user_id"]} and not _is_expired(row))
            return httpx.Response(200, json=documented(request))
        row = self.rows.get(memory_id)
        if rest[:1] == ["history"]:
            change = {"id": "h-1", "memory_id": memory_id, "event": "ADD"}
            told = [] if row is None else [{**change, "new_memory": row["memory"]}]
            return httpx.Response(200, json=told)
        if row is None:
            return httpx.Response(404, json={"detail": "no such memory"})
        if request.method == "PUT":
            row.update(memory=body.get("text", row["memory"]))
        if request.method == "DELETE":
            del self.rows[memory_id]
        return httpx.Response(200, json=documented(request, [row]))

    def _drop(self, is_it: Callable[[dict[str, Any]], bool]) -> None:
        self.rows = {key: row for key, row in self.rows.items() if not is_it(row)}


def _segments(request: httpx.Request) -> list[str]:
    """Return the parts of a path, in which a part may have slashes of its own."""
    path = request.url.raw_path.decode().partition("?")[0]
    return [unquote(each) for each in path.split("/")]


def _is_expired(row: dict[str, Any]) -> bool:
    date = row["expiration_date"]
    return date is not None and dt.date.fromisoformat(date) < TODAY


def _matches(row: dict[str, Any], where: dict[str, Any]) -> bool:
    for key, value in where.items():
        if key in _LOGICAL and not _LOGICAL[key](_matches(row, each) for each in value):
            return False
        if key == "user_id" and value != row["user_id"]:
            return False
    return True
