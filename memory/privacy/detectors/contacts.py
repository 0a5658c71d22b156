"""E-mail addresses and telephone numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .finding import Finding
from .lazy_pattern import compile_later
from .prefilter import TextFeatures
from .word_lists import alternatives, read_words, split_words

_DOMAIN = compile_later(r"(?:[^\W_](?:[\w-]{0,62})\.){0,8}[^\W_][\w-]{0,62}")
_IP_HOST = compile_later(r"\[?\d{1,3}(?:\.\d{1,3}){3}\]?")
_INTERNAL_HOSTS = split_words("localhost localdomain corp internal local intranet lan home mail")
_COMMON_TLD = compile_later(
    r"\.(?:com|org|net|edu|gov|info|biz|io|ai|co|me|app|dev|eu|uk|de|fr|it|es|nl|be|ch|at|se|no|dk"
    r"|fi|pl|cz|pt|ie|ca|us|au|nz|in|jp|cn|br|mx|za|ru|tr|kr)\b",
    re.IGNORECASE,
)
_MAIL_HOST = compile_later(
    r"[\w-]{0,40}(?:mail|smtp|exchange)[\w-]{0,40}|(?:mx|imap|pop3?)\d{0,3}", re.IGNORECASE
)
_NAMED_HOST = compile_later(r"[A-Za-z][A-Za-z-]{2,30}\d{0,3}")
_NO_HOSTS = split_words("latest next beta alpha canary stable head main master tty everyone here")
_FULL_NAME = compile_later(r"[^\W\d_]{2,30}[._][^\W\d_]{2,30}\d{0,4}")
_MAIL_CUE = compile_later(
    r"(?:mail|correo|courriel|почт|пошт|メール|邮箱|郵箱|信箱|이메일|메일|ईमेल|อีเมล|بريد|ایمیل|"
    r"דוא|מייל|e-?posta|write to|reply to|contact|schreib)[^\n@]{0,20}\Z",
    re.IGNORECASE,
)
# Scripts whose words stand beside an address without a space, or with a prefix of one letter.
_OTHER_SCRIPT = r"\u0590-\u06ff\u0900-\u0dff\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_LATIN_TAIL = compile_later(rf"[^\W{_OTHER_SCRIPT}]+(?:[^{_OTHER_SCRIPT}])*\Z")
_LATIN_HEAD = compile_later(rf"[^{_OTHER_SCRIPT}]*[^\W_{_OTHER_SCRIPT}]")
_LOCAL_LIMIT = 254
_LOCAL_EXTRA = frozenset(".+-_%&'*~!#$=")
_NOT_PEOPLE = frozenset({"git"})

_PHONE = compile_later(
    r"(?P<number>[+(\d](?<![\w./#$€£&?+].)(?<!\d[,:-].)(?<!\w[-_].)(?:(?<=\d)|(?:(?<=\()\+)?\d)"
    r"(?:[ \u00a0]?[().\-/]{0,2}[ \u00a0]?\d){5,17})"
    r"(?P<extension>[ ]?(?:x|ext\.?|extension|\#)[ ]?\d{1,7})?"
    r"(?![\w@%]|[.,:/]\d|-\d)"
)
_PHONE_BEFORE = compile_later(
    rf"\b(?:{alternatives('phone_words')})\b[^\n\d]{{0,40}}(?:\n[^\n\d]{{0,3}})?\Z", re.IGNORECASE
)
_PHONE_AFTER = compile_later(
    r"[ ,(-]{0,3}(?:office|fax|mobile|cell|home|work|phone|desk|tel)\b", re.IGNORECASE
)
_NOT_PHONE_BEFORE = compile_later(
    r"(?:\b(?:order|po|invoice|ticket|case|ref|reference|id|sku|zip|card|ssn|account|acct|isbn"
    r"|serial|part"
    r"|model|version|tracking|transaction|confirmation|booking|policy|iban|amount|total|code"
    r"|port|pid"
    r"|line|row|page|error|build|license|passport|security|routing|since|from|year|tax|vat)s?"
    r"(?:[ ](?:number|no\.?|num|code|is|of))*|\#|no\.)[ :=#]{0,3}\Z",
    re.IGNORECASE,
)
_NOT_PHONE = compile_later(
    r"(?:19|20)\d\d[-/. ]\d{1,2}[-/. ]\d{1,2}.*|\d{1,2}[-/.]\d{1,2}[-/.](?:19|20)\d\d.*"
    r"|\d{1,3}(?:\.\d{1,3}){3}|\d+\.\d+|\d{3}-\d{2}-\d{4}|(?:19|20)\d\d[ -]{1,3}(?:19|20)\d\d"
)
_NORTH_AMERICAN = compile_later(
    r"(?:\+?1[ .-]?)?(?:\([2-9]\d\d\)[ .-]?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{4}"
)
_MAYBE_PHONE = compile_later(
    r"[+(]\d|0(?!\.)(?<![\w./#$€£&?+-].)|[ .-]\d\d\d[ .-]\d\d\d\d|\)[ .-]?\d\d\d"
)
_EXTENSION_CHARS = 20
_GROUPED = compile_later(r"[ ().\-/\u00a0]")
_TRUNK_REGIONS = (
    "GB",
    "DE",
    "FR",
    "IT",
    "NL",
    "BE",
    "CH",
    "AT",
    "SE",
    "AU",
    "IN",
    "JP",
    "ZA",
    "BR",
)

PHONE_WORDS = frozenset((*read_words("phone_words"), "number"))
_SHORTEST, _LONGEST, _PLAIN_SHORTEST = 7, 15, 8


def find_emails(text: str, _features: TextFeatures) -> Iterator[Finding]:
    """Find e-mail addresses, with international and internal hosts and quoted local parts."""
    at = text.find("@")
    while at != -1:
        if found := _email_around(text, at):
            yield found
            at = found.end - 1
        at = text.find("@", at + 1)


def find_phones(text: str, features: TextFeatures) -> Iterator[Finding]:
    """Find telephone numbers: international, in national grouping, or beside a phone word."""
    in_context = not features.words.isdisjoint(PHONE_WORDS)
    for match in _candidates(text, features, in_context=in_context):
        digits = "".join(filter(str.isdigit, match["number"]))
        if not _SHORTEST - 1 <= len(digits) <= _LONGEST or _NOT_PHONE.fullmatch(match["number"]):
            continue
        if verdict := _phone_verdict(text, match, digits, in_context=in_context):
            score, why = verdict
            start = match.start() + (match["number"][0] == "(" and ")" not in match["number"])
            yield Finding(start, match.end(), "PHONE_NUMBER", score, why)


def _candidates(text: str, features: TextFeatures, *, in_context: bool) -> Iterator[re.Match[str]]:
    """Yield runs of digits that have a mark of a telephone number."""
    for start, end in features.digit_runs:
        if in_context or _MAYBE_PHONE.search(text, max(0, start - 1), end):
            yield from _PHONE.finditer(text, max(0, start - 2), end + _EXTENSION_CHARS)


def _email_around(text: str, at: int) -> Finding | None:
    after, spaced = at + 1, False
    if text.startswith(" ", after) and text.endswith(" ", 0, at):
        after, spaced = after + 1, True
    host = _host_after(text, after)
    end = at - 1 if spaced else at
    start = _local_start(text, end)
    if start == end or text[start:end].lower() in _NOT_PEOPLE or _in_url(text, start):
        return None
    if "." in host:
        is_host, score = _is_host(host, spaced=spaced), 0.9
    else:
        is_host, score = not spaced and _is_internal_host(text, start, end, host), 0.7
    if not is_host:
        return None
    return Finding(start, after + len(host), "EMAIL_ADDRESS", score, "local part, @ and host")


def _host_after(text: str, after: int) -> str:
    match = _IP_HOST.match(text, after) or _DOMAIN.match(text, after)
    host = match.group() if match else ""
    latin = None if host.isascii() else _LATIN_HEAD.match(host)
    return latin.group().rstrip(".-") if latin else host


def _is_host(host: str, *, spaced: bool) -> bool:
    if _IP_HOST.fullmatch(host):
        return True
    if spaced:
        return _COMMON_TLD.search(host) is not None
    last = host.rpartition(".")[2]
    return len(last) > 1 and last[0].isalpha()


def _is_internal_host(text: str, start: int, end: int, host: str) -> bool:
    """Return whether *host*, a single word, can be where the mail of *text[start:end]* goes."""
    if host.lower() in _INTERNAL_HOSTS or _MAIL_HOST.fullmatch(host):
        return True
    if (
        not _NAMED_HOST.fullmatch(host)
        or host.lower() in _NO_HOSTS
        or text.startswith((":", "/", "("), end + 1 + len(host))
    ):
        return False
    return bool(
        _FULL_NAME.fullmatch(text, start, end) or _MAIL_CUE.search(text, max(0, start - 40), start)
    )


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


def _phone_verdict(
    text: str, match: re.Match[str], digits: str, *, in_context: bool
) -> tuple[float, str] | None:
    number = match["number"]
    before = text[max(0, match.start() - 60) : match.start()]
    if number.startswith(("+", "(+")) or (number.startswith("00") and _GROUPED.search(number)):
        return (0.95, "international number") if len(digits) > _SHORTEST else None
    if in_context and _phone_in_context(text, match, digits, before):
        verdict = 0.85, "a run of digits beside a word for telephone"
    elif _NORTH_AMERICAN.fullmatch(number):
        verdict = 0.75, "North American grouping"
    elif number.startswith(("0", "(0")) and _GROUPED.search(number) and _is_valid_somewhere(digits):
        verdict = 0.7, "national number with trunk prefix"
    else:
        return None
    # Last, as the slowest check: most runs of digits are rejected before.
    return None if _NOT_PHONE_BEFORE.search(before) else verdict


def _phone_in_context(text: str, match: re.Match[str], digits: str, before: str) -> bool:
    grouped = _GROUPED.search(match["number"]) is not None
    if len(digits) < (_SHORTEST if grouped else _PLAIN_SHORTEST):
        return False
    return bool(_PHONE_BEFORE.search(before) or _PHONE_AFTER.match(text, match.end()))


def _is_valid_somewhere(digits: str) -> bool:
    import phonenumbers  # noqa: PLC0415 - 60 ms, and most processes see no such number

    for region in _TRUNK_REGIONS:
        try:
            if phonenumbers.is_valid_number(phonenumbers.parse(digits, region)):
                return True
        except phonenumbers.NumberParseException:
            continue
    return False
