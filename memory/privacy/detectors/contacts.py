"""E-mail addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .word_lists import split_words

_DOMAIN = compile_later(r"(?:[^\W_](?:[\w-]{0,62})\.){0,8}[^\W_][\w-]{0,62}")
_IP_HOST = compile_later(r"\[?\d{1,3}(?:\.\d{1,3}){3}\]?")
_COMMON_TLD = compile_later(
    r"\.(?:com|org|net|edu|gov|info|biz|io|ai|co|me|app|dev|eu|uk|de|fr|it|es|nl|be|ch|at|se|no|dk"
    r"|fi|pl|cz|pt|ie|ca|us|au|nz|in|jp|cn|br|mx|za|ru|tr|kr)(?![^\W_])",
    re.IGNORECASE,
)
_NO_TLDS = split_words("""
    png jpg jpeg gif svg webp js css html json yaml yml txt lock exe dll service socket timer target
    mount slice scope device swap
    """)
# Scripts whose words stand beside an address without a space, or with a prefix of one letter.
_OTHER_SCRIPT = r"\u0590-\u06ff\u0900-\u0dff\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_LATIN_TAIL = compile_later(rf"[^\W{_OTHER_SCRIPT}]+(?:[^{_OTHER_SCRIPT}])*\Z")
_LATIN_HEAD = compile_later(rf"[^{_OTHER_SCRIPT}]*[^\W_{_OTHER_SCRIPT}]")
_LOCAL_LIMIT = 254
_LOCAL_EXTRA = frozenset(".+-_%&'*~!#$=")
_NOT_PEOPLE = frozenset({"git"})


def find_emails(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find e-mail addresses, with international hosts and quoted local parts."""
    at = text.find("@")
    while at != -1:
        if found := _email_around(text, at):
            yield found
            at = found.end - 1
        at = text.find("@", at + 1)


def _email_around(text: str, at: int) -> Finding | None:
    after, spaced = at + 1, False
    if text.startswith(" ", after) and text.endswith(" ", 0, at):
        after, spaced = after + 1, True
    host = _host_after(text, after)
    end = at - 1 if spaced else at
    start = _local_start(text, end)
    if start == end or text[start:end].lower() in _NOT_PEOPLE or _in_url(text, start):
        return None
    host = host if spaced else _host_in(host)
    if "." not in host or not _is_host(host, spaced=spaced):
        return None
    return Finding(start, after + len(host), "EMAIL_ADDRESS", 0.9, "local part, @ and host")


def _host_after(text: str, after: int) -> str:
    match = _IP_HOST.match(text, after) or _DOMAIN.match(text, after)
    host = match.group() if match else ""
    latin = None if host.isascii() else _LATIN_HEAD.match(host)
    return latin.group().rstrip(".-") if latin else host


def _host_in(host: str) -> str:
    """Return *host* without what runs into it, as in ``ada@example.com.I shall``."""
    last = host.rpartition(".")[2]
    if _is_host(host, spaced=False) or last.lower() in _NO_TLDS:
        return host
    ends = [found.end() for found in _COMMON_TLD.finditer(host)]
    # Versions of packages have no letter before it: `tool@1.0.dev.3`.
    whole = [host[:end] for end in ends if any(map(str.isalpha, host[:end].rpartition(".")[0]))]
    return whole[-1] if whole else host


def _is_host(host: str, *, spaced: bool) -> bool:
    if _IP_HOST.fullmatch(host):
        return True
    if spaced:
        return _COMMON_TLD.search(host) is not None
    last = host.rpartition(".")[2]
    is_name = last.isalpha() or last.startswith("xn--") or not last.isascii()
    return len(last) > 1 and is_name and last.lower() not in _NO_TLDS


def _local_start(text: str, end: int) -> int:
    if text.endswith('"', 0, end):
        quote = text.rfind('"', max(0, end - 66), end - 1)
        return end if quote == -1 or "\n" in text[quote:end] else quote
    start = end
    lowest = max(0, end - _LOCAL_LIMIT)
    while start > lowest and (text[start - 1].isalnum() or text[start - 1] in _LOCAL_EXTRA):
        start -= 1
    if not text[start:end].isascii() and (latin := _LATIN_TAIL.search(text, start, end)):
        start = latin.start()
    equals = text.rfind("=", start, end)
    start = equals + 1 if equals != -1 else start
    while start < end and not (text[start].isalnum() or text[start] == "_"):
        start += 1
    return start


def _in_url(text: str, start: int) -> bool:
    scheme = text.rfind("://", max(0, start - 200), start)
    return scheme != -1 and not any(
        char.isspace() or char == "/" for char in text[scheme + 3 : start]
    )
