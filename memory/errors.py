"""
Exceptions of this library.

* MnemoscopeError
  * ConfigurationError                    a setting or argument is invalid
    * UnsupportedClientError              no adapter guards this client
  * ScopeError (ValueError)               the tenant or customer is missing, a wildcard or wrong
  * RedactionError                        the content could not be redacted
    * ContentTooLargeError                it has more text than one call may carry
  * KeyMismatchError                      the store was written under another key
  * StoreUnavailableError                 the breaker is open or the bulkhead is full
  * DeadlineExceededError (TimeoutError)  the store did not answer in time
    * RedactionTimeoutError               the content was not redacted in time
  * ForgetUncertainError                  deleted, and a late write may bring it back
  * UnexpectedAnswerError                 the store's answer is none that it documents
  * VaultError                            the vault cannot be read or written
    * UncertainErasureError               it cannot be told whether all of a customer is erased
  * AuditUnavailableError                 audit mode strict, and auditing is impossible
  * IntegrityError (RuntimeError)         what was read is not what was written
  * HandoffError (ValueError)             an agent's output is not what its schema says
  * AssemblyError (ValueError)            what a prompt must have is more than its budget
  * BudgetExceededError (RuntimeError)    a budget with on_exceeded="stop" is spent
  * RuleError (RuntimeError)              a rule that is not in shadow does not allow it
    * StoppedError                        the run ends
    * RefusedError                        this operation is not done
    * HeldError                           a human decides

`ConfigurationError` is raised while something is configured or wrapped, the others by calls. No
message quotes a value of the user's: names, types and numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..telemetry.event.format import in_unit


class MnemoscopeError(Exception):
    """Base class of this library's own exceptions."""


class ConfigurationError(MnemoscopeError):
    """
    A setting or argument is invalid.

    Raised while something is configured or wrapped, never by a guarded call.
    """


class UnsupportedClientError(ConfigurationError):
    """
    No adapter guards clients of this class. Raised when a client is wrapped.

    Attributes:
        client: Type of the client.
        wanted: Names of the classes that the adapter guards.
    """

    def __init__(self, client: type, wanted: tuple[str, ...]) -> None:
        super().__init__(
            f"cannot guard a {client.__module__}.{client.__qualname__}: "
            f"expected one of {', '.join(wanted)}"
        )
        self.client = client
        self.wanted = wanted


class KeyMismatchError(MnemoscopeError):
    """
    The store was written under another key than this process has, so nothing would be found in it.

    Raised by every guarded call of that store, in every class of operations: an empty answer would
    be wrong.

    Attributes:
        store: Name of the store.
        found: Id of the key that it was written under.
        ours: Id of the key of this process.
    """

    def __init__(self, store: str, found: str, ours: str) -> None:
        super().__init__(
            f"{store} was written under key {found}, and this process has key {ours}: nothing "
            "would be found again. Set MNEMOSCOPE_AUDIT_PSEUDONYM_KEY or "
            "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY_FILE to the key of the process that wrote it"
        )
        self.store = store
        self.found = found
        self.ours = ours


class ScopeError(MnemoscopeError, ValueError):
    """
    The tenant or customer of an operation is missing, a wildcard (``*``) or not the context's own.

    Raised by `context` and by guarded calls, before the store is called. Also a `ValueError`. A
    saver's filter with a key that is no plain name raises it too: it could reach other threads.
    """


class StoreUnavailableError(MnemoscopeError):
    """
    The breaker is open or the bulkhead is full, so the store was not called.

    Raised by operations that fail closed: forget, resume and checkpoint.

    Attributes:
        store: Name of the store.
        reason: ``breaker open`` or ``bulkhead full``.
    """

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(f"{store}: {reason}; the operation was not attempted, try again later")
        self.store = store
        self.reason = reason


class ForgetUncertainError(MnemoscopeError):
    """
    The store deleted, and a write that it is still at work on may bring back what it deleted.

    Raised by operations of the class forget, in place of an answer that may turn out wrong.
    """

    def __init__(self, store: str) -> None:
        super().__init__(
            f"{store}: deleted, but an earlier write that it is still at work on may bring it "
            "back; delete again later"
        )
        self.store = store


class DeadlineExceededError(MnemoscopeError, TimeoutError):
    """
    The store did not answer within the deadline. The operation may still take effect.

    Raised by operations that fail closed: forget, resume and checkpoint. Also a `TimeoutError`.

    Attributes:
        store: Name of the store.
        deadline_s: The deadline, seconds.
    """

    def __init__(self, store: str, deadline_s: float) -> None:
        super().__init__(f"{store}: no answer within {deadline_s:g} s; it may still take effect")
        self.store = store
        self.deadline_s = deadline_s


class RedactionTimeoutError(DeadlineExceededError):
    """
    The content was not redacted within the deadline, so the store was not asked.

    Raised by operations that fail closed: forget, resume and checkpoint. A write that a journal can
    keep is redacted all the same, and made then; its event is `late`.

    Args:
        store: Name of the store.
        deadline_s: Seconds that the call could take.
        is_loading: Detectors and models were still being loaded then.
    """

    def __init__(self, store: str, deadline_s: float, *, is_loading: bool = False) -> None:
        super().__init__(store, deadline_s)
        text = f"the content was not redacted within {deadline_s:g} s, so the store was not asked"
        what_to_do = (
            "what redacts it was still being loaded, wait for scope.prepare() before the first call"
            if is_loading
            else "send less at once, or allow more time"
        )
        self.args = (f"{store}: {text}; {what_to_do}",)


class UnexpectedAnswerError(MnemoscopeError):
    """
    The store's answer is none that it documents, such as null or the page of a proxy.

    Raised by operations that fail closed: forget, resume and checkpoint.

    Attributes:
        method: The method of the client.
        kind: Name of the answer's type.
    """

    def __init__(self, method: str, kind: str) -> None:
        super().__init__(
            f"{method}() was answered with a {kind}, which the store does not document"
        )
        self.method = method
        self.kind = kind


class VaultError(MnemoscopeError):
    """
    The vault could not be read or written: what was to be erased may still be there.

    Raised by erasing and by changing the key. Revealing fails open: the pseudonyms stay.
    """


class UncertainErasureError(VaultError):
    """
    What could be found of a customer is erased from the vault, and more of them may be there.

    Attributes:
        erased: Number of pseudonyms that were erased.
        unseen: Number of customers, of whom this may be one, who cannot be looked up: by the id of
            the key that it takes. Empty, if an earlier version did not note the id.
    """

    def __init__(
        self, message: str, *, erased: int = 0, unseen: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(message)
        self.erased = erased
        self.unseen = dict(unseen or {})


class AuditUnavailableError(MnemoscopeError):
    """
    The operation could not be audited, so the store was not called.

    Raised by operations of the classes for which ``MNEMOSCOPE_AUDIT_MODE`` is ``strict``.

    Attributes:
        op_class: Class of the operation.
    """

    def __init__(self, op_class: str) -> None:
        super().__init__(
            f"the {op_class} operation was refused: neither the audit database nor its spool can "
            "be written; run `mnemoscope doctor`"
        )
        self.op_class = op_class


class IntegrityError(MnemoscopeError, RuntimeError):
    """
    What was read is not what was written, or cannot be compared; the answer is withheld.

    Also a `RuntimeError`, so that LangGraph's default retry policy does not retry it.

    Attributes:
        store: Name of the store.
        found: Codes of what is wrong, such as ``changed``: see docs/integrity.md.
    """

    def __init__(self, store: str, found: tuple[str, ...]) -> None:
        super().__init__(f"{store}: the answer is not what was written ({', '.join(found)})")
        self.store = store
        self.found = found


class RedactionError(MnemoscopeError):
    """
    The content could not be redacted, so it was not written.

    Raised by writes and by other operations whose content has to be redacted first.

    Attributes:
        kind: Qualified name of the type that could not be redacted; None: another reason.
    """

    def __init__(self, message: str, *, kind: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind


class ContentTooLargeError(RedactionError):
    """
    The content has more text than may be redacted in one call, so it was not written.

    Raised where ``MNEMOSCOPE_PII_TOO_LARGE`` is ``refuse``; see ``MNEMOSCOPE_PII_MOST_CHARACTERS``.
    """


class HandoffError(MnemoscopeError, ValueError):
    """
    An agent's output is not what the schema of its handoff says, so nothing of it passed.

    Attributes:
        schema: Name of the schema.
        problems: A field of the schema and what is wrong with it, each: no words of the agent's.
    """

    def __init__(self, schema: type, problems: tuple[str, ...]) -> None:
        super().__init__(
            f"the output is not a {schema.__name__} ({'; '.join(problems)}), so nothing of it was "
            "handed on: ask the agent again"
        )
        self.schema = schema.__name__
        self.problems = problems


class AssemblyError(MnemoscopeError, ValueError):
    """
    What may never be pruned from a prompt has more tokens than the prompt may have.

    Attributes:
        blocks: Names of the blocks with such items.
        tokens: Their tokens.
        total: Tokens that the prompt may have.
    """

    def __init__(self, blocks: Sequence[str], tokens: int, total: int) -> None:
        super().__init__(
            f"{', '.join(blocks)}: {tokens:,} tokens of what is never pruned, and the prompt may "
            f"have {total:,}: prune by a rule of your own, or raise the total"
        )
        self.blocks = tuple(blocks)
        self.tokens = tokens
        self.total = total


class BudgetExceededError(MnemoscopeError, RuntimeError):
    """
    A budget with ``on_exceeded="stop"`` is spent, so the model was not called.

    Raised before a model call that the budget covers. Also a `RuntimeError`, so that LangGraph's
    default retry policy does not retry it.

    Attributes:
        budget: Name of the budget.
        spent: Amount spent in the period that ends now.
        limit: Amount that may be spent in a period.
        unit: Unit of all three: ``usd`` or ``tokens``.
        expected: What calls under way are expected to add to `spent`.
        facts: What it was decided on, as `Facts`, for the event of it. None: in another process.
        best: As of `StoppedError`.
    """

    facts: Any = None
    best: Any = None

    def __init__(
        self, budget: str, spent: float, limit: float, unit: str, expected: float = 0.0
    ) -> None:
        amounts = f"{in_unit(spent, unit)} of {in_unit(limit, unit)}"
        if expected:
            amounts += f", and calls under way may use {in_unit(expected, unit)}"
        super().__init__(
            f"the budget {budget!r} is spent ({amounts}), so the model was not called: wait, or "
            "raise the budget"
        )
        self.budget = budget
        self.spent = spent
        self.limit = limit
        self.unit = unit
        self.expected = expected

    def __reduce__(self) -> tuple[type[BudgetExceededError], tuple[str, float, float, str, float]]:
        """Return the arguments to unpickle it with: the default is its message alone."""
        return type(self), (self.budget, self.spent, self.limit, self.unit, self.expected)


BudgetExceeded = BudgetExceededError
"""Alias of `BudgetExceededError`, the name in other libraries."""


class RuleError(MnemoscopeError, RuntimeError):
    """
    A rule does not allow the operation, so it was not done.

    Also a `RuntimeError`, so that LangGraph's default retry policy does not retry it.

    Attributes:
        rule: Name of the rule.
        reason: The rule's own code.
    """

    strictness = 0

    def __init__(self, rule: str, reason: str) -> None:
        super().__init__(self._sentence(rule, reason))
        self.rule = rule
        self.reason = reason

    def _sentence(self, rule: str, reason: str) -> str:
        return f"the rule {rule!r} does not allow it ({reason})"

    def __reduce__(self) -> tuple[type[RuleError], tuple[Any, ...]]:
        """Return the arguments to unpickle it with: the default is its message alone."""
        return type(self), (self.rule, self.reason)


class StoppedError(RuleError):
    """
    A rule ends the run: no further node, model or tool of it is called.

    Attributes:
        best: The best answer that was noted, where an escalation has answered `RETURN_BEST`. It is
            the caller's own object, and None in another process.
    """

    strictness = 3
    best: Any = None

    def _sentence(self, rule: str, reason: str) -> str:
        return f"the run was stopped by the rule {rule!r} ({reason}); what it has done is kept"


class RefusedError(RuleError):
    """
    A rule refuses the operation. The message does not say why: the audit trail does.

    A recall that is refused finds nothing instead.
    """

    strictness = 2

    def _sentence(self, rule: str, reason: str) -> str:  # noqa: ARG002 - not for the caller
        return "not available"


class HeldError(RuleError):
    """
    A rule leaves the operation to a human, who has not decided yet.

    Attributes:
        approval: Of a memory write: the id by which it is decided, ``mnemoscope approvals decide``.
            Once it is approved, the same write passes, once. None: it cannot be told from others.
            Of a run that would end: it goes on, once it is approved and made again.
        tell: Tells that a run which would end was left to a human, as it is. None: it was not.
        resume: Takes the human's choice, where the run is resumed with it.
    """

    tell: Callable[[], object] | None = None
    resume: Callable[[Any], None] | None = None

    strictness = 1

    def __init__(self, rule: str, reason: str, approval: str | None = None) -> None:
        super().__init__(rule, reason)
        self.approval = approval
        if approval is not None:
            self.args = (f"{self.args[0]}, as approval {approval}",)

    def _sentence(self, rule: str, reason: str) -> str:
        return f"a human has to decide first: the rule {rule!r} holds it ({reason})"

    def __reduce__(self) -> tuple[type[HeldError], tuple[Any, ...]]:
        """Return the arguments to unpickle it with: the default is its message alone."""
        return type(self), (self.rule, self.reason, self.approval)


Stopped = StoppedError
"""Alias of `StoppedError`."""


REFUSALS = (ScopeError, AuditUnavailableError, RuleError)
"""Exceptions that refuse an operation before its content is looked at."""
