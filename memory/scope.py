"""
The front door: one object that wraps clients, and the functions that find it.

The one module of this package that reaches adapters and audit, and only inside its methods, so that
``import mnemoscope.memory`` imports no store.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, Unpack

from ..telemetry.delivery.sink import EXIT_S, Sink
from .health.model import Check, Health

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from ..adapters.langgraph.gates import IntegrityGate, StagnationGate
    from ..adapters.langgraph.redacted_stream.stream import RedactionFactory
    from ..adapters.langgraph.runs.stream import UsageFactory
    from ..audit.log import AuditLog
    from ..telemetry.event.event import Event, Redacted
    from ..telemetry.event.subject import Subject
    from .api import StoreAdapter
    from .assemble.assembly import Assembly
    from .assemble.block import Block
    from .budgets.budget import Budget
    from .budgets.budgets import BudgetStatus
    from .building.compose import Parts
    from .client_shapes import (
        AsyncContextShape,
        GraphShape,
        MemoryShape,
        SaverShape,
        SessionShape,
        StoreShape,
        VectorShape,
    )
    from .features import FeatureFactory
    from .guard.guard import Guard
    from .matches.match import RedactionCallback
    from .outcomes.outcomes import Outcomes, RunOutcome
    from .privacy.engine.redaction import Redaction
    from .privacy.engine.redactor import Redactor
    from .retention.scoped import ScopedRetention
    from .rules.approval import Approval, Draft
    from .rules.held_writes import Decisions, KeyedRule
    from .rules.rule import Fact, Facts, Rule, Verdict
    from .setting_values import SettingValues
    from .settings import Settings
    from .subject_data.customer_data import ScopedCustomerData
    from .subject_data.memory_stores import ScopedMemoryStores
    from .subject_data.registry import SubjectDataRegistry
    from .vault_door import GuardedVault

C = TypeVar("C")
MemoryClient = TypeVar("MemoryClient", bound="MemoryShape")
VectorClient = TypeVar("VectorClient", bound="VectorShape")
StoreClient = TypeVar("StoreClient", bound="StoreShape")
SaverClient = TypeVar("SaverClient", bound="SaverShape")
SessionClient = TypeVar("SessionClient", bound="SessionShape")
Graph = TypeVar("Graph", bound="GraphShape")
McpClient = TypeVar("McpClient", bound="AsyncContextShape")
F = TypeVar("F", bound=Callable[..., Any])


class Mnemoscope:
    """
    Guards the stores of one application.

    Args:
        settings: From `load_settings`. None: from the environment.
        only_sinks: Sinks in place of all that the settings name.
        extra_sinks: Sinks besides those that the settings name.
        redactor: What replaces personal data. None: what the settings name.
        budgets: What may be spent.
        rules: What is decided in front of memory, models, nodes and tools.
        extra_features: Makers of features besides those that ``MNEMOSCOPE_FEATURES`` names.
        recognizers: The user's recognizers, besides ours: see `configure`.
        on_match: Asked what becomes of each find of personal data: see `RedactionMatch`.

    Raises:
        ConfigurationError: A setting, rule or budget makes no sense, or a sink cannot be set up.

    Examples:
        >>> scope = Mnemoscope(load_settings(sinks="logs"))
        >>> memory = scope.mem0(Memory.from_config(config))
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        only_sinks: Sequence[Sink] | None = None,
        extra_sinks: Sequence[Sink] = (),
        redactor: Redactor | None = None,
        budgets: Iterable[Budget] = (),
        rules: Iterable[Rule] = (),
        extra_features: Iterable[FeatureFactory] = (),
        recognizers: Iterable[Any] = (),
        on_match: RedactionCallback | None = None,
    ) -> None:
        from .settings import load_settings, unknown_settings  # noqa: PLC0415 - not before it is wanted

        self._settings = settings or load_settings()
        self._parts: Parts | None = None
        self._observed: dict[str, Guard] = {}
        self._vault: GuardedVault | None = None
        self._posted: Outcomes | None = None
        self._checks: dict[str, Callable[[], Check]] = {}
        if self._settings.disabled:
            return
        from ..telemetry.process.fork_lock import ForkLock  # noqa: PLC0415 - see above
        from .building.build import build  # noqa: PLC0415 - the sinks cost time to import
        from .environment import warn_of_unknown  # noqa: PLC0415 - see above
        from .given_objects import checked_objects  # noqa: PLC0415 - see above

        warn_of_unknown(unknown_settings())
        quiet_clients(is_wanted=self._settings.client_telemetry == "off")
        parts = build(
            self._settings,
            only_sinks=only_sinks and checked_objects("only_sinks", only_sinks),
            extra_sinks=checked_objects("extra_sinks", extra_sinks),
            redactor=redactor,
            budgets=checked_objects("budgets", budgets),
            rules=checked_objects("rules", rules),
            extra_features=checked_objects("extra_features", extra_features),
            recognizers=recognizers,
            on_match=on_match,
        )
        self._parts = parts
        # A child that is forked while an adapter is imported could never import it.
        self._importing = ForkLock(patience_s=30.0)
        parts.drain.close_at_exit()
        if parts.vault is not None:
            from .vault_door import GuardedVault  # noqa: PLC0415 - where it is wanted

            self._vault = GuardedVault(parts.vault, parts.guards)

    def guard(
        self,
        client: C,
        *,
        adapter: StoreAdapter | None = None,
        name: str | None = None,
        **options: Any,
    ) -> C:
        """
        Guard a client of any store that an installed adapter knows.

        Args:
            client: The client. Stays usable, unguarded, as it is.
            adapter: Knows clients of its class. None: the installed one that does.
            name: What you call its database: the same for all clients of one, in every process.
                None: what can be told from the client, if it is certain.
            **options: The adapter's own, as `qdrant`, `store` and `checkpointer` name them.

        Returns:
            An instance of the client's class; *client* itself if it is guarded already.

        Raises:
            UnsupportedClientError: No adapter knows its class.
            ConfigurationError: *name* is empty, or the client is guarded already, without it.
        """
        if self._parts is None:
            return client
        with self._importing:
            from ..adapters.toolkit.registry import adapter_for  # noqa: PLC0415
            from ..adapters.toolkit.wrapping import guard_client  # noqa: PLC0415

            found = adapter or adapter_for(client)
            return guard_client(client, found, self._parts.services, name=name, **options)

    def _guard(self, client: C, store: str, **options: Any) -> C:
        if self._parts is None:
            return client
        with self._importing:
            from ..adapters.toolkit.registry import adapter_of  # noqa: PLC0415
            from ..adapters.toolkit.wrapping import guard_client  # noqa: PLC0415

            return guard_client(client, adapter_of(store), self._parts.services, **options)

    def mem0(self, client: MemoryClient, *, name: str | None = None) -> MemoryClient:
        """
        Guard a mem0 ``Memory``, ``AsyncMemory``, ``MemoryClient`` or ``AsyncMemoryClient``.

        Args:
            client: The client.
            name: What you call its database, where that cannot be told from the client: see
                `guard`.

        Raises:
            UnsupportedClientError: It is none of these.
        """
        return self._guard(client, "mem0", name=name)

    def qdrant(
        self,
        client: VectorClient,
        *,
        owner_key: str | None = None,
        public: bool | AbstractSet[str] = False,
        name: str | None = None,
    ) -> VectorClient:
        """
        Guard a ``QdrantClient`` or ``AsyncQdrantClient``.

        Args:
            client: The client.
            owner_key: Payload key that holds the customer's id; kept verbatim, used as scope.
            public: Its points are nobody's personal data, as those of help pages are not, or those
                in collections of these names (``{"help"}``). Exports and erasures count nothing of
                it; a write for a customer is logged, or refused where tenancy is enforced.
            name: What you call its database, where that cannot be told from the client: see
                `guard`.

        Raises:
            UnsupportedClientError: It is neither.
            ConfigurationError: All of it is *public*, and it has an *owner_key*; or *public* is no
                set of names.
        """
        return self._guard(client, "qdrant", owner_key=owner_key, public=public, name=name)

    def store(
        self,
        store: StoreClient,
        *,
        customer_at: int | None = None,
        public: bool | AbstractSet[str] = False,
        name: str | None = None,
    ) -> StoreClient:
        """
        Guard a LangGraph ``BaseStore``.

        Args:
            store: The store.
            customer_at: Which label of a namespace is the customer's id, counted from 0.
            public: Its items are nobody's personal data, or those in namespaces that begin with one
                of these labels: see `qdrant`.
            name: What you call its database, where that cannot be told from the client: see
                `guard`.

        Raises:
            UnsupportedClientError: It is not a ``BaseStore``.
            ConfigurationError: All of it is *public*, and it has *customer_at*; or *public* is no
                set of names.
        """
        return self._guard(
            store, "langgraph.store", customer_at=customer_at, public=public, name=name
        )

    def checkpointer(
        self,
        saver: SaverClient,
        *,
        redact: bool = True,
        degraded: bool = False,
        on_conflict: Literal["theirs", "both"] = "theirs",
        name: str | None = None,
    ) -> SaverClient:
        """
        Guard a LangGraph ``BaseCheckpointSaver``.

        Args:
            saver: The checkpointer.
            redact: Write redacted state. The run goes on with what it has in memory; a run that is
                resumed sees the redacted state. False where it needs the state verbatim.
            degraded: While the database is away, let runs that it leaves in the middle go on, be
                interrupted and resumed: their checkpoints wait in this process, and are lost with
                it. False: the run raises.
            on_conflict: What is done with what waits of a thread that somebody else changed
                meanwhile. ``theirs``: the thread stays theirs, and what waits is given up, with an
                event for each write and a warning. ``both``: it is written into the thread as well,
                and the later of both is what is gone on from.
            name: What you call its database, where that cannot be told from the client: see
                `guard`.

        Raises:
            UnsupportedClientError: It is not a ``BaseCheckpointSaver``.
            ConfigurationError: *degraded*, and its connection is bound to its thread; or
                *on_conflict* is none of these.
        """
        return self._guard(
            saver,
            "langgraph.checkpoint",
            redact=redact,
            degraded=degraded,
            on_conflict=on_conflict,
            name=name,
        )

    def session(
        self,
        session: SessionClient,
        *,
        customer: str | Callable[[str], str | None] | None = None,
        name: str | None = None,
    ) -> SessionClient:
        """
        Guard a session of the OpenAI Agents SDK, of whatever class.

        Args:
            session: The session.
            customer: Whose conversation it is: their id, or a function that returns it from a
                session's id, by which exports and erasures find all of theirs. None: the context's.
            name: What you call its database: see `guard`.

        Raises:
            UnsupportedClientError: It has not the four methods of the SDK's protocol.
            ConfigurationError: It compacts what it stores: the session inside is to be guarded.
        """
        return self._guard(session, "openai_agents", customer=customer, name=name)

    def mcp(
        self,
        client: McpClient,
        *,
        server: str = "server",
        contracts: Path | str | None = None,
        classes: Mapping[str, str] | None = None,
        deadlines_s: Mapping[str, float] | None = None,
        neutral: Mapping[str, Any] | None = None,
        customer_at: str | None = None,
        recheck_s: float = 60.0,
    ) -> McpClient:
        """
        Guard the tools of an MCP server, whose contracts are checked in front of every call.

        Args:
            client: FastMCP's ``Client`` or ``ClientGroup``, LangChain's ``MCPAdapter``, or a
                ``ClientSession``.
            server: What you call it: its store is ``mcp.<server>`` in events, roles and rules.
            contracts: The file of accepted contracts, written at the first connection. None: what
                the server lists at the first connection is accepted for this client.
            classes: ``recall``, ``remember`` or ``forget`` by pattern of tool names, the first that
                fits. By default a tool that says it only reads is a recall, any other a write.
            deadlines_s: Seconds that a call may take by pattern of tool names, within its class's.
            neutral: What a recall or write answers when the server fails, as structured content by
                pattern of tool names. By default the failure is raised.
            customer_at: The parameter that holds the customer's id; kept verbatim, used as scope.
            recheck_s: Seconds after which the server is asked for its tools again; before that it
                is when it says that they have changed, and when a call fails.

        Raises:
            UnsupportedClientError: It is none of these.
            ConfigurationError: A class is none, or the file cannot be read.
        """
        if self._parts is None:
            return client
        with self._importing:
            from ..adapters.mcp.adapter import ToolOptions, guard_mcp  # noqa: PLC0415

        options = ToolOptions(
            classes=classes or {},
            deadlines_s=deadlines_s or {},
            neutral=neutral or {},
            customer_at=customer_at,
            contracts=None if contracts is None else Path(contracts),
            recheck_s=recheck_s,
        )
        guarded: McpClient = guard_mcp(client, self._parts.services, server=server, options=options)
        return guarded

    def runnable(self, graph: Graph, *, features: Mapping[str, str] | None = None) -> Graph:
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
        if self._parts is None:
            return graph
        with self._importing:
            from ..adapters.langgraph.runs.graph import runnable  # noqa: PLC0415

        return runnable(graph, self._parts.accounting, features)

    def usage(self, *, features: Mapping[str, str] | None = None) -> UsageFactory:
        """
        Return the transformer factory that does for one v3 stream what `runnable` does for a graph.

        Args:
            features: Features by node name, for code that has no `feature` of its own.

        Examples:
            >>> run = graph.stream_events(inputs, version="v3", transformers=[scope.usage()])
        """
        from ..adapters.langgraph.runs.stream import UsageFactory  # noqa: PLC0415

        accounting = None if self._parts is None else self._parts.accounting
        return UsageFactory(accounting, features)

    def redacted_stream(self) -> RedactionFactory:
        """
        Return the transformer factory that redacts a LangGraph v3 stream for whoever reads it.

        Personal data is found across the borders of chunks, so text arrives a sentence at a time.
        The run itself, and what it stores, is as it would be without.

        Examples:
            >>> redacted = [scope.redacted_stream(), scope.usage()]
            >>> run = graph.stream_events(inputs, version="v3", transformers=redacted)
        """
        from ..adapters.langgraph.redacted_stream.stream import (  # noqa: PLC0415
            RedactionFactory,
        )

        if self._parts is None:
            return RedactionFactory()
        return RedactionFactory(self._parts.guards.redactor, self._parts.faults)

    def redacting_exporter(self, exporter: SpanExporter) -> SpanExporter:
        """
        Return an exporter that redacts the spans of all libraries and hands them to *exporter*.

        For your own OpenTelemetry provider. Names of spans and events, attributes, status and
        exceptions are redacted in copies; trace state and the resource stay as they are. What
        cannot be redacted becomes ``[REDACTED:error]``, a span that cannot be rebuilt is dropped.

        Examples:
            >>> exporter = scope.redacting_exporter(OTLPSpanExporter())
            >>> provider.add_span_processor(BatchSpanProcessor(exporter))
        """
        parts = self._parts
        if parts is None:
            return exporter
        from ..telemetry.otlp.redacting_exporter import RedactingExporter  # noqa: PLC0415 - the SDK
        from .context import current  # noqa: PLC0415

        redactor = parts.guards.redactor

        def begin(people: Sequence[str]) -> Redaction:
            return redactor.begin_span((*current().identifiers, *people))

        return RedactingExporter(exporter, begin, parts.faults, parts.spans)

    def observe(
        self,
        *,
        store: str,
        operation: str,
        neutral: Callable[[], Any] | None = None,
        inline: bool = False,
        signals: tuple[type[Exception], ...] = (),
    ) -> Callable[[F], F]:
        """Guard a function with this scope; see `observe`."""
        from .decorator import observed  # noqa: PLC0415 - only where it is wanted

        return observed(
            self.guard_for,
            store=store,
            operation=operation,
            neutral=neutral,
            inline=inline,
            signals=signals,
        )

    def assemble(
        self,
        blocks: Sequence[Block],
        *,
        total: int = 6_100,
        count: Callable[[str], int] | None = None,
    ) -> Assembly:
        """
        Return a prompt of *blocks*, read through their guarded clients, with a receipt.

        No model is asked. Immutable and canonical facts, texts and latest turns are never cut; of
        the rest stays what has room.

        Args:
            blocks: In the order of the prompt.
            total: Tokens that it may have.
            count: Returns how many tokens a text has. None: `estimate_tokens`.

        Raises:
            AssemblyError: What is never cut has more tokens than *total*.
            ConfigurationError: The budgets are more than *total*, a source has no known form, or a
                client is asynchronous: use `aassemble`.

        Examples:
            >>> facts = Block("facts", store, 500, ask={"namespace_prefix": ("c-42",), "limit": 50})
            >>> scope.assemble([Block("you", "You are a clerk.", 100), facts], total=600).text
        """
        from .assemble.assembly import assemble, estimate_tokens  # noqa: PLC0415 - where wanted

        return assemble(blocks, total, count or estimate_tokens)

    async def aassemble(
        self,
        blocks: Sequence[Block],
        *,
        total: int = 6_100,
        count: Callable[[str], int] | None = None,
    ) -> Assembly:
        """Return a prompt of *blocks*, as `assemble` does; of asynchronous clients too."""
        from .assemble.assembly import aassemble, estimate_tokens  # noqa: PLC0415 - where wanted

        return await aassemble(blocks, total, count or estimate_tokens)

    def outcome(
        self,
        outcome: RunOutcome,
        *,
        run: str | None = None,
        accepted: bool | None = None,
        score: float | None = None,
        failed_in: str | None = None,
        after_s: float | None = None,
        traceparent: str | None = None,
    ) -> None:
        """
        Tell what became of the result of a run: sealed, exported and counted, as all events are.

        Args:
            outcome: ``used``, ``corrected`` or ``discarded``.
            run: The run, where it is not that of the context.
            accepted: Whether somebody accepted the result.
            score: Its quality, 0 to 1.
            failed_in: The agent in which it began to fail, where it did.
            after_s: Seconds from a failure until it was noticed.
            traceparent: Of the span that the outcome is about, as W3C Trace Context has it. None:
                the span around the call.

        Raises:
            ConfigurationError: One of them makes no sense.
        """
        if (outcomes := self._outcomes) is not None:
            outcomes.post(
                outcome,
                run=run,
                accepted=accepted,
                score=score,
                failed_in=failed_in,
                after_s=after_s,
                traceparent=traceparent,
            )

    def note_progress(self, done: int, of: int) -> None:
        """
        Tell how many nodes *of* a graph are *done*; what is behind its budget is counted.

        Raises:
            ConfigurationError: There are fewer nodes than are done.
        """
        if (outcomes := self._outcomes) is not None:
            spent = [each.spent / each.budget.limit for each in self.budgets]
            outcomes.progress(done, of, spent)

    def compare_labels(self, labels: Mapping[str, str]) -> None:
        """
        Compare the *labels* of canonical inputs with those of the latest comparison.

        Inputs and labels are sealed as keyed hashes. Call it once a week with the same ten inputs.

        Raises:
            ConfigurationError: The audit sink is off.
            AuditError: The trail cannot be read.
        """
        if (outcomes := self._outcomes) is not None and self._parts is not None:
            key = self._parts.services.digest_key("labels")
            outcomes.compare_labels(labels, key, self.audit.references)

    @property
    def _outcomes(self) -> Outcomes | None:
        if self._parts is not None and self._posted is None:
            from .outcomes.outcomes import Outcomes  # noqa: PLC0415 - only where it is wanted

            self._posted = Outcomes(self._parts.accounting.verdicts)
        return self._posted

    @property
    def redactor(self) -> Redactor | None:
        """What replaces personal data. None: the scope is disabled."""
        return None if self._parts is None else self._parts.guards.redactor.redactor

    def text_to_embed(self, text: str) -> str:
        """
        Return *text* as it is to be densely encoded: redacted, and without what stands for data.

        For whoever embeds texts himself: memories and questions alike. Guarded mem0 clients, stores
        with an index and `HybridIndex` do it by themselves. What is stored, and matched by words,
        keeps its stand-ins. A text that is nothing but stand-ins stays as it is.

        Raises:
            RedactionError: It could not be redacted.

        Examples:
            >>> scope.text_to_embed("Hi <PERSON>, what does <PERSON> like?")
            'Hi, what does like?'
        """
        if self._parts is None:
            return text
        from .context import current  # noqa: PLC0415 - as all of this package, when it is wanted

        redactor = self._parts.guards.redactor
        return redactor.redactor.text_to_embed(redactor.begin_labels(current()).text(text))

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
    def subject_data(self) -> SubjectDataRegistry:
        """
        The subject data providers of the wrapped clients, for exporting and erasing.

        A store of your own takes part with ``scope.subject_data.add(provider)``: see
        `SubjectDataProvider`.
        """
        from .subject_data.registry import SubjectDataRegistry  # noqa: PLC0415

        return SubjectDataRegistry() if self._parts is None else self._parts.subject_data

    def customer_data(self, customer: str, *, tenant: str | None = None) -> ScopedCustomerData:
        """
        Return one customer's data in the wrapped clients' stores, the vault, logs and journal.

        Raises:
            ConfigurationError: The scope is disabled.
            ScopeError: The customer is nobody or everybody.
        """
        from .errors import ConfigurationError  # noqa: PLC0415
        from .subject_data.customer_data import ScopedCustomerData  # noqa: PLC0415

        parts = self._parts
        if parts is None:
            raise ConfigurationError("the scope is disabled: it has no stores to ask")
        return ScopedCustomerData(
            self._settings,
            guards=parts.guards,
            subject_data=parts.subject_data,
            flush=parts.flush,
            vault=self._vault,
            waiting={name: each for of in parts.features for name, each in of.waiting.items()},
            spool=None if parts.audit is None else parts.audit.spool_path,
            customer=customer,
            tenant=tenant,
        )

    def memory_stores(self) -> ScopedMemoryStores:
        """
        Return the wrapped clients' stores, for taking out single memories.

        Raises:
            ConfigurationError: The scope is disabled.
        """
        from .errors import ConfigurationError  # noqa: PLC0415
        from .subject_data.memory_stores import ScopedMemoryStores  # noqa: PLC0415

        parts = self._parts
        if parts is None:
            raise ConfigurationError("the scope is disabled: it has no stores to ask")
        return ScopedMemoryStores(
            guards=parts.guards, subject_data=parts.subject_data, flush=parts.flush
        )

    def retention(self) -> ScopedRetention:
        """
        Return the retention of the wrapped clients' stores, by the policy of the settings.

        Raises:
            ConfigurationError: The scope is disabled or has no audit trail, or there is no policy,
                or it makes no sense.
        """
        from ..audit.erasure.residue_scan import ids_in_files  # noqa: PLC0415 - where it is wanted
        from ..audit.waiting import what_waits  # noqa: PLC0415 - as above
        from ..audit.write_history import WriteHistory  # noqa: PLC0415 - as above
        from .errors import ConfigurationError  # noqa: PLC0415
        from .retention.scoped import scoped_retention  # noqa: PLC0415

        parts, policy = self._parts, self._settings.retention
        if parts is None or policy is None:
            raise ConfigurationError("there is no policy of retention: set MNEMOSCOPE_RETENTION")
        log = self.audit
        return scoped_retention(
            policy,
            WriteHistory(log),
            guards=parts.guards,
            subject_data=parts.subject_data,
            flush=parts.flush,
            waiting=lambda: what_waits(log),
            in_files=ids_in_files,
            folder=self._settings.data_folder,
        )

    @property
    def budgets(self) -> tuple[BudgetStatus, ...]:
        """How each budget stands now: what is spent and left, how fast, and past which level."""
        budgets = None if self._parts is None else self._parts.accounting.budgets
        return () if budgets is None else budgets.status()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of this scope, in the order in which they are asked."""
        rulebook = None if self._parts is None else self._parts.accounting.rulebook
        return () if rulebook is None else rulebook.rules

    def note_facts(self, **known: Fact) -> None:
        """
        Tell the rules facts of the run that runs now: numbers, flags and short codes, no content.

        Raises:
            ValueError: One is something else, or there are too many.

        Examples:
            >>> scope.note_facts(quality=0.86, novel_issues=0)
        """
        rulebook = None if self._parts is None else self._parts.accounting.rulebook
        if rulebook is not None:
            from .context import current  # noqa: PLC0415

            rulebook.note(current(), known)

    def note_answer(self, answer: Any, quality: float) -> None:
        """
        Keep an answer of the run that runs now, if it is the best so far, and tell its quality.

        It stays in memory, as the object that it is: no sink and no trail has it. An escalation
        that answers `RETURN_BEST` ends the run with it, as `StoppedError.best`.

        Raises:
            ValueError: The quality is no number.
        """
        rulebook = None if self._parts is None else self._parts.accounting.rulebook
        if rulebook is not None:
            from .context import current  # noqa: PLC0415

            rulebook.note_answer(current(), answer, quality)

    def may_retry(self, error: BaseException) -> bool:
        """
        Return whether what failed with *error* may be tried again: for ``with_retry`` and tenacity.

        What a rule or a budget does not allow is not tried again, and neither is anything of a run
        that is to end.

        Raises:
            RuleError: A rule ends the run, or the phase of it: it is cancelled, and has not failed.

        Examples:
            >>> model.with_retry(retry_if_exception_type=scope.may_retry)
            >>> tenacity.retry(retry=tenacity.retry_if_exception(scope.may_retry))
        """
        from .errors import BudgetExceededError, RuleError  # noqa: PLC0415

        if not isinstance(error, Exception) or isinstance(error, (RuleError, BudgetExceededError)):
            return False
        rulebook = None if self._parts is None else self._parts.accounting.rulebook
        if rulebook is None:
            return True
        from .context import current  # noqa: PLC0415
        from .rules.rule import Action, Point  # noqa: PLC0415
        from .run_observers import UndecidedError  # noqa: PLC0415

        action = Action(Point.MODEL, scope=current(), again=True)
        while isinstance(ended := rulebook.decide(action), UndecidedError):
            ended.block()
        if ended is not None:
            raise ended from error
        return True

    def stagnation_gate(
        self,
        embed: Callable[[str], Iterable[float]],
        *,
        threshold: float = 0.2,
        critical_duration: int = 3,
        window_size: int = 10,
        alpha: float = 0.5,
        text_of: Callable[[Any], str] | None = None,
        name: str = "stagnation",
    ) -> StagnationGate:
        """
        Return a gate for nodes of a LangGraph graph that finds threads which say nothing new.

        Args:
            embed: Returns the vector of a text: a model of yours.
            threshold: News below which a turn counts as stagnant, 0 to 1.
            critical_duration: Stagnant turns in a row that end a thread's patience.
            window_size: Turns that a turn is compared with.
            alpha: Share of the newest turn in the running mean, 0 to 1.
            text_of: Returns the text of a node's output. None: its messages' text.
            name: The gate's name in events.

        Examples:
            >>> gate = scope.stagnation_gate(embed)
            >>> builder.add_node("critic", gate.wrap(critic))
        """
        from ..adapters.langgraph.gates import StagnationGate  # noqa: PLC0415

        return StagnationGate(
            embed,
            threshold=threshold,
            critical_duration=critical_duration,
            window_size=window_size,
            alpha=alpha,
            text_of=text_of,
            scope=self,
            name=name,
        )

    def integrity_gate(
        self, invariants: Sequence[tuple[str, Callable[[Any], bool]]]
    ) -> IntegrityGate:
        """
        Return a gate that checks what nodes of a LangGraph graph return.

        Args:
            invariants: Each a name, which is shown, and a function that returns whether it holds.
        """
        from ..adapters.langgraph.gates import IntegrityGate  # noqa: PLC0415

        return IntegrityGate(invariants, scope=self)

    def approval_node(
        self,
        gate: Approval,
        *,
        draft: str = "draft",
        result: str = "approval",
        read: Callable[[Any], Draft | str] | None = None,
        is_async: bool = False,
    ) -> Callable[..., Any]:
        """
        Return a node of a LangGraph graph that has *gate* judge a draft in the state.

        Args:
            gate: The gate.
            draft: The key of the state with the draft, which takes what a human makes of it.
            result: The key that takes the decision: ``choice``, ``reason``, ``approval``,
                ``verdict``; and ``overruled``, a choice that came after another was sealed.
            read: Returns the draft from the state, where it is more than a text.
            is_async: Return a coroutine function, whose judges run on a thread.

        Examples:
            >>> builder.add_node("approve", scope.approval_node(gate, draft="reply"))
        """
        from ..adapters.langgraph.approval import approval_node  # noqa: PLC0415

        return approval_node(gate, self, draft=draft, result=result, read=read, is_async=is_async)

    def bind_rule(self, rule: KeyedRule) -> Decisions | None:
        """Let a rule that is asked elsewhere use the key and the trail, and return the trail."""
        from .rules.capabilities import ChecksItself  # noqa: PLC0415
        from .rules.run_facts import KeyedHashes  # noqa: PLC0415

        parts = self._parts
        if parts is None:
            return None
        if parts.accounting.decisions is None and parts.audit is not None:
            from ..audit.decisions import AuditedDecisions  # noqa: PLC0415

            parts.accounting.keep_decisions(AuditedDecisions(parts.audit))
        decisions = parts.accounting.decisions
        rule.bind(KeyedHashes(parts.services.digest_key("rules")), lambda: decisions)
        if isinstance(rule, ChecksItself):
            self._checks[rule.check().name] = rule.check
        return decisions

    def subject(self, person: str, tenant: str | None = None) -> Subject | None:
        """Return a person as events name them. None: the scope is disabled."""
        from ..telemetry.event.subject import Subject  # noqa: PLC0415

        if self._parts is None:
            return None
        return Subject(person, tenant=tenant, keys=self._parts.guards.keys)

    def tell_verdict(
        self,
        rule: Rule,
        facts: Facts,
        content: Callable[[Callable[[Any], Any]], Any] | None = None,
    ) -> Verdict:
        """
        Have a rule that is asked elsewhere decide, and tell what it says as a sealed event.

        For gates of your own: nothing is carried out.

        Args:
            rule: The rule.
            facts: What it decides on.
            content: Returns what a human decides on, made with the function that it is given, which
                redacts a value. It goes into the encrypted detail of a verdict that holds.
        """
        from .context import current  # noqa: PLC0415
        from .rules.rule import Outcome, verdict_event  # noqa: PLC0415
        from .rules.rulebook import decided  # noqa: PLC0415

        verdict = decided(rule, facts)
        if self._parts is not None and not verdict.is_plain:
            holds = verdict.outcome is Outcome.HOLD and not rule.shadow
            told = verdict_event(rule, verdict, facts)
            redacted = self._redacted(self._parts, content) if holds and content else None
            self._parts.accounting.verdicts.emit(current(), told, redacted)
        return verdict

    def _redacted(self, parts: Parts, content: Callable[[Callable[[Any], Any]], Any]) -> Redacted:
        """Return the content of a verdict. Fails closed: what cannot be redacted is left out."""
        from .context import current  # noqa: PLC0415
        from .privacy.engine.content import FAILED, SIZE_LIMIT, to_content  # noqa: PLC0415
        from .privacy.engine.redaction import CallBound, within  # noqa: PLC0415

        try:
            bound = within(CallBound(SIZE_LIMIT, cuts=True))
            redaction = parts.guards.redactor.begin(current(), bound)
            return redaction.content(content(redaction.value))
        except Exception as exc:  # noqa: BLE001 - costs the event one field
            self.note_fault("rules.content", exc)
            return to_content(FAILED)

    def prepare(self, timeout_s: float | None = None) -> bool:
        """
        Wait until everything is loaded that redaction needs: detectors, word lists, language model.

        Without this the first call has it loaded in the background, and waits within its deadline
        as all calls do that come meanwhile: then they end as timeouts do. Call it when your
        application starts, behind the fork where a server forks workers. After it no call imports
        or loads anything of ours.

        Args:
            timeout_s: Seconds to wait. None: as long as it takes.

        Returns:
            Whether all is loaded. A model that is not installed is no reason to wait: see `health`.

        Examples:
            >>> scope.prepare(timeout_s=30)
            True
        """
        return self._parts is None or self._parts.guards.redactor.redactor.prepare(timeout_s)

    def last_outcome(self) -> Event | None:
        """
        Return the event of the latest guarded call that ended in this task or thread.

        Its `neutral` tells a neutral answer from an empty memory. None: no call has ended yet, or
        the scope is disabled.
        """
        from .guard.call import last_event  # noqa: PLC0415 - as the guard does, which is imported last

        return last_event.get()

    def health(self, timeout_s: float = 2.0) -> Health:
        """
        Look at every sink, store, queue, journal, key, vault and model, and say how they are.

        Sinks are asked whether their back ends answer, all at once, in *timeout_s* seconds at most.
        It waits for them: call it from a thread where there is an event loop.
        """
        from .health import checks  # noqa: PLC0415 - needs the settings, which cost time to import

        parts = self._parts
        if parts is None:
            return checks.DISABLED
        return checks.examine(
            self._settings,
            parts.guards,
            timeout_s,
            key_use=parts.services.key_use,
            spans=parts.spans,
            unattributed_models=parts.accounting.unattributed_calls,
            checks=[*(each.checks for each in parts.features), self._checks_of_rules()],
        )

    def _checks_of_rules(self) -> dict[str, Callable[[], Check]]:
        rules: tuple[object, ...] = self.rules
        if not rules:
            return self._checks
        from .rules.capabilities import ChecksItself  # noqa: PLC0415 - only where there are rules

        own = {each.check().name: each.check for each in rules if isinstance(each, ChecksItself)}
        return {**own, **self._checks}

    def flush(self, timeout_s: float = 5.0) -> bool:
        """Wait until every sink has everything so far. False after *timeout_s*, or a loss."""
        return self._parts is None or self._parts.flush(timeout_s)

    def note_deliveries(self) -> None:
        """
        Note in the audit trail which sinks have acknowledged which events until now.

        It is done every few minutes and at the end: this is for who exports a customer meanwhile.
        """
        if self._parts is not None and self._parts.note_deliveries is not None:
            self._parts.note_deliveries()

    def close(self, timeout_s: float = EXIT_S) -> None:
        """Deliver what is queued, in *timeout_s* seconds at most. Wrapped clients stay usable."""
        if self._parts is not None:
            self._parts.close(timeout_s)

    @property
    def audit(self) -> AuditLog:
        """
        The audit trail, for reading.

        Raises:
            ConfigurationError: The audit sink is off.
        """
        from .errors import ConfigurationError  # noqa: PLC0415

        if self._parts is None or self._parts.audit is None:
            raise ConfigurationError("there is no audit trail: add audit to MNEMOSCOPE_SINKS")
        return self._parts.audit

    @property
    def is_disabled(self) -> bool:
        """True where nothing at all happens: see ``MNEMOSCOPE_DISABLED``."""
        return self._parts is None

    def note_fault(self, site: str, exc: BaseException) -> None:
        """Count an error of our own; it is logged once a minute, by its type."""
        if self._parts is not None:
            self._parts.faults.note(site, exc)

    def __copy__(self) -> Mnemoscope:
        """Return this scope: frameworks copy what their agents hold, and it is one in a process."""
        return self

    def __deepcopy__(self, _memo: dict[int, Any]) -> Mnemoscope:
        """Return this scope, as `copy.copy` does."""
        return self

    def __reduce__(self) -> NoReturn:
        """Say what to do instead."""
        raise TypeError("a scope is bound to this process: call configure() in the other one")

    def guard_for(self, store: str) -> Guard | None:
        """Return the guard that all functions observed as *store* share. None: switched off."""
        if self._parts is None:
            return None
        guard = self._observed.get(store)
        if guard is None:
            # Not under a lock, which a fork or a signal handler could meet held: of two made at
            # once, one is everybody's and the other is erased.
            named = self._parts.guards.redactor.name(store)
            guard = self._observed.setdefault(store, self._parts.guards.guard(named))
        return guard


def open_audit(**settings: Unpack[SettingValues]) -> AuditLog:
    """
    Open the audit trail that the environment and *settings* name, for reading, and nothing else.

    Raises:
        ConfigurationError: A setting makes no sense, or there is no key: none is made.
        AuditError: There is no key because there is no trail yet.
    """
    from .building.opening import open_audit_log  # noqa: PLC0415
    from .settings import load_settings  # noqa: PLC0415

    return open_audit_log(load_settings(**settings))


def quiet_clients(*, is_wanted: bool = False) -> None:
    """
    Keep clients from sending telemetry of their own, where the user wants that.

    mem0 reads its variable as it is imported. Where it has been, what it sent before is sent: that
    is logged.

    Args:
        is_wanted: A setting says so. False: the environment alone may.
    """
    if not is_wanted and os.environ.get(_QUIET, "").strip().lower() != "off":
        return
    os.environ[_OF_MEM0] = "False"
    imported = sys.modules.get("mem0.memory.telemetry")
    if getattr(imported, _OF_MEM0, False):
        setattr(imported, _OF_MEM0, False)
        import logging  # noqa: PLC0415 - not to import the front door

        logging.getLogger("mnemoscope").warning(
            "%s=off came too late: mem0 was imported before, and may have sent telemetry; from now "
            "on it sends none. Import mnemoscope.memory before mem0",
            _QUIET,
        )


_QUIET = "MNEMOSCOPE_CLIENT_TELEMETRY"
_OF_MEM0 = "MEM0_TELEMETRY"
