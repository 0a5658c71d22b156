"""Work that goes on when its request is over, and the page that tells how far it is."""

from __future__ import annotations

import shutil
import tempfile
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple, TypeVar

from starlette.responses import FileResponse, Response
from starlette.routing import Route

from ...audit.database.errors import AuditError
from ...memory.errors import MnemoscopeError
from .sessions import Right
from .site import NotDoneError, Site, Visit
from .tables import Table

_GONE = "This session has begun no such work, or it is long over."
_STEPS = 20
"""Steps that are told of: the latest."""


T = TypeVar("T")


def asked(name: str, question: Callable[[], T]) -> Future[T]:
    """Ask *question* on a thread of its own, which no exit waits for."""
    future = Future[T]()

    def answer() -> None:
        try:
            future.set_result(question())
        except BaseException as exc:  # noqa: BLE001 - whoever waits for the answer meets it
            future.set_exception(exc)

    threading.Thread(target=answer, name=f"mnemoscope-{name}", daemon=True).start()
    return future


def told(exc: BaseException) -> str:
    """Return what an error says. Ours quote no value; the message of another one's may."""
    is_ours = isinstance(exc, (AuditError, MnemoscopeError))
    return " ".join(str(exc).split()) if is_ours else f"it failed: {type(exc).__qualname__}"


class Ended(NamedTuple):
    """
    The outcome of some work.

    Attributes:
        sentence: What came of it.
        is_good: Whether nothing remains to be done.
        lines: What has to be said besides.
        tables: What was done where.
        file: What it has made, to be taken away.
    """

    sentence: str
    is_good: bool
    lines: Sequence[str] = ()
    tables: Sequence[Table] = ()
    file: Path | None = None


class Work:
    """
    Something that is being done on a thread of its own. It goes on if nobody looks.

    Args:
        title: What is done.
        act: Does it, and tells its steps. An error of ours becomes the outcome.
        back: The path of the page that it was begun on.

    Attributes:
        steps: What was begun so far, the latest last.
        ended: What came of it. None: it is under way.
        folder: For the file that it makes; private, and gone with the session.
    """

    def __init__(self, title: str, act: Callable[[Work], Ended], back: str) -> None:
        self.title, self.back = title, back
        self.steps: deque[str] = deque(maxlen=_STEPS)
        self.ended: Ended | None = None
        self.folder = Path(tempfile.mkdtemp(prefix="mnemoscope-console-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        # Each kind of work can be broken off and done again, and must not hold an exit.
        asked("work", lambda: self._run(act))

    def tell(self, step: str) -> None:
        """Note that *step* begins."""
        self.steps.append(step)

    def _run(self, act: Callable[[Work], Ended]) -> None:
        try:
            self.ended = act(self)
        except Exception as exc:  # noqa: BLE001 - the page says it
            self.ended = Ended(told(exc), is_good=False)


def routes(site: Site) -> list[Route]:
    """Return the routes of the page about work, and of the file that it has made."""
    return [
        site.route("/work/{handle}", _progress, needs=Right.SEE),
        site.route("/work/{handle}/file", _file, needs=Right.SEE),
    ]


def _progress(visit: Visit) -> Response:
    work = visit.kept(Work, _GONE)
    # One look at it: it may end while the page is made.
    path = visit.request.url.path
    return visit.page("work.html", title=work.title, work=work, ended=work.ended, path=path)


def _file(visit: Visit) -> Response:
    work = visit.kept(Work, _GONE)
    made = work.ended and work.ended.file
    if not made or not made.exists():
        raise NotDoneError(404, "There is no file of this work.")
    return FileResponse(made, media_type="application/zip", filename=made.name)
