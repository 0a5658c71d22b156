"""graphiti-core behind a guard: a group of its graph is a customer. What its model uses is told."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import msgspec
from graphiti_core import Graphiti, errors

from ...memory import api
from ...memory.guard.call import error_name, outer_call
from ...telemetry.event.usage import Usage
from ..mem0.model_usage import ModelCallRecorder, provider_of
from ..mem0.provider_answer import CURRENT, ProviderAnswer
from ..toolkit.proxy import GuardedMethods, guarded_class
from ..toolkit.stand_in import StandIn, is_marked
from .graph import METHODS, GraphData

MODEL_STORE = "graphiti.model"
_UNGUARDED = {"close": "no content", "build_indices_and_constraints": "indices, no content"}
MISTAKES = (
    api.CallerMistake(what="an unknown id", error=errors.GraphitiError, where=("graphiti_core",)),
    api.CallerMistake(
        what="an argument or a type that there is none of",
        error=(TypeError, ValueError),
        where=("graphiti_core.decorators", "graphiti_core.helpers:validate_excluded_entity_types"),
        how="called",
    ),
)


class GraphModelRecorder(ModelCallRecorder):
    """Recorder of graphiti's model calls, with the tokens that its own tracker is told of."""

    def watch(self, client: Any) -> None:
        """Have the model of a ``Graphiti`` observed, once."""
        model, tracker = client.llm_client, client.llm_client.token_tracker
        generate, record = model.generate_response, tracker.record

        def recorded(prompt_name: str | None, input_tokens: int, output_tokens: int) -> None:
            record(prompt_name, input_tokens, output_tokens)
            answer = CURRENT.get() or ProviderAnswer()
            answer.usage = Usage(model="", input_tokens=input_tokens, output_tokens=output_tokens)

        async def observed(*args: Any, **kwargs: Any) -> Any:
            call, answer, provider = outer_call(), ProviderAnswer(), str(provider_of(model))
            is_small = getattr(kwargs.get("model_size"), "value", None) == "small"
            name = kwargs.get("model") or (is_small and model.small_model) or model.model
            about = {"model": name, "provider": provider.removesuffix("_client"), "error": None}
            token, costs = CURRENT.set(answer), self._accounting
            began = costs.wall_ns(), costs.clock()
            try:
                return await generate(*args, **kwargs)
            except BaseException as exc:
                about["error"] = error_name(exc)
                raise
            finally:
                CURRENT.reset(token)
                if call is not None:
                    self._tell(call, answer, began, {**about, "operation": "chat"})

        if not is_marked(generate, MODEL_STORE):
            model.generate_response = StandIn(generate, observed, MODEL_STORE)
            tracker.record = StandIn(record, recorded, MODEL_STORE)

    def _event(self, *args: Any, **kwargs: Any) -> Any:
        return msgspec.structs.replace(super()._event(*args, **kwargs), store=MODEL_STORE)


@lru_cache(maxsize=64)
def _class_of(base: Any) -> Any:
    methods = GuardedMethods(table=METHODS, client_types=(Graphiti,), not_guarded=_UNGUARDED)
    guarded = guarded_class(base, methods)
    setattr(guarded, "_search", vars(Graphiti)["_search"])  # noqa: B010 - its quick start's
    return guarded


def bind(client: Any, services: api.AdapterServices, /) -> api.StoreBinding:
    """Return the binding of a ``Graphiti``, on any of its databases."""
    if hasattr(client.llm_client, "token_tracker"):  # which a model of the user's may lack
        GraphModelRecorder(services.accounting).watch(client)
    return api.StoreBinding(
        methods=METHODS,
        caller_mistakes=MISTAKES,
        subject_data=(data := GraphData(client)),
        shared=not hasattr(client.driver, "db"),  # which Kuzu's has, in this process
        client_class=lambda base: _class_of(cast("Any", base)),
        around=(data,) if services.policy.enforce_tenancy else (),
    )


ADAPTER = api.StoreAdapter(
    store=GraphData.store,
    client_types=(Graphiti,),
    bind=bind,
    not_guarded=_UNGUARDED,
    raises={"summarize_saga": "answers the saga as it is now: there is none to give instead"},
)
