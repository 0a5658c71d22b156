"""The factory of the webhooks sink."""

from __future__ import annotations

from ..delivery.registry import SinkContext
from .signing import parse_secret
from .sink import WebhookSink


def build(context: SinkContext) -> WebhookSink | None:
    """Build the sink if a receiver is set."""
    settings = context.settings
    url, secret, form = (settings[f"webhook_{each}"] for each in ("url", "secret", "format"))
    if url is None:
        return None
    if secret is None and form == "standard":
        raise ValueError(
            "MNEMOSCOPE_WEBHOOK_SECRET is not set: expected the secret that the receiver verifies "
            "signatures with, or MNEMOSCOPE_WEBHOOK_FORMAT=slack"
        )
    return WebhookSink(
        url.get_secret_value(),
        context.keys,
        key=None if secret is None else parse_secret(secret.get_secret_value()),
        form=form,
        kinds=settings["webhook_events"],
        console=settings["console_url"],
    )
