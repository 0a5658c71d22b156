"""The console's OpenAPI, made from its routes, and schemathesis against it: no fault."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings

from mnemoscope.audit import AuditLog
from tests.kit.patience import GIVE_UP_S

FIELDS = {
    "/sign-in": ("token",),
    "/decide": ("approval", "choice", "why"),
    "/sign-out": (),
}
"""The fields of forms that are known by name; of others, any."""

EXAMPLES = 40


def text(name: str, place: str) -> dict[str, Any]:
    """Return a parameter of any text."""
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}


def open_api(routes):
    """Return the OpenAPI document of *routes*: paths, their parts, query and forms."""
    paths: dict[str, Any] = {}
    for path, methods in routes:
        path = re.sub(r"{(\w+):\w+}", r"{\1}", path)  # noqa: PLW2901 - without the converter
        if path == "/sign-out":  # it ends the session of all that follow
            continue
        parts = [text(name, "path") for name in re.findall(r"{(\w+)}", path)]
        query = [text(name, "query") for name in ("page", "token", "q")]
        for method in sorted(methods - {"HEAD"}):
            known: dict[str, Any] = {"responses": {"default": {"description": "A page."}}}
            known["parameters"] = [*parts, *query]
            if method == "POST":
                form = {name: {"type": "string"} for name in FIELDS.get(path, ())}
                schema = {
                    "type": "object",
                    "properties": form,
                    "additionalProperties": {"type": "string"},
                }
                kind = "application/x-www-form-urlencoded"
                known["requestBody"] = {"content": {kind: {"schema": schema}}}
            paths.setdefault(path, {})[method.lower()] = known
    return {"openapi": "3.0.3", "info": {"title": "console", "version": "1"}, "paths": paths}


@pytest.fixture
def routes(tmp_path, subject_keys):
    """The routes of the console, whichever pages there are."""
    from mnemoscope.adapters.console import Entrance, Sessions, Site, build_console

    log = AuditLog(tmp_path / "routes.db", subject_keys)  # which opens nothing
    entrance = Entrance(origins=frozenset())
    app = build_console(Site(log=log, entrance=entrance, sessions=Sessions(lambda: 0.0)))
    return [(each.path, each.methods or {"GET"}) for each in app.routes]


def test_nothing_that_is_sent_is_a_fault(console, routes):
    """Each route, signed in, with its form's token: whatever is sent, it answers below 500."""
    schema = schemathesis.openapi.from_dict(open_api(routes))
    # One that is kept is closed by the site after five seconds, for which some examples take.
    closing = {"connection": "close"}
    with httpx.Client(base_url=console.origin, timeout=GIVE_UP_S, headers=closing) as browser:
        page = browser.get(console.sign_in, follow_redirects=True)
        csrf = re.findall('name="csrf" value="([^"]+)"', page.text)[0]
        faults: list[str] = []
        for found in schema.get_all_operations():
            operation = found.ok()
            # Of a page that takes nothing all requests are alike, and some take seconds.
            is_plain = operation.method == "get" and "{" not in operation.path

            @given(case=operation.as_strategy())
            @settings(
                max_examples=5 if is_plain else EXAMPLES, suppress_health_check=list(HealthCheck)
            )
            def send(case):
                body = (
                    {"csrf": csrf, **case.body} if isinstance(case.body, dict) else {"csrf": csrf}
                )
                answer = browser.request(
                    case.method,
                    case.formatted_path,
                    params=case.query,
                    data=body if case.method.upper() == "POST" else None,
                    headers={"origin": console.origin},
                )
                if answer.status_code >= 500 and answer.status_code != 503:
                    faults.append(f"{case.method} {case.path}: {answer.status_code}")

            send()

    assert sorted(set(faults)) == []
