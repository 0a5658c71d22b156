"""The verification of all shards, and what is done to one of them."""

from __future__ import annotations

import json
import shutil
import sqlite3

import pytest

from mnemoscope.audit import AuditError
from tests.kit.command_line import run
from tests.kit.sharded_trails import TENANTS, ShardedTrail

SHARDS = 4


@pytest.fixture
def files(sharded):
    """Return the files of the shards, each of which has events that are signed over."""
    sharded.write(SHARDS, TENANTS)
    return [each.path for each in sharded.log().shards]


def found(capsys):
    """Return the lines of a verification that find something, and the verdict of each shard."""
    code = run(["audit", "verify"])
    said = capsys.readouterr()
    verdicts = [line for line in said.out.splitlines() if line.startswith("shard ")]
    return code, verdicts, [line for line in said.err.splitlines() if line.startswith("tampered")]


def test_shards_that_nobody_touched_verify(files, capsys):
    """Each shard, and the checkpoint over all of them."""
    code, verdicts, tampered = found(capsys)

    assert (code, tampered) == (0, [])
    assert [each.split(": ")[1] for each in verdicts] == ["OK"] * SHARDS


@pytest.mark.parametrize("number", range(SHARDS))
def test_one_byte_of_any_shard_shows(files, capsys, number):
    """It is found in that shard, and in no other."""
    with sqlite3.connect(files[number]) as connection:
        connection.execute("DROP TRIGGER audit_event_no_update")
        connection.execute("UPDATE audit_event SET leaf = zeroblob(32) WHERE seq = 3")

    code, verdicts, _tampered = found(capsys)

    assert code == 1
    assert ["TAMPERED" in each for each in verdicts] == [each == number for each in range(SHARDS)]


@pytest.mark.parametrize("number", range(SHARDS))
def test_a_shard_that_is_put_back_whole_shows(sharded, files, capsys, number):
    """With all its signatures good: by the checkpoints over all shards, which the others keep."""
    for each in files:
        shutil.copy(each, each.with_suffix(".before"))
    sharded.write(SHARDS, TENANTS)
    shutil.copy(files[number].with_suffix(".before"), files[number])

    code, _verdicts, tampered = found(capsys)

    assert code == 1
    assert tampered == [
        f"tampered: shard {number} was put back or cut: it has fewer events than were signed"
    ]


def test_two_shards_that_were_exchanged_show(files, capsys):
    """Each is another log than the one that was signed at its place."""
    shutil.move(files[1], files[1].with_suffix(".moved"))
    shutil.move(files[2], files[1])
    shutil.move(files[1].with_suffix(".moved"), files[2])

    code, _verdicts, tampered = found(capsys)

    assert code == 1
    assert [each.split()[1:6] for each in tampered] == [
        ["shard", number, "is", "another", "log:"] for number in ("1", "2")
    ]


@pytest.mark.parametrize("number", range(1, SHARDS))
def test_a_shard_that_is_gone_shows(files, capsys, number):
    """By the name of the shard, and by how many of its events were signed."""
    for each in files[number].parent.glob(f"{files[number].name}*"):
        each.unlink()

    code, _verdicts, tampered = found(capsys)

    assert code == 1
    assert [each.partition(": ")[2].partition(":")[0] for each in tampered] == [
        f"shard {number} is missing"
    ]


def test_a_shard_without_events_is_empty_and_not_ok(sharded, capsys):
    """Where the checkpoint over the shards says that it had none."""
    sharded.write(SHARDS, TENANTS[:1])

    code, verdicts, _tampered = found(capsys)

    assert code == 0
    assert {each.split(": ")[1] for each in verdicts} == {"OK", "EMPTY"}


def test_a_shard_without_events_of_which_nothing_is_signed_is_unknown(sharded, files, capsys):
    """Whether it had any cannot be told: the checkpoints over the shards went with the others."""
    kept = sharded.log().shards[0].path
    sharded.write(1, ["tenant-1"])
    with sqlite3.connect(kept) as connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("DELETE FROM audit_event WHERE operation = 'shards.signed'")
    for path in files[1:]:
        for each in path.parent.glob(f"{path.name}*"):
            each.unlink()

    code, verdicts, _tampered = found(capsys)

    assert code == 1
    assert [each.split(": ")[1] for each in verdicts[1:]] == ["UNVERIFIABLE"] * (SHARDS - 1)


def test_no_answer_is_over_fewer_shards_than_there_are(files, capsys):
    """A command says which one is missing, rather than to leave it out."""
    for each in files[2].parent.glob(f"{files[2].name}*"):
        each.unlink()

    code = run(["spend"])

    assert code != 0
    assert "audit shard 2 is missing" in capsys.readouterr().err


def test_what_is_of_one_log_alone_is_refused_in_one_line(files, capsys):
    """The line says what to do; and done so, there is an answer."""
    assert run(["audit", "deviations"]) != 0
    assert "--shard N" in capsys.readouterr().err
    run(["--shard", "2", "audit", "deviations"])
    assert "--shard" not in capsys.readouterr().err
    assert run(["--shard", "4", "audit", "deviations"]) == 4


def test_a_note_over_shards_that_was_kept_elsewhere_is_held_against_them(sharded, files, capsys):
    """Also where all shards were put back together; a note that was changed proves nothing."""
    for each in files:
        shutil.copy(each, each.with_suffix(".before"))
    sharded.write(SHARDS, TENANTS)
    header = next(
        header
        for (header,) in sqlite3.connect(files[0]).execute(
            "SELECT header FROM audit_event WHERE operation = 'shards.signed' ORDER BY seq DESC"
        )
    )
    note = sharded.folder / "kept.note"
    note.write_text(json.loads(header)["data"]["note"])
    for each in files:
        shutil.copy(each.with_suffix(".before"), each)

    assert run(["audit", "verify"]) == 0
    assert run(["audit", "verify", "--checkpoint", str(note)]) == 1
    assert capsys.readouterr().err.count("was put back or cut") == SHARDS

    note.write_text(note.read_text()[:-8] + "AAAAAA=\n")
    assert run(["audit", "verify", "--checkpoint", str(note)]) == 3


def test_a_log_of_customers_is_asked_for_by_its_shard(sharded, files):
    """To erase in the first alone would look like an erasure."""
    with pytest.raises(AuditError, match="shards"):
        sharded.log().subjects.resolve("ada", TENANTS[0])


def test_shards_of_one_postgresql_verify_and_a_change_in_one_shows(
    postgres, tmp_path, monkeypatch, capsys
):
    """They are schemas of one database, with a lane of each process for each."""
    psycopg = pytest.importorskip("psycopg", reason="needs mnemoscope[postgres]")
    trail = ShardedTrail(tmp_path, postgres.new_database())
    for name, value in trail.environment().items():
        monkeypatch.setenv(name, value)
    trail.write(2, TENANTS)
    trail.write(3, TENANTS)
    assert found(capsys)[::2] == (0, [])

    with psycopg.connect(trail.settings["audit_url"]) as connection:
        connection.execute("UPDATE audit_shard_2.audit_detail SET salt = sealed")
    code, verdicts, _tampered = found(capsys)

    assert code == 1
    assert ["TAMPERED" in each for each in verdicts] == [False, False, True]
