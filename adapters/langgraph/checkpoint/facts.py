"""
What rules know of a run, carried in the metadata of its checkpoints to whoever resumes it.

Another process that resumes a thread would begin to count at nothing: its limits would be those of
a new run. The facts are numbers and keyed hashes, sealed with the key of the scope; what was
changed, or written under another key, is not believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from ....memory.context import current
from ....memory.guard.call import Call
from ....memory.guard.operation import Method
from ....memory.guard.step import NOTHING, Faces
from ....memory.rules.rulebook import Rulebook
from ....telemetry.event.kinds import OperationClass
from ....telemetry.process.faults import Faults
from .arguments import configurable

KEY: Final = "mnemoscope_facts"
"""Their name in a checkpoint's metadata."""


class CarryFacts:
    """
    The step that writes facts with each checkpoint, and reads them with the one that is resumed.

    Args:
        faults: Where facts that cannot be believed are counted.
    """

    def __init__(self, rulebook: Rulebook, faults: Faults) -> None:
        self._rulebook = rulebook
        self._faults = faults

    def faces(self, method: Method) -> Faces:
        """Return the face of writes, or of reads."""
        if method.name == "put":
            return Faces(before=self._write)
        if method.name == "get_tuple":
            return Faces(after=self._read)
        return Faces(before=self._look) if method.op_class is OperationClass.RESUME else NOTHING

    def _look(self, call: Call) -> None:
        """Note that state is read without its facts, as a history is."""
        try:
            thread = configurable(call.arguments).get("thread_id")
            self._rulebook.state_read(current(), thread if isinstance(thread, str) else None)
        except Exception as exc:  # noqa: BLE001 - observing fails open
            self._faults.note("rules.state", exc)

    def _write(self, call: Call) -> None:
        thread, metadata = call.scope.run, call.arguments.get("metadata")
        if thread is None or not isinstance(metadata, Mapping):
            return
        try:
            checkpoint = call.arguments["checkpoint"]["id"]
            facts = self._rulebook.carried(current(), thread, checkpoint)
        except Exception as exc:  # noqa: BLE001 - a checkpoint is written with or without
            self._faults.note("rules.carry", exc)
            return
        if facts is not None:
            known = cast("Mapping[str, Any]", metadata)
            # In the metadata, which savers keep with the checkpoint: another process resumes with
            # the same facts.
            call.arguments = {**call.arguments, "metadata": {**known, KEY: facts}}

    def _read(self, call: Call) -> None:
        thread, metadata = call.scope.run, getattr(call.result, "metadata", None)
        if call.error is not None or thread is None or not isinstance(metadata, Mapping):
            return
        try:
            facts = cast("Mapping[str, Any]", metadata).get(KEY)
            # With the id, to which they are sealed: facts of another checkpoint are not believed.
            self._rulebook.restore(current(), thread, call.result.checkpoint["id"], facts)
        except Exception as exc:  # noqa: BLE001 - what cannot be believed is not known
            self._faults.note("rules.restore", exc)
