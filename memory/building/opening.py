"""Keys, trail, vault and journal of settings: whoever only reads makes none."""

from __future__ import annotations

import logging
import secrets
import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ...telemetry.event.subject import SubjectKeys
from ...telemetry.process.faults import Faults
from ..errors import ConfigurationError
from ..limits.key_use import KeyUse
from ..privacy.detectors.term_lists import read_term_lists
from ..privacy.engine.redactor import Limits, Redactor, build_redactor
from ..settings import Settings
from .sinks import sink_context

if TYPE_CHECKING:
    from ...audit.log import AuditLog
    from ..growth.measuring import Purposes
    from ..journal.journal import Journal
    from ..privacy.engine.redaction import TextRedactor
    from ..privacy.vault.vault import Vault


logger = logging.getLogger("mnemoscope")

_makes_keys: ContextVar[bool] = ContextVar("makes_keys", default=True)


@contextmanager
def making_no_keys() -> Generator[None]:
    """Refuse to build a scope in the body that has no key yet: who only reads makes none."""
    token = _makes_keys.set(False)
    try:
        yield
    finally:
        _makes_keys.reset(token)


def open_audit_log(settings: Settings, *, needs_key: bool = True) -> AuditLog:
    """
    Return the audit trail that *settings* name, for reading. Makes neither file nor key.

    Args:
        settings: The settings.
        needs_key: Without a key nobody is found in it. False: what needs none is asked for.

    Raises:
        ConfigurationError: Its URL or key cannot be used, or there is no key.
        AuditError: There is no key because there is no trail yet.
    """
    from ...audit.database.errors import AuditError  # noqa: PLC0415
    from ...audit.log import AuditLog  # noqa: PLC0415
    from ...audit.sink.factory import open_log  # noqa: PLC0415
    from ...audit.store.shard_count import shard_count  # noqa: PLC0415

    keys = configured_keys(settings)
    try:
        context = sink_context(settings, keys or _throwaway())
        log = open_log(context, AuditLog)
        count = settings.audit_shards
        # What cannot be read says so to whoever asks it something.
        with suppress(AuditError), log.begun() as snapshot:
            count = max(count, shard_count(snapshot))
        if count > 1:  # never fewer than there are, whatever this process is configured with
            from ...audit.shards.sharded_log import sharded_log  # noqa: PLC0415

            log = sharded_log(context)
    except (ValueError, OSError) as exc:
        raise ConfigurationError(str(exc)) from None
    if keys is None and needs_key:
        with log.moments():  # what is not there either is told first
            raise ConfigurationError(_no_key(settings))
    return log


def _throwaway() -> SubjectKeys:
    """Return keys that nothing was or will be written with."""
    return SubjectKeys(secrets.token_bytes(32))


def _no_key(settings: Settings) -> str:
    return (
        f"there is no pseudonym key at {settings.key_file}, and reading makes none: nobody would "
        "be found with a new one. Restore that file, or set MNEMOSCOPE_AUDIT_PSEUDONYM_KEY or "
        "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY_FILE to the key of the application"
    )


def open_vault(settings: Settings) -> Vault:
    """
    Return the vault that *settings* name. Makes neither file nor key.

    Raises:
        ConfigurationError: They name none, or its keys cannot be used.
    """
    from ..privacy.vault.vault import Vault  # noqa: PLC0415 - only where it is wanted

    keys = configured_keys(settings)
    if settings.vault is None or keys is None:
        missing = "vault: set MNEMOSCOPE_VAULT" if settings.vault is None else "key for the vault"
        raise ConfigurationError(f"there is no {missing}")
    try:
        previous = previous_keys(settings)
    except ValueError as exc:
        raise ConfigurationError(str(exc)) from None
    return Vault(settings.vault, keys=keys, previous=previous, faults=Faults())


def purposes_of(audit: AuditLog | None) -> Purposes | None:
    """Return what looks up the purposes of records in the audit trail. None: there is none."""
    if audit is None:
        return None
    from ...audit.write_history import WriteHistory  # noqa: PLC0415 - as the sinks

    return WriteHistory(audit).purposes


def configured_registries(settings: Settings) -> Sequence[Any]:
    """
    Return the registries of recognizers that *settings* name, as Presidio reads them.

    Raises:
        ConfigurationError: The file cannot be read, or is none.
    """
    if settings.pii_recognizers is None:
        return ()
    from ..privacy.models.custom_recognizers import to_analyzers  # noqa: PLC0415 - slow

    try:
        return to_analyzers([settings.pii_recognizers])
    except ConfigurationError as exc:
        raise ConfigurationError(f"MNEMOSCOPE_PII_RECOGNIZERS: {exc}") from None


def configured_redactor(
    settings: Settings,
    keys: SubjectKeys,
    recognizers: Iterable[Any] = (),
    ask: Callable[[Redactor], TextRedactor] | None = None,
) -> Redactor:
    """Return what replaces personal data by *settings*; see `build_redactor`, which raises."""
    return build_redactor(
        model=settings.pii_model,
        keys=keys,
        operators=settings.pii_operators,
        lists=read_term_lists(settings.pii_allow, settings.pii_deny),
        recognizers=(*configured_registries(settings), *recognizers),
        limits=Limits(max_chars=settings.pii_most_characters),
        ask=ask,
    )


def configured_keys(settings: Settings) -> SubjectKeys | None:
    """
    Return the subject keys under *settings*, or None if none were made yet. Makes none.

    Raises:
        ConfigurationError: They cannot be used.
    """
    if not settings.has_key and not settings.key_file.exists():
        return None
    try:
        return SubjectKeys(secret_of(settings))
    except (ValueError, OSError) as exc:
        raise ConfigurationError(str(exc)) from None


def key_use_of(settings: Settings, keys: SubjectKeys) -> KeyUse:
    """Return what is known of the key that *settings* lead to, before a client is wrapped."""
    use = KeyUse(keys.key, is_given=settings.has_key)
    audits = settings.sinks is None or "audit" in settings.sinks
    use.note_store("audit", shared=audits and (settings.audit_url or "").startswith("postgres"))
    return use


def secret_of(settings: Settings) -> bytes:
    """
    Return the secret that the keys of a scope are made from, and make one where there is none.

    Raises:
        ValueError: It cannot be used, or reading may make none.
        OSError: Its file cannot be read or written.
    """
    from ...audit.record.keys import load_secret, parse_secret, read_secret  # noqa: PLC0415

    given, file = settings.audit_pseudonym_key, settings.audit_pseudonym_key_file
    variable = "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY"
    try:
        if given is not None:
            return parse_secret(given.get_secret_value())
        variable += "_FILE"
        if file is not None:
            return read_secret(file)
    except ValueError as exc:
        raise ValueError(f"{variable}: {exc}") from exc
    if not (_makes_keys.get() or settings.key_file.exists()):
        open_audit_log(settings)  # it says which of the two is missing
    return load_secret(settings.key_file)


def previous_keys(settings: Settings) -> list[SubjectKeys]:
    """
    Return the keys that were used before the current one.

    Raises:
        ValueError: One is no key.
    """
    from ...audit.record.keys import parse_previous  # noqa: PLC0415 - as above

    given = settings.audit_previous_keys
    return parse_previous(given.get_secret_value() if given is not None else "")


# -- files that a scope keeps things in --

_NEVER_RIGHT = (FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


def build_journal(settings: Settings, keys: SubjectKeys, faults: Faults) -> Journal | None:
    """
    Return the write journal, opened if it can be.

    Raises:
        OSError: Its path can never be right.
        ConfigurationError: It is no journal of ours, or open to other users.
    """
    if settings.journal is None:
        return None
    from ..journal.inspection import reason  # noqa: PLC0415 - only where it is wanted
    from ..journal.journal import Journal  # noqa: PLC0415 - only where it is wanted

    journal = Journal(
        settings.journal,
        key=keys.key("journal"),
        faults=faults,
        max_bytes=settings.journal_max_bytes,
    )
    try:
        journal.open()
    except _NEVER_RIGHT:
        raise
    except OSError as exc:
        faults.note("journal.open", exc)  # a full disk, say: it is tried again
        logger.warning(
            "MNEMOSCOPE_JOURNAL: %s %s. Until it can be used, writes that a store does not take "
            "are lost, and deletions may be refused",
            settings.journal,
            reason(exc),
        )
    return journal


def build_vault(settings: Settings, keys: SubjectKeys, faults: Faults) -> Vault | None:
    """
    Return the vault, opened if it can be.

    Raises:
        OSError: Its path can never be right.
        ConfigurationError: It is no vault of this version, or damaged.
    """
    if settings.vault is None:
        return None
    from ..privacy.vault.vault import Vault  # noqa: PLC0415 - only where it is wanted

    vault = Vault(settings.vault, keys=keys, previous=previous_keys(settings), faults=faults)
    try:
        vault.file.open()
    except _NEVER_RIGHT:
        raise
    except sqlite3.DatabaseError as exc:
        if not isinstance(exc, sqlite3.OperationalError):
            raise ConfigurationError(
                f"{settings.vault} is no vault of this version, or damaged: choose another file, "
                "or restore it"
            ) from None
        faults.note("vault.open", exc)  # locked, say: it is tried again
    except OSError as exc:
        faults.note("vault.open", exc)
    return vault
