"""Webhooks that come in: decisions of humans and aborts of runs, signed and taken once."""

from .routes import routes

__all__ = ["routes"]
