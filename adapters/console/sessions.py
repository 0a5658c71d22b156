"""
Sessions of people on the site, the tokens that begin them, and how often one may look.

All of it is in the memory of one process: with the process, every session ends.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import ChainMap, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ...memory.limits.sliding_window import SlidingSum

IDLE_S = 900.0
"""Seconds without a request after which a session ends."""

LONGEST_S = 28_800.0
"""Seconds after which a session ends in any case."""

LOOKUPS, ALL_LOOKUPS, SIGN_INS, PERIOD_S = 20, 200, 30, 10.0
"""In so many seconds: looks at people, of one session and of all; and sign-ins by a proxy."""

MOST_SESSIONS = 1_000
MOST_KEPT = 32
"""Results, and pieces of work, that one session keeps. The first of them goes for the next."""


class Right(StrEnum):
    """
    A thing that somebody may do on the site. To decide or erase includes to see.

    Attributes:
        SEE: Look: at what waits, at people, runs and health.
        DECIDE: Approve, edit, reject and skip what waits for a human.
        ERASE: Erase people from the stores and the trail, and withdraw memories.
    """

    SEE = "see"
    DECIDE = "decide"
    ERASE = "erase"


ALL_RIGHTS = frozenset(Right)


@dataclass(slots=True, kw_only=True)
class SignedIn:
    """
    One person at one browser, from sign-in to sign-out.

    Attributes:
        who: The name they signed in by. Personal: it reaches the trail as customers do.
        rights: What they may do.
        number: Names the session in the trail. Not the cookie, which stays secret.
        csrf: The token that every form of the session carries.
        lookups: Its latest looks at people.
        shown: The numbers of events whose content it was shown, as the trail says.
    """

    who: str = field(repr=False)
    rights: frozenset[Right]
    number: str
    csrf: str = field(repr=False)
    lookups: SlidingSum = field(repr=False)
    began_s: float
    seen_s: float
    shown: set[int] = field(default_factory=set[int], repr=False)
    _kept: OrderedDict[str, Any] = field(default_factory=OrderedDict[str, Any], repr=False)
    _work: OrderedDict[str, Any] = field(default_factory=OrderedDict[str, Any], repr=False)

    def keep(self, result: Any, *, is_work: bool = False) -> str:
        """
        Keep *result* while the session lasts, and return the random handle for a URL.

        Args:
            result: What a page was made of.
            is_work: It has a file, such as a receipt, which no look at other pages may push out.
        """
        handle, kept = secrets.token_urlsafe(16), self._work if is_work else self._kept
        kept[handle] = result
        while len(kept) > MOST_KEPT:
            kept.popitem(last=False)
        return handle

    def kept(self, handle: str) -> Any:
        """Return what was kept under *handle*. None: nothing, or not in this session."""
        return ChainMap(self._kept, self._work).get(handle)


class Sessions:
    """
    The sessions of one site. Thread-safe.

    Args:
        clock: Monotonic seconds.
        idle_s: Seconds without a request after which a session ends.
        longest_s: Seconds after which it ends in any case.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        idle_s: float = IDLE_S,
        longest_s: float = LONGEST_S,
    ) -> None:
        self._clock, self._idle_s, self._longest_s = clock, idle_s, longest_s
        self._lookups, self._sign_ins = (SlidingSum(PERIOD_S, clock()) for _ in range(2))
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
            lookups=SlidingSum(PERIOD_S, now),
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

    def may_sign_in(self) -> bool:
        """Count a sign-in by a proxy, each of which is sealed, and return whether it may be."""
        now = self._clock()
        with self._guard:
            if self._sign_ins.total(now) >= SIGN_INS:
                return False
            self._sign_ins.add(1, now)
        return True

    def may_look(self, session: SignedIn) -> bool:
        """Count a look at a person, and return whether it is not one too many."""
        now = self._clock()
        with self._guard:
            if session.lookups.total(now) >= LOOKUPS or self._lookups.total(now) >= ALL_LOOKUPS:
                return False
            session.lookups.add(1, now)
            self._lookups.add(1, now)
        return True


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
