"""
Events and cost of mem0's own model calls, as part of the memory operation they are for.

mem0 keeps no account of tokens. Some of its providers let them be had: OpenAI's model has a
callback for responses, LangChain's has those of the model, and embedders that ask by the client
of OpenAI have its responses. Of all others an event says that a call was made, of which model and
how long it took, and that what it used is not known. What runs on this machine costs nothing and
is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from ...memory.accounting import ModelAccounting
from ...memory.guard.call import Call, error_name, outer_call
from ...memory.guard.labels import with_names
from ...telemetry.event.event import Event, OperationClass, Status
from ...telemetry.event.usage import Usage
from ..toolkit.call_details import (
    answer_details,
    call_details,
    media_details,
    request_details,
    server_details,
)
from ..toolkit.databases import result_or_none
from ..toolkit.stand_in import StandIn, is_marked
from ..toolkit.type_guards import is_list
from .provider_answer import CURRENT, ProviderAnswer

STORE: Final = "mem0.model"
"""The store in events of mem0's own model calls."""

_MARK: Final = "spend"
REMOTE: Final = frozenset(
    ("openai", "azure_openai", "aws_bedrock", "gemini", "vertexai", "together")
)
"""Providers whose embedders are asked over the network."""

REMOTE_RERANKERS: Final = frozenset(("cohere_reranker", "zero_entropy_reranker"))
"""Providers whose rerankers are asked over the network."""


class ModelCallRecorder:
    """Recorder of the model calls that one scope's mem0 clients make."""

    def __init__(self, accounting: ModelAccounting) -> None:
        self._accounting = accounting

    def watch(self, client: Any) -> None:
        """Have the model and the embedder of *client* observed, once. Never raises."""
        try:
            self._watch_model(getattr(client, "llm", None))
            embedder = getattr(client, "embedding_model", None)
            if provider_of(embedder) in REMOTE:
                _hear_embeddings(getattr(embedder, "client", None))
                for name in ("embed", "embed_batch"):
                    self._observe(embedder, name, "embeddings")
            reranker = getattr(client, "reranker", None)
            if provider_of(reranker) in REMOTE_RERANKERS:
                self._observe(reranker, "rerank", "rerank")
            self._watch_model(getattr(reranker, "llm", None))
        except Exception as exc:  # noqa: BLE001 - then its spend is not told
            self._accounting.faults.note("mem0.spend", exc)

    def _watch_model(self, model: Any) -> None:
        if model is None or not self._observe(model, "generate_response", "chat"):
            return
        # It is given the whole response with its usage; `generate_response` returns text alone.
        if hasattr(model.config, "response_callback"):
            model.config.response_callback = _chained(model.config.response_callback)
        elif provider_of(model) == "langchain":
            _listen_to(model.langchain_model)

    def _observe(self, target: Any, name: str, operation: str) -> bool:
        made: Callable[..., Any] = getattr(target, name)
        if is_marked(made, _MARK):
            return False
        provider = provider_of(target)
        # The module of a reranker is called after its provider.
        provider = provider and provider.removesuffix("_reranker")
        about = {"provider": provider, "model": _model(target)}

        def observed(*args: Any, **kwargs: Any) -> Any:
            call = outer_call()
            if call is None or CURRENT.get() is not None:  # one embedding of a batch, say
                return made(*args, **kwargs)
            make = partial(made, *args, **kwargs)
            return self._observed(call, make, operation, about, _server_of(target))

        setattr(target, name, StandIn(made, observed, _MARK))
        return True

    def _observed(
        self,
        call: Call,
        make: Callable[[], Any],
        operation: str,
        about: Mapping[str, str | None],
        known: dict[str, Any],
    ) -> Any:
        accounting, answer = self._accounting, ProviderAnswer(details=known)
        began = (accounting.wall_ns(), accounting.clock())
        token, error = CURRENT.set(answer), None
        try:
            return make()
        except BaseException as exc:
            error = error_name(exc)
            raise
        finally:
            CURRENT.reset(token)
            self._tell(call, answer, began, {**about, "operation": operation, "error": error})

    def _tell(
        self,
        call: Call,
        answer: ProviderAnswer,
        began: tuple[int, float],
        about: Mapping[str, str | None],
    ) -> None:
        if answer.is_recorded or self._accounting.faults.tripped:
            return
        try:
            usage = self._usage(answer, about)
            self._accounting.charge(call.scope, usage)
            self._accounting.drain.emit(self._event(call, usage, began, about))
        except Exception as exc:  # noqa: BLE001 - observing fails open
            self._accounting.faults.note("mem0.spend", exc)

    def _usage(self, answer: ProviderAnswer, about: Mapping[str, str | None]) -> Usage:
        answered, requested = answer.model, about["model"]
        usage = msgspec.structs.replace(
            answer.usage or Usage(model="unknown", reported=False),
            model=answered or requested or "unknown",
            requested_model=requested if answered and answered != requested else None,
            details=call_details(answer.details),
            provider=about["provider"],
            node=nodes[-1] if (nodes := self._nodes()) else None,
            namespace=nodes[:-1],
        )
        # A cost of 0 would be a statement; without figures there is none.
        if not usage.reported:
            return usage
        return msgspec.structs.replace(usage, cost_usd=self._accounting.prices.cost_usd(usage))

    def _nodes(self) -> tuple[str, ...]:
        """Return the names of the graph's nodes around the call, outermost first."""
        find = self._accounting.tracing.enclosing_nodes
        return () if find is None else find()

    def _event(
        self,
        call: Call,
        usage: Usage,
        began: tuple[int, float],
        about: Mapping[str, str | None],
    ) -> Event:
        accounting, labels = self._accounting, self._accounting.labels
        scope = labels.redacted(call.scope)
        return Event(
            writer_id=accounting.drain.writer_id,
            writer_seq=accounting.drain.next_seq(),
            started_ns=began[0],
            duration_s=max(0.0, accounting.clock() - began[1]),
            operation=about["operation"] or "chat",
            op_class=OperationClass.MODEL,
            store=STORE,
            method=call.method.name,
            status=Status.ERROR if about["error"] else Status.OK,
            error=about["error"],
            trace=accounting.tracing.child(call.trace),
            # What mem0's caller waits for is the operation around it.
            nested=True,
            parts=(with_names(usage, labels.namer(call.scope)),),
            subject=labels.subject(call.scope),
            tenant=scope.tenant,
            agent=scope.agent,
            feature=scope.feature,
            run=scope.run,
            purpose=scope.purpose,
        )


def provider_of(target: Any) -> str | None:
    """Return mem0's name of the provider: that of the module its class is in."""
    return type(target).__module__.rpartition(".")[2] if target is not None else None


def _server_of(target: Any) -> dict[str, Any]:
    """Return the server that the client below *target* asks, as far as it tells."""
    address = result_or_none(lambda: str(target.client.base_url))
    return server_details(address)


def _model(target: Any) -> str | None:
    found = getattr(getattr(target, "config", None), "model", None)
    return found if isinstance(found, str) else None


def _chained(given: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a callback for OpenAI's responses that listens, and then calls the host's own."""

    def responded(model: Any, response: Any, params: Any) -> None:
        answer = CURRENT.get()
        if answer is not None:
            answer.model = getattr(response, "model", None)
            answer.usage = _of_openai(getattr(response, "usage", None))
            answer.details |= request_details(params) | _of_answer(response)
        if given is not None:
            given(model, response, params)

    return responded


def _hear_embeddings(client: Any) -> None:
    """Have the responses of OpenAI's *client* heard, once, where mem0 drops what they report."""
    resource = getattr(client, "embeddings", None)
    made: Callable[..., Any] | None = getattr(resource, "create", None)
    if not callable(made) or is_marked(made, _MARK):
        return

    def heard(*args: Any, **kwargs: Any) -> Any:
        response = made(*args, **kwargs)
        answer, used = CURRENT.get(), _of_openai(getattr(response, "usage", None))
        if answer is not None and used is not None:
            # A batch is asked in parts.
            answer.usage = used.with_tokens_of(answer.usage) if answer.usage else used
            answer.model = getattr(response, "model", None)
            answer.details |= request_details(kwargs)
        return response

    setattr(resource, "create", StandIn(made, heard, _MARK))  # noqa: B010 - of any client


def _of_openai(used: Any) -> Usage | None:
    if used is None:
        return None
    into = getattr(used, "prompt_tokens_details", None)
    out = getattr(used, "completion_tokens_details", None)
    return Usage(
        model="unknown",
        input_tokens=_count(getattr(used, "prompt_tokens", 0)),
        output_tokens=_count(getattr(used, "completion_tokens", 0)),
        cached_tokens=_count(getattr(into, "cached_tokens", 0)),
        reasoning_tokens=_count(getattr(out, "reasoning_tokens", 0)),
    )


def _of_answer(response: Any) -> dict[str, Any]:
    """Return what a response of OpenAI's says of itself: its id, and why each answer ends."""
    used = getattr(response, "usage", None)
    into = getattr(used, "prompt_tokens_details", None)
    out = getattr(used, "completion_tokens_details", None)
    choices = getattr(response, "choices", None)
    ends = [{"finish_reason": getattr(each, "finish_reason", None)} for each in choices or ()]
    return answer_details([{"id": getattr(response, "id", None)}, *ends]) | media_details(
        {"audio": getattr(into, "audio_tokens", None)},
        {"audio": getattr(out, "audio_tokens", None)},
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _listen_to(model: Any) -> None:
    from .langchain import UsageCallback  # noqa: PLC0415 - LangChain, where mem0 is set up for it

    callbacks: Any = model.callbacks
    given = callbacks if is_list(callbacks) else []
    if not any(isinstance(each, UsageCallback) for each in given):
        model.callbacks = [*given, UsageCallback(CURRENT)]
