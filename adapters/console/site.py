"""
What the pages of the site are given, and the one way in and out of each.

A page is a module with ``routes(site)``, and a handler for each route: a plain function of one
`Visit`, run on a thread. The route has signed the person in, has looked at their rights, and has
read the form, before the handler is called.
"""

from __future__ import annotations

import secrets
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl

import anyio
from anyio import to_thread
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from ...audit.database.errors import AuditError
from ...audit.log import AuditLog
from ...audit.store.person_lookup import Person
from ...memory.errors import MnemoscopeError
from ...telemetry.event.event import Event, OperationClass, Status
from ...telemetry.event.subject import Subject
from ...telemetry.event.trace_ref import TraceRef
from ...telemetry.text import safe_lines, utc_text
from .entrance import Entrance, TooLargeError
from .sessions import Right, Sessions, SignedIn

if TYPE_CHECKING:
    from ...memory.health.model import Health
    from ...memory.privacy.engine.redactor import Redactor
    from ...memory.scope import Mnemoscope

PAGES: Final = (("/", "Waiting"), ("/person", "A person"), ("/runs", "Runs"), ("/health", "Health"))
"""The pages that the head of each page links to: path and title."""

THREADS: Final = 8
"""Handlers at work at once. What comes besides waits, and keeps no writer of the trail waiting."""

LOOK_STEP_S: Final = 0.25
"""Looks at people take a multiple of this: how long one took says nothing of whom it met."""

_MOST_FIELDS, _BODY_S = 64, 20.0

T = TypeVar("T")

Handler = Callable[["Visit"], Response]
"""Answers one request of somebody who may make it."""


def _templates() -> Environment:
    found = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    known: Any = found  # jinja2 has no types for these
    known.filters["lines"] = safe_lines
    known.globals["second"] = second
    return found


def second(micros: int) -> str:
    """Return a time, microseconds since 1970, to the second: in UTC, without saying so."""
    return utc_text(micros)[:19].replace("T", " ")


class NotDoneError(Exception):
    """
    A request that is answered by a page of one sentence. Handlers may raise it.

    Args:
        status: Of HTTP.
        sentence: Holds no value of anybody's.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """
    What all pages of one site share.

    Attributes:
        log: The audit trail that the site shows, and seals looks in.
        entrance: Its addresses, and how people sign in.
        sessions: The sessions of people.
        scope: The application's own, with its stores. None: pages say what cannot be done without.
        environment_health: Checks what the environment describes, where there is no scope.
        tenant: The one tenant whose people may be looked up. None: those of all tenants.
        own_stores: The stores of the scope have that tenant's customers alone.
        clock: Seconds since 1970 UTC.
        look_step_s: See `LOOK_STEP_S`.
        answer_s: Seconds that a page waits for stores and sinks, of which any may hang.
    """

    log: AuditLog
    entrance: Entrance
    sessions: Sessions
    scope: Mnemoscope | None = None
    environment_health: Callable[[], Health] | None = None
    tenant: str | None = None
    own_stores: bool = False
    clock: Callable[[], float] = time.time
    look_step_s: float = LOOK_STEP_S
    answer_s: float = 4.0
    templates: Environment = field(default_factory=_templates, repr=False)
    threads: anyio.CapacityLimiter = field(
        default_factory=lambda: anyio.CapacityLimiter(THREADS), repr=False
    )

    def route(
        self,
        path: str,
        handler: Handler,
        *,
        needs: Right,
        method: str = "GET",
        is_look: bool = False,
    ) -> Route:
        """
        Return a route for signed-in people, which calls *handler* on a thread.

        Args:
            path: As Starlette takes it: ``/person/{handle}``. No personal value may be part of it:
                take it by POST, `Visit.keep` what was found, and go to the handle.
            handler: Answers. What it raises becomes a page of one sentence.
            needs: The right without which nobody gets there.
            method: ``GET`` changes nothing. ``POST`` has a form, whose ``csrf`` is checked before.
            is_look: It looks up people: limited, and not to be timed.
        """

        async def endpoint(request: Request) -> Response:
            return await self._answer(request, handler, needs, is_look=is_look)

        return Route(path, endpoint, methods=[method], name=f"{method} {path}")

    async def _answer(
        self, request: Request, handler: Handler, needs: Right, *, is_look: bool
    ) -> Response:
        secret, session = "", None
        try:
            secret, session = await self.session(request)
            if session is None and self.entrance.proxy is None and request.method != "POST":
                return RedirectResponse("/sign-in", 303)
            visit = await self._visit(request, session, needs, is_look=is_look)
            started = time.monotonic()
            response = await to_thread.run_sync(_safely(visit, handler), limiter=self.threads)
            if is_look and self.look_step_s:
                # On the loop and not on a thread, so that waiting costs nobody anything. By another
                # clock: uvloop's stands still meanwhile, and no time at all was no wait at all.
                took = time.monotonic() - started
                await anyio.sleep(self.look_step_s - took % self.look_step_s)
        except NotDoneError as exc:
            response = self.message(session, exc.status, exc.sentence)
        if secret:
            self.set_cookie(response, secret)
        return response

    async def _visit(
        self, request: Request, session: SignedIn | None, needs: Right, *, is_look: bool
    ) -> Visit:
        """Return the visit of a request that may be answered, its form read."""
        if session is None:
            raise NotDoneError(403, "Nobody is signed in, or your session has ended.")
        form = await self.read_form(request) if request.method == "POST" else {}
        token = form.pop("csrf", "").encode()
        if request.method == "POST" and not secrets.compare_digest(token, session.csrf.encode()):
            raise NotDoneError(403, "The form is not of this session: load it again.")
        if needs not in session.rights:
            raise NotDoneError(403, f"This needs the right to {needs}.")
        if is_look and not self.sessions.may_look(session):
            raise NotDoneError(429, "Too many look-ups: wait a few seconds.")
        return Visit(site=self, request=request, session=session, form=form)

    def signed_in(self, request: Request) -> SignedIn | None:
        """Return the session of a request's cookie, whatever a proxy says. None: there is none."""
        return self.sessions.of(request.cookies.get(self.cookie))

    async def session(self, request: Request) -> tuple[str, SignedIn | None]:
        """
        Return the session of a request.

        Returns:
            The secret for its cookie, where the proxy's word has just begun it, else nothing; and
            the session. None: nobody is signed in.

        Raises:
            NotDoneError: The sign-in could not be recorded, or there are too many.
        """
        session, proxy = self.signed_in(request), self.entrance.proxy
        if proxy is None:
            return "", session
        who = request.headers.get(proxy.header, "")
        if who not in proxy.people:
            return "", None
        if session is not None and session.who == who:
            return "", session
        self.sessions.end(request.cookies.get(self.cookie))
        # A client without cookies signs in with each request: the trail is not to be filled so.
        if not self.sessions.may_sign_in():
            raise NotDoneError(429, "Too many sign-ins: wait a few seconds.")
        return await self.begin(who, proxy.people[who])

    async def begin(self, who: str, rights: frozenset[Right]) -> tuple[str, SignedIn]:
        """
        Begin a session whose beginning is sealed, about the one who signs in.

        Returns:
            The secret for its cookie, and the session.

        Raises:
            NotDoneError: It was not recorded.
        """
        secret, session = self.sessions.begin(who, rights)
        subject = Subject(who, tenant=None, keys=self.log.ring.current)
        event = self.look(session, "sign_in", subject)
        try:
            await to_thread.run_sync(self.log.append, [event], limiter=self.threads)
        except AuditError:
            self.sessions.end(secret)
            raise NotDoneError(503, "The sign-in could not be recorded.") from None
        return secret, session

    def look(
        self,
        session: SignedIn,
        purpose: str,
        subject: Subject | None,
        status: Status = Status.OK,
    ) -> Event:
        """Return the event of something that a session did, about *subject*."""
        return Event(
            writer_id=secrets.token_hex(8),
            writer_seq=1,
            started_ns=round(self.clock() * 1e9),
            duration_s=0.0,
            operation="search_memory",
            op_class=OperationClass.RECALL,
            store="console",
            method=purpose,
            status=status,
            trace=TraceRef(secrets.randbits(127) + 1, secrets.randbits(63) + 1),
            subject=subject,
            run=session.number,
            purpose=purpose,
            nested=True,
        )

    async def read_form(self, request: Request) -> dict[str, str]:
        """
        Return the fields of a form; of a name that is there twice, the last.

        Raises:
            NotDoneError: It is no form, has too many bytes, or holds what no text can.
        """
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            with anyio.fail_after(_BODY_S):
                body = (await request.body()).decode("ascii")
            fields = parse_qsl(body, True, max_num_fields=_MOST_FIELDS, errors="strict")
        except (ValueError, TooLargeError, TimeoutError):
            raise NotDoneError(400, "The form cannot be read.") from None
        # No database takes NUL as text.
        if kind != "application/x-www-form-urlencoded" or "\0" in "".join(map("".join, fields)):
            raise NotDoneError(400, "The form cannot be read.")
        return dict(fields)

    @property
    def redactor(self) -> Redactor | None:
        """The application's own. None: texts are redacted by the settings of the environment."""
        return None if self.scope is None else self.scope.redactor

    @property
    def cookie(self) -> str:
        """The name of the session's cookie, by which a browser sees that it stays under TLS."""
        return "__Host-mnemoscope" if self.entrance.is_secure else "mnemoscope"

    def set_cookie(self, response: Response, secret: str) -> None:
        """Give the browser the secret of a session."""
        response.set_cookie(
            self.cookie,
            secret,
            path="/",
            httponly=True,
            samesite="strict",
            secure=self.entrance.is_secure,
        )

    def message(self, session: SignedIn | None, status: int, sentence: str) -> Response:
        """Return a page of one sentence, which holds no value of anybody's."""
        return self.render("message.html", session, status, sentence=sentence, title="Not done")

    def render(
        self, template: str, session: SignedIn | None, status: int = 200, **values: Any
    ) -> Response:
        """Return the page of a template, filled with *values*, each escaped."""
        page = self.templates.get_template(template)
        token = session.csrf if session else ""

        def csrf() -> Markup:
            return Markup('<input type="hidden" name="csrf" value="{}">').format(token)

        known = {"site": self, "session": session, "csrf": csrf, "pages": PAGES, "Right": Right}
        return HTMLResponse(page.render(known | values), status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """
    One request of one person who may make it.

    Attributes:
        request: For path parameters and query. No header of it is to be believed.
        form: The fields of its form, without the ``csrf``. Empty on GET.
    """

    site: Site
    request: Request
    session: SignedIn
    form: Mapping[str, str] = field(repr=False)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """
        Return the page of *template* in `templates/`, which extends ``base.html``.

        A template is given ``title`` and the rest of *values*, and ``session``, ``site``,
        ``Right``, and ``csrf()``, which each form has inside. All values are escaped. Filters:
        ``lines`` for texts of others. `second` is there too, for microseconds.
        """
        return self.site.render(template, self.session, status, **values)

    def kept(self, kind: type[T], otherwise: str) -> T:
        """
        Return what the session kept under the handle of the path.

        Raises:
            NotDoneError: There is nothing of that *kind*, so *otherwise* is said.
        """
        found = self.session.kept(self.request.path_params["handle"])
        if not isinstance(found, kind):
            raise NotDoneError(404, otherwise)
        return found

    def redirect(self, path: str) -> Response:
        """Return the way to *path* of this site, by GET."""
        return RedirectResponse(path, 303)

    def seal_look(self, person: Person, purpose: str) -> None:
        """
        Record that this session looks at the data of *person*; call it before anything is shown.

        One sealed event for each id of theirs, about them, so that it is exported and erased with
        them; its run is the session's number, under which the sign-in is recorded.

        Args:
            person: Whose data.
            purpose: A code: ``look``, ``export``, ``erase``, ``blast_radius``.

        Raises:
            AuditError: It was not recorded: show nothing.
        """
        site, keys = self.site, self.site.log.ring.current
        if not person.identities[0].customer:  # known by a reference alone
            site.log.append_about(person.uids[0], site.look(self.session, purpose, None))
            return
        about = [Subject(who.customer, tenant=who.tenant, keys=keys) for who in person.identities]
        site.log.append([site.look(self.session, purpose, each) for each in about])

    def seal_shown(self, seqs: Sequence[int]) -> None:
        """
        Record that this session is shown the content of the events *seqs*, each of them once.

        Raises:
            AuditError: It was not recorded: show nothing.
        """
        new = [each for each in seqs if each not in self.session.shown]
        if new:
            about = {"session": self.session.number, "seqs": new}
            self.site.log.append_log_event("console.shown", about)
            self.session.shown.update(new)

    def seal_refusal(self, purpose: str) -> None:
        """Record, about nobody, that a look was refused or met nobody. Raises as `seal_look`."""
        self.site.log.append([self.site.look(self.session, purpose, None, Status.DENIED)])


def _safely(visit: Visit, handler: Handler) -> Callable[[], Response]:
    """Return a call of *handler* that answers with a page of one sentence where it raises."""

    def answered() -> Response:
        site, session = visit.site, visit.session
        try:
            return handler(visit)
        except NotDoneError as exc:
            return site.message(session, exc.status, exc.sentence)
        except (AuditError, MnemoscopeError, OSError) as exc:
            # The type alone: its message may quote an id.
            sentence = f"This cannot be answered now: {type(exc).__name__}."
            return site.message(session, 503, sentence)
        except Exception as exc:  # noqa: BLE001 - said without its message, which may quote a value
            place = traceback.extract_tb(exc.__traceback__)[-1]
            where = f"{type(exc).__name__} at {Path(place.filename).name}:{place.lineno}"
            print(f"mnemoscope serve: {where}", file=sys.stderr)  # noqa: T201
            return site.message(session, 500, "This is a fault of the site's own.")

    return answered
