"""IP and MAC addresses."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .word_lists import split_words

_IPV4 = compile_later(
    r"\d(?<![0-9A-Za-z_\u00aa-\u058f.].)\d{0,2}(?:\.\d{1,3}){3}(?![0-9A-Za-z_\u00aa-\u058f]|\.\d|-\d{1,3}(?![\d.])|[-+~](?:rc|beta|alpha|dev"
    r"|r|p|b)?\d*[a-z])"
)
_VERSION_BEFORE = compile_later(
    r"(?:\b(?:version|ver|v|release|releases|released|build|section|chapter|clause|oid|driver"
    r"|firmware|upgrade|upgraded"
    r"|update|updated|bump|bumped|downgrade|downgraded|install|installed|pin|pinned|tag|tagged"
    r"|changelog"
    r"|chrome|chromium|firefox|safari|edge|opera|electron|webkit|applewebkit|linux|kernel|windows"
    r"|android|ios|macos"
    r"|ubuntu|debian|java|jdk|jre|openjdk|node|npm|python|ruby|php|perl|glibc|gcc|clang|llvm|cuda"
    r"|nvidia|openssl|nginx"
    r"|apache|tomcat|postgres|postgresql|mysql|redis|docker|oracle|acrobat|flash|office|sdk|dll"
    r"|so|jar)"
    r"|[A-Za-z][A-Za-z0-9.+]{0,30}(?:[-_][A-Za-z0-9.+]{1,30}){1,4}|\b[A-Za-z]{2,12}\d{1,2}"
    r"|[=~<>!^]=|[~^/@_])(?:[ ](?:from|to))?[ :=(v-]{0,2}\Z",
    re.IGNORECASE,
)
_DATE_AFTER = compile_later(r"[ ]{1,3}[(\[-]?[ ]?(?:19|20)\d\d-\d\d")
_TITLE_AFTER = compile_later(r"[ ][A-Z][a-z]")
_LINE_START = compile_later(r"(?:\A|\n)[ \t]*(?P<mark>(?://+|/?\*+|#+|--)[ ]*\[?)?\Z")
"""Of a heading; behind a mark for a comment, whatever follows."""

_VERSION_WORDS = split_words("""
    version versions changelog upgrade upgraded upgrades upgrading update updated updates bump
    bumped release released releases downgrade downgraded build builds package packages dependency
    dependencies firmware
    """)
_NETWORK_WORDS = split_words("""
    ip ips ipv address addresses addr host hosts hostname server servers client clients peer remote
    gateway subnet dns ping ssh proxy login logged adresse adress adresa adres indirizzo dirección
    endereço osoite
    """)
_IP_BEFORE = compile_later(
    r"\bip(?:v4|v6)?(?:[ _-]?addr(?:ess)?)?\b"
    r"[^\n\d=\"'(\[{<]{0,20}\Z|ip地址[^\n\d]{0,4}\Z",
    re.IGNORECASE,
)
_MOST_VERSION, _MOST_SECTION = 40, 30
_IPV6 = compile_later(
    r"[0-9A-Fa-f:](?<![\w:.].)(?:(?<=:)|(?<!:)[0-9A-Fa-f]{0,3}:)(?:[0-9A-Fa-f]{0,4}:){1,6}"
    r"(?:[0-9A-Fa-f]{1,4}"
    r"|\d{1,3}(?:\.\d{1,3}){3})?(?![\w:])"
)
_MAC = compile_later(
    r"[0-9A-Fa-f](?<![\w:-].)[0-9A-Fa-f]([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![\w:-])"
)
_DOTTED_MAC = compile_later(r"(?<![\w.])[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}(?![\w.])")

_IPV4_INSIDE = compile_later(r"\.\d{1,3}\.\d{1,3}\.\d")
_MAC_INSIDE = compile_later(r"[:-][0-9A-Fa-f]{2}[:-][0-9A-Fa-f]{2}[:-]")
_IPV6_INSIDE = compile_later(r"::|:[0-9A-Fa-f]{1,4}:[0-9A-Fa-f]{1,4}:[0-9A-Fa-f]{1,4}:")
_PRIVATE_V4 = ((100, range(64, 128)), (169, (254,)), (172, range(16, 32)), (192, (168,)))
"""Shared, link-local and private networks beside 10/8, by the first two bytes. Not those for
documentation, which stand for real ones in examples."""
_LOOPBACK_AND_RESERVED = (127, *range(224, 256))
_PRIVATE_V6 = tuple(map(ipaddress.IPv6Network, ("fc00::/7", "fe80::/10", "ff00::/8")))
_BYTE = 255
_WORD_BEFORE = compile_later(r"(?P<word>[A-Za-z][\w.+-]*)[ ]\Z")
_PREPOSITIONS = split_words("""
    from at to by via on of is was and or the for in using with against against via behind von aus
    mit bei auf nach über und oder ist war de da do du des par depuis vers sur et ou est desde
    con por en y es dal da di con su e van met uit op naar bij z ze od do przez na i från på
    till och fra til og os ve ile
    """)
_SHORTEST_IPV6 = 7
_FULL_IPV6 = 6
"""Colons in an IPv6 address that ends as an IPv4 address does; others have seven, or ``::``."""


def find_network_addresses(text: str, features: TextFeatures) -> Iterator[Finding]:
    """
    Find IP and MAC addresses that lead to somebody.

    Loopback, unspecified and broadcast ones lead to nobody; private ones do only where the text
    calls them an IP address, as they are the same in every network.
    """
    if _IPV4_INSIDE.search(text):
        yield from _ipv4(text, features)
    if _MAC_INSIDE.search(text):
        for match in _MAC.finditer(text):
            if len(set(match.group().lower().replace("-", ":").split(":"))) > 1:
                yield Finding(*match.span(), "MAC_ADDRESS", 0.9, "MAC address")
    if "mac" in features.words:
        for match in _DOTTED_MAC.finditer(text):
            yield Finding(*match.span(), "MAC_ADDRESS", 0.85, "MAC address beside the word")
    if _IPV6_INSIDE.search(text):
        yield from _ipv6(text)


def _ipv4(text: str, features: TextFeatures) -> Iterator[Finding]:
    names_no_host = _NETWORK_WORDS.isdisjoint(features.words)
    has_version_word = not _VERSION_WORDS.isdisjoint(features.words)
    most = _MOST_VERSION if has_version_word else _MOST_SECTION
    for match in _IPV4.finditer(text):
        numbers = [int(number) for number in match.group().split(".")]
        if max(numbers) > _BYTE or numbers[0] == 0 or _is_special(numbers):
            continue
        is_doubtful = _is_private(numbers) or _is_version(
            text, match, numbers, most if names_no_host else 0, any_word=has_version_word
        )
        if is_doubtful and not _is_called_ip(text, match):
            continue
        yield Finding(*match.span(), "IP_ADDRESS", 0.9, "IPv4 address")


def _is_special(numbers: list[int]) -> bool:
    """Return whether the address is a loopback, multicast or reserved one, or a mask."""
    return numbers[0] in _LOOPBACK_AND_RESERVED


def _is_private(numbers: list[int]) -> bool:
    first, second = numbers[:2]
    return first == 10 or any(first == net and second in seconds for net, seconds in _PRIVATE_V4)  # noqa: PLR2004


def _is_version(
    text: str, match: re.Match[str], numbers: list[int], most: int, *, any_word: bool
) -> bool:
    """Return whether four *numbers* count versions or sections, and are no address."""
    start, end = match.span()
    if _VERSION_BEFORE.search(text, max(0, start - 40), start) or _DATE_AFTER.match(text, end):
        return True
    if numbers[0] <= most:
        before = _WORD_BEFORE.search(text, max(0, start - 40), start)
        if any_word or (before and before["word"].lower() not in _PREPOSITIONS):
            return True
    line_start = _LINE_START.search(text, max(0, start - 8), start)
    is_heading = line_start is not None and (
        line_start["mark"] is not None or _TITLE_AFTER.match(text, end) is not None
    )
    return match.group().startswith("1.3.6.1") or (is_heading and max(numbers) < _MOST_SECTION)


def _is_called_ip(text: str, match: re.Match[str]) -> bool:
    return _IP_BEFORE.search(text, max(0, match.start() - 40), match.start()) is not None


def _ipv6(text: str) -> Iterator[Finding]:
    for match in _IPV6.finditer(text):
        address = match.group()
        # A time has colons too, and the library is slow to reject it.
        if (
            len(address) >= _SHORTEST_IPV6
            and ("::" in address or address.count(":") >= _FULL_IPV6)
            and any(map(str.isdigit, address))
            and _identifies_machine(address, is_called_so=_is_called_ip(text, match))
        ):
            yield Finding(*match.span(), "IP_ADDRESS", 0.9, "IPv6 address")


def _identifies_machine(text: str, *, is_called_so: bool) -> bool:
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified:
        return False
    return is_called_so or not any(address in network for network in _PRIVATE_V6)
