"""The check of contracts around a call of a tool, and the answer to calls that are not made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final

from ...memory.api import Arguments, AsyncInvoke, Call, Faces, Invoke, Method, RunObserver, Status
from ...memory.errors import RedactionError
from .mismatch import ToolBlockedError, mismatch
from .part import ToolContractCheck
from .shapes import answer_of
from .tool_contracts import ToolContracts

EXECUTE: Final = "execute_tool"

_LONG: Final = 2_000
"""Characters from which an answer is redacted on a thread."""


class KeepContracts:
    """
    Checks arguments before a call of a tool, and results after it; redacts results.

    Args:
        store: The guard's name.
        server: As the user calls it.
        contracts: Those of the client.
        observers: Are shown that a run reads a tool's answer.
        deadlines_s: Seconds that a call may take, by pattern of tool names.
    """

    def __init__(
        self,
        store: str,
        server: str,
        contracts: ToolContracts,
        *,
        observers: Callable[[], tuple[RunObserver, ...]],
        deadlines_s: Mapping[str, float],
    ) -> None:
        self._store, self._server, self._contracts = store, server, contracts
        self._observers, self._deadlines_s = observers, deadlines_s

    def wrap(self, _call: Call, invoke: Invoke, /) -> Invoke:
        """Return *invoke*: no client of MCP has synchronous calls."""
        return invoke

    def awrap(self, call: Call, invoke: AsyncInvoke, /) -> AsyncInvoke:
        """Return what calls the tool if its contract is kept."""
        if call.method.operation != EXECUTE:
            return partial(self._redacted, call, invoke)
        return partial(self._called, call, invoke)

    async def _called(self, call: Call, invoke: AsyncInvoke, given: Arguments) -> Any:
        verdict, signal = "failed", None
        try:
            async with asyncio.timeout(first_match(self._deadlines_s, given["name"])):
                verdict, signal, result = await self._checked(call, invoke, given)
        except ToolBlockedError as exc:
            verdict = exc.reason
            raise
        finally:
            part = ToolContractCheck(
                server=self._server, tool=call.method.name, verdict=verdict, signal=signal
            )
            call.additions += (partial(_said, part),)
        # A write answers, too, and its answer is read by the model: rules of origin count that
        # for recalls alone.
        for each in self._observers():
            each.reads(self._store)
        return result

    async def _checked(
        self, call: Call, invoke: AsyncInvoke, given: Arguments
    ) -> tuple[str, str | None, Any]:
        contracts, tool = self._contracts, given["name"]
        contract, version = await contracts.ready(tool)
        if mismatch(contract.parameters, given["arguments"]) is not None:
            # The model may know a newer contract than this client: the server decides.
            contract, version = await contracts.ready(tool, again=True)
            fault = mismatch(contract.parameters, given["arguments"])
            if fault is not None:
                raise contracts.struck(tool, "arguments", fault)
        if version is not None:
            pin = {"fastmcp": {"version": version}}
            given = {**given, "meta": {**(given.get("meta") or {}), **pin}}
        result, fault = await self._answer(invoke, given, contract.output)
        if fault is None and not hasattr(result, "content"):  # the server asks something first
            return "kept", None, await redacted(call, result, self._store)
        if fault is not None or result.is_error:
            # Servers that never notify are found out here: the error of a call is their drift's.
            contract, _ = await contracts.ready(tool, again=True)
            if fault is not None and call.limits.is_recall:  # reading again changes nothing
                result, fault = await self._answer(invoke, given, contract.output)
            if fault is not None:
                raise contracts.struck(tool, "result", fault)
        verdict = "failed" if result.is_error else "kept" if version is None else "pinned"
        signal = contracts.kept(tool, answer_of(result)) if verdict != "failed" else None
        return verdict, signal, await redacted(call, result, self._store)

    @staticmethod
    async def _answer(
        invoke: AsyncInvoke, given: Arguments, output: Mapping[str, Any] | None
    ) -> tuple[Any, str | None]:
        """Return the answer, and how it is not as *output* says."""
        try:
            result = await invoke(given)
        except RuntimeError as exc:
            # The SDK checks results, by the output schema that it saw last.
            if not _is_of_validation(exc):
                raise
            return None, "the result is not as the output schema says"
        if output is None or not hasattr(result, "content") or result.is_error:
            return result, None
        fault = mismatch(output, result.structured_content)
        return result, fault and f"in the result, {fault}"

    async def _redacted(self, call: Call, invoke: AsyncInvoke, given: Arguments) -> Any:
        return await redacted(call, await invoke(given), self._store)


class AnswerBlocked:
    """Has a blocked call answer as a tool that failed, so that a model can act on it."""

    def __init__(self, answer: Callable[[str, dict[str, Any]], Any]) -> None:
        self._answer = answer

    def faces(self, method: Method) -> Faces:
        """Return the face behind the store, for tools."""
        return Faces(after=self._say) if method.operation == EXECUTE else Faces()

    def _say(self, call: Call) -> None:
        error = call.error
        if isinstance(error, ToolBlockedError):
            call.status = Status.ERROR if error.reason == "result" else Status.DENIED
            about = {"error": "schema_mismatch", "reason": error.reason, "tool": error.tool}
            call.result = self._answer(str(error), {**about, "may_retry": error.may_retry})
            # Not by `Method.neutral`: that is for a server's failure, and this is nobody's.
            call.neutral = True
        elif error is None and getattr(call.result, "is_error", False):
            # By the conventions: the server has answered, and what it says is that it failed.
            call.status = Status.ERROR


def _said(part: ToolContractCheck, _store: str, _call: Call) -> ToolContractCheck:
    return part


def first_match(by_pattern: Mapping[str, Any], tool: str) -> Any:
    """Return what the first pattern says that *tool* fits. None: it fits none."""
    return next((each for pattern, each in by_pattern.items() if fnmatchcase(tool, pattern)), None)


async def redacted(call: Call, result: Any, store: str) -> Any:
    """
    Return *result* with personal data replaced.

    Raises:
        RedactionError: It cannot be redacted, and is not handed on.
    """
    work = partial(_redact, call, result)
    try:
        # No event loop stands still for a long text.
        is_long = len(repr(result)) > _LONG
        return await asyncio.to_thread(work) if is_long else work()
    except Exception as exc:  # noqa: BLE001 - closed on confidentiality
        kind = type(exc).__name__
        raise RedactionError(f"{store}: the answer could not be redacted ({kind})") from None


def _redact(call: Call, result: Any) -> Any:
    redaction = call.redaction
    if redaction is None:
        raise RedactionError("the call has no redaction")
    if not hasattr(result, "content"):
        return redaction.value(result)
    blocks = [_block(each, redaction.text) for each in result.content]
    found = result.structured_content
    changed = {"structured_content": None if found is None else redaction.value(found)}
    return result.model_copy(update={"content": blocks, **changed})


def _block(block: Any, redact: Callable[[str], str]) -> Any:
    text = getattr(block, "text", None)
    if isinstance(text, str):
        return block.model_copy(update={"text": redact(text)})
    resource = getattr(block, "resource", None)
    if isinstance(getattr(resource, "text", None), str):
        return block.model_copy(update={"resource": _block(resource, redact)})
    return block


def _is_of_validation(exc: RuntimeError) -> bool:
    # By the place that raises it: the type says nothing, and the text is the SDK's to change.
    step = exc.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_name == "validate_tool_result":
            return True
        step = step.tb_next
    return False
