"""
Search documents by meaning and by words, through a guard that redacts before encoding.

Runs offline: Qdrant in memory, and the embedding model in the wheel of ``wordllama``.

Prints:
    When do I get my money back? -> Refunds are paid within five working days.
    pump failure E4711 -> Error E4711: the pump is blocked, ask <EMAIL_ADDRESS>.
    Whom do I ask about E4711? -> Error E4711: the pump is blocked, ask <EMAIL_ADDRESS>.
    among opening hours: ['The library opens at nine in the morning.']
    query_points: ok, 1 hits
"""

from qdrant_client import QdrantClient, models

from mnemoscope.hybrid_search import Document, HybridIndex
from mnemoscope.memory import configure, context

scope = configure(sinks=[], pii_model="none")
client = QdrantClient(":memory:")
index = HybridIndex(scope.qdrant(client, public=True), "help")
index.create()
index.upsert(
    [
        Document(id=1, text="Refunds are paid within five working days."),
        Document(
            id=2,
            text="Error E4711: the pump is blocked, ask karl@example.com.",
        ),
        Document(id=3, text="Error E4712: the door of the machine is open."),
        Document(
            id=4,
            text="The library opens at nine in the morning.",
            payload={"about": "hours"},
        ),
    ]
)

with context(tenant="acme", feature="help", purpose="answer"):
    for question in (
        "When do I get my money back?",
        "pump failure E4711",
        "Whom do I ask about E4711?",
    ):
        print(question, "->", index.search(question, limit=1)[0].text)

    about = models.FieldCondition(key="about", match=models.MatchValue(value="hours"))
    hits = index.search("refunds", query_filter=models.Filter(must=[about]))
    print("among opening hours:", [each.text for each in hits])
    outcome = scope.last_outcome()
    assert outcome is not None
    print(f"{outcome.method}: {outcome.status}, {outcome.hits} hits")

scope.close()
client.close()
