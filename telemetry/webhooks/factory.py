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
    address = url.get_secret_value()
    if not address.startswith(("https://", "http://")):
        raise ValueError("MNEMOSCOPE_WEBHOOK_URL: expected https://…")
    try:
        key = None if secret is None else parse_secret(secret.get_secret_value())
    except ValueError as exc:
        raise ValueError(f"MNEMOSCOPE_WEBHOOK_SECRET: {exc}") from None
    return WebhookSink(
        address,
        context.keys,
        key=key,
        form=form,
        kinds=settings["webhook_events"],
        console=settings["console_url"],
    )
