"""The customer whom a function of the user's names, of a session for example."""

from __future__ import annotations

from typing import Any

from ...memory.api import ScopeError
from ...telemetry.event.spelling import id_text


def named_customer(given: Any) -> str | None:
    """
    Return the id of one customer. None: nobody is named. A whole number is its digits.

    Raises:
        ScopeError: Everybody is named, or what is no id.
    """
    customer = id_text(given)
    if customer is None or customer == "":
        return None
    if not isinstance(customer, str) or customer.strip() == "*":
        raise ScopeError("whose a session is must be the id of one customer, as text")
    return customer
