"""
Who may do what: roles that are written in a file, and grants that a run acts under.

A role says, for each class of operations, in which places of which stores it may be done: a pattern
of ``store/collection``, such as ``qdrant/notes``, ``langgraph.store/profile/*`` or ``mem0/*``. What
it does not name is refused, and so is whoever has no role.
"""

from __future__ import annotations

import hmac
import math
import time
import tomllib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Final

import msgspec

from ...telemetry.event.kinds import OperationClass
from ...telemetry.event.verdict_event import Outcome, Point
from ...telemetry.text import is_a
from ..context import Scope, current
from ..errors import ConfigurationError
from ..layers import Entering, Layers
from ..limits.sliding_window import SlidingSum
from .capabilities import ConfinesAnswers, ConfinesReveals, SeesAnswers, WitnessesActions
from .rule import ALLOW, PASSES, Action, Fact, Facts, Fails, Verdict

LONGEST_GRANT_S: Final = 3_600
"""Seconds for which a grant holds at most: there are no standing ones."""

SKEW_S: Final = 30
"""Seconds that the clock of whoever issues a grant may be ahead."""

_MINUTE_S = 60.0
_MOST_AGENTS = _MOST_PLACES = 4_096
_KEY_BYTES = 32
_DEPTH = 12
_ANSWERED = ("left_out", "withheld")
"""Reasons that are found in an answer."""

_BOUND_TO = ("agent", "tenant", "purpose", "run")
_granted: Layers[str | None] = Layers("grant", None)


class Role(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    What an agent may do with memory.

    Attributes:
        recall: Places that it may read.
        remember: Places that it may write to.
        forget: Places that it may delete from.
        resume: Checkpointers that it may resume from: ``langgraph.checkpoint``.
        checkpoint: Checkpointers that it may save to.
        reveal: Purposes for which it may be shown what pseudonyms stand for, where
            ``MNEMOSCOPE_PII_REVEAL`` has answers show that.
        per_minute: Operations in a minute. None: as many as it likes.
        bytes_per_minute: Bytes of answers in a minute. None: as many as it likes; where no role has
            a limit, they are not counted.
    """

    recall: tuple[str, ...] = ()
    remember: tuple[str, ...] = ()
    forget: tuple[str, ...] = ()
    resume: tuple[str, ...] = ("*",)
    checkpoint: tuple[str, ...] = ("*",)
    reveal: tuple[str, ...] = ("*",)
    per_minute: int | None = None
    bytes_per_minute: int | None = None

    def may(self, op_class: str, place: str) -> bool:
        """Return whether it may do operations of *op_class* in *place*."""
        patterns: tuple[str, ...] = getattr(self, op_class, ())
        return any(fnmatchcase(place, each.replace("[", "[[]")) for each in patterns)


class _Claims(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a grant says, in the order in which it is signed."""

    role: str
    agent: str
    tenant: str | None
    purpose: str | None
    run: str | None
    expires_s: float
    issued_s: float


class Roles(WitnessesActions, SeesAnswers, ConfinesAnswers, ConfinesReveals):
    """
    Refuses what the role of the agent does not allow. It is a rule: ``configure(rules=[roles])``.

    Args:
        roles: The roles by name, or a TOML file with a table for each.
        key: Signs grants: at least 32 random bytes, the same where they are made and checked. None:
            there are no grants, and an agent has the role of its name in the context. That is for
            agents whose context is set by code that you trust.
        shadow: Tell what it would refuse, and let it pass.
        clock: Seconds since 1970.
        ticks: Monotonic seconds.

    Raises:
        ConfigurationError: The file or a role makes no sense, or the key is too short.

    Examples:
        >>> roles = Roles({"researcher": Role(recall=("qdrant/notes",), per_minute=30)}, key=key)
        >>> grant = roles.grant("researcher", agent="anna", purpose="triage", run="r-7829")
        >>> with context(agent="anna", purpose="triage", run="r-7829"), granted(grant):
        ...     run_agent()
    """

    name = "roles"
    points = frozenset({Point.MEMORY})
    fails = Fails.CLOSED

    def __init__(
        self,
        roles: Mapping[str, Role | Mapping[str, Any]] | Path,
        *,
        key: bytes | None = None,
        shadow: bool = False,
        clock: Callable[[], float] = time.time,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        if key is not None and len(key) < _KEY_BYTES:
            raise ConfigurationError(f"the key of roles has {len(key)} bytes, expected at least 32")
        self.shadow = shadow
        given = _read(roles) if isinstance(roles, Path) else roles
        self._roles = {name: _role(name, each) for name, each in given.items()}
        self._counts_bytes = any(each.bytes_per_minute is not None for each in self._roles.values())
        self._may = lru_cache(_MOST_PLACES)(self._role_may)
        self._key, self._clock, self._ticks = key, clock, ticks
        self._began_s, self._began_ticks = clock(), ticks()
        self._ends: OrderedDict[str, float] = OrderedDict()  # of grants that were seen, in ticks
        self._claims = lru_cache(_MOST_AGENTS)(partial(_claims, key=key or b""))
        self._minutes: OrderedDict[tuple[str | None, str | None], _Minute] = OrderedDict()
        self._latest: tuple[Scope | None, _Minute] = None, _Minute(0.0)

    def settings(self) -> Mapping[str, Any]:
        """Return what it was made with, but for the key."""
        return {"roles": msgspec.to_builtins(self._roles)}

    def grant(
        self,
        role: str,
        *,
        agent: str,
        tenant: str | None = None,
        purpose: str | None = None,
        run: str | None = None,
        for_s: float = 300,
    ) -> str:
        """
        Return a signed grant of *role* to one agent, for `granted`.

        It holds in contexts that have these very values: of one tenant, purpose and run, where they
        are given. It cannot be widened.

        Raises:
            ConfigurationError: There is no such role, no key, or *for_s* is no such time.
        """
        if self._key is None:
            raise ConfigurationError("grants are signed: give Roles a key of 32 random bytes")
        if role not in self._roles:
            raise ConfigurationError(f"there is no role {role}: name one that Roles has")
        if not 0 < for_s <= LONGEST_GRANT_S:
            raise ConfigurationError(f"a grant holds for up to {LONGEST_GRANT_S} seconds")
        now = self._now()
        claims = _Claims(role, agent, tenant, purpose, run, now + for_s, now)
        said = msgspec.json.encode(claims)
        return b".".join(map(urlsafe_b64encode, (said, _sign(self._key, said)))).decode()

    def witness(self, action: Action) -> Mapping[str, Fact]:
        """Return the role of the agent, what it has done lately, and whether it may do this."""
        # Of the context, which code sets: an agent may name another one in its arguments.
        scope = current()
        name, problem = (scope.agent or "", None) if self._key is None else self._granted(scope)
        role = self._roles.get(name)
        if role is None or problem is not None:
            return {"roles.problem": problem or "no_role"}
        now, (of, minute) = self._ticks(), self._latest
        if of is not scope:
            minute = self._minute_of(scope)
        asks, done = self._asks_within(name, action), minute.operations.total(now)
        read_bytes = minute.read_bytes.total(now) if self._counts_bytes else 0
        if _refusal(role, asks, done, read_bytes) is None:
            minute.operations.add(asks, now)
            return PASSES
        return {
            "roles.role": name,
            "roles.is_within": asks > 0,
            "roles.asked": asks,
            "roles.operations": done,
            "roles.bytes": read_bytes,
        }

    def allows(self, store: str, collection: str) -> bool:
        """Return whether the agent may be shown what stands in a collection."""
        name = self._role_of(current())
        return name is not None and self._may(name, OperationClass.RECALL, store, collection)

    def may_reveal(self, _store: str) -> bool:
        """Return whether the agent may be shown, for its purpose, what pseudonyms stand for."""
        scope = current()
        name = self._role_of(scope)
        return name is not None and self._roles[name].may("reveal", scope.purpose or "")

    def withheld(self, count: int) -> Mapping[str, Fact]:
        """Return the facts of an answer of which *count* originals may not be shown."""
        return {"roles.withheld": count}

    def _role_of(self, scope: Scope) -> str | None:
        """Return the role of the running code. None: it has none."""
        name, problem = (scope.agent or "", None) if self._key is None else self._granted(scope)
        return name if problem is None and name in self._roles else None

    def left_out(self, count: int) -> Mapping[str, Fact]:
        """Return the facts of an answer of which *count* memories may not be shown."""
        return {"roles.left_out": count}

    def needs_answers(self) -> bool:
        """Return whether a role has a number of bytes a minute."""
        return self._counts_bytes

    def seen(self, action: Action) -> Mapping[str, Fact]:
        """Count the bytes of an answer."""
        if action.call is not None and action.call.result is not None:
            size_bytes = _size_bytes(action.call.result)
            self._minute_of(current()).read_bytes.add(size_bytes, self._ticks())
        return {}

    def decide(self, facts: Facts) -> Verdict:
        """Refuse what the role does not allow, and whoever has none."""
        known = facts.known
        after = (each for each in _ANSWERED if known.get(f"roles.{each}"))
        reason = next(after, known.get("roles.problem"))
        if reason is None:
            role = self._roles.get(str(known.get("roles.role")))
            # Verdicts of before count each call as one operation.
            requested = known.get("roles.asked", known.get("roles.is_within"))
            seen = (known.get(f"roles.{each}") for each in ("operations", "bytes"))
            reason = "no_role" if role is None else _refusal(role, requested, *seen)
        if reason is None:
            return ALLOW
        evidence = {each: value for each, value in known.items() if each.startswith("roles.")}
        return Verdict(Outcome.REFUSE, str(reason), evidence)

    def _asks_within(self, role: str, action: Action) -> int:
        """Return how many operations are asked, of which a role may do all. 0: not all."""
        operations = action.operations
        for call in operations:
            method = call.method
            if not self._may(
                role, method.op_class, action.store, method.collection(call.arguments)
            ):
                return 0
            if method.joins is not None and not all(
                self._may(role, method.op_class, action.store, each)
                for each in method.joins(call.arguments)
            ):
                return 0
        # Of several that share their arguments, each is the same call, of another class.
        if operations and method.asks is not None:  # pyright: ignore[reportPossiblyUnboundVariable]
            return max(1, method.asks(call.arguments))  # pyright: ignore[reportPossiblyUnboundVariable]
        return len(operations)

    def _role_may(self, role: str, op_class: str, store: str, collection: str | None) -> bool:
        return self._roles[role].may(op_class, f"{store}/{collection or ''}")

    def _now(self) -> float:
        """
        Return the time, in seconds since 1970, by which grants end.

        It goes on while the clock stands, and is never before what this process has lived through:
        who sets the clock back revives nothing. One that was ahead is believed while it is.
        """
        return max(self._clock(), self._began_s + self._ticks() - self._began_ticks)

    def _untimely(self, token: str, claims: _Claims) -> str | None:
        """Return why a grant does not hold now. None: it does, for no longer than it says."""
        now, ticks = self._now(), self._ticks()
        if ticks >= (ends := self._ends.get(token, math.inf)):
            return "expired_grant"
        problem = _out_of_time(claims, now)
        if problem == "expired_grant":
            self._ends[token] = -math.inf
        elif problem is None and ends == math.inf:
            self._ends[token] = ticks + claims.expires_s - now
        if len(self._ends) > _MOST_AGENTS:
            self._ends.popitem(last=False)
        return problem

    def _granted(self, scope: Scope) -> tuple[str, str | None]:
        """Return the role granted to the running code, or the reason for its absence."""
        if (token := _granted.get()) is None:
            return "", "no_grant"
        if (claims := self._claims(token)) is None:
            return "", "forged_grant"
        if (problem := self._untimely(token, claims)) is not None:
            return "", problem
        if any(
            (bound := getattr(claims, what)) is not None and bound != getattr(scope, what)
            for what in _BOUND_TO
        ):
            return "", "grant_of_another"
        return claims.role, None

    def _minute_of(self, scope: Scope) -> _Minute:
        key = scope.tenant, scope.agent
        minute = self._minutes.get(key)
        if minute is None:
            minute = self._minutes[key] = _Minute(self._ticks())
            if len(self._minutes) > _MOST_AGENTS:
                self._minutes.popitem(last=False)
        else:
            self._minutes.move_to_end(key)
        self._latest = scope, minute
        return minute


class _Minute:
    """What one agent has done in the last minute."""

    def __init__(self, now: float) -> None:
        self.operations = SlidingSum(_MINUTE_S, now)
        self.read_bytes = SlidingSum(_MINUTE_S, now)


def granted(grant: str) -> Entering[None]:
    """Let the body act under a *grant* that `Roles.grant` made, in this task or thread."""
    return Entering(lambda: (None, _granted.enter(grant)))


def _size_bytes(value: Any, depth: int = _DEPTH) -> int:
    """Return about what an answer weighs: a byte a character, eight for any other value."""
    if isinstance(value, str | bytes):
        return len(value)
    if depth == 0 or value is None or isinstance(value, int | float | Enum | type):
        return 8
    inner: Iterable[Any] = (value.__getstate__(),)  # nothing that would consume an iterator
    if is_a(value, Mapping):
        inner = (*value.keys(), *value.values())
    elif is_a(value, list, tuple, set, frozenset):
        inner = value
    return sum(_size_bytes(each, depth - 1) for each in inner)


def _refusal(role: Role, requested: Any, operations: Fact, read_bytes: Fact) -> str | None:
    """Return why a role does not allow so many more than were done in a minute. None: it does."""
    if not requested:
        return "out_of_role"
    most = role.per_minute
    if most is not None and (not isinstance(operations, int) or operations + requested > most):
        return "too_often"
    most = role.bytes_per_minute
    if most is not None and (not isinstance(read_bytes, int) or read_bytes >= most):
        return "too_much"
    return None


def _out_of_time(claims: _Claims, now: float) -> str | None:
    """Return why a grant does not hold now. None: it does."""
    left_s, for_s = claims.expires_s - now, claims.expires_s - claims.issued_s
    if not left_s > 0:
        return "expired_grant"
    if not for_s <= LONGEST_GRANT_S:
        return "long_grant"
    return None if left_s <= for_s + SKEW_S else "early_grant"


def _sign(key: bytes, said: bytes) -> bytes:
    return hmac.digest(key, b"mnemoscope grant\0" + said, "sha256")


def _claims(token: str, key: bytes) -> _Claims | None:
    """Return what a grant says. None: nobody with the key said it."""
    try:
        said, signature = (urlsafe_b64decode(each) for each in token.split("."))
        if hmac.compare_digest(signature, _sign(key, said)):
            return msgspec.json.decode(said, type=_Claims)
    except (ValueError, msgspec.DecodeError):
        pass
    return None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:  # the message may hold what the file says
        raise ConfigurationError(
            f"the file of roles cannot be read ({type(exc).__name__}): expected TOML with a table "
            "for each role"
        ) from None


def _role(name: str, given: Any) -> Role:
    if isinstance(given, Role):
        return given
    try:
        return msgspec.convert(given, Role)
    except msgspec.ValidationError as exc:
        raise ConfigurationError(
            f"the role {name} makes no sense ({exc}): expected lists of places by class of "
            "operations, per_minute, bytes_per_minute"
        ) from None
