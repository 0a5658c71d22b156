"""
LangChain's callbacks of graphs, nodes, tools and model calls, as they begin and end.

A LangGraph stream is driven by whoever reads it, so its timestamps are the reader's, and it does
not say in which context a node called a model. Callbacks run where and when a run begins and ends.
There is one handler in a process: no stream can be given one of its own, once it is started.
"""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from functools import cache, partial, wraps
from typing import Any, TypeVar, cast
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.tracers.context import register_configure_hook
from langgraph.types import Command
from msgspec.structs import replace

from ....memory.accounting import ModelAccounting
from ....memory.context import EMPTY_SCOPE, current, watch_contexts
from ....memory.guard.call import error_name, outer_call
from ....memory.guard.steps.report import no_parent
from ....telemetry.event.event import Status
from ....telemetry.event.tool_run import ToolRun
from ...toolkit.call_details import call_id
from .content import answers_in, copied
from .meter import Meter
from .model_calls import text_answered, text_of, text_said
from .run_tree import spot_tracers
from .runs import Runs, nodes_in, thread_in
from .spans import Run, RunKind, usage_of_run
from .watched import watched_graph

T = TypeVar("T", bound=Callable[..., None])


def _contain_errors(callback: T) -> T:
    """Note errors of ours as faults: LangChain would log them with the data that they quote."""

    @wraps(callback)
    def safely(self: GraphCallbacks, *args: Any, **kwargs: Any) -> None:
        try:
            callback(self, *args, **kwargs)
        except Exception as exc:  # noqa: BLE001 - nobody else's to know
            self.note(exc)

    return cast("T", safely)


class GraphCallbacks(BaseCallbackHandler):
    """
    Callback handler that records runs.

    Attributes:
        is_cache_used: Whether calls that LangChain's cache can answer cost nothing, as far as is
            known: streams do not look into it.
        is_observed: Whether a scope has observers of runs, which are given more of them.
        tells_content: Whether events have what went into runs and came out.
    """

    is_observed = tells_content = _notes_more = False

    run_inline = True  # in the caller's own thread and context, sync and async

    # LangChain reads these before every event: as properties they would be a call each time.
    ignore_llm = ignore_chain = ignore_chat_model = ignore_agent = False  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]
    # Those that are memory stores are guarded as such; each attempt is a run of its own; and the
    # application's own events are its own.
    ignore_retriever = ignore_retry = ignore_custom_event = True  # pyright: ignore[reportAssignmentType, reportIncompatibleMethodOverride]

    # Before every model call LangChain asks each handler whether it has these, and would look for
    # them through all its classes. None says at once that it has not.
    tap_output_iter = tap_output_aiter = None

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.is_cache_used = True
        self._early: set[UUID] = set()
        self._accountings: weakref.WeakSet[ModelAccounting] = weakref.WeakSet()

    def report_to(self, accounting: ModelAccounting) -> None:
        """Count errors of ours and model calls there; its operations know their node."""
        self._accountings.add(accounting)
        self.tells_content = any(each.tells_content for each in list(self._accountings))
        has_host_runs = accounting.host_run is not no_parent
        accounting.tracing.enclose(self.runs, has_host_runs=has_host_runs)
        for each in accounting.observers:
            # Not bound to it: it would hold itself alive.
            each.watch(partial(watched_graph, self.runs, weakref.ref(accounting)))
        if has_host_runs:
            self.runs.read_places(accounting.host_run)
            spot_tracers(self)
        self._notes_more = self.tells_content or self.runs.read_host_run is not None

    def note_for_observers(self, *, are_there: bool) -> None:
        """Note of each run what observers are given, from now on, or no more."""
        self.is_observed = are_there

    def note(self, exc: Exception) -> None:
        """Count an error of ours."""
        for accounting in list(self._accountings):
            accounting.faults.note("graph.callback", exc)

    def begin(
        self, start: Callable[..., None], *args: Any, run_id: UUID, **about: Any
    ) -> Run | None:
        """
        Return a run that begins, for a gate. None: it is not recorded.

        LangChain keeps the handlers of graphs in graphs in sets: of such a run it may ask a gate
        before it tells this handler, which *start* of this handler then has been told already.
        """
        if self.runs.open(run_id) is None:
            start(*args, run_id=run_id, **about)
            if self.runs.open(run_id) is not None:
                self._early.add(run_id)
        return self.runs.open(run_id)

    def _is_begun(self, run_id: UUID) -> bool:
        """Return whether a gate has begun a run already. Once."""
        if run_id not in self._early:
            return False
        self._early.discard(run_id)
        return True

    @_contain_errors
    def on_chain_start(
        self,
        serialized: Any,  # noqa: ARG002
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Record a graph, a node or a chain that begins."""
        if self._early and self._is_begun(run_id):
            return
        parent, about, named = self.runs.parent_of(parent_run_id), metadata or {}, name or "chain"
        if parent is not None and named == about.get("langgraph_node"):
            path: str = about.get("langgraph_checkpoint_ns") or named
            nodes = nodes_in(path)
            # The parts of a node have its metadata too, and may have its name.
            if nodes != parent.nodes:
                run = self.runs.begin_node(run_id, parent, nodes, path.rpartition(":")[2])
                run.step = about.get("langgraph_step")
                if self._notes_more:
                    self._note(run, copied, inputs, kwargs)
                return
        thread = thread_in(about) if parent is None else None
        if (chain := self.runs.begin_chain(run_id, parent, named, thread)) is None:
            return
        if self.is_observed and parent is None:
            chain.resumes = inputs is None or isinstance(inputs, Command)
            chain.reads_unseen = parent_run_id is not None  # whoever runs it is not watched
        if self._notes_more:
            self._note(chain, lambda each: each, inputs, kwargs)

    def _note(
        self, run: Run, take: Callable[[Any], Any], given: Any, about: dict[str, Any]
    ) -> None:
        """Note what only some sinks show of a run that begins."""
        if self.tells_content:
            run.content = take(given), None
        if self.runs.read_host_run is not None:
            run.tags = tuple(map(str, about.get("tags") or ()))

    @_contain_errors
    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Record the end of a run."""
        if run := self.runs.open(run_id):
            if self.tells_content and run.kind is not RunKind.CHAIN:
                self._note_outputs(run, outputs)
            self.runs.end(run, Status.OK)

    def _note_outputs(self, run: Run, outputs: Any) -> None:
        given = run.content[0]
        run.content = copied(given) if run.kind is RunKind.GRAPH else given, copied(outputs)

    @_contain_errors
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Record that it failed, was interrupted or was left."""
        if run := self.runs.open(run_id):
            self.runs.failed(run, error)

    @_contain_errors
    def on_tool_start(
        self,
        serialized: Any,
        input_str: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        name: str | None = None,
        inputs: Any = None,
        **kwargs: Any,
    ) -> None:
        """Record a tool that begins."""
        if self._early and self._is_begun(run_id):
            return
        parent = self.runs.parent_of(parent_run_id)
        if parent is not None:
            named = name or text_of(serialized, "name") or "tool"
            run = self.runs.begin_tool(run_id, parent, named)
            run.tool = ToolRun(call_id(kwargs.get("tool_call_id")), len(input_str))
            if self._notes_more:
                self._note(run, copied, input_str if inputs is None else inputs, kwargs)

    @_contain_errors
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """As `on_chain_end`."""
        if run := self.runs.open(run_id):
            said = getattr(output, "content", output)
            if self.is_observed:
                run.text = text_answered(output)
            if run.tool is not None and isinstance(said, str):
                run.tool = replace(run.tool, answer_chars=len(said))
            if self.tells_content:
                self._note_outputs(run, said)
            self.runs.end(run, Status.OK)

    @_contain_errors
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """As `on_chain_error`."""
        if run := self.runs.open(run_id):
            self.runs.failed(run, error)

    @_contain_errors
    def on_chat_model_start(
        self,
        serialized: Any,
        messages: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Record a model call that begins."""
        if self._early and self._is_begun(run_id):
            return
        # `generate` looks for no run around it, which is there all the same.
        parent = self.runs.recorded(parent_run_id) or self.runs.current_run()
        parameters = kwargs.get("invocation_params")
        request = (serialized, parameters) if parameters or serialized else None
        if parent is not None:
            self.runs.begin_model_call(run_id, parent, metadata or {}, (), request)
        elif outer_call() is None:  # a store's own calls are told by its adapter
            self._begin_outside(run_id, metadata or {}, request)
        if self._notes_more and (run := self.runs.open(run_id)):
            self._note(run, copied, messages[0] if messages else None, kwargs)

    def _begin_outside(
        self, run_id: UUID, metadata: dict[str, Any], request: tuple[Any, Any] | None
    ) -> None:
        """Record a call from a thread of the application's, or from outside of watched graphs."""
        counting = [each for each in list(self._accountings) if not each.is_closed]
        if not counting:
            return
        if current() == EMPTY_SCOPE:
            for each in counting:
                each.count_unattributed()
        meters = tuple(map(Meter, counting))
        self.runs.begin_model_call(run_id, None, metadata, meters, request)

    def on_llm_start(self, serialized: Any, prompts: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """As `on_chat_model_start`, for models that complete text."""
        messages = [[{"role": "user", "content": each} for each in prompts]]
        self.on_chat_model_start(serialized, messages, run_id=run_id, **kwargs)

    # The next two are called for each token, so they do nothing more for most of them.

    def on_llm_new_token(
        self,
        token: Any,  # noqa: ARG002
        *,
        run_id: UUID,
        chunk: Any = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Record the first chunk, and the usage in each."""
        if self.runs.unanswered:
            self.runs.note_first_chunk(run_id)
        message = getattr(chunk, "message", None)
        if message is not None and (message.usage_metadata or message.response_metadata):
            self._add_usage(run_id, message)

    def on_stream_event(self, event: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Record the first chunk, in the third version of streaming."""
        if self.runs.unanswered:
            self.runs.note_first_chunk(run_id)

    @_contain_errors
    def _add_usage(self, run_id: UUID, message: Any) -> None:
        run = self.runs.open(run_id)
        if run is not None and run.streamed is not None:
            run.streamed.add(message)

    @_contain_errors
    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:  # noqa: ARG002
        """Record that a model call ended, and its tokens."""
        if run := self.runs.open(run_id):
            run.usage = usage_of_run(run, response)
            if self.is_observed:
                run.text = text_said(response)
            if self.tells_content:
                run.content = run.content[0], copied(answers_in(response))
            if run.is_free:
                self.is_cache_used = run.usage.reported and not run.usage.input_tokens
            self.runs.end(run, Status.OK)

    @_contain_errors
    def on_llm_error(
        self,
        error: BaseException,
        *,
        run_id: UUID,
        response: Any = None,
        **kwargs: Any,  # noqa: ARG002
    ) -> None:
        """Record that a model call failed, and its tokens so far."""
        if run := self.runs.open(run_id):
            run.usage = usage_of_run(run, response)
            self.runs.failed(run, error)

    @_contain_errors
    def rejected(self, run_id: UUID, error: BaseException) -> None:
        """Record that a model call was not made after all."""
        self._early.discard(run_id)
        if run := self.runs.open(run_id):
            run.error = error_name(error)
            # It is known what it has used: nothing.
            run.usage = replace(usage_of_run(run), reported=True, cost_usd=0.0)
            self.runs.end(run, Status.REJECTED)


@cache
def graph_callbacks() -> GraphCallbacks:
    """
    Return the process's handler, registered with LangChain for every run from now on.

    By the default of a ContextVar: what is set for one context would be lost to a stream that is
    read in another, and would stay set for whatever else the context runs.
    """
    callbacks = GraphCallbacks(Runs())
    hook: ContextVar[Any] = ContextVar("mnemoscope_graph", default=callbacks)
    register_configure_hook(hook, inheritable=True)
    watch_contexts(callbacks.runs.entered)
    # Before the drains are closed, which were imported before: at exit, last comes first.
    atexit.register(callbacks.runs.close_all)
    return callbacks


def runs_so_far() -> Runs | None:
    """Return the tree of observed runs. None: nothing has been observed in this process yet."""
    # For savers, for which alone LangChain need not tell of every run.
    return graph_callbacks().runs if graph_callbacks.cache_info().currsize else None
