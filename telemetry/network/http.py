"""
HTTP with a bound on the whole exchange, for every sink that speaks it.

``requests`` limits the wait for each read alone, so a server that sends one byte a second holds a
thread for hours; and it follows redirects, so a captive portal looks like a delivery. Both are
closed here.
"""

from __future__ import annotations

import http.client
import io
import socket
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, cast

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from .timeouts import note_request, note_response, remaining_s

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CONNECT_S: Final = 1.0
"""Seconds for one attempt to connect. A name may have several addresses, tried in turn."""

READ_S: Final = 10.0
"""Seconds to wait for one read, where `time_limit` sets no shorter time for the whole."""


class _Timed(io.RawIOBase):
    """The bytes of a response, each read of which has the remaining time of the exchange."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket) -> None:
        self._raw = raw
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int | None:
        # Before each read: the socket's timeout is for one, and a server that sends a byte now and
        # then would never meet it.
        left = remaining_s()
        if isfinite(left):
            self._sock.settimeout(left)
        return cast("int | None", self._raw.readinto(buffer))

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        # Around the raw file, below the buffer: headers are read through it, too.
        self.fp = io.BufferedReader(_Timed(self.fp.detach(), sock))


class _PlainConnection(HTTPConnection):
    response_class = _Response


class _SecureConnection(HTTPSConnection):
    response_class = _Response


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _PlainConnection  # pyright: ignore[reportAssignmentType] - urllib3's own default does not match its protocol either


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection  # pyright: ignore[reportAssignmentType] - see above


_POOLS: Final[dict[str, type[HTTPConnectionPool | HTTPSConnectionPool]]] = {
    "http": _PlainPool,
    "https": _SecurePool,
}


class _BoundedAdapter(HTTPAdapter):
    def __init__(self, *, takes_pages: bool, **options: Any) -> None:
        self._takes_pages = takes_pages
        super().__init__(**options)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        super().init_poolmanager(*args, **kwargs)
        # The one place where urllib3 asks which connections to make.
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, *args: Any, **kwargs: Any) -> Any:
        manager = super().proxy_manager_for(*args, **kwargs)
        # Managers for proxies are made on demand, each with the pools of its own.
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def close(self) -> None:
        # urllib3 closes a pool's sockets once nobody refers to it, and a traceback may, for long.
        for manager in (self.poolmanager, *self.proxy_manager.values()):
            for key in manager.pools.keys():  # noqa: SIM118 - not a dict: it refuses to be iterated
                manager.pools[key].close()
        super().close()

    def send(  # noqa: PLR0917 - the signature of requests
        self,
        request: requests.PreparedRequest,
        stream: bool = False,  # noqa: FBT001, FBT002
        timeout: Any = None,
        verify: bool | str = True,  # noqa: FBT001, FBT002
        cert: Any = None,
        proxies: dict[str, str] | None = None,
    ) -> requests.Response:
        # A client library's timeout is for each read, and often long. A delivery has one in all.
        del timeout
        try:
            left = remaining_s()
        except TimeoutError as exc:
            # As `requests` says it: the client library catches nothing else.
            raise requests.exceptions.Timeout(*exc.args) from exc
        limits = (min(CONNECT_S, left), min(READ_S, left))
        # Before it is sent: a batch that could not be encoded never comes this far.
        note_request()
        response = super().send(request, stream, limits, verify, cert, proxies)
        after_s = _seconds(response.headers.get("retry-after", ""))
        note_response(response.status_code, after_s, lambda: response.content)
        # Even 200 from it would have the lane count the batch as delivered, and forget it.
        if _is_detour(response, takes_pages=self._takes_pages):
            response.close()
            raise requests.exceptions.RequestException(
                f"answered {response.status_code} by something that is not the back end"
            )
        return response


def _is_detour(response: requests.Response, *, takes_pages: bool) -> bool:
    """Return whether a captive portal or a misconfigured proxy has answered."""
    if 300 <= response.status_code < 400:  # noqa: PLR2004 - the redirects
        return True
    # No back end answers a delivery with a page. An error may be one, of any proxy on the way.
    return (
        not takes_pages and response.ok and "text/html" in response.headers.get("content-type", "")
    )


def _seconds(retry_after: str) -> float | None:
    """Return the seconds from now that ``Retry-After`` names, as a number or a date."""
    try:
        seconds = float(retry_after)
    except ValueError:
        return _seconds_until(retry_after)
    # `float` reads "inf" and "nan", and a lane would wait for ever.
    return seconds if isfinite(seconds) else None


def _seconds_until(date: str) -> float | None:
    try:
        return (parsedate_to_datetime(date).astimezone(UTC) - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError):
        return None


class BoundedSession(requests.Session):
    """
    A session whose requests keep within `time_limit` and follow no redirect.

    Args:
        takes_pages: Whether a success may be a page: chat services say "ok" in HTML.
    """

    def __init__(self, *, takes_pages: bool = False) -> None:
        super().__init__()
        self._bounded = _BoundedAdapter(takes_pages=takes_pages, max_retries=0)

    def get_adapter(self, url: str | bytes) -> HTTPAdapter:
        """Return the bounded adapter, whatever else was mounted on the session since."""
        del url
        return self._bounded

    def send(self, request: requests.PreparedRequest, **given: Any) -> requests.Response:
        """Send *request*, verified by what the session names."""
        # ``REQUESTS_CA_BUNDLE``, which many images set, would take the place of OTLP's certificate.
        if isinstance(self.verify, str):
            given["verify"] = self.verify
        return super().send(request, **given)

    def close(self) -> None:
        """Close all connections."""
        self._bounded.close()
        super().close()
