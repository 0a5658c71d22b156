"""Files of records: nothing acknowledged is lost, whatever is done to the rest."""

from __future__ import annotations

import errno
import os
import random
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from mnemoscope.telemetry.files import framed_file
from mnemoscope.telemetry.files.file_lock import lock_free_name, lockable_files, try_lock
from mnemoscope.telemetry.files.framed_file import FramedFile, FramedFileFullError
from mnemoscope.telemetry.files.framing import (
    HEADER_BYTES,
    RECORD_BYTES,
    FileOrigin,
    header,
    record,
)

PAYLOADS = [b"one", b"", b"three" * 3]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "records"


@pytest.fixture
def open_file(path: Path):
    """Return a function that opens the file; all are closed at the end."""
    opened: list[FramedFile] = []

    def open_it(**given) -> FramedFile:
        opened.append(FramedFile(path, **{"kind": b"test", "max_bytes": 10_000, **given}))
        return opened[-1]

    yield open_it
    for each in opened:
        each.close()


@pytest.fixture
def written(path: Path, open_file: Callable[..., FramedFile]) -> bytes:
    """Return the bytes of a closed file with `PAYLOADS`."""
    file = open_file()
    file.append(PAYLOADS)
    file.close()
    return path.read_bytes()


@pytest.fixture
def fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the syncing, for tests that open hundreds of files."""
    monkeypatch.setattr(os, "fsync", lambda _fd: None)
    monkeypatch.setattr(framed_file, "_sync", lambda _fd: None)


def contents(file: FramedFile) -> list[bytes]:
    return [file.read(each) for each in file.recovery.records]


def aside(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.quarantine-*"))


def test_what_was_appended_is_there_when_it_is_opened_again(written, open_file):
    """In order, empty ones too."""
    assert contents(open_file()) == PAYLOADS


def test_file_and_folder_are_the_owners_alone(path, written):
    """What is in it is somebody's, redacted or not."""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_records_can_be_read_as_soon_as_they_are_appended(open_file):
    """By the place that `append` returned."""
    file = open_file()

    spans = file.append([b"a", b"b"])

    assert [file.read(each) for each in spans] == [b"a", b"b"]


def test_appending_is_synced_before_it_returns(open_file, monkeypatch):
    """Acknowledged means on the disk."""
    synced: list[int] = []
    file = open_file()
    monkeypatch.setattr(framed_file, "_sync", synced.append)

    file.append([b"a"])

    assert len(synced) == 1


def test_a_new_file_has_its_folder_synced_before_anything_is_acknowledged(path, monkeypatch):
    """Else a power cut could take the whole file away."""
    synced: list[Path] = []
    monkeypatch.setattr(framed_file, "_sync_folder", synced.append)

    FramedFile(path, kind=b"test", max_bytes=100).close()

    assert synced == [path.parent]


def test_a_file_cut_off_anywhere_keeps_its_whole_records(path, written, open_file, fast_disk):
    """What was torn is beside it, byte by byte, and the file takes more."""
    for cut in range(len(written)):
        for each in aside(path):
            each.unlink()
        path.write_bytes(written[:cut])

        file = open_file()
        found = contents(file)
        file.append([b"more"])
        file.close()

        assert found == PAYLOADS[: len(found)]
        whole = HEADER_BYTES + sum(len(each) + RECORD_BYTES for each in found)
        rubble = written[:cut] if cut < HEADER_BYTES else written[whole:cut]
        assert b"".join(each.read_bytes() for each in aside(path)) == rubble
        assert contents(open_file()) == [*found, b"more"]


def test_a_flipped_bit_costs_one_record_at_most(path, written, open_file, fast_disk):
    """Wherever it is; and what was damaged is not lost but put aside."""
    for bit in range(len(written) * 8):
        damaged = bytearray(written)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)

        file = open_file()
        found = contents(file)
        file.close()
        for each in aside(path):
            each.unlink()

        assert len(found) >= len(PAYLOADS) - 1
        assert [each for each in PAYLOADS if each in found] == found
        assert file.recovery.quarantined_bytes > 0


def test_rubble_in_the_middle_is_skipped(path, written, open_file):
    """The next record is found by the file's own marker."""
    middle = HEADER_BYTES + RECORD_BYTES + len(PAYLOADS[0])
    path.write_bytes(written[:middle] + b"\0" * 100 + written[middle:])

    file = open_file()

    assert contents(file) == PAYLOADS
    assert file.recovery.quarantined_bytes == 100


def test_no_payload_can_pass_for_a_record(path, open_file):
    """Not even where its own record is damaged and the reader looks for the next one."""
    forged = record(b"guessed!", b"forged")
    file = open_file()
    file.append([b"x" + forged + header(b"test", b"guessed!") + forged])
    file.close()
    data = bytearray(path.read_bytes())
    data[HEADER_BYTES + RECORD_BYTES] ^= 1
    path.write_bytes(data)

    assert contents(open_file()) == []


@pytest.mark.parametrize(
    ("data", "verdict"),
    [
        (b"SQLite format 3\0" + b"\0" * 200, FileOrigin.FOREIGN),
        (header(b"other", b"12345678") + record(b"12345678", b"theirs"), FileOrigin.FOREIGN),
        (random.Random(500).randbytes(500), FileOrigin.FOREIGN),  # noqa: S311 - no secret
    ],
    ids=["sqlite", "framed by somebody else", "noise"],
)
def test_somebody_elses_file_is_moved_aside_whole(path, open_file, data, verdict):
    """And a new one begun in its place."""
    path.parent.mkdir()
    path.write_bytes(data)

    file = open_file()
    file.append([b"ours"])

    assert file.recovery.verdict is verdict
    assert [each.read_bytes() for each in aside(path)] == [data]
    assert file.recovery.quarantine == aside(path)[0]


def test_a_newer_versions_file_is_moved_aside_whole(path, written, open_file, monkeypatch):
    """This version cannot know what it means."""
    monkeypatch.setattr("mnemoscope.telemetry.files.framing.VERSION", 2)
    file = open_file()
    file.close()
    newer = path.read_bytes()
    for each in aside(path):
        each.unlink()
    monkeypatch.undo()

    file = open_file()

    assert file.recovery.verdict is FileOrigin.NEWER
    assert aside(path)[0].read_bytes() == newer


def test_quarantines_do_not_overwrite_one_another(path, open_file):
    """Each has a number of its own."""
    path.parent.mkdir()
    for content in (b"a" * 100, b"b" * 100):
        path.write_bytes(content)
        open_file()

    assert [each.read_bytes()[:1] for each in aside(path)] == [b"a", b"b"]


def test_a_full_file_takes_nothing_and_says_so(open_file):
    """All or none."""
    file = open_file(max_bytes=HEADER_BYTES + 2 * RECORD_BYTES)
    file.append([b""])

    with pytest.raises(FramedFileFullError):
        file.append([b"", b""])

    assert contents(open_file()) == [b""]


def test_a_failed_append_leaves_nothing_behind(open_file, monkeypatch):
    """Half a record, or one that was never acknowledged, is not found later."""
    file = open_file()
    file.append([b"before"])
    monkeypatch.setattr(framed_file, "_sync", _no_space)
    with pytest.raises(OSError, match="space"):
        file.append([b"first", b"refused too"])
    monkeypatch.undo()

    file.append([b"after"])

    assert contents(open_file()) == [b"before", b"after"]


def test_what_was_appended_without_a_wait_is_synced_once(open_file, monkeypatch):
    """What comes while it is synced has its own turn; then there is nothing to wait for."""
    file = open_file()
    synced: list[int] = []
    monkeypatch.setattr(framed_file, "_sync", synced.append)
    file.append([b"a"], syncs=False)
    first = file.syncing()
    file.append([b"b"], syncs=False)
    first()
    second = file.syncing()
    second()

    assert len(synced) == 2
    assert file.syncing() is None
    file.append([b"c"])
    assert file.syncing() is None


def test_what_a_killed_process_left_is_synced(path, open_file):
    """It may not have waited for the disk."""
    file = open_file()
    file.append([b"a"], syncs=False)
    file.close()

    assert open_file().syncing() is not None


def test_what_the_disk_refused_is_written_anew(path, open_file, monkeypatch):
    """A second try on the same file would be called a success, whatever is on the disk."""
    file = open_file()
    (span,) = file.append([b"a"], syncs=False)
    before = path.stat().st_ino
    with monkeypatch.context() as broken:
        broken.setattr(framed_file, "_sync", _no_space)
        sync = file.syncing()
        with pytest.raises(OSError, match="space"):
            sync()
        broken.setattr(os, "fsync", _no_space)
        with pytest.raises(OSError, match="space"):
            file.syncing()

    synced: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.fstat(fd).st_ino) or fsync(fd))
    assert file.syncing() is None
    assert path.stat().st_ino != before
    assert path.stat().st_ino in synced
    assert file.read(span) == b"a"
    assert contents(open_file()) == [b"a"]


def test_a_sync_of_what_was_replaced_meanwhile_says_nothing_of_the_new(open_file, monkeypatch):
    """The file that it was of is gone."""
    file = open_file()
    file.append([b"before"], syncs=False)
    sync = file.syncing()
    file.rewrite([])
    file.append([b"behind"], syncs=False)
    sync()

    assert file.syncing() is not None


def _no_space(_fd: int) -> None:
    raise OSError(errno.ENOSPC, "no space")


def test_rewriting_replaces_everything_at_once(open_file):
    """And what could not be rewritten stays as it was."""
    file = open_file()
    file.append([b"a", b"b"])

    (span,) = file.rewrite([b"b"])

    assert file.read(span) == b"b"
    assert contents(open_file()) == [b"b"]


def test_a_rewrite_that_fails_changes_nothing(path, open_file, monkeypatch):
    """Neither the file nor what is known of it."""
    file = open_file()
    (span,) = file.append([b"a"])
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", _no_space)
        with pytest.raises(OSError, match="space"):
            file.rewrite([b"b"])

    assert file.read(span) == b"a"
    assert contents(open_file()) == [b"a"]
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_was_removed_is_put_back_before_anything_is_acknowledged(
    path, open_file, replaced
):
    """With all that was in it; what stands in its place is moved aside."""
    file = open_file()
    file.append([b"a"])
    path.unlink()
    if replaced:
        path.write_bytes(b"somebody else's")

    file.append([b"b"])

    assert contents(open_file()) == [b"a", b"b"]
    assert len(aside(path)) == replaced


def test_damage_is_found_when_a_record_is_read(path, open_file):
    """A disk may forget what it knew."""
    file = open_file()
    (span,) = file.append([b"payload"])
    with path.open("r+b") as raw:
        raw.seek(span.end - 1)
        raw.write(b"!")

    with pytest.raises(ValueError, match="damaged"):
        file.read(span)


def test_a_name_is_claimed_once(path):
    """Whoever comes second has the next one, and the first again when it is free."""
    first, second = lock_free_name(path), lock_free_name(path)
    names = [first.path.name, second.path.name]
    first.release()
    third = lock_free_name(path)

    assert [*names, third.path.name] == ["records", "records.2", "records"]
    second.release()
    third.release()


def test_a_held_name_cannot_be_claimed(path):
    """Not until it is released."""
    held = lock_free_name(path)
    refused = try_lock(path)
    held.release()
    granted = try_lock(path)

    assert refused is None
    assert granted is not None
    granted.release()


def test_the_files_under_a_name_are_found_and_nothing_else(tmp_path):
    """Numbered ones; not locks, quarantines or other names."""
    for name in ("j", "j.2", "j.10", "j.lock", "j.2.lock", "j.quarantine-1", "jj", "j.bak"):
        (tmp_path / name).touch()

    assert [each.name for each in lockable_files(tmp_path / "j")] == ["j", "j.2", "j.10"]
