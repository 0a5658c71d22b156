"""The values of settings as keyword arguments, so that editors and type checkers know them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Literal, TypedDict

from .secret import Secret


class SettingValues(TypedDict, total=False):
    """What `configure` and `load_settings` take: one key for each setting. See `Settings`."""

    sinks: Iterable[str] | str | None
    content_sinks: Iterable[str] | str
    features: Iterable[str] | str
    integrity: Literal["observe", "refuse", "refuse_unknown"] | None
    audit_url: str | None
    audit_mode: str
    audit_pseudonym_key: str | Secret | None
    audit_pseudonym_key_file: str | PathLike[str] | None
    audit_previous_keys: str | Secret | None
    audit_spool: str | PathLike[str] | None
    audit_spool_max_bytes: int
    audit_retention_days: int
    audit_retention_reason: str | None
    audit_shards: int
    log_file: str | PathLike[str] | None
    log_file_bytes: int
    log_files_kept: int
    log_to: Literal["loguru", "logging"]
    log_format: Literal["json", "ocsf"]
    tenancy: Literal["observe", "enforce"]
    client_telemetry: Literal["off"] | None
    pii_model: str | None
    pii_operators: Mapping[str, str] | str
    pii_allow: str | PathLike[str] | None
    pii_deny: str | PathLike[str] | None
    pii_recognizers: str | PathLike[str] | None
    pii_most_characters: int
    pii_too_large: Literal["refuse", "cut"]
    vault: str | PathLike[str] | None
    pii_reveal: Iterable[Literal["recall", "resume"]] | str
    shared_recalls_s: float
    deadline_recall_s: float
    deadline_remember_s: float
    deadline_forget_s: float
    deadline_resume_s: float
    deadline_checkpoint_s: float
    deadline_threads: bool
    concurrent_recall: int
    concurrent_remember: int
    concurrent_forget: int
    concurrent_resume: int
    concurrent_checkpoint: int
    wait_recall_s: float | None
    wait_remember_s: float | None
    wait_forget_s: float | None
    wait_resume_s: float | None
    wait_checkpoint_s: float | None
    journal: str | PathLike[str] | None
    journal_max_bytes: int
    retention: str | PathLike[str] | None
    growth_every_s: float
    growth_limits: Mapping[str, int] | str
    relay: str | PathLike[str] | None
    relay_max_bytes: int
    webhook_url: str | Secret | None
    webhook_secret: str | Secret | None
    webhook_format: Literal["standard", "slack"]
    webhook_events: Iterable[Literal["held", "stopped", "budget", "tripwire", "integrity"]] | str
    webhook_incoming_secret: str | Secret | None
    console_url: str | None
    raise_: Literal["unexpected"] | None
    prices: str | PathLike[str] | None
    prometheus_port: int | None
    prometheus_address: str
    disabled: bool
