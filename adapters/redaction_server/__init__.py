"""
The redactor behind HTTP, for what is not Python: Langfuse's worker and OpenTelemetry Collectors.

Needs the extra `console`.
"""

from .application import RedactionService, build_redaction_server

__all__ = ["RedactionService", "build_redaction_server"]
