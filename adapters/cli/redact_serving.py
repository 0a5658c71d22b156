"""``mnemoscope redact --serve``: what must hold before the redactor listens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...memory.errors import ConfigurationError
from ...memory.privacy.engine.redaction import CallBound, Redaction, within
from ...telemetry.network.probe import is_loopback

if TYPE_CHECKING:
    from ...memory.privacy.engine.redactor import Redactor

_SECRET_CHARS = 16
_LOADING_S = 120.0


class Listening(NamedTuple):
    """
    Where the redactor listens, and who may ask it.

    Attributes:
        host: Address, and `port` of it.
        secret_file: File of the secret that callers send. None: they need none.
        forward: Address of the OTLP/HTTP receiver that documents go on to.
        certificate: PEM file of the certificate, with its key in `key`. None: no TLS.
        key: PEM file of the key.
    """

    host: str
    port: int
    secret_file: Path | None = None
    forward: str | None = None
    certificate: Path | None = None
    key: Path | None = None

    def check(self) -> None:
        """
        Check that no stranger can listen in, or ask.

        Raises:
            ConfigurationError: Others could reach it, and it has no secret or no TLS.
        """
        if bool(self.certificate) != bool(self.key):
            raise ConfigurationError("pass both of --tls-cert and --tls-key, or neither")
        if not (is_loopback(self.host) or (self.secret_file and self.certificate)):
            raise ConfigurationError(
                "--host beyond this machine needs --secret-file, --tls-cert and --tls-key"
            )

    def secret(self) -> str | None:
        """
        Return the secret.

        Raises:
            ConfigurationError: It is short enough to be guessed.
        """
        if self.secret_file is None:
            return None
        secret = self.secret_file.read_text(encoding="utf-8").strip()
        if len(secret) < _SECRET_CHARS:
            raise ConfigurationError(f"--secret-file: expected at least {_SECRET_CHARS} characters")
        return secret


def serve_redactor(redactor: Redactor, tenant: str | None, listening: Listening) -> None:
    """
    Serve until the process is told to stop.

    Raises:
        ConfigurationError: The address, the secret or what TLS needs makes no sense, or the extra
            is not installed.
    """
    try:
        import uvicorn

        from ..redaction_server.application import RedactionService, build_redaction_server
    except ImportError as exc:
        raise ConfigurationError(
            f"redact --serve needs {exc.name}: pip install 'mnemoscope[console]'"
        ) from exc
    listening.check()
    service = RedactionService(
        document_redactor(redactor, tenant), listening.secret(), listening.forward
    )
    # First: the first document would wait for the model, longer than its caller does.
    if not redactor.prepare(_LOADING_S):
        raise ConfigurationError("the redactor could not be loaded: see mnemoscope doctor")
    uvicorn.run(
        build_redaction_server(service),
        host=listening.host,
        port=listening.port,
        log_level="warning",
        access_log=False,  # addresses of callers are nobody's business
        server_header=False,
        ws="none",
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
    )


def document_redactor(redactor: Redactor, tenant: str | None) -> Callable[[Any], Any]:
    """Return what redacts an OTLP document by *redactor*."""
    from ...telemetry.otlp.redacted_document import redact_document
    from ...telemetry.process.faults import Faults

    faults = Faults()

    def begin(people: Sequence[str]) -> Redaction:
        return redactor.begin(tenant=tenant, known=people, extent=within(CallBound(cuts=True)))

    return lambda document: redact_document(
        document, begin, lambda exc: faults.note("redaction_server", exc)
    )
