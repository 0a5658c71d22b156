"""IP and MAC addresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures

_IPV4 = compile_later(r"\d(?<![\w.].)\d{0,2}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_VERSION_BEFORE = compile_later(
    r"(?:\b(?:version|ver|v|release|build|section|oid|chrome|firefox|safari|edge|driver|firmware)"
    r"|[=~<>]=|[/@_])[ :=]{0,2}\Z",
    re.IGNORECASE,
)
_IPV6 = compile_later(
    r"[0-9A-Fa-f:](?<![\w:.].)(?:(?<=:)|(?<!:)[0-9A-Fa-f]{0,3}:)(?:[0-9A-Fa-f]{0,4}:){1,6}"
    r"(?:[0-9A-Fa-f]{1,4}"
    r"|\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])"
)
_MAC = compile_later(
    r"[0-9A-Fa-f](?<![\w:-].)[0-9A-Fa-f]([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![\w:-])"
)

_IPV4_INSIDE = compile_later(r"\.\d{1,3}\.\d{1,3}\.\d")
_MAC_INSIDE = compile_later(r"[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-]")
_SHORTEST_IPV6 = 7
_FULL_IPV6 = 6
"""Colons in an IPv6 address that ends as an IPv4 address does; others have seven, or ``::``."""


def find_network_addresses(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find IP and MAC addresses, except loopback, unspecified and broadcast ones."""
    if _IPV4_INSIDE.search(text):
        yield from _ipv4(text)
    if _MAC_INSIDE.search(text):
        for match in _MAC.finditer(text):
            yield Finding(*match.span(), "MAC_ADDRESS", 0.9, "MAC address")
    if "::" in text or text.count(":") >= _FULL_IPV6:
        yield from _ipv6(text)


def _ipv4(text: str) -> Iterator[Finding]:
    for match in _IPV4.finditer(text):
        version = _VERSION_BEFORE.search(text, max(0, match.start() - 12), match.start())
        if not version and _identifies_machine(match.group()):
            yield Finding(*match.span(), "IP_ADDRESS", 0.9, "IPv4 address")


def _ipv6(text: str) -> Iterator[Finding]:
    for match in _IPV6.finditer(text):
        address = match.group()
        # A time has colons too, and the library is slow to reject it.
        if (
            len(address) >= _SHORTEST_IPV6
            and ("::" in address or address.count(":") >= _FULL_IPV6)
            and any(map(str.isdigit, address))
            and _identifies_machine(address)
        ):
            yield Finding(*match.span(), "IP_ADDRESS", 0.9, "IPv6 address")


def _identifies_machine(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.packed == b"\xff" * 4)
