"""Text without personal data stays as it is, byte for byte."""

# ruff: noqa: E501 - samples are as long as they are

import pytest

TEXTS = {
    "invoice": """Invoice INV-2024-000123
Date: 2024-05-01   Due: 2024-05-31
Item            Qty   Unit price    Total
Widget A        12    19.99         239.88
Subtotal 249.38  VAT 20% 49.88  Total 299.26 EUR
PO number 4500012345, order 8812345678, SKU 00123456789""",
    "code": '''def add(self, messages: list[dict[str, Any]], *, user_id: str | None = None) -> dict:
    """Add messages to the memory store and return results."""
    token_count, max_tokens = len(messages) * 4, 4096
    password = os.environ["DB_PASSWORD"]
    api_key: str = settings.api_key
    secret = get_secret("prod/db")
    @decorator
    class Matrix: c = a @ b''',
    "json": """{"id": "550e8400-e29b-41d4-a716-446655440000", "created_at": "2024-05-01T12:34:56.789Z",
"updated_at": 1714567890123, "version": "1.2.3", "count": 1234567, "score": 0.9876543210,
"hash": "d41d8cd98f00b204e9800998ecf8427e", "status": "active", "tags": ["alpha", "beta"]}""",
    "python trace": """Traceback (most recent call last):
  File "/usr/lib/python3.12/site-packages/qdrant_client/http/api_client.py", line 106, in send
    raise ResponseHandlingException(e)
ValueError: could not convert string to float: 'abc'""",
    "java trace": """java.lang.NullPointerException: Cannot invoke "String.length()" because "s" is null
\tat com.example.app.UserService.findUser(UserService.java:42)""",
    "log": """2024-05-01 12:34:56,789 INFO  [worker-3] qdrant.client: upserted 128 points in 0.034 s
2024-05-01T12:34:57.001Z ERROR host=127.0.0.1 port=6333 status=503 duration_ms=1523""",
    "sql": "SELECT id, payload->>'type' FROM memories WHERE score > 0.75 ORDER BY score DESC LIMIT 20;",
    "versions": "qdrant-client==1.16.2 langgraph==1.2.22; Chrome/120.0.6099.109; driver version 1.2.3.4",
    "git": "git clone git@github.com:org/repo.git; lodash@4.17.21; commit 3f9a1c2e7b8d4f5a6b7c8d9e0f1a2b3c",
    "yaml": "kind: Deployment\nmetadata:\n  name: mnemoscope\nspec:\n  containers:\n    - name: nginx",
    "timestamps": "const ts = 1700000000000; const big = 12345678901234567890n; nanos 1714567890123456789",
    "prose": "The user prefers window seats and vegetarian meals. They like short answers and dark mode.",
    "numbers": "We sold 1,234,567 units in 2023 at 19.99 each; 45 minutes; room 12; 10:00 to 14:30.",
    "places": "Berlin is the capital of Germany. Acme Corp opened an office in Paris in March 2021.",
    "organisations": "Southern Rail was late. Estudió en la Academia de San Jorge.",
    "products": "Uses PostgreSQL 16 with pgvector. Prefers TypeScript over JavaScript. A LangGraph pipeline.",
    "secrets talk": "The password reset failed. The secret of good coffee is fresh beans. The session token expires.",
    "table": "| model | latency | cost |\n| gpt-4o-mini | 320 ms | 0.15 |\n| claude-3-5-sonnet | 780 ms | 3.00 |",
    "parts": "batch 20240501-7, serial no. SN0012345678, part 123-456-789, order #112-9876543-1234567",
    "url": "https://docs.example.com/v2/guide?lang=en&page=3#install and docker run -p 6333:6333 qdrant:v1.16.0",
    "a number of something": "Number: 12345678\nnumero: 12345679\nOrder number: 12345670",
    "numbers in JSON": '{"number": "12345678", "state": "open"} and {"numer": 1234567890}',
    "a word alone": "Golden",
    "tool": "a library called Foobar, a project named Apollo; add Redis caching; migrated to Kafka",
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_text_without_personal_data_is_unchanged(redactor, text):
    """Nothing is replaced where nobody is meant."""
    redaction = redactor.begin(tenant="acme", known=["ada@example.com"])

    assert redaction.text(text) == text
    assert redaction.counts == {}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_language_model_does_not_change_that(with_model, text):
    """Neither does a language model's fancy."""
    assert with_model.begin(tenant="acme").text(text) == text
