"""
The table of what is supported, in docs/supported.md: versions of what is tested, and the tests.

    python -m tests.kit.supported

writes it anew. Versions are those of the environment that runs this, and of the environments of
tests/doors, which their requirements pin.

    python -m tests.kit.supported lowest

writes down that the tests passed with the versions of the environment that runs this, as do
`make test-lowest` and `make test-newest` where nothing failed.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tests.kit.bounds import pins

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "supported.md"
TESTED = Path(__file__).with_name("tested_versions.json")
"""Versions by library, by Python, by `lowest` and `newest`: what passed."""
KINDS = ("contract", "conformance", "quick start", "export and erasure")

_ADAPTERS = "tests/adapters"
_SAVER = f"{_ADAPTERS}/langgraph/checkpoint"
_DOORS = "tests/doors"
_HERE = {
    "contract": f"{_ADAPTERS}/test_contract.py::test_an_adapter_keeps_the_contract",
    "export and erasure": (
        f"{_ADAPTERS}/test_erasing_everywhere.py::test_any_customer_is_forgotten_once_and_twice"
    ),
}
_KIT = {
    "conformance": (
        f"{_SAVER}/test_conformance.py::test_a_guarded_saver_conforms_where_the_bare_one_does"
    )
}
_PERSON = f"{_ADAPTERS}/langgraph/test_subject_data.py"
_LEFT = f"{_PERSON}::test_nothing_of_them_is_left"
_IN_POSTGRESQL = "test_a_guarded_saver_in_postgresql_conforms_where_the_bare_one_does"
_VECTORS = f"{_ADAPTERS}/langchain_vectors/test_vector_stores.py"
_BACKENDS = f"{_DOORS}/langgraph_backends"
_SAVERS = {
    "conformance": (
        f"{_BACKENDS}/test_savers.py::test_a_guarded_saver_conforms_where_the_bare_one_does"
    ),
    "quick start": f"{_BACKENDS}/test_savers.py::test_its_quick_start_works_on_a_guarded_saver",
    "export and erasure": (
        f"{_BACKENDS}/test_savers.py::test_the_threads_of_a_customer_are_exported_and_erased"
    ),
}
_STORES = {
    "quick start": f"{_BACKENDS}/test_stores.py::test_its_quick_start_works_on_a_guarded_store",
    "export and erasure": (
        f"{_BACKENDS}/test_stores.py::test_a_customers_items_are_exported_and_erased"
    ),
}
_TABLES, _GRAPHS = f"{_ADAPTERS}/pgvector", f"{_ADAPTERS}/graphiti"
_CHROMA, _REDIS = f"{_ADAPTERS}/chroma", f"{_ADAPTERS}/redis"
_OPENAI, _LLAMA, _CREW = (f"{_DOORS}/{each}" for each in ("openai_agents", "llama_index", "crewai"))
_MICROSOFT = f"{_DOORS}/agent_framework/test_history.py"
_AGENTS = f"{_DOORS}/langgraph_agents/test_quick_starts.py"


class Supported(NamedTuple):
    """
    A row of the table.

    Attributes:
        what: Classes or the library, as the page names them.
        distribution: Its name on the package index.
        proofs: The test by the kind of proof.
        door: The folder of tests/doors whose environment it is in. Empty: the project's own.
        cannot_tell: What no test shows, and why. Empty: nothing.
    """

    what: str
    distribution: str
    proofs: dict[str, str]
    door: str = ""
    cannot_tell: str = ""


SUPPORTED = (
    Supported("`Memory`, `AsyncMemory`, `MemoryClient`, `AsyncMemoryClient`", "mem0ai", _HERE),
    Supported("`QdrantClient`, `AsyncQdrantClient`", "qdrant-client", _HERE),
    Supported("`InMemoryStore`", "langgraph-checkpoint", _HERE),
    Supported("`InMemorySaver`", "langgraph-checkpoint", {**_HERE, **_KIT}),
    Supported(
        "`SqliteStore`, `AsyncSqliteStore`",
        "langgraph-checkpoint-sqlite",
        {"export and erasure": _LEFT},
    ),
    Supported(
        "`SqliteSaver`, `AsyncSqliteSaver`",
        "langgraph-checkpoint-sqlite",
        {**_KIT, "export and erasure": _LEFT},
    ),
    Supported(
        "`PostgresStore`",
        "langgraph-checkpoint-postgres",
        {"export and erasure": f"{_PERSON}::test_a_store_forgets"},
    ),
    Supported(
        "`PostgresSaver`",
        "langgraph-checkpoint-postgres",
        {
            "conformance": f"{_SAVER}/test_conformance.py::{_IN_POSTGRESQL}",
            "export and erasure": f"{_PERSON}::test_a_checkpointer_forgets",
        },
    ),
    Supported(
        "`AsyncPostgresSaver`",
        "langgraph-checkpoint-postgres",
        {
            "conformance": f"{_SAVER}/test_conformance.py::{_IN_POSTGRESQL}",
            "export and erasure": f"{_ADAPTERS}/test_any_id.py::test_any_id_is_found_and_erased",
        },
    ),
    Supported(
        "`RedisSaver`, `AsyncRedisSaver`, and shallow",
        "langgraph-checkpoint-redis",
        {
            "conformance": (
                f"{_SAVER}/test_redis.py::test_a_guarded_saver_conforms_where_the_bare_one_does"
            ),
            "quick start": f"{_SAVER}/test_redis.py::test_its_quick_start_works_on_a_guarded_saver",
            "export and erasure": (
                f"{_SAVER}/test_redis.py::test_a_customers_threads_are_exported_and_erased"
            ),
        },
    ),
    Supported(
        "`RedisStore`, `AsyncRedisStore`",
        "langgraph-checkpoint-redis",
        _STORES,
        "langgraph_backends",
        "with redisvl below 0.28; namespaces of several labels: see below",
    ),
    Supported(
        "`ValkeySaver`, `AsyncValkeySaver`",
        "langgraph-checkpoint-aws",
        _SAVERS,
        "langgraph_backends",
    ),
    Supported(
        "`ValkeyStore`, `AsyncValkeyStore`",
        "langgraph-checkpoint-aws",
        _STORES,
        "langgraph_backends",
        "search by vectors",
    ),
    Supported(
        "`DynamoDBSaver`",
        "langgraph-checkpoint-aws",
        {name: test for name, test in _SAVERS.items() if name != "export and erasure"},
        "langgraph_backends",
        "AWS itself; export and erasure, since it lists one thread alone",
    ),
    Supported(
        "`DynamoDBStore`",
        "langgraph-checkpoint-aws",
        _STORES,
        "langgraph_backends",
        "AWS itself; search by vectors",
    ),
    Supported(
        "`DynamoDBStore`",
        "langgraph-store-dynamodb",
        _STORES,
        "langgraph_backends",
        "AWS itself; search by vectors",
    ),
    Supported(
        "`MongoDBSaver`",
        "langgraph-checkpoint-mongodb",
        _SAVERS,
        "langgraph_backends",
        "MongoDB itself",
    ),
    Supported(
        "`InMemoryVectorStore`",
        "langchain-core",
        {
            "quick start": f"{_VECTORS}::test_the_quick_start_works_behind_the_guard",
            "export and erasure": f"{_VECTORS}::test_what_was_erased_is_in_no_file",
        },
    ),
    Supported(
        "`Collection` of Chroma, sync and async",
        "chromadb",
        {
            "contract": (
                f"{_CHROMA}/test_contract.py::test_a_collection_in_a_folder_keeps_the_contract"
            ),
            "quick start": (
                f"{_CHROMA}/test_collections.py::test_the_quick_start_works_behind_the_guard"
            ),
            "export and erasure": (
                f"{_CHROMA}/test_collections.py::test_all_pages_are_listed_and_erased"
            ),
        },
        cannot_tell="Chroma's own service; an embedded one keeps ids in its queue",
    ),
    Supported(
        "`SearchIndex`, `AsyncSearchIndex` of Redis",
        "redisvl",
        {
            "contract": f"{_REDIS}/test_contract.py::test_an_index_keeps_the_contract",
            "quick start": (
                f"{_REDIS}/test_indexes.py::test_the_quick_start_works_behind_the_guard"
            ),
            "export and erasure": (
                f"{_REDIS}/test_indexes.py::test_all_pages_are_listed_and_erased"
            ),
        },
        cannot_tell="a cluster; keys that the index does not have",
    ),
    Supported(
        "`VectorTable`, `AsyncVectorTable`",
        "psycopg",
        {
            "contract": f"{_TABLES}/test_contract.py::test_a_described_table_keeps_the_contract",
            "export and erasure": (
                f"{_TABLES}/test_tables.py::"
                "test_what_was_erased_is_in_no_file_once_postgresql_has_rewritten_them"
            ),
        },
    ),
    Supported(
        "Knowledge graphs, on FalkorDB and Kuzu",
        "graphiti-core",
        {
            "contract": f"{_GRAPHS}/test_contract.py::test_a_graph_keeps_the_contract",
            "quick start": (
                f"{_GRAPHS}/test_graphs.py::test_the_quick_start_works_behind_the_guard"
            ),
            "export and erasure": (
                f"{_GRAPHS}/test_graphs.py::test_a_group_is_listed_and_erased_and_the_others_stay"
            ),
        },
        cannot_tell="Neo4j and Neptune; sagas on Kuzu",
    ),
    Supported(
        "LangMem's tools and manager",
        "langmem",
        {"quick start": f"{_AGENTS}::test_langmem_remembers_redacted_and_finds_it_again"},
        "langgraph_agents",
    ),
    Supported(
        "Deep agents, files in a store",
        "deepagents",
        {"quick start": f"{_AGENTS}::test_deepagents_keeps_its_files_in_the_guarded_store"},
        "langgraph_agents",
    ),
    Supported(
        "A supervisor's team",
        "langgraph-supervisor",
        {"quick start": f"{_AGENTS}::test_a_supervisors_team_is_one_run"},
        "langgraph_agents",
    ),
    Supported(
        "A swarm",
        "langgraph-swarm",
        {"quick start": f"{_AGENTS}::test_a_swarm_finds_its_active_agent_in_the_guarded_saver"},
        "langgraph_agents",
    ),
    Supported(
        "Sessions of the OpenAI Agents SDK",
        "openai-agents",
        {
            "contract": f"{_OPENAI}/test_sessions.py::test_a_session_keeps_the_contract",
            "quick start": f"{_OPENAI}/test_run.py::test_a_conversation_goes_on_over_three_turns",
            "export and erasure": (
                f"{_OPENAI}/test_sessions.py"
                "::test_a_customer_is_exported_and_erased_with_all_their_sessions"
            ),
        },
        "openai_agents",
    ),
    Supported(
        "History providers of Microsoft's Agent Framework",
        "agent-framework-core",
        {
            "contract": f"{_MICROSOFT}::test_the_provider_keeps_the_contract",
            "quick start": f"{_MICROSOFT}::test_a_conversation_goes_on_over_two_turns",
            "export and erasure": (
                f"{_MICROSOFT}::test_a_customer_is_exported_and_erased_with_all_their_sessions"
            ),
        },
        "agent_framework",
        "Redis and other databases of its sessions",
    ),
    Supported(
        "Memories and chat stores of LlamaIndex",
        "llama-index-core",
        {
            "contract": f"{_LLAMA}/test_contract.py::test_each_kind_keeps_the_contract",
            "quick start": (
                f"{_LLAMA}/test_agents.py::test_an_agent_with_memory_works_as_its_page_says"
            ),
            "export and erasure": (
                f"{_LLAMA}/test_agents.py::test_a_customers_sessions_are_exported_and_erased"
            ),
        },
        "llama_index",
        "PostgreSQL as its database",
    ),
    Supported(
        "Memory storages of CrewAI",
        "crewai",
        {
            "contract": f"{_CREW}/test_contract.py::test_lancedb_in_a_folder_keeps_the_contract",
            "quick start": (
                f"{_CREW}/test_memory.py::test_the_quick_start_of_memory_works_behind_the_guard"
            ),
            "export and erasure": (
                f"{_CREW}/test_memory.py::test_a_customers_records_are_exported_and_erased"
            ),
        },
        "crewai",
        "Qdrant Edge as its storage",
    ),
)

BOUNDED = (
    "mem0ai",
    "qdrant-client",
    "langchain-core",
    "langgraph",
    "langgraph-checkpoint-sqlite",
    "langgraph-checkpoint-postgres",
    "langsmith",
    "fastmcp",
    "opentelemetry-sdk",
    "presidio-analyzer",
    "pydantic",
)
"""Wrapped libraries, and those that the rest stands on, with bounds of our own."""


def version_of(row: Supported) -> str:
    """Return the version that the tests of a row run with."""
    if not row.door:
        return version(row.distribution)
    wanted = (ROOT / _DOORS / row.door / "requirements.txt").read_text("utf-8")
    found = re.search(rf"^{row.distribution}(\[.*\])?==(\S+)$", wanted, re.MULTILINE)
    if found is None:
        raise LookupError(f"{row.door} has no pin of {row.distribution}")
    return found[2]


def support_table() -> str:
    """Return the table of what is supported."""
    lines = [
        f"| what | tested with | {' | '.join(KINDS)} | cannot tell |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in SUPPORTED:
        proofs = " | ".join("yes" if kind in row.proofs else "" for kind in KINDS)
        cells = f"{row.what} | {row.distribution} {version_of(row)} | {proofs} | {row.cannot_tell}"
        lines.append(f"| {cells} |".replace("  ", " "))
    return "\n".join(lines)


def version_table() -> str:
    """Return the versions of each library that are tested, and on which Pythons they passed."""
    required = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    tested = json.loads(TESTED.read_text("utf-8"))
    newest = tested["newest"].values()
    lowest = dict(each.partition(";")[0].strip().split("==") for each in pins())
    pinned = (ROOT / "constraints.txt").read_text("utf-8").replace("_", "-").splitlines()
    low, high = (_listed(tested[kind]) for kind in ("lowest", "newest"))
    lines = [
        f"Python {required['requires-python']}. The lowest passed on {low}, the newest on {high}.",
        "",
        "| library | lowest | all other tests | newest |",
        "|---|---|---|---|",
    ]
    for name in BOUNDED:
        others = next(each.partition("==")[2] for each in pinned if each.startswith(f"{name}=="))
        highest = ", ".join(sorted({versions[name] for versions in newest}))
        lines.append(f"| {name} | {lowest[name]} | {others} | {highest or 'not yet'} |")
    return "\n".join(lines)


def _listed(pythons: Iterable[str]) -> str:
    *others, last = sorted(pythons) or ["none yet"]
    return f"{', '.join(others)} and {last}" if others else last


def record(kind: str) -> None:
    """Write down that the tests passed here, with the `lowest` or the `newest` versions."""
    tested = json.loads(TESTED.read_text("utf-8"))
    here = ".".join(map(str, sys.version_info[:2]))
    tested[kind] = dict(sorted({**tested[kind], here: {n: version(n) for n in BOUNDED}}.items()))
    TESTED.write_text(json.dumps(tested, indent=2) + "\n", "utf-8")


def written(page: str) -> str:
    """Return the text of the page with both tables made anew."""
    for name, table in (("supported", support_table()), ("versions", version_table())):
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _old, end, after = rest.partition(f"<!-- /{name} -->")
        page = f"{before}{begin}{table}\n{end}{after}"
    return page


if __name__ == "__main__":
    if sys.argv[1:]:
        record(sys.argv[1])
    else:
        PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
