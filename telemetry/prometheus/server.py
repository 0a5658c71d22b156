"""
A ``/metrics`` server, for hosts that have none.

Not ``prometheus_client.start_http_server``: that one asks DNS for the host's own name while
binding, which can hang for seconds where DNS does, and prints a traceback when a scraper hangs up.
"""

from __future__ import annotations

import os
import socket
import threading
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Any, cast
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from ..delivery.sink import DeliveryError
from ..network.probe import connect
from ..process.fork import reset_after_fork
from .live import LiveCollector

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - nothing is bound by this


def reachable_host(bound: str) -> str:
    """Return the address at which this machine reaches what is bound to *bound*."""
    return _ANY.get(bound, bound)


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        """Bind without a name lookup."""
        TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a scraper that hung up will be back."""


class _ServerV6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = 10.0

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Log nothing: standard error belongs to the host."""


class MetricsServer:
    """
    Serves a registry on a daemon thread.

    Args:
        port: Port to bind; 0 for a free one.

    Raises:
        ValueError: The address cannot be bound.
    """

    def __init__(self, registry: CollectorRegistry, host: str, port: int) -> None:
        import prometheus_client  # noqa: PLC0415 - only where it is asked for

        kind = _ServerV6 if ":" in host else _Server
        try:
            self._server = kind((host, port), _Handler)
        except (OSError, OverflowError) as exc:
            reason = getattr(exc, "strerror", None) or "not a port number"
            raise ValueError(
                f"cannot serve Prometheus metrics on port {port}: {reason.lower()}; choose another "
                "with MNEMOSCOPE_PROMETHEUS_PORT and MNEMOSCOPE_PROMETHEUS_ADDRESS, or unset them "
                "and serve prometheus_client's registry yourself"
            ) from exc
        untyped = cast("Any", prometheus_client)
        self._server.set_app(untyped.make_wsgi_app(registry))
        reset_after_fork(self)
        self._thread: threading.Thread | None = threading.Thread(
            target=self._server.serve_forever, args=(0.25,), name="mnemoscope-metrics", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port that is bound."""
        return self._server.server_port

    @property
    def address(self) -> str:
        """Address and port that are bound."""
        host = str(self._server.server_address[0])
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    def check(self, timeout_s: float) -> None:
        """
        Connect to the port.

        Raises:
            DeliveryError: Nobody would answer there, or not this process.
        """
        if self._thread is None or not self._thread.is_alive():
            raise DeliveryError("/metrics is not served by this process any more")
        host = str(self._server.server_address[0])
        connect(reachable_host(host), self.port, timeout_s)

    def close(self, timeout_s: float) -> None:
        """Stop, and free the port."""
        if self._thread is not None and self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(timeout_s)
        self._server.server_close()

    def forked(self) -> None:
        """Close the socket in a forked child, which would keep the port otherwise."""
        self._thread = None
        self._server.socket.close()


def exposed(registry: CollectorRegistry) -> CollectorRegistry:
    """
    Return the registry to serve: *registry*, or one of all processes in multi-process mode.

    Live metrics are this process's own in either case.
    """
    if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        return registry
    from prometheus_client import CollectorRegistry  # noqa: PLC0415
    from prometheus_client.multiprocess import MultiProcessCollector  # noqa: PLC0415

    everybody = CollectorRegistry()
    MultiProcessCollector(everybody)  # type: ignore[no-untyped-call] # theirs is not annotated
    everybody.register(LiveCollector.for_registry(registry))
    return everybody
