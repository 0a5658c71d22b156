"""A copy in a topic of a real Kafka."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.stream import CopyError, open_copy, open_target, verify_copy
from mnemoscope.memory.api import Redacted
from tests.kit import tampering
from tests.kit.command_line import run
from tests.kit.memory_copy import MemoryCopy, ship_all
from tests.kit.patience import GIVE_UP_S, until
from tests.kit.verified import verify

NOW_US = 1_800_000_000_000_000


@pytest.fixture(params=["sqlite", "postgresql"])
def any_url(request, tmp_path):
    if request.param == "sqlite":
        return tmp_path / "audit.db"
    return request.getfixturevalue("postgres_url")


def built(url, subject_keys, event_factory):
    """Return a log with everything in it."""
    tampering.build(url, subject_keys, event_factory, 40)
    return AuditLog(url, subject_keys, clock_ns=lambda: NOW_US * 1_000)


@pytest.fixture
def log(tmp_path, subject_keys, event_factory):
    with closing(built(tmp_path / "audit.db", subject_keys, event_factory)) as log:
        yield log


@pytest.fixture
def url(kafka):
    return kafka.new_topic()


def shipped(log, url, **options):
    """Ship *log* to a topic, and return how far the copy is."""
    with closing(open_target(url)) as target:
        return ship_all(log, target, **options)


def verified(url, **options):
    """Verify a topic at the time at which its log was written."""
    return verify_copy(open_copy(url), NOW_US, **options)


def topic_of(url):
    """Return the name of a topic."""
    return url.rpartition("/")[2]


def producer(kafka):
    """Return a producer of somebody else."""
    from confluent_kafka import Producer

    return Producer({"bootstrap.servers": kafka.address, "log_level": 0})


def messages(kafka, topic):
    """Return the messages of a topic, as somebody else reads them."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    settings = {"bootstrap.servers": kafka.address, "group.id": "x", "enable.partition.eof": True}
    with closing(Consumer(settings)) as consumer:
        partitions = consumer.list_topics(topic).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        ends, found = 0, []
        while ends < len(partitions):
            message = consumer.poll(GIVE_UP_S)
            ends += message.error() is not None
            found += [message] if message.error() is None else []
        return found


def test_a_topic_is_verified_as_its_source_is(any_url, subject_keys, event_factory, url):
    """Of a log in SQLite and of one in PostgreSQL."""
    with closing(built(any_url, subject_keys, event_factory)) as log:
        shipped(log, url)
        found, source = verified(url).as_document(), verify(log).as_document()

    for name in ("origin", "size", "root", "signed", "events", "gaps", "writers", "findings"):
        assert found[name] == source[name], name


def test_the_events_of_a_run_are_in_one_partition_and_in_order(log, url, kafka):
    """Whoever reads a partition sees a run as it went."""
    shipped(log, url)

    seen = {}
    for each in messages(kafka, topic_of(url)):
        place, last = seen.get(each.key(), (each.partition(), -1))
        headers = dict(each.headers())
        if headers["kind"] == b"event":
            assert json.loads(each.value())["seq"] == int(headers["seq"])
            assert each.partition() == place
            assert int(headers["seq"]) > last
            seen[each.key()] = (place, int(headers["seq"]))
    assert len(seen) > 3


def test_a_stream_goes_on_from_the_topic_itself(log, url, event_factory, tmp_path):
    """Nothing else is kept of how far it was."""
    before = shipped(log, url).at
    log.append([event_factory(writer_seq=42)])
    with closing(open_target(url)) as target, log.reading() as snapshot:
        assert target.resume_at(snapshot.origin) == before
        assert target.resume_at("mnemoscope/0000000000000000") == 0
    shipped(log, url)

    seqs = [each.seq for each in open_copy(url).records() if each.kind == "event"]
    assert len(seqs) == len(set(seqs)) == before + (max(seqs) + 1 - before)


def test_the_place_to_go_on_is_found_behind_records_of_others(log, url, kafka):
    """A topic that two logs share, or that somebody else writes into."""
    before = shipped(log, url).at
    other = producer(kafka)
    for number in range(50):
        other.produce(topic_of(url), key=str(number), value=b"x")
    other.flush()

    with closing(open_target(url)) as target, log.reading() as snapshot:
        assert target.resume_at(snapshot.origin) == before
    assert verified(url).findings["tampered"][0].endswith("are of another log, or of none")


def test_details_are_sent_as_the_log_keeps_them(log, url):
    """Encrypted, bound to their event, without salt."""
    shipped(log, url, with_details=True)
    wanted = MemoryCopy()
    ship_all(log, wanted, with_details=True)

    sent = sorted((each for each in open_copy(url).records() if each.detail), key=lambda e: e.seq)
    assert sent == [each for each in wanted.kept if each.detail]
    assert len(sent) > 10


@pytest.mark.parametrize(
    "part", ["value", "seq", "leaf", "origin", "kind", "schema", "name", "twice", "left out"]
)
def test_a_changed_message_is_found(log, url, kafka, part):
    """One byte of its value or of a header, written in the place of the true one."""
    shipped(log, url)
    other = producer(kafka)
    topic = topic_of(kafka.new_topic())
    for number, each in enumerate(messages(kafka, topic_of(url))):
        value, headers, more = each.value(), dict(each.headers()), []
        if number == 100:
            if part == "value":
                value = value[:50] + bytes([value[50] ^ 1]) + value[51:]
            elif part == "name":
                headers["leag"] = headers.pop("leaf")
            elif part == "twice":
                more = [("seq", b"7")]
            elif part == "left out":
                del headers["schema"]
            else:
                headers[part] = bytes([headers[part][0] ^ 1]) + headers[part][1:]
        sent = [*more, *headers.items()]
        other.produce(topic, key=each.key(), value=value, headers=sent)
    other.flush()

    assert verified(f"kafka://{kafka.address}/{topic}").state == "tampered"


def change_on_disk(kafka, url):
    """Change a byte of a header in the file of a partition."""
    (path,) = [each for each in kafka.files_of(topic_of(url)) if each.suffix == ".log"]
    data = path.read_bytes()
    place = data.index(b'"operation":"search_memory"') + 14
    path.write_bytes(data[:place] + b"S" + data[place + 1 :])


def test_a_byte_that_was_changed_on_the_brokers_disk_is_found(log, kafka):
    """The broker itself does not look."""
    url = kafka.new_topic(partitions=1)
    shipped(log, url)
    kafka.stop()
    change_on_disk(kafka, url)
    kafka.start()

    found = verified(url)
    assert found.state == "tampered"
    assert any(each.startswith("event 1 ") for each in found.findings["tampered"])


def test_a_partition_that_the_broker_cut_at_a_changed_byte_is_no_good_copy(log, kafka):
    """Killed, it looks for damage as it starts, and throws away what comes behind it."""
    url = kafka.new_topic(partitions=1)
    shipped(log, url)
    kafka.kill()
    change_on_disk(kafka, url)
    kafka.start()

    assert verified(url).state == "unverifiable"
    assert verified(url, checkpoints=[log.checkpoint_now()]).state == "tampered"


def test_what_does_not_fit_the_schema_goes_to_the_dead_letters(log, url, kafka):
    """With the place in the schema and never a value; the stream goes on, and the copy verifies."""
    ship_all(log, good := MemoryCopy())
    canary = b"canary-7f3a"
    broken = [each for each in good.kept if each.seq in {3, 4} and each.kind == "event"]
    changed = broken[0].header.replace(b'"late":false', b'"late":"%s"' % canary)
    records = [broken[0]._replace(header=changed), broken[1]._replace(header=b"\xff")]
    with closing(open_target(url)) as target:
        target.resume_at(good.kept[0].origin)
        assert target.send([*records, *good.kept[6:]]) == 2

    dead = {int(dict(e.headers())["seq"]): e for e in messages(kafka, f"{topic_of(url)}.dead")}
    reasons = {seq: dict(each.headers())["reason"] for seq, each in dead.items()}
    assert reasons[4] == b"not JSON"
    assert reasons[3].endswith(b"late/type")
    assert canary not in b"".join(reasons.values())
    found = verified(url)
    assert any("event 3 is not what was sealed" in each for each in found.findings["tampered"])


def test_a_topic_whose_beginning_has_expired_is_told(log, url, kafka):
    """Of each partition another part is gone: the events that are left begin with holes."""
    from confluent_kafka import TopicPartition

    shipped(log, url)
    last = {}
    for each in messages(kafka, topic_of(url)):
        last[each.partition()] = each.offset()
    wanted = [TopicPartition(topic_of(url), each, last[each] // 3) for each in last]
    admin = kafka.admin()
    for each in admin.delete_records(wanted).values():
        each.result(GIVE_UP_S)
    with log.reading() as snapshot:
        (key,) = snapshot.execute("SELECT verifier_key FROM audit_key").fetchone()

    found = verified(url, key=key)

    assert found.state == "loss"
    assert "the copy has expired" in found.findings["loss"][0]
    assert not found.findings["tampered"]
    assert found.signed == found.size


def test_a_topic_that_its_broker_emptied_by_age_is_told(log, kafka):
    """Nothing is left of it but how many there were."""
    url = kafka.new_topic(partitions=1, retention_ms="1", segment_ms="100")
    shipped(log, url)

    assert until(lambda: not messages(kafka, topic_of(url)))
    assert verified(url).state == "unverifiable"


def test_a_compacted_topic_is_told(log, kafka, event_factory):
    """Of each run the broker kept no more than the last event."""
    url = kafka.new_topic(
        partitions=1,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="200",
    )
    before = shipped(log, url).at
    assert "the copy may keep no more than the last record of a key" in verified(url).covered_less
    for number in range(42, 46):
        time.sleep(0.2)  # a segment that is closed by its age is what is compacted
        log.append([event_factory(writer_seq=number)])
        shipped(log, url)

    def is_compacted():
        return len(messages(kafka, topic_of(url))) < before

    assert until(is_compacted)
    found = verified(url)
    assert any("the copy is compacted" in each for each in found.findings["loss"])
    assert not found.findings["tampered"]


def test_partitions_that_are_added_while_it_streams_change_nothing(log, url, kafka, event_factory):
    """Runs go to other partitions than before: their order is in the numbers."""
    from confluent_kafka.admin import NewPartitions

    with closing(open_target(url)) as target:
        ship_all(log, target)
        admin = kafka.admin()
        [
            each.result(GIVE_UP_S)
            for each in admin.create_partitions([NewPartitions(topic_of(url), 7)]).values()
        ]
        for number in range(42, 90):
            log.append([event_factory(writer_seq=number, run=f"run-{number}")])
        ship_all(log, target)
    shipped(log, url)

    found = verified(url)
    assert found.state == "loss"
    assert found.valid_events == found.size == verify(log).size


def test_consumers_of_a_group_do_not_take_messages_from_a_verification(log, url, kafka):
    """It joins no group, so that none of its partitions is given to somebody else."""
    from confluent_kafka import Consumer

    shipped(log, url)
    settings = {"bootstrap.servers": kafka.address, "group.id": "mnemoscope"}
    with closing(Consumer(settings)) as one, closing(Consumer(settings)) as two:
        one.subscribe([topic_of(url)])
        one.poll(0)
        records = iter(open_copy(url).records())
        next(records)
        two.subscribe([topic_of(url)])
        two.poll(0)
        assert 1 + sum(1 for _ in records) >= 262


def test_a_broker_that_is_not_there_is_one_line(log, monkeypatch, capfd):
    """And nothing of its client's own log."""
    monkeypatch.setattr("mnemoscope.audit.stream.kafka.TIMEOUT_S", 0.2)

    with pytest.raises(CopyError, match="the topic cannot be asked") as caught:
        shipped(log, "kafka://127.0.0.1:1/topic")

    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a_password_is_in_no_error(tmp_path, log):
    """Of a file that the client refuses."""
    file = tmp_path / "client.properties"
    file.write_text("security.protocol=hunter2\n# a remark\n\nsasl.password = hunter2\n")

    with pytest.raises(CopyError) as caught:
        open_target(f"kafka://127.0.0.1:1/topic?config={file}").resume_at("x")

    assert "hunter2" not in str(caught.value)
    with pytest.raises(ValueError, match="a password stands in the file"):
        open_target("kafka://me:hunter2@127.0.0.1:1/topic")


@pytest.fixture
def trail(tmp_path, subject_keys, event_factory, monkeypatch):
    """Return a trail of 30 operations, which is the configured one."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/a.db")
    monkeypatch.chdir(tmp_path)
    with closing(AuditLog(tmp_path / "a.db", subject_keys)) as log:
        log.append([event_factory() for _ in range(30)])
        log.checkpoint_now()
        yield log


def test_the_commands_send_and_verify(trail, url, capfd):
    """With exit codes and JSON."""
    assert run(["audit", "stream", "--to", url, "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {
        "at": 31,
        "size": 31,
        "set_aside": 0,
        "removed": 0,
    }
    assert run(["audit", "verify", "--from", url, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["signed"] == 31
    assert run(["audit", "verify", "--from", url]) == 0
    said = capfd.readouterr()
    assert said.out.startswith("OK: ")
    assert "not covered: whose log it is" in said.err


def test_the_stream_of_a_trail_that_was_put_back_ends_with_1(trail, url, tmp_path, event_factory):
    """Its copy knows more."""
    before = tmp_path / "before.db"
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.execute("VACUUM INTO ?", (str(before),))
    trail.append([event_factory(), event_factory()])
    assert run(["audit", "stream", "--to", url]) == 0

    assert run(["audit", "stream", "--to", url, "--audit-url", f"sqlite:///{before}"]) == 1


def test_a_stream_goes_on_while_the_broker_is_away(trail, kafka, url, tmp_path, event_factory):
    """With --follow it waits, and sends the rest when it is back."""
    command = "from mnemoscope.adapters.cli.root import main; main()"
    arguments = ("audit", "stream", "--to", url, "--follow")
    with subprocess.Popen([sys.executable, "-c", command, *arguments]) as process:
        try:
            assert until(lambda: verified(url).size >= 31)
            kafka.kill()
            trail.append([event_factory(), event_factory()])
            kafka.start()
            assert until(lambda: verified(url).size >= 33)
        finally:
            process.kill()


def test_nothing_of_an_erased_customer_opens_or_is_in_a_file_of_the_topic(
    tmp_path, subject_keys, event_factory, url, kafka
):
    """Details are sent, and their key is gone with the customer: the copy is erased with it."""
    canary = "canary-51c2f0"
    with closing(AuditLog(tmp_path / "a.db", subject_keys)) as log:
        content = {"content": Redacted({"text": f"likes {canary}"}), "run": f"run-{canary}"}
        log.append([event_factory(**content), event_factory(customer="bob")])
        shipped(log, url, with_details=True)
        customer = log.subjects.resolve("ada@example.com", "acme")
        log.subjects.erase(customer, "acme")
        sent = [each for each in open_copy(url).records() if each.detail]
        opened = {}
        with log.reading() as snapshot:
            for each in sent:
                detail = each.detail
                opened[detail.subject_uid] = snapshot.plaintext(
                    each.seq, detail.subject_uid, detail.sealed
                )
        shipped(log, url, with_details=True)

    assert len(opened) == 2
    assert opened[customer] is None
    files = kafka.files_of(topic_of(url))
    assert sum(each.stat().st_size for each in files) > 1_000
    assert not [each for each in files if b"canary" in each.read_bytes()]
    assert [each for each in files if b"search_memory" in each.read_bytes()]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_whatever_is_killed_the_copy_has_everything(kafka, engine):
    """Stream, writers and broker; `make stream-kills` does it a hundred times."""
    from tests.kit.audit_kills import engines
    from tests.kit.stream_kills import kill_streams

    with engines(engine) as (_name, log_url):
        tally = kill_streams(log_url, kafka, 3)

    assert (tally.missing, tally.differ, tally.wrong) == (0, 0, 0), str(tally)
    assert tally.recorded > 0
