"""Webhooks that come in: aborts of runs, signed and taken once."""

from .routes import routes

__all__ = ["routes"]
