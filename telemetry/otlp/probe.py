"""A check that the collectors of the environment can be reached."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import urlsplit

from ..delivery.sink import DeliveryError
from ..network.probe import connect
from ..process.late_imports import LATE_IMPORTS
from .settings import GRPC, Signal, protocol, setting

_OVER_GRPC = "http://localhost:4317"
_OVER_HTTP = "http://localhost:4318"


def collectors(signals: Iterable[Signal]) -> list[tuple[str, int]]:
    """
    Return host and port of each collector of *signals*.

    Raises:
        DeliveryError: The environment names none.
    """
    return list(dict.fromkeys(map(_place, signals)))


def reach(addresses: Sequence[tuple[str, int]], timeout_s: float) -> str:
    """
    Connect to each of *addresses* and return a description of them.

    Raises:
        DeliveryError: Nobody listens there.
    """
    for host, port in addresses:
        connect(host, port, timeout_s / len(addresses))
    return f"reaches {' and '.join(f'{host}:{port}' for host, port in addresses)}"


def _place(signal: Signal) -> tuple[str, int]:
    """Return host and port to connect to: the collector's, or those of a proxy before it."""
    over_http = protocol(signal) != GRPC
    default = _OVER_HTTP if over_http else _OVER_GRPC
    url = _with_scheme(setting(signal, "ENDPOINT") or default)
    try:
        host, port = _address(_proxy_of(url) or url, over_http=over_http)
    except ValueError:
        host, port = None, 0
    if host is None:
        # Not quoted, nor chained: it may hold a password.
        raise DeliveryError("OTEL_EXPORTER_OTLP_ENDPOINT names no host") from None
    return host, port


def _proxy_of(url: str) -> str | None:
    with LATE_IMPORTS:
        from requests.utils import get_environ_proxies, select_proxy  # noqa: PLC0415 - 0.1 s

    proxy = select_proxy(url, get_environ_proxies(url))
    return _with_scheme(proxy) if proxy else None


def _with_scheme(url: str) -> str:
    return url if "://" in url else f"http://{url}"


def _address(url: str, *, over_http: bool) -> tuple[str | None, int]:
    parts = urlsplit(url)
    # gRPC takes 443 whatever the scheme.
    return parts.hostname, parts.port or (80 if over_http and parts.scheme == "http" else 443)
