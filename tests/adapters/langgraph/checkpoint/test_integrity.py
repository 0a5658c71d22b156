"""What is resumed, after somebody has been at the saver's database."""

from __future__ import annotations

import sqlite3
import tracemalloc
from contextlib import closing

import pytest
from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from mnemoscope.memory import IntegrityError
from tests.kit.sealed_scopes import findings

HEAD = {"configurable": {"thread_id": "t"}}
SERDE = JsonPlusSerializer()


@pytest.fixture
def database(tmp_path):
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        SqliteSaver(connection).setup()
        yield connection


def write(saver, count=3, thread="t", parent=None):
    """Write *count* checkpoints of a thread, each with a pending write; return their configs."""
    config = parent or {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    checkpoint, configs = empty_checkpoint(), []
    for step in range(count):
        checkpoint = create_checkpoint(checkpoint, None, step)
        checkpoint["channel_values"] = {"messages": [f"{thread} {step}"], "step": step}
        config = saver.put(config, checkpoint, {"source": "loop", "step": step}, {})
        saver.put_writes(config, [("messages", f"more {step}")], f"task-{step}")
        configs.append(config)
    return configs


def ids(configs):
    return [each["configurable"]["checkpoint_id"] for each in configs]


def rewrite(database, checkpoint_id, change):
    found = database.execute(
        "SELECT type, checkpoint FROM checkpoints WHERE checkpoint_id = ?", (checkpoint_id,)
    ).fetchone()
    checkpoint = SERDE.loads_typed(found)
    change(checkpoint)
    _, blob = SERDE.dumps_typed(checkpoint)
    database.execute(
        "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", (blob, checkpoint_id)
    )
    database.commit()


def refused(sealed, database, read=lambda saver: saver.get_tuple(HEAD)):
    """Return the code for which a process that has just begun refuses to read."""
    saver = sealed().checkpointer(SqliteSaver(database))
    with pytest.raises(IntegrityError) as caught:
        read(saver)
    return caught.value.found


def test_another_process_resumes_what_was_written(sealed, database):
    """All of it is known: none is let through for want of something to compare it with."""
    write(sealed().checkpointer(SqliteSaver(database)))
    scope = sealed("refuse_unknown")
    saver = scope.checkpointer(SqliteSaver(database))

    assert saver.get_tuple(HEAD).checkpoint["channel_values"]["step"] == 2
    assert len(list(saver.list(HEAD))) == 3
    assert findings(scope) == {}


def test_a_changed_channel_is_refused(sealed, database):
    """A value of the state that is resumed."""
    configs = write(sealed().checkpointer(SqliteSaver(database)))
    rewrite(database, ids(configs)[-1], lambda each: each["channel_values"].update(step=9))

    assert refused(sealed, database) == ("changed",)


def test_a_changed_way_is_refused(sealed, database):
    """Versions that nodes have seen decide which node is next."""
    configs = write(sealed().checkpointer(SqliteSaver(database)))
    rewrite(database, ids(configs)[-1], lambda each: each["versions_seen"].update(node={"a": "9"}))

    assert refused(sealed, database) == ("changed",)


def test_changed_metadata_is_refused(sealed, database):
    """Who wrote a step, and whether it was one."""
    write(sealed().checkpointer(SqliteSaver(database)))
    database.execute("""UPDATE checkpoints SET metadata = '{"source": "input", "step": -1}'""")

    assert refused(sealed, database) == ("changed",)


def test_the_state_of_another_thread_is_refused(sealed, database):
    """Though every byte of it was written by us."""
    saver = sealed().checkpointer(SqliteSaver(database))
    write(saver)
    write(saver, thread="other")
    database.execute(
        "UPDATE checkpoints SET checkpoint = (SELECT checkpoint FROM checkpoints "
        "WHERE thread_id = 'other' ORDER BY checkpoint_id DESC LIMIT 1) WHERE thread_id = 't'"
    )

    assert refused(sealed, database) == ("foreign",)


def test_a_head_that_was_removed_is_missed(sealed, database):
    """The thread would go on from an older state; asked for by its id, that state is right."""
    configs = write(sealed().checkpointer(SqliteSaver(database)))
    database.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (ids(configs)[-1],))
    scope = sealed("refuse_unknown")
    older = scope.checkpointer(SqliteSaver(database)).get_tuple(configs[1])

    assert refused(sealed, database) == ("older",)
    assert older.checkpoint["channel_values"]["step"] == 1
    assert findings(scope) == {}


def test_a_thread_that_was_removed_is_missed(sealed, database):
    """Else the graph would begin anew."""
    write(sealed().checkpointer(SqliteSaver(database)))
    database.execute("DELETE FROM checkpoints")

    assert refused(sealed, database) == ("missing",)


def test_a_step_that_was_removed_is_missed_in_a_list(sealed, database):
    """The states around it are right."""
    configs = write(sealed().checkpointer(SqliteSaver(database)))
    database.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (ids(configs)[1],))

    assert refused(sealed, database, lambda saver: list(saver.list(HEAD))) == ("missing",)


def test_a_state_that_nobody_wrote_is_refused(sealed, database):
    """Newer than one that is known, it is not from before there was a trail."""
    configs = write(sealed().checkpointer(SqliteSaver(database)))
    forged = ids(configs)[-1][:-4] + "ffff"
    database.execute(
        "INSERT INTO checkpoints SELECT thread_id, checkpoint_ns, ?, checkpoint_id, type, "
        "checkpoint, metadata FROM checkpoints WHERE checkpoint_id = ?",
        (forged, ids(configs)[-1]),
    )

    assert refused(sealed, database) == ("unwritten",)


def test_pending_writes_that_were_removed_are_missed(sealed, database):
    """The task that made them would be done twice."""
    write(sealed().checkpointer(SqliteSaver(database)))
    database.execute("DELETE FROM writes")

    assert refused(sealed, database) == ("missing",)


def test_a_pending_write_that_was_changed_is_refused(sealed, database):
    """A resumed task is given what it had written."""
    write(sealed().checkpointer(SqliteSaver(database)))
    kind, blob = SERDE.dumps_typed("something else")
    database.execute("UPDATE writes SET type = ?, value = ?", (kind, blob))

    assert refused(sealed, database) == ("changed",)


def test_a_pending_write_that_nobody_made_is_refused(sealed, database):
    """Its checkpoint is ours, so it would be known."""
    write(sealed().checkpointer(SqliteSaver(database)))
    database.execute("UPDATE writes SET task_id = 'another'")

    assert "unwritten" in refused(sealed, database)


def test_a_deleted_thread_that_is_back_is_refused(sealed, database):
    """A backup that was put back brings what was forgotten."""
    saver = sealed().checkpointer(SqliteSaver(database))
    write(saver)
    rows = database.execute("SELECT * FROM checkpoints").fetchall()
    saver.delete_thread("t")
    database.executemany("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", rows)

    assert refused(sealed, database) == ("deleted",)


def test_a_deleted_thread_begins_anew(sealed, database):
    """Nothing is missed of it."""
    saver = sealed().checkpointer(SqliteSaver(database))
    write(saver)
    saver.delete_thread("t")
    scope = sealed("refuse_unknown")
    saver = scope.checkpointer(SqliteSaver(database))
    assert saver.get_tuple(HEAD) is None
    write(saver, count=1)

    assert saver.get_tuple(HEAD).checkpoint["channel_values"]["step"] == 0
    assert findings(scope) == {}


def test_a_fork_is_no_rollback(sealed, database):
    """An older state that was asked for goes on, and what it leads to is the newest."""
    saver = sealed().checkpointer(SqliteSaver(database))
    configs = write(saver)
    write(saver, count=1, parent=configs[0])
    scope = sealed("refuse_unknown")
    saver = scope.checkpointer(SqliteSaver(database))

    assert saver.get_tuple(HEAD).parent_config["configurable"]["checkpoint_id"] == ids(configs)[0]
    assert len(list(saver.list(HEAD))) == 4
    assert findings(scope) == {}


def test_threads_from_before_are_unknown(sealed, database):
    """They are resumed, and it is said; what is written after them is known."""
    write(SqliteSaver(database))
    scope = sealed()
    saver = scope.checkpointer(SqliteSaver(database))
    head = saver.get_tuple(HEAD)
    write(saver, count=1, parent=head.config)

    assert findings(scope)["unknown"] > 0
    assert len(list(saver.list(HEAD))) == 4
    assert set(findings(scope)) == {"unknown"}


async def test_an_asynchronous_saver_is_compared_as_well(sealed, tmp_path):
    """On the loop, with lookups off it."""
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as bare:
        saver = sealed().checkpointer(bare)
        checkpoint = create_checkpoint(empty_checkpoint(), None, 0)
        checkpoint["channel_values"] = {"step": 0}
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        await saver.aput(config, checkpoint, {"source": "loop", "step": 0}, {})
        reader = sealed("refuse_unknown").checkpointer(bare)
        assert (await reader.aget_tuple(HEAD)) is not None
        assert len([each async for each in reader.alist(HEAD)]) == 1
        await bare.conn.execute("UPDATE checkpoints SET metadata = '{}'")
        with pytest.raises(IntegrityError, match="changed"):
            await reader.aget_tuple(HEAD)
        with pytest.raises(IntegrityError, match="changed"):
            _ = [each async for each in reader.alist(HEAD)]


def test_a_value_that_a_node_changed_in_place_is_no_alarm(sealed):
    """A saver that keeps a value for each version gives back the one that it was put with."""
    scope = sealed("refuse_unknown")
    saver = scope.checkpointer(InMemorySaver(), redact=False)
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    first = create_checkpoint(empty_checkpoint(), None, 0)
    live = ["one"]
    first["channel_values"], first["channel_versions"] = {"list": live}, {"list": 1}
    config = saver.put(config, first, {"source": "loop", "step": 0}, {"list": 1})
    live.append("two")
    second = create_checkpoint(first, None, 1)
    second["channel_values"], second["channel_versions"] = {"list": live}, {"list": 1}
    saver.put(config, second, {"source": "loop", "step": 1}, {})

    assert saver.get_tuple(HEAD).checkpoint["channel_values"] == {"list": ["one"]}
    assert findings(scope) == {}


@pytest.mark.parametrize("policy", ["observe", "refuse"])
def test_what_a_node_changes_after_it_was_stored_is_no_finding(sealed, database, policy):
    """The state of a run is alive: it is compared as it was when the saver had it."""
    scope = sealed(policy, trail=False)  # with no sink that would want to know before it changes
    saver = scope.checkpointer(SqliteSaver(database), redact=False)
    checkpoint = create_checkpoint(empty_checkpoint(), None, 0)
    checkpoint["channel_values"] = {"messages": ["one"], "facts": {"turn": 1}}
    written: list = [("messages", ["more"])]
    config = saver.put(
        {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint, {"step": 0}, {}
    )
    saver.put_writes(config, written, "task")
    checkpoint["channel_values"]["messages"].append("two")
    checkpoint["channel_versions"]["messages"] = 7
    written[0][1].append("other")

    found = saver.get_tuple(HEAD)
    assert found.checkpoint["channel_values"]["messages"] == ["one"]
    found.checkpoint["channel_values"]["messages"].append("three")
    found.checkpoint["channel_versions"]["facts"] = 8
    found.pending_writes[0][2].append("third")

    assert findings(scope) == {}


def test_observed_findings_are_in_the_event_of_their_read(sealed, database):
    """They are looked for when a sink wants to know, and so is what one of a list has."""
    configs = write(sealed().checkpointer(SqliteSaver(database)))
    rewrite(database, ids(configs)[1], lambda each: each["channel_values"].update(step=9))
    scope = sealed("observe")
    saver = scope.checkpointer(SqliteSaver(database))

    assert len(list(saver.list(HEAD))) == 3
    outcome = scope.last_outcome()
    saver.get_tuple(HEAD)
    clean = scope.last_outcome()

    assert [each.fields() for each in outcome.parts] == [{"integrity_violation": "changed"}]
    assert [dict(each.measurements()) for each in outcome.parts] == [{"changed": 1}]
    assert [(each.fields(), each.sealed()) for each in clean.parts] == [({}, None)]
    assert findings(scope) == {"changed": 1}


def test_a_parent_that_a_prune_removed_is_no_finding(sealed, postgres_pool):
    """PostgresSaver leaves what it keeps without a parent; of a thread it did not prune one is."""
    bare = PostgresSaver(postgres_pool)
    bare.setup()
    saver = sealed().checkpointer(bare)
    for thread in ("t", "edited"):
        write(saver, thread=thread)
    saver.prune(["t"], strategy="keep_latest")
    with postgres_pool.connection() as connection:
        connection.execute(
            "UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE thread_id = 'edited'"
        )
    scope = sealed("refuse_unknown")
    reader = scope.checkpointer(bare)

    assert reader.get_tuple(HEAD).parent_config is None
    assert findings(scope) == {}
    with pytest.raises(IntegrityError, match="missing"):
        reader.get_tuple({"configurable": {"thread_id": "edited"}})


def test_what_waits_to_be_compared_is_bounded(sealed, database):
    """Also where no sink ever wants to know."""
    scope = sealed("observe", trail=False)
    saver = scope.checkpointer(SqliteSaver(database), redact=False)
    checkpoint = create_checkpoint(empty_checkpoint(), None, 0)
    checkpoint["channel_values"] = {"text": "x" * 60_000}
    saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint, {}, {})
    tracemalloc.start()
    try:
        for _ in range(600):
            saver.get_tuple(HEAD)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 12_000_000
    assert findings(scope) == {}
