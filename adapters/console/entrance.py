"""The addresses of the site and the ways to sign in, and the requests that come no further."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .sessions import ALL_RIGHTS, OneTimeToken, Right

MOST_BODY_BYTES: Final = 262_144
MOST_HEADER_BYTES: Final = 16_384
_LENGTH = re.compile("[0-9]{1,7}")

_ONCE = {"host", "origin", "content-length", "content-type", "cookie", "sec-fetch-site"}
"""Headers of which a second one is an attempt to have two readers read two things."""

_FRAMED = ("content-length", "transfer-encoding")
"""Two lengths of one body: of two readers, each may believe another one."""

_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySignIn:
    """
    People whom a proxy has signed in, and says so in a header.

    Attributes:
        header: Its name, in lower case.
        people: Who may come in, by the value of the header, and what they may do.
        addresses: Of the proxy. The header of another peer is a forgery.
    """

    header: str
    people: Mapping[str, frozenset[Right]] = field(repr=False)
    addresses: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrance:
    """
    Where the site is, and how one comes in.

    Attributes:
        origins: Its addresses as a browser has them: ``http://127.0.0.1:8765``.
        who: The name of whoever signs in by the token.
        token: The token that signs in once. None: the proxy signs people in.
        proxy: What the proxy says of people. None: the token signs in.
        rights: Of whoever signs in by the token.
    """

    origins: frozenset[str]
    who: str = field(default="", repr=False)
    token: OneTimeToken | None = None
    proxy: ProxySignIn | None = None
    rights: frozenset[Right] = ALL_RIGHTS

    @property
    def is_secure(self) -> bool:
        """Whether all of its addresses are under TLS, so that its cookie never leaves it."""
        return all(each.startswith("https://") for each in self.origins)

    @property
    def hosts(self) -> frozenset[str]:
        """The addresses as the Host header has them."""
        return frozenset(each.partition("://")[2] for each in self.origins)


class Protection:
    """
    The layer in front of all pages: refuses by headers and size, and adds headers to answers.

    Args:
        app: The pages.
        entrance: Which hosts and origins are the site's own.
        unguarded: Beginnings of paths whose requests no browser makes, and which prove themselves.
    """

    def __init__(self, app: ASGIApp, entrance: Entrance, unguarded: Iterable[str] = ()) -> None:
        self._app, self._entrance, self._unguarded = app, entrance, tuple(unguarded)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        answered = _with_headers(send)
        if (refused := self._refusal(scope)) is not None:
            status, line = refused
            await PlainTextResponse(f"{line}\n", status)(scope, receive, answered)
            return
        await self._app(scope, _bounded(receive), answered)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return status and reason where the request goes no further."""
        raw: list[tuple[bytes, bytes]] = scope["headers"]
        proxy = self._entrance.proxy
        names = [name.decode("latin-1").lower() for name, _value in raw]
        once = _ONCE if proxy is None else {*_ONCE, proxy.header}
        if any(names.count(each) > 1 for each in once) or {*_FRAMED} <= {*names}:
            return 400, "A header is there twice."
        headers = dict(zip(names, (value.decode("latin-1") for _name, value in raw), strict=True))
        if headers.get("host") not in self._entrance.hosts:
            return 421, "This site has another address."
        if proxy is not None and (scope.get("client") or ("",))[0] not in proxy.addresses:
            return 403, "This site is reached through its proxy."
        if scope["method"] == "POST" and not self._is_ours(scope["path"], headers):
            return 403, "This request comes from another site."
        return _too_large(raw, headers.get("content-length", "0"))

    def _is_ours(self, path: str, headers: Mapping[str, str]) -> bool:
        """Return whether a page of this site, and no other, has made the request."""
        if path.startswith(self._unguarded):
            return True
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if site is not None and site != "same-origin":
            return False
        if origin in self._entrance.origins:
            return True
        # Under `no-referrer` browsers say that the origin is null, and of what site it is besides.
        return origin in {None, "null"} and site == "same-origin"


def _too_large(raw: list[tuple[bytes, bytes]], length: str) -> tuple[int, str] | None:
    if sum(len(name) + len(value) for name, value in raw) > MOST_HEADER_BYTES:
        return 431, "The headers are too long."
    if not _LENGTH.fullmatch(length) or int(length) > MOST_BODY_BYTES:
        return 413, f"A body has {MOST_BODY_BYTES} bytes at most."
    return None


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers[name] = value
        await send(message)

    return sending


class TooLargeError(Exception):
    """A body has more bytes than it said, or than are read."""


def _bounded(receive: Receive) -> Receive:
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BODY_BYTES:
            raise TooLargeError
        return message

    return receiving
