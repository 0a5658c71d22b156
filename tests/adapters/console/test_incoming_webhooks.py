"""Webhooks that the site takes beside its pages."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook
from starlette.testclient import TestClient

from mnemoscope.adapters.console import build_console
from mnemoscope.adapters.webhooks import routes

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
def sender(site):
    """A client that is no browser: it says no origin, and has no session."""
    (origin,) = site.entrance.origins
    with TestClient(build_console(site, routes(site.log, SECRET)), base_url=origin) as client:
        yield client


def headers_of(body: str, secret: str = SECRET) -> dict[str, str]:
    at = datetime.now(UTC)
    signature = Webhook(secret).sign("msg_1", at, body)
    known = {"webhook-timestamp": str(int(at.timestamp())), "webhook-signature": signature}
    return {"webhook-id": "msg_1", **known}


def test_the_site_takes_a_signed_webhook_and_no_other(sender):
    """Of somebody who is signed in by nothing else; the pages stay as they are."""
    body = json.dumps({"type": "abort", "data": {"by": "grace@example.com", "name": "t-1"}})
    forged = headers_of(body, "whsec_" + base64.b64encode(bytes(32)).decode())

    assert sender.post("/webhooks", content=body, headers=forged).status_code == 401
    assert sender.post("/webhooks", content=body, headers=headers_of(body)).status_code == 202
    assert sender.post("/webhooks", content=body, headers=headers_of(body)).status_code == 409
    assert sender.post("/sign-in", content=body, headers=headers_of(body)).status_code == 403
    assert sender.get("/", follow_redirects=False).status_code != 200


def test_an_abort_of_no_run_is_no_stopped_run(sender, tokens):
    """It is an order. What it ends has a verdict of its own, which is shown."""
    body = json.dumps({"type": "abort", "data": {"by": "grace@example.com", "name": "t-1"}})
    sender.post("/webhooks", content=body, headers=headers_of(body))

    sender.get("/sign-in", params={"token": tokens[-1]})

    assert "Nothing waits" in sender.get("/").text
