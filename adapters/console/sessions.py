"""
Sessions of people on the site, the tokens that begin them, and how often one may look.

All of it is in the memory of one process: with the process, every session ends.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .rights import Right

IDLE_S = 900.0
"""Seconds without a request after which a session ends."""

LONGEST_S = 28_800.0
"""Seconds after which a session ends in any case."""

MOST_SESSIONS = 1_000
MOST_KEPT = 32
"""Results that one session keeps. The one that was kept first goes for the next."""


class Allowance:
    """
    So many acts a second, and so many at once. Thread-safe.

    Args:
        per_s: Acts a second in the long run.
        at_once: Acts without a pause.
        clock: Monotonic seconds.
    """

    def __init__(self, per_s: float, at_once: int, clock: Callable[[], float]) -> None:
        self._per_s, self._at_once, self._clock = per_s, at_once, clock
        self._left, self._at = float(at_once), clock()
        self._guard = threading.Lock()

    def take(self) -> bool:
        """Take one act, and return whether there was one."""
        with self._guard:
            now = self._clock()
            self._left = min(self._at_once, self._left + (now - self._at) * self._per_s)
            self._at = now
            if self._left < 1:
                return False
            self._left -= 1
            return True


@dataclass(slots=True, kw_only=True)
class SignedIn:
    """
    One person at one browser, from sign-in to sign-out.

    Attributes:
        who: The name they signed in by. Personal: it reaches the trail as customers do.
        rights: What they may do.
        number: Names the session in the trail. Not the cookie, which stays secret.
        csrf: The token that every form of the session carries.
        lookups: Looks at people that are left to it.
        shown: The numbers of events whose content it was shown, as the trail says.
    """

    who: str = field(repr=False)
    rights: frozenset[Right]
    number: str
    csrf: str = field(repr=False)
    lookups: Allowance = field(repr=False)
    began_s: float
    seen_s: float
    shown: set[int] = field(default_factory=set[int], repr=False)
    _kept: OrderedDict[str, Any] = field(default_factory=OrderedDict[str, Any], repr=False)

    def keep(self, result: Any) -> str:
        """Keep *result* while the session lasts, and return the random handle for a URL."""
        handle = secrets.token_urlsafe(16)
        self._kept[handle] = result
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return handle

    def kept(self, handle: str) -> Any:
        """Return what was kept under *handle*. None: nothing, or not in this session."""
        return self._kept.get(handle)

    def replace(self, handle: str, result: Any) -> None:
        """Keep *result* under a *handle* that there is, for the progress of long work."""
        if handle in self._kept:
            self._kept[handle] = result


class Sessions:
    """
    The sessions of one site. Thread-safe.

    Args:
        clock: Monotonic seconds.
        idle_s: Seconds without a request after which a session ends.
        longest_s: Seconds after which it ends in any case.
        lookups_per_s: Looks at people a second, for each session and, ten times that, over all.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        idle_s: float = IDLE_S,
        longest_s: float = LONGEST_S,
        lookups_per_s: float = 2.0,
    ) -> None:
        self._clock, self._idle_s, self._longest_s = clock, idle_s, longest_s
        self._lookups_per_s = lookups_per_s
        self._all_lookups = Allowance(10 * lookups_per_s, round(20 * lookups_per_s), clock)
        self._of: OrderedDict[bytes, SignedIn] = OrderedDict()
        self._guard = threading.Lock()

    def begin(self, who: str, rights: frozenset[Right]) -> tuple[str, SignedIn]:
        """Begin a session, and return the secret of its cookie with it."""
        secret, now = secrets.token_urlsafe(32), self._clock()
        session = SignedIn(
            who=who,
            rights=rights | {Right.SEE},
            number=secrets.token_hex(8),
            csrf=secrets.token_urlsafe(32),
            lookups=Allowance(self._lookups_per_s, round(10 * self._lookups_per_s), self._clock),
            began_s=now,
            seen_s=now,
        )
        with self._guard:
            self._of[_digest(secret)] = session
            while len(self._of) > MOST_SESSIONS:
                self._of.popitem(last=False)
        return secret, session

    def of(self, secret: str | None) -> SignedIn | None:
        """Return the session of a cookie, seen just now. None: it never was, or it has ended."""
        if not secret:
            return None
        # By digest, so that how long the look-up takes says nothing about the secrets there are.
        key, now = _digest(secret), self._clock()
        with self._guard:
            session = self._of.get(key)
            if session is None:
                return None
            if now - session.seen_s >= self._idle_s or now - session.began_s >= self._longest_s:
                del self._of[key]
                return None
            session.seen_s = now
            self._of.move_to_end(key)
            return session

    def end(self, secret: str | None) -> None:
        """End the session of a cookie, with all that it kept."""
        with self._guard:
            self._of.pop(_digest(secret or ""), None)

    def may_look(self, session: SignedIn) -> bool:
        """Take one look at a person from the session's allowance and from that of all."""
        return session.lookups.take() and self._all_lookups.take()


class OneTimeToken:
    """
    The token that signs in whoever started the site, once. Thread-safe.

    Args:
        announce: Called with each new token: when the site begins, and when one was used.
    """

    def __init__(self, announce: Callable[[str], None]) -> None:
        self._announce = announce
        self._guard = threading.Lock()
        self._token = self._new()

    def _new(self) -> str:
        token = secrets.token_urlsafe(32)
        self._announce(token)
        return token

    def redeem(self, given: str) -> bool:
        """Return whether *given* is the token, which is then another one."""
        with self._guard:
            # No limit of tries: 256 bits are not guessed, and a limit would lock people out.
            is_it = hmac.compare_digest(given.encode(errors="replace"), self._token.encode())
            if is_it:
                self._token = self._new()
            return is_it


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="replace")).digest()
