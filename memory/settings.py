"""
Settings: from the environment (``MNEMOSCOPE_*``) and keyword arguments, checked when they are read.

The standard ``OTEL_*`` and ``LANGSMITH_*`` variables are read by the libraries they belong to.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs import user_data_path
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from ..telemetry.event import OperationClass
from .errors import ConfigurationError
from .journal import MAX_BYTES
from .ledger import parse_mode
from .policy import Policy

SinkName = Literal["otlp", "prometheus", "logs", "langsmith", "audit"]
SINK_NAMES: tuple[SinkName, ...] = ("otlp", "prometheus", "logs", "langsmith", "audit")

LEAST_RETENTION_DAYS = 183

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Settings(BaseModel):
    """
    What can be set, with the environment variable ``MNEMOSCOPE_<NAME>`` for each.

    Attributes:
        sinks: Which of the five. None: all that are configured.
        content_sinks: Sinks besides audit that are sent redacted content.
        audit_url: ``sqlite:///path`` or ``postgresql://…``. None: a file in the user's data folder.
        audit_mode: ``fail_open``: the agent never waits for the audit trail. ``durable``: a call
            returns when its event is on a disk. ``strict``: besides, it is refused where that
            cannot be. Both can be limited to classes: ``strict:forget,remember``.
        audit_pseudonym_key: Secret behind subject hashes, base64 or hex, at least 16 bytes. None:
            a file readable by its owner alone, made on first use.
        audit_previous_keys: Secrets before that one, or the next one while it is rolled out,
            separated by commas.
        audit_spool: Where events wait while the audit database takes nothing. None: a file in the
            user's data folder.
        audit_spool_max_bytes: How large that file may become; the oldest events make room then.
        audit_retention_days: After which events are removed, by whole months, 183 at least. The
            proofs of what stays hold. 0: never.
        log_file: JSON lines to this file, rotated. None: to what the host logs with.
        log_to: That: ``loguru``, or ``logging`` of the standard library, which structlog reads.
        tenancy: ``enforce`` refuses operations without the scope their store needs.
        pii_model: What finds names: a spaCy package or path, ``gliner:`` or ``transformers:`` and
            a model on this machine, or ``none``. None: the best spaCy model installed.
        pii_operators: What stands where personal data stood, by entity, for example
            ``PERSON=pseudonym,EMAIL_ADDRESS=mask,LOCATION=tag,*=tag``. Places, organisations,
            dates, ages and nationalities are kept unless they have an operator here.
        vault: Keeps what pseudonyms stand for in this file, encrypted for each customer, so that
            `Mnemoscope.reveal` can put it back. None: nothing is kept.
        deadline_recall_s: Seconds a recall may take; 0 means no deadline. The others likewise.
        journal: Keeps writes that a store does not take, and makes them again when it is back.
            None: such writes are counted as lost.
        journal_max_bytes: How large that file may become.
        prices: A JSON price file that extends or overrides the shipped one.
        prometheus_port: Serve ``/metrics`` on this port.
        disabled: Nothing at all happens; wrappers return the object they were given.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    sinks: tuple[SinkName, ...] | None = None
    content_sinks: tuple[SinkName, ...] = ()
    audit_url: str | None = None
    audit_mode: str = "fail_open"
    audit_pseudonym_key: SecretStr | None = None
    audit_previous_keys: SecretStr | None = None
    audit_spool: Path | None = None
    audit_spool_max_bytes: Annotated[int, Field(ge=1_048_576)] = 64 * 1024 * 1024
    audit_retention_days: Annotated[int, Field(ge=0)] = 400
    log_file: Path | None = None
    log_to: Literal["loguru", "logging"] = "loguru"
    tenancy: Literal["observe", "enforce"] = "observe"
    pii_model: str | None = None
    pii_operators: dict[str, str] = Field(default_factory=dict)
    vault: Path | None = None
    deadline_recall_s: Seconds = 2.0
    deadline_remember_s: Seconds = 10.0
    deadline_forget_s: Seconds = 30.0
    deadline_resume_s: Seconds = 10.0
    deadline_checkpoint_s: Seconds = 10.0
    journal: Path | None = None
    journal_max_bytes: Annotated[int, Field(ge=1_024)] = MAX_BYTES
    prices: Path | None = None
    prometheus_port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    disabled: bool = False

    @field_validator("sinks", "content_sinks", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("audit_mode")
    @classmethod
    def _known_mode(cls, value: str) -> str:
        parse_mode(value)
        return value

    @field_validator("audit_retention_days")
    @classmethod
    def _long_enough(cls, value: int) -> int:
        if 0 < value < LEAST_RETENTION_DAYS:
            raise ValueError(
                f"expected 0 or at least {LEAST_RETENTION_DAYS}: six months are the least that "
                "the EU AI Act lets a log be kept"
            )
        return value

    @field_validator("pii_operators", mode="before")
    @classmethod
    def _paired(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        if not all(name.strip() and operator.strip() for name, _, operator in pairs):
            raise ValueError("expected ENTITY=operator, and commas between such pairs")
        return {name.strip(): operator.strip() for name, _, operator in pairs}

    @property
    def policy(self) -> Policy:
        """The guards' policy that these settings ask for."""
        deadlines_s: dict[OperationClass, float] = {
            each: getattr(self, f"deadline_{each}_s")
            for each in OperationClass
            if each is not OperationClass.MODEL
        }
        return Policy(deadlines_s=deadlines_s, enforce_tenancy=self.tenancy == "enforce")

    @property
    def data_folder(self) -> Path:
        """Where files go that no setting places elsewhere."""
        return user_data_path("mnemoscope")

    @property
    def key_file(self) -> Path:
        """Where the pseudonym key is, unless a setting gives it."""
        return self.data_folder / "subject.key"


def load_settings(**given: Any) -> Settings:
    """
    Read the environment, with *given* on top.

    Raises:
        ConfigurationError: Names the variable and what is wrong with it, in one line, and never
            quotes the value: it may be a secret.
    """
    try:
        return Settings.model_validate(_from_environment(os.environ) | given)
    except ValidationError as exc:
        raise ConfigurationError("; ".join(map(_sentence, exc.errors()))) from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what is set there, by setting; the case of a variable's name does not matter."""
    # Not by pydantic-settings, whose import takes as long again as that of pydantic.
    told = {name.upper(): value for name, value in environment.items()}
    found = {name: told.get(f"MNEMOSCOPE_{name.upper()}") for name in Settings.model_fields}
    return {name: value for name, value in found.items() if value is not None}


def _sentence(error: Any) -> str:
    name = str(error["loc"][0]).lower()
    if error["type"] == "extra_forbidden":
        known = ", ".join(Settings.model_fields)
        return f"{name} is not a setting: expected one of {known}"
    message = str(error["msg"])
    return f"MNEMOSCOPE_{name.upper()}: {message[:1].lower()}{message[1:]}"
