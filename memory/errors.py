"""
Exceptions this library raises.

* MnemoscopeError
  * ConfigurationError          -- at construction time, never during a call
    * UnsupportedClientError
  * ScopeError (ValueError)     -- the caller's mistake: a wildcard or missing owner
  * StoreUnavailableError       -- an operation that fails closed was not attempted
  * DeadlineExceededError (TimeoutError) -- an operation that fails closed took too long
  * AuditUnavailableError       -- in strict mode: it could not have been audited
  * RedactionError              -- what could not be redacted was not written
  * BudgetExceededError (RuntimeError) -- a model was not called: its budget is spent

No message quotes a value of the user's: names, types and numbers only.
"""

from __future__ import annotations

from ..telemetry.amounts import in_unit


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


class AuditUnavailableError(MnemoscopeError):
    """
    An operation was refused since the audit trail takes nothing: the store was not asked.

    Attributes:
        op_class: Its class, for which ``MNEMOSCOPE_AUDIT_MODE`` is strict.
    """

    def __init__(self, op_class: str) -> None:
        super().__init__(
            f"a {op_class} operation was refused: neither the audit database nor its spool takes "
            "anything; see `mnemoscope doctor`"
        )
        self.op_class = op_class


class RedactionError(MnemoscopeError):
    """Content could not be redacted, so it was not written. Says where, never what."""


class BudgetExceededError(MnemoscopeError, RuntimeError):
    """
    A model was not called, because a budget with ``on_exceeded="stop"`` is spent.

    A `RuntimeError`, so that LangGraph's default retry policy does not try it again.

    Attributes:
        budget: The budget's name.
        spent: What was spent in the period that ends now.
        limit: What may be spent in a period.
        unit: What both count: ``usd`` or ``tokens``.
    """

    def __init__(self, budget: str, spent: float, limit: float, unit: str) -> None:
        amounts = f"{in_unit(spent, unit)} of {in_unit(limit, unit)}"
        super().__init__(
            f"the budget {budget!r} is spent ({amounts}): the model was not called; wait until "
            "less was spent in its period, or raise it"
        )
        self.budget = budget
        self.spent = spent
        self.limit = limit
        self.unit = unit

    def __reduce__(self) -> tuple[type[BudgetExceededError], tuple[str, float, float, str]]:
        """Survive pickling: an exception is rebuilt from its message otherwise."""
        return type(self), (self.budget, self.spent, self.limit, self.unit)


BudgetExceeded = BudgetExceededError
"""The same by the name that it has in other libraries' words."""


BARRED = (ScopeError, AuditUnavailableError)
"""What keeps an operation from being attempted, before anything of it is looked at."""
