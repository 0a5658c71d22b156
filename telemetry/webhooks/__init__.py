"""Webhooks: messages on what needs somebody's attention, signed as in Standard Webhooks."""

from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["held", "stopped", "budget", "tripwire", "integrity"]
"""The kind of a message. Closed."""
