"""
Guard a Qdrant client: redacted payloads, filters that still find them, each customer their own.

Runs offline, on Qdrant in memory.

Prints:
    stored: {'email': '<EMAIL_ADDRESS_…>', 'text': 'Call <EMAIL_ADDRESS> about the tea'}
    found by address: [1]
    found for c-42: [1, 2]
    denied: qdrant.delete names another customer than its context, and tenancy is enforced
    while the store is down: 0 points, degraded
    delete raises: RuntimeError
"""

import re

from qdrant_client import QdrantClient, models

from mnemoscope.memory import ScopeError, configure, context

scope = configure(sinks=[], pii_model="none", tenancy="enforce")
inner = QdrantClient(":memory:")
client = scope.qdrant(inner, owner_key="customer_id")


def equals(key: str, value: str) -> models.Filter:
    """Return the filter ``key == value``."""
    return models.Filter(
        must=[models.FieldCondition(key=key, match=models.MatchValue(value=value))]
    )


client.create_collection(
    "notes", vectors_config=models.VectorParams(size=2, distance=models.Distance.COSINE)
)
notes = {
    "c-42": [
        {"email": "ada@example.com", "text": "Call ada@example.com about the tea"},
        {"text": "Prefers green tea"},
    ],
    "c-43": [{"email": "bob@example.com", "text": "Prefers coffee"}],
}
number = 0
for customer, payloads in notes.items():
    with context(tenant="acme", customer=customer):
        for payload in payloads:
            number += 1
            point = models.PointStruct(id=number, vector=[1.0, number / 10], payload=payload)
            client.upsert("notes", points=[point])

stored = inner.retrieve("notes", ids=[1])[0].payload or {}
shown = {key: re.sub("_[0-9a-f]{16}>", "_…>", str(stored[key])) for key in ("email", "text")}
print("stored:", shown)

with context(tenant="acme", customer="c-42"):
    found, _ = client.scroll("notes", scroll_filter=equals("email", "ada@example.com"))
    print("found by address:", [each.id for each in found])
    print("found for c-42:", [each.id for each in client.query_points("notes", [1.0, 0.0]).points])
    try:
        client.delete("notes", points_selector=equals("customer_id", "c-43"))
    except ScopeError as denied:
        print("denied:", denied)

    inner.close()
    points = client.query_points("notes", [1.0, 0.0]).points
    outcome = scope.last_outcome()
    assert outcome is not None
    print(f"while the store is down: {len(points)} points, {outcome.status}")
    try:
        client.delete("notes", points_selector=[1])
    except RuntimeError as raised:
        print("delete raises:", type(raised).__name__)

scope.close()
