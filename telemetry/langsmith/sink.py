"""
The LangSmith sink: a run for each operation and each model call, below the run it happened in.

LangSmith's client queues runs on a thread of its own that holds the exit of the process for minutes
when the back end is gone. Here that thread is never started: the lane is the thread, and hands its
batches to the client's synchronous call, over a session with a total bound (`BoundedSession`).

LangSmith's own masking is not used: it leaves names, tags and errors alone, and what is in an event
is redacted already.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from http.client import OK
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import orjson

from ..delivery.sink import DeliveryError, SinkOutput
from ..event.event import Event
from ..event.parent_run import ParentRun
from ..network.probe import is_this_machine, status_of
from ..network.timeouts import failure, quiet, time_limit
from ..process.fork import reset_after_fork
from ..process.late_imports import LATE_IMPORTS
from .feedback import feedback_of
from .runs import SINK, runs_of

if TYPE_CHECKING:
    from langsmith import Client

TIMEOUT_S: Final = 3.0
"""Most seconds one batch may take, the client's retries included."""

_SWITCHED_OFF: Final = ParentRun(is_reported=True)
_HOSTED: Final = "langchain.com"
_LOGGERS: Final = ("langsmith.client", "langsmith.utils", "urllib3.connectionpool")


def capture_parent() -> ParentRun | None:
    """
    Return the current LangSmith run, and what is said of runs that begin here. None: nothing.

    Called on the caller's thread: costs a dictionary lookup where nobody has imported LangSmith.
    """
    # Without the name while another thread is in the midst of the import.
    current = getattr(sys.modules.get("langsmith.run_helpers"), "get_tracing_context", None)
    if current is None:
        return None
    said = current()
    # The host has switched LangSmith off for this request, and that holds for our runs, too.
    if said["enabled"] is False:
        return _SWITCHED_OFF
    run, project, tags = said["parent"], said["project_name"], tuple(said["tags"] or ())
    if run is not None:
        return ParentRun(run.dotted_order or None, run.session_name or project, tags)
    return ParentRun(None, project, tags) if project or tags else None


def setting(variable: str) -> str:
    """Return ``LANGSMITH_<variable>``, else the older ``LANGCHAIN_<variable>``, else ""."""
    names = (f"LANGSMITH_{variable}", f"LANGCHAIN_{variable}")
    return next((found for each in names if (found := os.environ.get(each, "").strip())), "")


def api_url() -> str:
    """Return the URL of LangSmith, as its own client finds it, which takes 0.5 s to import."""
    return (setting("ENDPOINT") or f"https://api.smith.{_HOSTED}").strip("\"'").rstrip("/")


class LangSmithSink:
    """
    Sends events to LangSmith as runs.

    Args:
        client: Whose endpoint, key and workspace to use; None: what ``LANGSMITH_*`` say. The sink
            opens a client of its own, since this one may queue on a thread.
        project: The project of the runs. None: ``LANGSMITH_PROJECT``.
        content: Put the redacted content into the runs' inputs.

    Raises:
        ModuleNotFoundError: The langsmith package is not installed.
    """

    name = SINK
    idempotent = True
    gathers_s = 0.5
    capture_parent = staticmethod(capture_parent)

    def __init__(
        self, *, client: Client | None = None, project: str | None = None, content: bool = False
    ) -> None:
        if find_spec("langsmith") is None:
            raise ModuleNotFoundError(
                "the langsmith sink needs the langsmith package", name="langsmith"
            )
        self._template = client
        self._project = project
        self._content = content
        self._out: _Connection | None = None
        self._inherited: list[_Connection] = []
        reset_after_fork(self)

    def open_ahead(self) -> None:
        """Import LangSmith's client, and open one."""
        self._opened()

    def write(self, batch: Sequence[Event], /) -> None:
        """Create the batch's runs, complete from the start, or raise `DeliveryError`."""
        out = self._opened()
        out.send(batch, content=self._content)
        out.send_feedback([found for each in batch if (found := feedback_of(each)) is not None])

    def flush(self, timeout_s: float, /) -> bool:
        """Return True: nothing waits here."""
        del timeout_s
        return True

    def check(self, timeout_s: float, /) -> str:
        """Request LangSmith's ``/info``. The key is not checked: that would take a run."""
        url = self._template.api_url if self._template else api_url()
        host = urlsplit(url).hostname or "its endpoint"
        # A server of one's own may need no key.
        if self._template is None and host.endswith(_HOSTED) and not setting("API_KEY"):
            raise DeliveryError("LANGSMITH_API_KEY is not set")
        status = status_of(f"{url}/info", timeout_s)
        if status is None:
            raise DeliveryError(f"LangSmith does not answer at {host}")
        if status != OK:
            raise DeliveryError(f"{host} answers {status}")
        return f"LangSmith answers at {host}"

    def output(self) -> SinkOutput:
        """Return what leaves through this sink."""
        host = urlsplit(self._template.api_url if self._template else api_url()).hostname or ""
        if host == _HOSTED or host.endswith(f".{_HOSTED}"):
            return SinkOutput("hosted service", self._content)
        kind = "server on this machine" if is_this_machine(host) else "server of its operator's own"
        return SinkOutput(kind, self._content)

    def close(self, timeout_s: float, /) -> None:
        """Close the connection."""
        del timeout_s
        out, self._out = self._out, None
        if out is not None:
            out.close()

    def forked(self) -> None:
        """Begin anew in a forked child: connections carried over belong to the parent."""
        # Held for good, since the end of the object would close what the parent uses.
        if self._out is not None:
            self._inherited.append(self._out)
        self._out = None

    def _opened(self) -> _Connection:
        if self._out is None:
            with LATE_IMPORTS:
                self._out = _Connection(self._template, self._project)
        return self._out


class _Connection:
    """A LangSmith client without threads."""

    def __init__(self, template: Client | None, project: str | None) -> None:
        from langsmith import Client  # noqa: PLC0415 - 0.4 s, on the lane's thread
        from langsmith.utils import get_tracer_project  # noqa: PLC0415 - see above
        from urllib3.util.retry import Retry  # noqa: PLC0415 - see above

        from ..network.http import BoundedSession  # noqa: PLC0415 - see above
        from .direct import direct_runs  # noqa: PLC0415 - see above

        self.project = project or get_tracer_project() or "default"
        self._failures: list[Exception] = []
        self._client = Client(
            api_url=template.api_url if template else None,
            api_key=template.api_key if template else None,
            workspace_id=template.workspace_id if template else None,
            session=BoundedSession(),
            # No queue, and so no thread.
            auto_batch_tracing=False,
            tracing_mode="langsmith",
            # The lane retries, and waits in between, and knows when the process ends.
            retry_config=Retry(0),
            timeout_ms=round(TIMEOUT_S * 1e3),
            # The same with each run, and of no use to whoever looks for an operation.
            omit_traced_runtime_info=True,
            disable_prompt_cache=True,
            # The one way to find out that it failed: the client logs what others raise.
            tracing_error_callback=self._failures.append,
        )
        with quiet(*_LOGGERS):
            self._direct = direct_runs(self._client)

    def send(self, batch: Sequence[Event], *, content: bool) -> None:
        """Create the runs of *batch*, or raise."""

        def runs() -> Iterator[dict[str, Any]]:
            # One by one: memory for all of them at once would cost as much as making them.
            return runs_of(batch, self.project, content=content)

        body = self._body(runs())
        with quiet(*_LOGGERS), time_limit(TIMEOUT_S):
            # Once more from the start: what made the body has used the runs up.
            if body is None or not self._sent(body):
                self._ingest([*runs()])

    def send_feedback(self, found: Sequence[dict[str, Any]]) -> None:
        """Create *found*; a run that LangSmith does not have takes none. Or raise."""
        from langsmith.utils import LangSmithNotFoundError  # noqa: PLC0415 - see above

        for each in found:
            with quiet(*_LOGGERS), time_limit(TIMEOUT_S):
                try:
                    self._client.request_with_retries(  # pyright: ignore[reportUnknownMemberType] - see above
                        "POST",
                        "/feedback",
                        request_kwargs={"data": orjson.dumps(each)},
                        stop_after_attempt=1,
                        to_ignore=(LangSmithNotFoundError,),
                    )
                except Exception as exc:
                    raise failure("LangSmith") from exc

    def _body(self, runs: Iterator[dict[str, Any]]) -> bytes | None:
        """Return the encoded body, or None if the client has to encode *runs*."""
        if self._direct is None:
            return None
        try:
            return self._direct.body(runs)
        except TypeError:
            return None

    def _sent(self, body: bytes) -> bool:
        """Send *body*; return False if this LangSmith does not take such bodies."""
        if not body:
            return True
        from langsmith.utils import LangSmithNotFoundError  # noqa: PLC0415 - see above

        assert self._direct is not None  # noqa: S101 - it made the body
        try:
            self._direct.send(body)
        # An older server of one's own: the client falls back to what that has.
        except LangSmithNotFoundError:
            self._direct = None
            return False
        except Exception as exc:
            raise failure("LangSmith") from exc
        return True

    def _ingest(self, runs: list[dict[str, Any]]) -> None:
        if not runs:
            return
        from langsmith.utils import LangSmithNotFoundError  # noqa: PLC0415 - see above

        self._failures.clear()
        self._client.multipart_ingest(create=runs)  # pyright: ignore[reportUnknownMemberType] - its dicts are bare
        # Until langsmith 0.15 the client's own way back, to what an older server has, is not taken.
        if self._failures and isinstance(self._failures[0], LangSmithNotFoundError):
            self._failures.clear()
            self._client.batch_ingest_runs(create=runs)  # pyright: ignore[reportUnknownMemberType] - see above
        if self._failures:
            raise failure("LangSmith") from self._failures[0]

    def close(self) -> None:
        # Nothing is queued, so that there is nothing to wait for.
        self._client.close(timeout=0)
