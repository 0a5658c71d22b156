"""
The front door: one object that wraps clients, and the functions that find it.

The one module of this package that reaches adapters and audit, and only inside its methods, so that
``import mnemoscope.memory`` imports no store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..telemetry.sink import EXIT_S, Sink
from .health import Health

if TYPE_CHECKING:
    from ..adapters.langgraph_redaction import RedactionFactory
    from ..adapters.langgraph_stream import UsageFactory
    from ..audit.log import AuditLog
    from ..telemetry.event import Event
    from ..telemetry.prices import Prices
    from .budget import Budget
    from .budgets import BudgetStatus
    from .forgetting import Places
    from .guard import Guard
    from .holdings import Holdings
    from .live import LiveFigures
    from .redaction.redactor import Redactor
    from .runtime import Runtime
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
        budgets: What may be spent.

    Raises:
        ConfigurationError: A setting or budget makes no sense, or a sink cannot be set up.

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
        budgets: Iterable[Budget] = (),
    ) -> None:
        from .settings import load_settings  # noqa: PLC0415 - pydantic costs time to import

        self._settings = settings or load_settings()
        self._runtime: Runtime | None = None
        self._guards: dict[str, Guard] = {}
        self._audit: AuditLog | None = None
        self._live: LiveFigures | None = None
        self._prices: Prices | None = None
        self._vault: GuardedVault | None = None
        from .budgets import Budgets  # noqa: PLC0415 - as little as that before it is wanted

        limits = Budgets(budgets)
        if self._settings.disabled:
            return
        from . import assembly  # noqa: PLC0415 - the sinks cost time to import

        assembled = assembly.assemble(self._settings, sinks, redactor)
        self._runtime, self._audit = assembled.runtime, assembled.audit
        self._live, self._prices = assembled.live, assembled.prices
        self._runtime.budgets = limits
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

        return mem0.guarded(client, self._runtime, prices=self._prices)

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

    def runnable(self, graph: C, *, features: Mapping[str, str] | None = None) -> C:
        """
        Watch every run of a compiled LangGraph graph, however it is called.

        Its spans, node durations and model calls are told, and ``run.extensions["usage"]`` has the
        totals of a v3 stream. It is the same graph in every other way.

        Args:
            graph: What ``compile()`` returned.
            features: Features by node name, for code that has no `feature` of its own.

        Raises:
            UnsupportedClientError: It is not a compiled graph.
        """
        if self._runtime is None:
            return graph
        from ..adapters import langgraph_graph  # noqa: PLC0415

        return langgraph_graph.runnable(graph, self._runtime, self._prices, features)

    def usage(self, *, features: Mapping[str, str] | None = None) -> UsageFactory:
        """
        Return the transformer factory that does for one v3 stream what `runnable` does for a graph.

        Args:
            features: Features by node name, for code that has no `feature` of its own.

        Example:
            >>> run = graph.stream_events(inputs, version="v3", transformers=[scope.usage()])
        """
        from ..adapters import langgraph_stream  # noqa: PLC0415

        return langgraph_stream.usage(self._runtime, self._prices, features=features)

    def redacted_stream(self) -> RedactionFactory:
        """
        Return the transformer factory that redacts a LangGraph v3 stream for whoever reads it.

        Personal data is found across the borders of chunks, so text arrives a sentence at a time.
        The run itself, and what it stores, is as it would be without.

        Example:
            >>> redacted = [scope.redacted_stream(), scope.usage()]
            >>> run = graph.stream_events(inputs, version="v3", transformers=redacted)
        """
        from ..adapters import langgraph_redaction  # noqa: PLC0415

        return langgraph_redaction.RedactionFactory(self._runtime)

    def observe(
        self,
        *,
        store: str,
        operation: str,
        neutral: Callable[[], Any] | None = None,
        inline: bool = False,
    ) -> Callable[[F], F]:
        """Guard a function with this scope; see `observe`."""
        from .observe import observed  # noqa: PLC0415 - only where it is wanted

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

    @property
    def holdings(self) -> Holdings:
        """
        What the wrapped clients' stores hold about people, for exporting and erasing it.

        A store of your own takes part with ``scope.holdings.add(holding)``: see `Holding`.
        """
        from .holdings import Holdings  # noqa: PLC0415

        return Holdings() if self._runtime is None else self._runtime.holdings

    def places(self, customer: str, *, tenant: str | None = None) -> Places:
        """Return all places but the audit trail that know of one customer, for erasing it there."""
        from .errors import ConfigurationError  # noqa: PLC0415
        from .forgetting import Places  # noqa: PLC0415

        if self._runtime is None:
            raise ConfigurationError("the scope is disabled: it has no stores to ask")
        vault = self._vault
        return Places(self._settings, self._runtime, vault, customer=customer, tenant=tenant)

    @property
    def budgets(self) -> tuple[BudgetStatus, ...]:
        """How each budget stands now: what is spent and left, how fast, and past which level."""
        return () if self._runtime is None else self._runtime.budgets.status()

    def prepare(self) -> None:
        """Load now what the first guarded call would wait for: the model that finds names."""
        if self._runtime is not None:
            self._runtime.redactor.prepare()

    def last_outcome(self) -> Event | None:
        """
        Return the event of the latest guarded call that ended in this task or thread.

        It tells a neutral answer from an empty memory: ``scope.last_outcome().neutral``.
        """
        from .call import last_event  # noqa: PLC0415 - as the guard does, which is imported last

        return last_event.get()

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

    @property
    def is_disabled(self) -> bool:
        """True where nothing at all happens: see ``MNEMOSCOPE_DISABLED``."""
        return self._runtime is None

    def note_fault(self, site: str, exc: BaseException) -> None:
        """Count an error of our own; it is logged once a minute, by its type."""
        if self._runtime is not None:
            self._runtime.faults.note(site, exc)

    def guard_for(self, store: str) -> Guard | None:
        """Return the guard that all functions observed as *store* share. None: switched off."""
        if self._runtime is None:
            return None
        guard = self._guards.get(store)
        if guard is None:
            # Not under a lock, which a fork or a signal handler could meet held: of two made at
            # once, one is everybody's and the other is forgotten.
            from .guard import Guard  # noqa: PLC0415 - asyncio and OpenTelemetry cost time to import
            from .observe import function_failed  # noqa: PLC0415 - only where it is wanted

            new = Guard(store, self._runtime, failed=function_failed)
            guard = self._guards.setdefault(store, new)
        return guard


def open_audit(**settings: Any) -> AuditLog:
    """
    Open the audit trail that the environment and *settings* name, for reading, and nothing else.

    Raises:
        ConfigurationError: A setting makes no sense.
    """
    from .assembly import open_audit_log  # noqa: PLC0415
    from .settings import load_settings  # noqa: PLC0415

    return open_audit_log(load_settings(**settings))
