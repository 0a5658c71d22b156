"""
What mem0's own models cost: its calls of one, told as part of the memory operation they are for.

mem0 keeps no account of tokens. Two of its providers let them be had: OpenAI's has a callback for
responses, and LangChain's has those of the model. Of all others, and of every embedder, an event
says that a call was made, of which model and how long it took, and that what it used is not known.
Embedders that run on this machine cost nothing and are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Final, TypeGuard

from ..memory.call import Call, error_name, outer_call
from ..memory.labels import Labels
from ..memory.runtime import Runtime
from ..memory.spending import spent
from ..telemetry.event import Event, OperationClass, Status
from ..telemetry.prices import Prices
from ..telemetry.usage import Usage

STORE: Final = "mem0.model"
"""What stands for a store in events of mem0's own model calls."""

_MARK: Final = "_mnemoscope_spend"
_REMOTE: Final = frozenset(
    ("openai", "azure_openai", "aws_bedrock", "gemini", "vertexai", "together")
)


@dataclass(slots=True)
class Heard:
    """
    What a provider said of the call that is being made.

    Attributes:
        model: Its own name for itself.
        usage: Tokens. None: it said nothing of them.
        is_told: It is part of a graph's run that is watched, and told there.
    """

    model: str | None = None
    usage: Usage | None = None
    is_told: bool = False


_heard: ContextVar[Heard | None] = ContextVar("mnemoscope_mem0_heard", default=None)


class Spending:
    """
    Tells of the model calls that one scope's mem0 clients make.

    Args:
        runtime: Drain, redactor, keys, tracing.
        prices: For the cost.
    """

    def __init__(self, runtime: Runtime, prices: Prices) -> None:
        self._runtime = runtime
        self._prices = prices
        self._labels = Labels(runtime)

    def watch(self, client: Any) -> None:
        """Have the model and the embedder of *client* observed, once. Never raises."""
        try:
            self._watch_model(getattr(client, "llm", None))
            embedder = getattr(client, "embedding_model", None)
            if _provider(embedder) in _REMOTE:
                for name in ("embed", "embed_batch"):
                    self._observe(embedder, name, "embeddings")
        except Exception as exc:  # noqa: BLE001 - then its spend is not told
            self._runtime.faults.note("mem0.spend", exc)

    def _watch_model(self, model: Any) -> None:
        if model is None or not self._observe(model, "generate_response", "chat"):
            return
        if hasattr(model.config, "response_callback"):
            model.config.response_callback = _chained(model.config.response_callback)
        elif _provider(model) == "langchain":
            _listen_to(model.langchain_model)

    def _observe(self, target: Any, name: str, operation: str) -> bool:
        made: Callable[..., Any] = getattr(target, name)
        if hasattr(made, _MARK):
            return False
        about = {"provider": _provider(target), "model": _model(target)}

        @wraps(made)
        def observed(*args: Any, **kwargs: Any) -> Any:
            call = outer_call()
            if call is None or _heard.get() is not None:  # one embedding of a batch, say
                return made(*args, **kwargs)
            return self._observed(call, lambda: made(*args, **kwargs), operation, about)

        setattr(observed, _MARK, True)
        setattr(target, name, observed)
        return True

    def _observed(
        self, call: Call, make: Callable[[], Any], operation: str, about: Mapping[str, str | None]
    ) -> Any:
        runtime, heard = self._runtime, Heard()
        began = (runtime.wall_ns(), runtime.clock())
        token, error = _heard.set(heard), None
        try:
            return make()
        except BaseException as exc:
            error = error_name(exc)
            raise
        finally:
            _heard.reset(token)
            self._tell(call, heard, began, {**about, "operation": operation, "error": error})

    def _tell(
        self,
        call: Call,
        heard: Heard,
        began: tuple[int, float],
        about: Mapping[str, str | None],
    ) -> None:
        if heard.is_told or self._runtime.faults.tripped:
            return
        try:
            usage = self._usage(heard, about)
            spent(self._runtime, call.scope, usage)
            self._runtime.drain.emit(self._event(call, usage, began, about))
        except Exception as exc:  # noqa: BLE001 - observing fails open
            self._runtime.faults.note("mem0.spend", exc)

    def _usage(self, heard: Heard, about: Mapping[str, str | None]) -> Usage:
        usage = replace(
            heard.usage or Usage(model="unknown", reported=False),
            model=heard.model or about["model"] or "unknown",
            provider=about["provider"],
        )
        return replace(usage, cost_usd=self._prices.cost_usd(usage)) if usage.reported else usage

    def _event(
        self,
        call: Call,
        usage: Usage,
        began: tuple[int, float],
        about: Mapping[str, str | None],
    ) -> Event:
        runtime, told = self._runtime, self._labels.told(call.scope)
        return Event(
            writer_id=runtime.drain.writer_id,
            writer_seq=runtime.drain.next_seq(),
            started_ns=began[0],
            duration_s=max(0.0, runtime.clock() - began[1]),
            operation=about["operation"] or "chat",
            op_class=OperationClass.MODEL,
            store=STORE,
            method=call.method.name,
            status=Status.ERROR if about["error"] else Status.OK,
            error=about["error"],
            trace=runtime.tracing.child(call.trace),
            nested=True,
            usage=usage,
            subject=self._labels.subject(call.scope),
            tenant=told.tenant,
            agent=told.agent,
            feature=told.feature,
            run=told.run,
            purpose=told.purpose,
        )


def _provider(target: Any) -> str | None:
    """Return mem0's name of the provider: that of the module its class is in."""
    return type(target).__module__.rpartition(".")[2] if target is not None else None


def _model(target: Any) -> str | None:
    found = getattr(getattr(target, "config", None), "model", None)
    return found if isinstance(found, str) else None


def _chained(given: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a callback for OpenAI's responses that listens, and then calls the host's own."""

    def responded(model: Any, response: Any, params: Any) -> None:
        heard = _heard.get()
        if heard is not None:
            heard.model = getattr(response, "model", None)
            heard.usage = _of_openai(getattr(response, "usage", None))
        if given is not None:
            given(model, response, params)

    return responded


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


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _listen_to(model: Any) -> None:
    from .mem0_langchain import Listener  # noqa: PLC0415 - LangChain, where mem0 is set up for it

    callbacks: Any = model.callbacks
    given = callbacks if _is_list(callbacks) else []
    if not any(isinstance(each, Listener) for each in given):
        model.callbacks = [*given, Listener(_heard)]
