"""
Names of attributes and metrics by OpenTelemetry's conventions, half of which still move.

The GenAI conventions live in ``open-telemetry/semantic-conventions-genai`` (status: development).
The PyPI package ``opentelemetry-semantic-conventions`` has the ``gen_ai.*`` names but none of
``gen_ai.memory.*``, and keeps even the former in a private module. OpenInference's names are beside
them, for viewers that know these. Names under ``mnemoscope.*`` are our own: no convention has a
word for them yet.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
AGENT_NAME: Final = "gen_ai.agent.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"

MEMORY_STORE_ID: Final = "gen_ai.memory.store.id"
MEMORY_RECORD_ID: Final = "gen_ai.memory.record.id"
MEMORY_RECORD_COUNT: Final = "gen_ai.memory.record.count"

REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
REQUEST_TOP_K: Final = "gen_ai.request.top_k"
REQUEST_FREQUENCY_PENALTY: Final = "gen_ai.request.frequency_penalty"
REQUEST_PRESENCE_PENALTY: Final = "gen_ai.request.presence_penalty"
REQUEST_SEED: Final = "gen_ai.request.seed"
REQUEST_CHOICE_COUNT: Final = "gen_ai.request.choice.count"
REQUEST_STREAM: Final = "gen_ai.request.stream"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105 - the name of an attribute
USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
USAGE_CACHE_READ_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_CREATION_TOKENS: Final = "gen_ai.usage.cache_creation.input_tokens"
USAGE_REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"

USAGE_AUDIO_INPUT_TOKENS: Final = "gen_ai.usage.audio.input_tokens"
USAGE_IMAGE_INPUT_TOKENS: Final = "gen_ai.usage.image.input_tokens"
USAGE_AUDIO_OUTPUT_TOKENS: Final = "gen_ai.usage.audio.output_tokens"
EMBEDDINGS_DIMENSION_COUNT: Final = "gen_ai.embeddings.dimension.count"

DB_SYSTEM_NAME: Final = "db.system.name"
DB_OPERATION_NAME: Final = "db.operation.name"
DB_COLLECTION_NAME: Final = "db.collection.name"

SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

ERROR_TYPE: Final = "error.type"
ENDUSER_PSEUDO_ID: Final = "enduser.pseudo.id"

SPAN_KIND: Final = "openinference.span.kind"
CONTENT: Final = "input.value"
INPUT_MIME_TYPE: Final = "input.mime_type"
OUTPUT_VALUE: Final = "output.value"
OUTPUT_MIME_TYPE: Final = "output.mime_type"
SESSION_ID: Final = "session.id"
LLM_MODEL: Final = "llm.model_name"
LLM_PROVIDER: Final = "llm.provider"
LLM_TOKENS_PROMPT: Final = "llm.token_count.prompt"
LLM_TOKENS_COMPLETION: Final = "llm.token_count.completion"
LLM_TOKENS_TOTAL: Final = "llm.token_count.total"
LLM_TOKENS_CACHE_READ: Final = "llm.token_count.prompt_details.cache_read"
LLM_TOKENS_CACHE_WRITE: Final = "llm.token_count.prompt_details.cache_write"
LLM_TOKENS_REASONING: Final = "llm.token_count.completion_details.reasoning"
EMBEDDING_MODEL: Final = "embedding.model_name"

STREAM: Final = "mnemoscope.stream"
STORE: Final = "mnemoscope.store"
METHOD: Final = "mnemoscope.method"
AGENT: Final = "mnemoscope.agent"
CLASS: Final = "mnemoscope.class"
STATUS: Final = "mnemoscope.status"
NEUTRAL: Final = "mnemoscope.neutral"
LATE: Final = "mnemoscope.late"
JOURNAL: Final = "mnemoscope.journal"
NESTED: Final = "mnemoscope.nested"
WAITED_S: Final = "mnemoscope.waited_s"
TOP_SCORE: Final = "mnemoscope.top_score"
SIZE_BYTES: Final = "mnemoscope.size_bytes"
REDACTIONS: Final = "mnemoscope.redactions"
TENANT: Final = "mnemoscope.tenant"
FEATURE: Final = "mnemoscope.feature"
NODE: Final = "mnemoscope.node"
NAMESPACE: Final = "mnemoscope.namespace"
USAGE_REPORTED: Final = "mnemoscope.usage_reported"
COST_USD: Final = "mnemoscope.cost_usd"
EVENT_ID: Final = "mnemoscope.event_id"

PROVIDERS: Final = MappingProxyType(
    {
        "amazon_bedrock": "aws.bedrock",
        "aws_bedrock": "aws.bedrock",
        "azure": "azure.ai.openai",
        "azure_ai": "azure.ai.inference",
        "azure_openai": "azure.ai.openai",
        "bedrock": "aws.bedrock",
        "bedrock_converse": "aws.bedrock",
        "gemini": "gcp.gemini",
        "google_genai": "gcp.gemini",
        "google_vertexai": "gcp.vertex_ai",
        "ibm": "ibm.watsonx.ai",
        "mistral": "mistral_ai",
        "mistralai": "mistral_ai",
        "vertexai": "gcp.vertex_ai",
        "watsonx": "ibm.watsonx.ai",
        "xai": "x_ai",
    }
)
"""The conventions' names of providers, by those that clients have for them where these differ."""

METRIC_OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
METRIC_AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"
METRIC_TOOL_DURATION: Final = "gen_ai.execute_tool.duration"
METRIC_TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105 - the name of a metric
METRIC_TIME_TO_FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"

SECONDS_BUCKETS: Final = tuple(0.01 * 2**step for step in range(14))
"""0.01 to 81.92 s, as the conventions recommend for calls of models and tools."""

AGENT_SECONDS_BUCKETS: Final = tuple(0.1 * 2**step for step in range(13))
"""0.1 to 409.6 s, as they recommend for runs of agents."""

TOKENS_BUCKETS: Final = tuple(4.0**step for step in range(14))
"""1 to 67,108,864 tokens, as the conventions recommend."""
