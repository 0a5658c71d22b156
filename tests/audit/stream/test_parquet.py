"""A copy in a folder of Parquet files."""

from __future__ import annotations

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.stream import CopyError, open_copy, open_target, verify_copy
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
    for number in range(42, 45):
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

    with pytest.raises(CopyError, match="the folder cannot be written"):
        ship_all(log, open_target(f"file://{tmp_path}/file"))


@pytest.mark.parametrize("url", ["file://", "file:///x?y=1", "nothing", "http://x/y"])
def test_what_is_no_url_of_a_copy_is_refused(url):
    """Before anything is done."""
    with pytest.raises(ValueError, match="is at"):
        open_target(url)
