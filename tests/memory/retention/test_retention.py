"""Retention by purpose: what is over goes, everywhere; what is not known, held or young stays."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from qdrant_client import QdrantClient, models

from mnemoscope.demo import embedded_memory
from mnemoscope.memory import context
from tests.kit.kept_world import POLICY, KeptWorld, sqlite_at

OVER = "its purpose is over"


@pytest.fixture
def make_world(tmp_path, monkeypatch):
    """Return a function that makes a world; close them at the end."""
    made = []

    def make(policy=POLICY, **settings):
        made.append(KeptWorld(tmp_path, monkeypatch, policy, **settings))
        return made[-1]

    yield make
    for each in made:
        each.scope.close()


@pytest.fixture
def world(make_world):
    """Return one with the usual policy."""
    return make_world()


def guarded_store(world, bare=None):
    """Return a store whose namespaces name their customer."""
    return world.scope.store(bare or InMemoryStore(), customer_at=1)


def put(store, key, *, customer="c-1", text="likes tea", **of):
    """Write an item in a context."""
    with context(customer=customer, **of):
        store.put(("notes", customer), key, {"text": text})


def keys(store, customer="c-1"):
    """Return the keys of a customer's items."""
    return sorted(each.key for each in store.search(("notes", customer), limit=100))


def test_the_purpose_at_the_write_decides(world, capsys):
    """Of three writes of one age only the one goes whose purpose is over, and it is told before."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    put(store, "ticket", purpose="support")
    put(store, "name", purpose="profile")
    put(store, "else")
    world.live(31)

    assert world.going(capsys) == {("item", "support", OVER): 1}
    assert keys(bare) == ["else", "name", "ticket"]
    done = world.sweep(capsys)

    assert (done["code"], done["complete"], done["left"], done["overdue"]) == (0, True, 0, 0)
    assert keys(bare) == ["else", "name"]
    (sealed,) = world.deletions()
    assert (sealed.store, sealed.op_class, sealed.status) == ("langgraph.store", "forget", "ok")
    world.live(400)
    assert world.going(capsys) == {("item", "unknown", OVER): 1}


def test_a_record_goes_when_the_period_of_each_of_its_writes_is_over(world, capsys):
    """One that is written again for a longer purpose stays as long as that."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    put(store, "both", purpose="support")
    put(store, "again", purpose="support")
    world.live(20)
    put(store, "both", purpose="profile")
    put(store, "again", purpose="support")
    world.live(20)

    assert world.going(capsys) == {}
    world.live(20)
    assert world.going(capsys) == {("item", "support", OVER): 1}
    world.sweep(capsys)
    assert keys(bare) == ["both"]


def test_a_call_may_say_how_long_what_it_writes_is_kept(world, capsys):
    """It is sealed with the event, and counts before the policy; a floor counts before both."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    put(store, "longer", purpose="support", retention="90d")
    put(store, "shorter", purpose="profile", retention="12h")
    world.live(0.6, every_days=0.1)
    assert world.going(capsys) == {}
    world.live(1, every_days=0.1)
    assert world.going(capsys) == {("item", "profile", OVER): 1}
    world.live(60)
    assert world.going(capsys) == {("item", "profile", OVER): 1}
    world.live(60)
    assert world.going(capsys) == {("item", "profile", OVER): 1, ("item", "support", OVER): 1}


def test_an_item_of_the_same_key_is_each_customers_own(world, capsys):
    """A key says nothing of whose it is: the write's customer does."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    put(store, "last-message", customer="c-1", purpose="support")
    world.live(31)
    put(store, "last-message", customer="c-2", purpose="support")

    assert world.going(capsys) == {("item", "support", OVER): 1}
    world.sweep(capsys)
    assert (keys(bare, "c-1"), keys(bare, "c-2")) == ([], ["last-message"])


def test_what_the_trail_does_not_know_stays_and_is_listed(world, capsys, make_world):
    """A write past the guard has no purpose and no age that anybody vouches for."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    bare.put(("notes", "c-1"), "alien", {"text": "likes tea"})
    put(store, "known", purpose="support")
    world.live(1_000)

    assert world.staying(capsys) == {("item", "unknown", "the audit trail has no write of it"): 1}
    world.sweep(capsys)
    assert keys(bare) == ["alien"]


def test_unrecorded_records_go_by_their_own_word_where_the_policy_says_so(make_world, capsys):
    """And only once the trail has lived through that time as well."""
    world = make_world('purposes: {"*": 10d}\nunrecorded: 100d\n')
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    bare.put(("notes", "c-1"), "alien", {"text": "likes tea"})
    put(store, "known")
    world.live(50)
    assert world.going(capsys) == {("item", "unknown", OVER): 1}
    world.live(51)
    assert world.going(capsys) == {("item", "unknown", OVER): 2}


def test_what_no_period_covers_stays(make_world, capsys):
    """Without ``*`` only what is named goes."""
    world = make_world("purposes: {support: 30d, profile: forever}\n")
    store = guarded_store(world)
    put(store, "a", purpose="billing")
    put(store, "b", purpose="profile")
    put(store, "c")
    world.live(3_000, every_days=25)

    assert world.going(capsys) == {}
    assert world.staying(capsys).total() == 3


def test_a_period_for_a_store_or_a_class_wins_over_one_for_all(make_world, capsys):
    """And a purpose by name wins over one for any."""
    world = make_world(
        'purposes: {support: 30d, "*": 400d}\n'
        'stores: {langgraph.store: {"*": 10d}}\nclasses: {point: {"*": 5d}}\n'
    )
    store = guarded_store(world)
    client = guarded_points(world)
    put(store, "a", purpose="support")
    put(store, "b")
    upsert(client, [1])
    world.live(8)
    assert world.going(capsys) == {("point", "unknown", OVER): 1}
    world.live(8)
    assert world.going(capsys) == {("point", "unknown", OVER): 1, ("item", "unknown", OVER): 1}


def guarded_points(world, bare=None):
    """Return a client of Qdrant with a collection."""
    bare = bare or QdrantClient(":memory:")
    size = models.VectorParams(size=2, distance=models.Distance.COSINE)
    for name in ("notes", "other"):
        bare.create_collection(name, vectors_config=size)
    return world.scope.qdrant(bare, owner_key="user_id")


def upsert(client, ids, *, collection="notes", customer="c-1", **of):
    """Write points of a customer."""
    points = [
        models.PointStruct(id=each, vector=[0.1, 0.2], payload={"user_id": customer, "text": "tea"})
        for each in ids
    ]
    with context(customer=customer, **of):
        client.upsert(collection, points, wait=True)


def test_points_go_in_batches_and_by_their_collection(world, capsys):
    """The same number in another collection is another point."""
    bare = QdrantClient(":memory:")
    client = guarded_points(world, bare)
    upsert(client, range(250), purpose="support")
    world.live(31)
    upsert(client, range(5), collection="other", purpose="support")

    done = world.sweep(capsys)

    assert done["complete"]
    assert (bare.count("notes").count, bare.count("other").count) == (0, 5)
    assert len(world.deletions()) == 3


def test_a_batch_is_sealed_before_the_next_goes(world):
    """A process that is killed takes the events in its queue along."""
    client = guarded_points(world)
    upsert(client, range(250), purpose="support")
    world.live(31)
    sweep, sealed = world.scope.retention().sweeper, []

    def told(step):
        if step.endswith("removed"):
            rows = world.scope.audit.rows()
            sealed.append(sum(each.purpose == "retention" for each in rows))

    sweep.tell = told
    sweep.run()

    assert sealed == [0, 1, 2]


@pytest.fixture
def memory(world, tmp_path):
    """Return a mem0 that keeps what it is told, and the bare one."""
    from mem0.utils import spacy_models

    spacy_models._load_failed_full = spacy_models._load_failed_lemma = True  # no network
    bare = embedded_memory(tmp_path / "mem0")
    yield world.scope.mem0(bare), bare
    bare.close()
    bare.vector_store.client.close()


def test_a_memory_goes_with_its_history_and_from_the_files(world, memory, capsys, tmp_path):
    """mem0's own deletion leaves the text in its history; the file has it until it is rewritten."""
    guarded, bare = memory
    with context(customer="c-1", purpose="support"):
        guarded.add("The marzipan kettle leaks", user_id="c-1", infer=False)
    with context(customer="c-2", purpose="profile"):
        guarded.add("Likes nougat", user_id="c-2", infer=False)
    world.live(31)

    done = world.sweep(capsys)

    assert (done["complete"], done["remarks"]) == (True, [])
    left = bare.get_all(filters={"user_id": "c-1"}), bare.get_all(filters={"user_id": "c-2"})
    assert [len(each["results"]) for each in left] == [0, 1]
    held = b"".join(each.read_bytes() for each in (tmp_path / "mem0").rglob("*") if each.is_file())
    assert b"marzipan" not in held
    assert b"nougat" in held


def test_a_memory_that_expired_is_deleted(world, memory, capsys):
    """mem0 hides it from that day on, and keeps it."""
    guarded, bare = memory
    today = datetime.now(UTC).date()
    for days in (3, 300):
        with context(customer="c-1", purpose="profile"):
            guarded.add(
                f"Likes tea for {days}",
                user_id="c-1",
                infer=False,
                expiration_date=str(today + timedelta(days=days)),
            )
    world.live(10, every_days=1)

    assert world.going(capsys) == {("memory", "profile", "expired"): 1}
    world.sweep(capsys)
    (kept,) = bare.get_all(filters={"user_id": "c-1"}, show_expired=True)["results"]
    assert "300" in kept["memory"]


def test_a_held_customer_is_untouched_until_released(world, capsys):
    """By whatever their age, and by none of the others'."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    for customer in ("c-1", "c-2"):
        put(store, "ticket", customer=customer, purpose="support")
    world.flush()
    assert world.command("hold", "--customer", "c-1", "--case", "2026-17") == 0
    world.live(500)

    done = world.sweep(capsys)

    assert done["complete"]
    assert (keys(bare, "c-1"), keys(bare, "c-2")) == (["ticket"], [])
    assert world.staying(capsys) == {("item", "support", "held: its customer"): 1}
    assert world.command("release", "--case", "2026-17") == 0
    assert world.command("release", "--case", "2026-17") == 6
    world.sweep(capsys)
    assert keys(bare, "c-1") == []


def test_while_somebody_is_held_what_is_nobodys_stays(world, capsys):
    """It may be theirs."""
    bare = InMemoryStore()
    store = world.scope.store(bare, customer_at=None)
    with context(purpose="support"):
        store.put(("notes",), "k", {"text": "likes tea"})
    world.flush()
    assert world.command("hold", "--customer", "c-9") == 0
    world.live(31)

    assert world.staying(capsys).total() == 1
    assert world.going(capsys) == {}


@pytest.mark.parametrize("lost", ["the file", "the events"])
def test_a_hold_outlives_the_loss_of_one_of_its_places(lost, world, capsys, monkeypatch):
    """It is in a file and in the trail, and counts as long as either has it."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    put(store, "ticket", purpose="support")
    world.flush()
    assert world.command("hold", "--customer", "c-1") == 0
    world.live(31)
    if lost == "the file":
        (world.policy.parent / "data/mnemoscope/retention-holds.json").unlink()
    else:
        notes = "mnemoscope.audit.write_history.WriteHistory.notes"
        monkeypatch.setattr(notes, lambda _self, _name: [])

    world.sweep(capsys)

    assert keys(bare) == ["ticket"]


def test_holds_of_another_trail_stop_everything(world, capsys):
    """Whom they hold nobody can tell: keyed hashes differ."""
    store = guarded_store(world)
    put(store, "ticket", purpose="support")
    world.flush()
    assert world.command("hold", "--customer", "c-1") == 0
    path = world.policy.parent / "data/mnemoscope/retention-holds.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"check": "00"}))
    world.live(31)
    capsys.readouterr()

    assert world.command("run", "--yes") == 4
    assert "another audit trail" in capsys.readouterr().err


def test_holds_keep_no_name(world, capsys):
    """Neither in the file nor in the trail."""
    put(guarded_store(world), "k")
    world.flush()
    assert world.command("hold", "--customer", "ada@example.com", "--case", "x") == 0
    capsys.readouterr()
    world.command("hold")
    world.flush()

    assert "customer  x" in capsys.readouterr().out
    folder = world.policy.parent
    held = b"".join(each.read_bytes() for each in folder.rglob("*") if each.is_file())
    assert b"ada@example" not in held


def test_a_pinned_memory_stays(world, capsys):
    """The other of the same age goes."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    put(store, "pinned", purpose="support")
    put(store, "other", purpose="support")
    world.flush()
    assert world.command("pin", "pinned", "--store", "langgraph.store") == 0
    world.live(31)

    world.sweep(capsys)

    assert keys(bare) == ["pinned"]


def test_more_than_a_customer_may_have_goes_the_oldest_first(make_world, capsys):
    """Of each customer by themselves, and never what is younger than the floor."""
    world = make_world('purposes: {"*": 400d}\nmost_per_customer: 2\n')
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    for key in ("a", "b", "c", "d"):
        put(store, key)
    put(store, "a", customer="c-2")
    assert world.going(capsys) == {}
    world.live(2, every_days=1)

    assert world.going(capsys) == {("item", "unknown", "more than a customer may have"): 2}
    assert world.sweep(capsys)["complete"]
    assert (keys(bare), keys(bare, "c-2")) == (["c", "d"], ["a"])


def test_a_clock_that_jumps_ahead_makes_nothing_older(world, capsys):
    """The trail has not lived through that time; a day after it the jump alone is passed over."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    put(store, "ticket", purpose="support")
    world.live(5, every_days=1)
    world.now_s[0] += 3_650 * 86_400

    assert world.command("run", "--yes") == 3
    assert "clock disagrees" in capsys.readouterr().err
    world.live(2, every_days=0.5)
    assert world.command("run", "--yes") == 0
    assert keys(bare) == ["ticket"]


def test_a_clock_that_jumps_back_removes_nothing(world, capsys):
    """Neither then nor as it goes on from there."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    put(store, "ticket", purpose="support")
    world.live(20)
    world.now_s[0] -= 15 * 86_400

    world.command("run", "--yes")
    world.live(12, every_days=1)
    world.command("run", "--yes")

    assert keys(bare) == ["ticket"]


def test_one_run_at_a_time(world, capsys):
    """The second is refused, and does nothing."""
    store = guarded_store(world)
    put(store, "ticket", purpose="support")
    world.live(31)

    with world.scope.retention().leading():
        assert world.command("run", "--yes") == 3
    assert "another run" in capsys.readouterr().err


def test_two_runs_at_once_do_no_harm(world, tmp_path):
    """On two machines none knows of the other: each record goes once, and none too much."""
    with closing(sqlite_at(tmp_path / "store.db")) as connection:
        bare = SqliteStore(connection)
        bare.setup()
        store = guarded_store(world, bare)
        for number in range(300):
            put(store, f"old-{number}", purpose="support")
        world.live(31)
        for number in range(10):
            put(store, f"new-{number}", purpose="support")
        world.flush()

        with ThreadPoolExecutor(2) as pool:
            runs = [pool.submit(world.scope.retention().sweeper.run) for _ in range(2)]
        results = [each.result() for each in runs]

        assert all(not each.left for each in results)
        assert len(keys(bare)) == 10


def test_what_is_written_after_the_plan_stays(world, capsys, monkeypatch):
    """A batch is judged once more before it goes."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    for key in ("a", "b"):
        put(store, key, purpose="support")
    world.live(31)
    sweep = world.scope.retention().sweeper

    def told(step):
        if "of 2 removed" in step:
            put(store, "a", purpose="support")
            world.flush()

    sweep.tell = told
    result = sweep.run()

    assert (result.spared, keys(bare)) == (1, ["a"])


def test_a_store_that_fails_is_told_and_the_next_run_goes_on(world, capsys, monkeypatch):
    """What could not be deleted is left, and said."""
    bare = InMemoryStore()
    store = guarded_store(world, bare)
    put(store, "ticket", purpose="support")
    world.live(31)
    batch = InMemoryStore.batch

    def failing(self, ops):
        if any(getattr(each, "value", 1) is None for each in ops):
            raise ConnectionError
        return batch(self, ops)

    monkeypatch.setattr(InMemoryStore, "batch", failing)
    done = world.sweep(capsys)
    assert (done["code"], done["left"], done["complete"]) == (3, 1, False)
    assert "ConnectionError" in " ".join(done["remarks"])
    monkeypatch.undo()


def test_the_screens_fit_a_terminal(world, capsys):
    """In 80 columns: what goes, how old, and what stays why."""
    store = guarded_store(world)
    put(store, "ticket", purpose="support")
    put(store, "name", purpose="profile")
    world.live(31)

    assert world.command("plan") == 0
    shown = capsys.readouterr().out
    assert "support" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert world.command("run", "--yes") == 0
    assert "removed 1 of langgraph.store" in capsys.readouterr().out


def test_the_check_says_what_is_wrong_with_the_policy(make_world, monkeypatch):
    """And that a trail which forgets sooner than a purpose ends leaves records for ever."""
    world = make_world("purposes: {support: 3m}\n")

    def check():
        return next(each for each in world.scope.health().checks if each.name == "retention")

    assert (check().state, "a period is" in check().detail) == ("failed", True)
    world.policy.write_text('purposes: {profile: 10y, "*": 1y}\n')
    assert (check().state, "forgets after 2000 days" in check().detail) == ("warning", True)
    world.policy.write_text('purposes: {"*": 1y}\n')
    assert check().state == "ok"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no mapping"),
        ("purposes: [a]", "no mapping"),
        ("stores: {}", "purposes is missing"),
        ("purposes: {a: 0d}", "a period is"),
        ("purposes: {a: 30}", "a period is"),
        ("purposes: {1: 30d}", "in quotes"),
        ("purposes: {}\nclasses: {cat: {a: 1d}}", "classes: expected some of"),
        ("purposes: {}\nthreads: {interrupted: {a: 1d}}", "threads: expected some of"),
        ("purposes: {}\nkeep_latest: 0", "keep_latest is a whole number"),
        ("purposes: {}\nsecret-word: 1", "an unknown key"),
        ("purposes: {", "no YAML"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_in_one_line(text, said, world, capsys):
    """Which quotes nothing of it."""
    world.policy.write_text(text)

    assert world.command("plan") == 4
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert said in line
    assert "secret-word" not in line


def test_without_a_policy_nothing_is_swept(make_world, capsys, tmp_path):
    """The command says which setting is missing."""
    world = make_world()
    world.scope._settings = load_without(world)

    assert world.command("plan") == 4
    assert "MNEMOSCOPE_RETENTION" in capsys.readouterr().err


def load_without(world):
    """Return the settings of a world, without its policy."""
    from msgspec import structs

    return structs.replace(world.scope._settings, retention=None)


def test_ages_are_told_in_days(world, capsys):
    """Of the newest and the oldest in a group."""
    store = guarded_store(world)
    put(store, "a", purpose="support")
    world.live(35)

    (group,) = world.plan(capsys)["going"]
    assert (group["records"], group["newest_days"], group["oldest_days"]) == (1, 35, 35)


def test_a_look_for_ids_leaves_a_database_locked(world, tmp_path):
    """A process that closes a file loses its locks on it, and another one would write meanwhile."""
    path = tmp_path / "store.db"
    other = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("CREATE TABLE items (id TEXT)")
        database.execute("INSERT INTO items VALUES (?), ('profile')", ("ab" * 16,))
        database.execute("BEGIN EXCLUSIVE")
        found = world.scope.retention().sweeper.in_files(["ab" * 16, "cd" * 16, "profile"], [path])
        tried = subprocess.run(
            [sys.executable, "-c", other], capture_output=True, text=True, check=False
        )

    assert found == (1, ())
    assert "database is locked" in tried.stderr


def test_a_file_that_cannot_be_looked_through_is_told(world, tmp_path):
    """What is compressed in a way that nothing here reads may have anything in it."""
    (tmp_path / "old.zst").write_bytes(b"compressed")

    assert world.scope.retention().sweeper.in_files(["ab" * 16], [tmp_path / "old.zst"]) == (
        0,
        ("old.zst",),
    )
