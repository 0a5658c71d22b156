"""
Attributes of spans whose values are structure, by OpenTelemetry's conventions.

What is not in these tables is text, and is redacted as such: URLs too, since people are named in
their paths and queries.
"""

from __future__ import annotations

import re
from typing import Final

from .conventions import openinference, semconv


def words(text: str) -> frozenset[str]:
    """Return the words of *text*, for a table of them."""
    return frozenset(text.split())


NAMES: Final = words("""
    code.function code.function.name code.namespace db.operation db.operation.name db.system
    db.system.name db.collection.name error.type exception.type gen_ai.operation.name
    gen_ai.output.type gen_ai.provider.name gen_ai.request.model gen_ai.response.finish_reasons
    gen_ai.response.model gen_ai.system gen_ai.token.type gen_ai.tool.type http.method
    http.request.method http.scheme llm.request.type messaging.operation.name
    messaging.operation.type messaging.system network.protocol.name network.transport network.type
    openinference.span.kind otel.status_code rpc.method rpc.service rpc.system
    telemetry.sdk.language telemetry.sdk.name traceloop.span.kind url.scheme
""")
"""Names and words of closed sets. A value that has not the form of one is text after all."""

NAME: Final = re.compile(r"[A-Za-z_][\w.:/-]{0,127}", re.ASCII)

IDS: Final = words("""
    gen_ai.agent.id gen_ai.conversation.id gen_ai.openai.response.system_fingerprint
    gen_ai.response.id gen_ai.tool.call.id messaging.message.conversation_id messaging.message.id
    session.id session.previous_id
""")
"""Ids: left as they are if a machine made them."""

PEOPLE: Final = words("""
    enduser.id langfuse.user.id langsmith.metadata.user_id llm.user
    traceloop.association.properties.user_id user.email user.full_name user.id user.name
""")
"""Who the span is about: replaced wherever it stands in the span, whatever its form."""

SECRETS: Final = words("""
    access_token api-key api_key apikey auth_token authorization bearer_token client_secret cookie
    credentials id_token passphrase passwd password private_key proxy-authorization
    proxy_authorization pwd refresh_token secret session_token set-cookie set_cookie
    x-amz-security-token x-api-key x-auth-token x-goog-api-key x_api_key x_auth_token
""")
"""Last words of keys, of headers above all, whose values are secrets whatever their form."""

OURS: Final = frozenset(
    value
    for name, value in vars(semconv).items()
    if name.isupper() and isinstance(value, str) and not name.startswith("METRIC_")
).union(openinference.DOCUMENT_IDS)
"""Attributes of this package's own spans, which are redacted when they are made."""
