"""
The front door: one object that wraps clients, and the functions that find it.

The one module of this package that reaches adapters and audit, and only inside its methods, so that
``import mnemoscope.memory`` imports no store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..telemetry.drain import EXIT_S
from ..telemetry.event import Event
from ..telemetry.sink import Sink
from . import call as calls
from .guard import Guard
from .health import Health
from .observe import function_failed, observed
from .runtime import Runtime

if TYPE_CHECKING:
    from ..adapters.langgraph_stream import UsageFactory
    from ..audit.log import AuditLog
    from ..telemetry.prices import Prices
    from .live import LiveFigures
    from .redaction.redactor import Redactor
    from .settings import Settings
    from .vault.revealing import GuardedVault

C = TypeVar("C")
F = TypeVar("F", bound=Callable[..., Any])


class Mnemoscope:
    """
    Guards the stores of one application.

    Args:
        settings: From `load_settings`. None: from the environment.
        sinks: Where events go. None: what the settings name.
        redactor: What replaces personal data. None: what the settings name.

    Raises:
        ConfigurationError: A setting makes no sense, or a sink cannot be set up.

    Example:
        >>> scope = Mnemoscope(load_settings(sinks="logs"))
        >>> memory = scope.mem0(Memory.from_config(config))
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        sinks: Sequence[Sink] | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        from .settings import load_settings  # noqa: PLC0415 - pydantic costs time to import

        self._settings = settings or load_settings()
        self._runtime: Runtime | None = None
        self._guards: dict[str, Guard] = {}
        self._audit: AuditLog | None = None
        self._live: LiveFigures | None = None
        self._prices: Prices | None = None
        self._vault: GuardedVault | None = None
        if self._settings.disabled:
            return
        from . import assembly  # noqa: PLC0415 - the sinks cost time to import

        assembled = assembly.assemble(self._settings, sinks, redactor)
        self._runtime, self._audit = assembled.runtime, assembled.audit
        self._live, self._prices = assembled.live, assembled.prices
        self._runtime.drain.close_at_exit()
        if self._runtime.vault is not None:
            from .vault.revealing import GuardedVault  # noqa: PLC0415 - only where it is wanted

            self._vault = GuardedVault(self._runtime, self._runtime.vault)

    def mem0(self, client: C) -> C:
        """
        Guard a mem0 ``Memory``, ``AsyncMemory``, ``MemoryClient`` or ``AsyncMemoryClient``.

        Raises:
            UnsupportedClientError: It is none of these.
        """
        if self._runtime is None:
            return client
        from ..adapters import mem0  # noqa: PLC0415

        return mem0.guarded(client, self._runtime)

    def qdrant(self, client: C, *, owner_key: str | None = None) -> C:
        """
        Guard a ``QdrantClient`` or ``AsyncQdrantClient``.

        Args:
            client: The client.
            owner_key: Payload key that holds the customer's id; kept verbatim, used as scope.

        Raises:
            UnsupportedClientError: It is neither.
        """
        if self._runtime is None:
            return client
        from ..adapters import qdrant  # noqa: PLC0415

        return qdrant.guarded(client, self._runtime, owner_key=owner_key)

    def store(self, store: C, *, customer_at: int | None = None) -> C:
        """
        Guard a LangGraph ``BaseStore``.

        Args:
            store: The store.
            customer_at: Which label of a namespace is the customer's id, counted from 0.

        Raises:
            UnsupportedClientError: It is not a ``BaseStore``.
        """
        if self._runtime is None:
            return store
        from ..adapters import langgraph_store  # noqa: PLC0415

        return langgraph_store.guarded(store, self._runtime, customer_at=customer_at)

    def checkpointer(self, saver: C, *, redact: bool = True, degraded: bool = False) -> C:
        """
        Guard a LangGraph ``BaseCheckpointSaver``.

        Args:
            saver: The checkpointer.
            redact: Write redacted state. The run goes on with what it has in memory; a run that is
                resumed sees the redacted state. False where it needs the state verbatim.
            degraded: While the database is away, let runs that it leaves in the middle go on, be
                interrupted and resumed: their checkpoints wait in this process, and are lost with
                it. False: the run raises.

        Raises:
            UnsupportedClientError: It is not a ``BaseCheckpointSaver``.
            ConfigurationError: *degraded*, and its connection is bound to its thread.
        """
        if self._runtime is None:
            return saver
        from ..adapters import langgraph_checkpoint  # noqa: PLC0415

        return langgraph_checkpoint.guarded(saver, self._runtime, redact=redact, degraded=degraded)

    def usage(self) -> UsageFactory:
        """
        Return the transformer factory that counts tokens in a LangGraph v3 stream.

        Example:
            >>> run = graph.stream_events(inputs, version="v3", transformers=[scope.usage()])
        """
        from ..adapters import langgraph_stream  # noqa: PLC0415

        return langgraph_stream.usage(self._runtime, self._prices)

    def observe(
        self,
        *,
        store: str,
        operation: str,
        neutral: Callable[[], Any] | None = None,
        inline: bool = False,
    ) -> Callable[[F], F]:
        """Guard a function with this scope; see `observe`."""
        return observed(
            self.guard_for, store=store, operation=operation, neutral=neutral, inline=inline
        )

    def reveal(self, text: str, *, customer: str | None = None, tenant: str | None = None) -> str:
        """
        Return *text* with what *customer*'s own pseudonyms stand for in their place.

        For what is shown to that customer. A pseudonym of somebody else's, or one that is not in
        the vault, stays as it is, as all do while there is no vault or it cannot be read.

        Args:
            text: For example an agent's answer.
            customer: To whom it is shown. None: the customer of the context.
            tenant: Whose customer. None: the tenant of the context.

        Raises:
            ScopeError: There is no customer, or tenancy is enforced and the context has another.
        """
        if self._vault is None:
            return text
        return self._vault.reveal(text, customer=customer, tenant=tenant)

    @property
    def vault(self) -> GuardedVault:
        """
        What pseudonyms stand for, for erasing.

        Raises:
            ConfigurationError: There is no vault.
        """
        from .errors import ConfigurationError  # noqa: PLC0415

        if self._vault is None:
            raise ConfigurationError("there is no vault: set MNEMOSCOPE_VAULT")
        return self._vault

    def prepare(self) -> None:
        """Load now what the first guarded call would wait for: the model that finds names."""
        if self._runtime is not None:
            self._runtime.redactor.prepare()

    def last_outcome(self) -> Event | None:
        """
        Return the event of the latest guarded call that ended in this task or thread.

        It tells a neutral answer from an empty memory: ``scope.last_outcome().neutral``.
        """
        return calls.last_event.get()

    def health(self, timeout_s: float = 2.0) -> Health:
        """
        Look at every sink, store, breaker, queue, journal, key and model, and say how they are.

        Sinks are asked whether their back ends answer, all at once, in *timeout_s* seconds at most.
        It waits for them: call it from a thread where there is an event loop.
        """
        from . import examination  # noqa: PLC0415 - needs the settings, which cost time to import

        if self._runtime is None:
            return examination.DISABLED
        return examination.examine(self._settings, self._runtime, timeout_s)

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until every sink has everything so far. False after *timeout_s*, or a loss."""
        return self._runtime is None or self._runtime.flush(timeout_s)

    def close(self, timeout_s: float = EXIT_S) -> None:
        """Deliver what is queued, in *timeout_s* seconds at most. Wrapped clients stay usable."""
        if self._runtime is not None:
            self._runtime.close(timeout_s)

    @property
    def audit(self) -> AuditLog:
        """
        The audit trail, for reading.

        Raises:
            ConfigurationError: The audit sink is off.
        """
        from .errors import ConfigurationError  # noqa: PLC0415

        if self._audit is None:
            raise ConfigurationError("there is no audit trail: add audit to MNEMOSCOPE_SINKS")
        return self._audit

    def guard_for(self, store: str) -> Guard | None:
        """Return the guard that all functions observed as *store* share. None: switched off."""
        if self._runtime is None:
            return None
        guard = self._guards.get(store)
        if guard is None:
            # Not under a lock, which a fork or a signal handler could meet held: of two made at
            # once, one is everybody's and the other is forgotten.
            new = Guard(store, self._runtime, failed=function_failed)
            guard = self._guards.setdefault(store, new)
        return guard


_default: Mnemoscope | None = None


def configure(*, sinks: Iterable[str] | str | None = None, **settings: Any) -> Mnemoscope:
    """
    Build a `Mnemoscope` from the environment and make it the one that `observe` uses.

    Args:
        sinks: Names of sinks; see `Settings` for this and all others.
        **settings: Override the environment.

    Raises:
        ConfigurationError: A setting makes no sense, or a sink cannot be set up.
    """
    from .settings import load_settings  # noqa: PLC0415

    global _default  # noqa: PLW0603 - the one global, so that decorators need no argument
    if sinks is not None:
        settings["sinks"] = sinks if isinstance(sinks, str) else tuple(sinks)
    _default = Mnemoscope(load_settings(**settings))
    return _default


def observe(
    *,
    store: str,
    operation: str,
    neutral: Callable[[], Any] | None = None,
    inline: bool = False,
) -> Callable[[F], F]:
    """
    Guard any function that touches a store.

    Args:
        store: The store's name in events and metrics.
        operation: ``search_memory``, ``create_memory``, ``update_memory``, ``upsert_memory`` or
            ``delete_memory``: decides how it fails.
        neutral: Makes what the caller gets when the store fails (``list``). None: the error.
        inline: Run a plain function on the caller's thread, without a deadline: for functions
            bound to their thread, as some database sessions are.

    Programming errors (`TypeError`, `ValueError`, `LookupError`…) are the function's own and always
    raised. The function's arguments are neither recorded nor changed.

    Raises:
        ConfigurationError: At decoration: an unknown operation, or a generator function.
    """
    return observed(
        _default_guard, store=store, operation=operation, neutral=neutral, inline=inline
    )


def _default_guard(store: str) -> Guard | None:
    return None if _default is None else _default.guard_for(store)


def open_audit(**settings: Any) -> AuditLog:
    """
    Open the audit trail that the environment and *settings* name, for reading, and nothing else.

    Raises:
        ConfigurationError: A setting makes no sense.
    """
    from .assembly import open_audit_log  # noqa: PLC0415
    from .settings import load_settings  # noqa: PLC0415

    return open_audit_log(load_settings(**settings))
