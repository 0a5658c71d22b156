"""
Exceptions this library raises.

* MnemoscopeError
  * ConfigurationError          -- at construction time, never during a call
    * UnsupportedClientError
  * ScopeError (ValueError)     -- the caller's mistake: a wildcard or missing owner
  * StoreUnavailableError       -- an operation that fails closed was not attempted
  * DeadlineExceededError (TimeoutError) -- an operation that fails closed took too long
  * RedactionError              -- what could not be redacted was not written

No message quotes a value of the user's: names, types and numbers only.
"""

from __future__ import annotations


class MnemoscopeError(Exception):
    """Base of everything this library raises on its own account."""


class ConfigurationError(MnemoscopeError):
    """A setting makes no sense. Raised by ``configure()`` and the wrappers, never by a call."""


class UnsupportedClientError(ConfigurationError):
    """
    A client of a class that the adapter does not know how to guard.

    Attributes:
        client: The type that was offered.
        wanted: Names of the classes the adapter guards.
    """

    def __init__(self, client: type, wanted: tuple[str, ...]) -> None:
        super().__init__(
            f"cannot guard a {client.__module__}.{client.__qualname__}: "
            f"expected one of {', '.join(wanted)}"
        )
        self.client = client
        self.wanted = wanted


class ScopeError(MnemoscopeError, ValueError):
    """An operation names nobody, everybody (``*``) or somebody else. Also a `ValueError`."""


class StoreUnavailableError(MnemoscopeError):
    """
    An operation that fails closed was not attempted: the breaker is open or the bulkhead is full.

    Attributes:
        store: Which store.
        reason: ``breaker open`` or ``bulkhead full``.
    """

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"{store}: {reason}; the operation was not attempted, try again later")
        self.store = store
        self.reason = reason


class DeadlineExceededError(MnemoscopeError, TimeoutError):
    """
    An operation that fails closed did not end in time. It may still take effect.

    Attributes:
        store: Which store.
        deadline_s: The seconds it was given.
    """

    def __init__(self, store: str, deadline_s: float) -> None:
        super().__init__(f"{store}: no answer within {deadline_s:g} s; it may still take effect")
        self.store = store
        self.deadline_s = deadline_s


class RedactionError(MnemoscopeError):
    """Content could not be redacted, so it was not written. Says where, never what."""
