"""A copy in a folder of Parquet files."""

from __future__ import annotations

import resource

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.stream import CopyError, open_copy, open_target, ship, verify_copy
from tests.kit import tampering
from tests.kit.memory_copy import ship_all

pytest.importorskip("pyarrow", reason="needs mnemoscope[parquet]")

NOW_US = 1_800_000_000_000_000


@pytest.fixture
def log(tmp_path, subject_keys, event_factory):
    path = tmp_path / "audit.db"
    tampering.build(path, subject_keys, event_factory, 40)
    log = AuditLog(path, subject_keys, clock_ns=lambda: NOW_US * 1_000)
    yield log
    log.close()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "copy"


@pytest.fixture
def url(folder):
    return f"file://{folder}"


def test_a_folder_is_verified_as_the_log_is(log, url):
    """From its files alone."""
    shipped = ship_all(log, open_target(url))
    found = verify_copy(open_copy(url), NOW_US)

    assert found.valid_events == found.events == found.signed == shipped.size
    assert found.state == "loss"  # which the log declares


def test_the_last_checkpoint_stands_beside(log, url, folder):
    """To be kept where nobody can change it."""
    ship_all(log, open_target(url))
    (path,) = folder.glob("*.checkpoint")

    assert verify_copy(open_copy(url), NOW_US, checkpoints=[path.read_text()]).state == "loss"


def test_it_goes_on_with_the_next_file(log, url, folder, event_factory):
    """A file that was half written when the process was killed is written again."""
    ship_all(log, open_target(url))
    before = {each.name for each in folder.iterdir()}
    (folder / "x.part").write_bytes(b"half")
    log.append([event_factory(writer_seq=42)])
    ship_all(log, open_target(url))

    more = {each.name for each in folder.glob("*.parquet")} - before
    assert more
    assert verify_copy(open_copy(url), NOW_US).state == "loss"


def test_another_engine_reads_it(log, url, folder):
    """Events can be counted without this library."""
    chdb = pytest.importorskip("chdb", reason="needs chdb")
    shipped = ship_all(log, open_target(url))

    asked = "SELECT count(), max(seq) FROM file('FOLDER/*.parquet') WHERE kind = 'event'"
    found = chdb.query(asked.replace("FOLDER", str(folder)), "CSV")
    assert str(found).strip() == f"{shipped.size},{shipped.size - 1}"


def test_a_changed_file_is_found(log, url, folder):
    """Whichever byte it is: of a page, of the footer, of a length."""
    size = ship_all(log, open_target(url)).size
    path = max(folder.glob("*.parquet"), key=lambda each: each.stat().st_size)
    sound = path.read_bytes()
    states = set()
    for place in range(0, len(sound), max(1, len(sound) // 60)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        found = verify_copy(open_copy(url), NOW_US)
        states.add((found.state, found.valid_events == found.events == size))
    path.write_bytes(sound)

    # A byte that is read by nobody, in statistics or names of the writer, changes nothing.
    assert states - {("tampered", True)} == {
        *(("tampered", False), ("unverifiable", False), ("loss", True)),
    }


def in_three_files(log, url, folder, event_factory):
    """Stream a log bit by bit, and return its last three files with an event."""
    for number in range(42, 46):
        log.append([event_factory(writer_seq=number)])
        log.checkpoint_now()
        ship_all(log, open_target(url))
    names = ((each, each.stem.split("-")) for each in sorted(folder.glob("*.parquet")))
    return [each for each, (*_, first, end) in names if first < end][-3:]


def test_a_file_that_cannot_be_read_proves_nothing(log, url, folder, event_factory):
    """It is named, and what may be in it is not called missing; what is elsewhere is."""
    files = in_three_files(log, url, folder, event_factory)
    files[1].write_bytes(b"of a broken disk")
    found = verify_copy(open_copy(url), NOW_US)
    (named,) = [line for line in found.findings["unverifiable"] if "what is in it" in line]
    files[2].write_bytes(files[1].read_bytes())
    last = verify_copy(open_copy(url), NOW_US)

    assert found.state == last.state == "unverifiable"
    assert named.startswith(f"{files[1].name} cannot be read")


def test_events_that_no_unreadable_file_can_have_are_missing(log, url, folder, event_factory):
    """Whatever else cannot be read."""
    files = in_three_files(log, url, folder, event_factory)
    files[1].unlink()
    (folder / "note.parquet").write_bytes(b"none of ours")
    (folder / f"{files[2].stem.rpartition('-')[0]}-999.parquet").write_bytes(b"behind it")

    assert verify_copy(open_copy(url), NOW_US).state == "tampered"


def test_a_file_of_somebody_else_s_is_of_no_log(log, url, folder):
    """It can be read, and is nothing that was streamed."""
    parquet = pytest.importorskip("pyarrow.parquet")
    arrow = pytest.importorskip("pyarrow")
    ship_all(log, open_target(url))
    parquet.write_table(arrow.table({"origin": ["x"], "seq": [1]}), folder / "other.parquet")

    assert verify_copy(open_copy(url), NOW_US).state == "tampered"


def test_a_type_that_no_reader_knows_is_unreadable(log, url, folder):
    """In the schema at the end of a file: the reader says so by another kind of error."""
    ship_all(log, open_target(url))
    path = max(folder.glob("*.parquet"), key=lambda each: each.stat().st_size)
    sound = path.read_bytes()
    unreadable = 0
    for place in range(len(sound) - 300, len(sound)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 14]) + sound[place + 1 :])
        copy = open_copy(url)
        list(copy.records())
        unreadable += path.name in copy.unread

    assert unreadable > 10


def test_a_folder_that_cannot_be_written_is_said(log, tmp_path):
    """In one line."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(CopyError, match="the folder cannot be written: Not a directory"):
        ship_all(log, open_target(f"file://{tmp_path}/file/copy"))


def test_a_disk_that_takes_no_more_keeps_what_was_whole(log, url, folder, event_factory):
    """No half of a file is left, the last checkpoint is as it was, and the next stream goes on."""
    ship_all(log, open_target(url))
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    log.append([event_factory(writer_seq=42)])
    log.checkpoint_now()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    target = open_target(url)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        with pytest.raises(CopyError, match="the folder cannot be written: File too large"):
            ship_all(log, target)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    after = {each.name: each.read_bytes() for each in folder.iterdir()}
    shipped = ship_all(log, open_target(url))

    assert after == before
    assert rows_of(folder) == [*range(shipped.size)]


@pytest.mark.parametrize("name", ["trail.jsonl", "trail.parquet", "file"])
@pytest.mark.parametrize("opened", [open_target, open_copy])
def test_a_file_is_no_folder(opened, tmp_path, name):
    """Whoever wants lines of JSON in it is told what there is, before a folder of that name is."""
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(ValueError, match="names a folder, in which there are Parquet files"):
        opened(f"file://{tmp_path}/{name}")


def test_a_folder_that_is_not_there_is_no_copy(tmp_path):
    """And no empty one either."""
    with pytest.raises(CopyError, match="the folder is not there"):
        list(open_copy(f"file://{tmp_path}/other").records())


def rows_of(folder):
    """Return the numbers of the events in all files, however often."""
    copy = open_copy(f"file://{folder}")
    return sorted(each.seq for each in copy.records() if each.kind == "event")


@pytest.mark.parametrize("gone", [[1], [0, 1], [0, 2], [1, 2], [2]])
def test_files_that_were_removed_are_sent_again(log, url, folder, event_factory, gone):
    """Each event is there once, in whatever file, and the last checkpoint is beside."""
    files = in_three_files(log, url, folder, event_factory)
    (beside,) = folder.glob("*.checkpoint")
    newest = beside.read_bytes()
    for each in gone:
        files[each].unlink()
    missing = verify_copy(open_copy(url), NOW_US)
    shipped = ship_all(log, open_target(url))
    found = verify_copy(open_copy(url), NOW_US, checkpoints=[newest.decode()])

    assert missing.state == "tampered"
    assert found.state == "loss"  # which the log declares
    assert rows_of(folder) == [*range(shipped.size)]
    assert beside.read_bytes() == newest
    assert found.signed == shipped.size


def test_a_stream_that_is_killed_as_it_sends_again_leaves_the_newest_checkpoint(
    log, url, folder, event_factory
):
    """It is beside the files while what it covers is sent again."""
    files = in_three_files(log, url, folder, event_factory)
    (beside,) = folder.glob("*.checkpoint")
    newest = beside.read_bytes()
    files[0].unlink()
    next(ship(log, open_target(url)))

    assert files[0].exists()
    assert beside.read_bytes() == newest


def test_first_files_may_be_moved_away(log, url, folder, event_factory):
    """They are not sent again, nor is what was streamed since."""
    files = in_three_files(log, url, folder, event_factory)
    for each in sorted(folder.glob("*.parquet")):
        if each < files[1]:
            each.unlink()
    kept = rows_of(folder)
    ship_all(log, open_target(url))

    assert rows_of(folder) == kept
    assert kept[0] > 0


def test_what_retention_removed_is_looked_for_once(log, url, folder, event_factory):
    """A file without events stands for it, and the next stream goes on at the end."""
    target = open_target(url)
    ship_all(log, target)
    (last,) = [each for each in records_of(url) if each.kind == "event"][-1:]
    later = last._replace(seq=last.seq + 10)
    target.send([later])
    found = open_target(url)

    assert found.resume_at(last.origin) == later.seq + 1
    assert rows_of(folder)[-2:] == [last.seq, later.seq]


def records_of(url):
    return [*open_copy(url).records()]


@pytest.mark.parametrize("url", ["file://", "file:///x?y=1", "nothing", "http://x/y"])
def test_what_is_no_url_of_a_copy_is_refused(url):
    """Before anything is done."""
    with pytest.raises(ValueError, match="is at"):
        open_target(url)
