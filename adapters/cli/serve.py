"""``mnemoscope serve``."""

from __future__ import annotations

import getpass
import os
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from ...memory.errors import ConfigurationError
from ...telemetry.network.probe import is_loopback
from .exit_codes import CommandError, say
from .options import AuditUrl, ScopeAddress, Tenant
from .person_options import OwnStores

if TYPE_CHECKING:
    from starlette.routing import Route

    from ..console import Entrance, ProxySignIn, Right, Site

LOOPBACK = "127.0.0.1"


def serve(
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Listen on this address.")
    ] = LOOPBACK,
    port: Annotated[
        int,
        typer.Option(metavar="N", min=0, max=65_535, help="Listen on this port; 0: a free one."),
    ] = 8765,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="How browsers reach it, if not by address and port."),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Certificate for TLS, with its chain.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="PATH", help="Its private key.")] = None,
    proxy_header: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The header by which your proxy says who signed in."),
    ] = None,
    proxy_address: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="Of the proxy. Repeatable. Default: loopback."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WHO[=RIGHTS]",
            help="Who may come in by the proxy, such as ada@example.com=decide+erase. Repeatable, "
            "or a comma list. Without rights: see.",
        ),
    ] = None,
    scope: ScopeAddress = None,
    tenant: Tenant = None,
    own_stores: OwnStores = False,
    audit_url: AuditUrl = None,
) -> None:
    """
    Serve the console: decide what waits, answer customers, look at runs and health.

    Prints an address that signs in once. Beyond loopback it needs --tls-cert and --tls-key, or a
    proxy that signs people in. Runs until it is stopped, by SIGTERM or Ctrl-C. Needs the extra
    `console`.
    """
    try:
        import uvicorn

        from ..console import PunctualProtocol, Site, build_console
        from ..console.sessions import Sessions
    except ImportError as exc:
        raise ConfigurationError(
            'serve needs more packages: pip install "mnemoscope[console]"'
        ) from exc
    from .doctor_checks import environment_health
    from .scope import open_trail, scope_with_trail

    proxy = _proxy(proxy_header, proxy_address, allow)
    if (tls_cert is None) != (tls_key is None):
        raise ConfigurationError("pass both of --tls-cert and --tls-key, or neither")
    if not is_loopback(host) and tls_cert is None and proxy is None:
        raise ConfigurationError(
            f"--host {host} is beyond loopback: pass --tls-cert and --tls-key, "
            "or --proxy-header and --allow"
        )
    with ExitStack() as stack:
        listening = stack.enter_context(_listening(host, port))
        port = listening.getsockname()[1]
        own = stack.enter_context(scope_with_trail(scope, audit_url)) if scope else None
        site = Site(
            log=own.audit if own else open_trail(audit_url),
            entrance=_entrance(host, port, url, is_tls=tls_cert is not None, proxy=proxy),
            sessions=Sessions(time.monotonic),
            scope=own,
            environment_health=environment_health,
            tenant=tenant,
            own_stores=own_stores,
        )
        config = uvicorn.Config(
            build_console(site, _webhooks(site)),
            ssl_certfile=tls_cert,
            ssl_keyfile=tls_key,
            # A log of requests would have handles, and what is typed where it does not belong.
            access_log=False,
            log_level="critical",
            proxy_headers=False,
            server_header=False,
            http=PunctualProtocol,
            loop="mnemoscope.adapters.console:PunctualLoop",
            ws="none",
            backlog=128,  # accepted at once: with too few files each of them would fail alone
            limit_concurrency=256,
        )
        # The server raises the signal that ended it once more: what is open is to be closed.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _ignore)
        uvicorn.Server(config).run(sockets=[listening])


def _ignore(_number: int, _frame: FrameType | None) -> None:
    return


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else "no name of a host"
        raise CommandError(f"cannot listen on {host} port {port}: {reason}") from None


def _webhooks(site: Site) -> list[Route]:
    """Return the route of incoming webhooks, where a secret of theirs is set."""
    from ...memory.settings import load_settings
    from ..webhooks import routes

    secret = load_settings().webhook_incoming_secret
    if secret is None:
        return []
    return routes(site.log, secret.get_secret_value(), redactor=site.redactor)


def _entrance(
    host: str, port: int, url: str | None, *, is_tls: bool, proxy: ProxySignIn | None
) -> Entrance:
    from ..console import Entrance
    from ..console.sessions import OneTimeToken

    if url is None and not is_loopback(host):
        raise ConfigurationError(f"--host {host} needs --url: the address that browsers ask for")
    own = f"http{'s' if is_tls else ''}://{{}}:{port}"
    names = {f"[{host}]" if ":" in host else host, "localhost"}
    origins = frozenset({_origin(url)} if url else map(own.format, names))
    if proxy is not None:
        say(f"mnemoscope serve listens on {host} port {port} for its proxy")
        return Entrance(origins=origins, proxy=proxy)
    first = _origin(url) if url else own.format(f"[{host}]" if ":" in host else host)

    def announce(token: str) -> None:
        say(f"sign in, once: {first}/sign-in?token={token}")

    return Entrance(origins=origins, who=_user(), token=OneTimeToken(announce))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user is often a number without a name
        return f"uid {os.getuid()}"


def _origin(url: str) -> str:
    """Return *url* without path, as a browser says where it comes from."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.path.strip("/"):
        raise ConfigurationError("--url takes https://host or https://host:port, without a path")
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _proxy(
    header: str | None, addresses: list[str] | None, allow: list[str] | None
) -> ProxySignIn | None:
    from ..console import ProxySignIn

    if header is None and not allow and not addresses:
        return None
    if header is None or not allow:
        raise ConfigurationError("a proxy that signs people in takes --proxy-header and --allow")
    people = dict(_person(each) for given in allow for each in given.split(",") if each.strip())
    trusted = frozenset(addresses or (LOOPBACK, "::1"))
    return ProxySignIn(header=header.lower(), people=people, addresses=trusted)


def _person(given: str) -> tuple[str, frozenset[Right]]:
    from ..console import Right

    who, _, rights = given.strip().rpartition("=") if "=" in given else (given.strip(), "", "see")
    try:
        return who, frozenset(map(Right, rights.split("+"))) | {Right.SEE}
    except ValueError:
        raise ConfigurationError(
            "--allow takes WHO=RIGHTS with rights of see, decide, erase, joined by +"
        ) from None
