"""Time stamps of an authority: a trail that was put back shows by them alone."""

from __future__ import annotations

import base64
import json
import shutil
import sys

import pytest

from mnemoscope.audit import AuditLog
from tests.kit.command_line import run
from tests.kit.time_stamps import loopback_authority

pytest.importorskip("rfc3161_client")


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with loopback_authority(tmp_path_factory.mktemp("authority")) as service:
        yield service


@pytest.fixture
def authority(service, monkeypatch):
    """Return an authority that is the configured one."""
    service.status = 200
    monkeypatch.setenv("MNEMOSCOPE_TIMESTAMP_URL", service.url)
    monkeypatch.setenv("MNEMOSCOPE_TIMESTAMP_ROOTS", str(service.roots))
    return service


@pytest.fixture
def log(tmp_path, monkeypatch, subject_keys, event_factory):
    """Return a trail of two events, which is the configured one."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", f"sqlite:///{tmp_path}/audit.db")
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_PSEUDONYM_KEY", b"sixteen bytes or more".hex())
    monkeypatch.chdir(tmp_path)
    log = AuditLog(tmp_path / "audit.db", subject_keys)
    log.append([event_factory(writer_seq=1), event_factory(writer_seq=2)])
    yield log
    log.close()


STAMP = ["audit", "timestamp", "--out", "checkpoint.note"]
VERIFY = ["audit", "verify", "--checkpoint", "checkpoint.note"]


@pytest.fixture
def put_back(log, authority, tmp_path, event_factory):
    """Return a trail that was stamped, and put back to the copy of the day before."""
    log.close()
    shutil.copy(tmp_path / "audit.db", tmp_path / "yesterday.db")
    log.append([event_factory(writer_seq=3)])
    assert run(STAMP) == 0
    log.close()
    for each in tmp_path.glob("audit.db*"):
        each.unlink()
    shutil.copy(tmp_path / "yesterday.db", tmp_path / "audit.db")
    return log


def test_stamped_checkpoint_says_when_it_was_there(log, authority, capfd):
    """It is a checkpoint like others, and has its time."""
    assert run(STAMP) == 0
    assert run(VERIFY) == 0
    said = capfd.readouterr().err
    assert "stamped: 3 events" in said
    assert "stamped: the checkpoint of 3 events, at 20" in said


def test_json_has_the_times(log, authority, capfd):
    """As the lines on standard error have them."""
    run(STAMP)
    capfd.readouterr()

    assert run([*VERIFY, "--json"]) == 0
    (stamped,) = json.loads(capfd.readouterr().out)["stamped"]
    assert stamped.startswith("the checkpoint of 3 events, at 20")
    assert stamped.endswith(" UTC")


def test_openssl_finds_the_stamp_good(log, authority, tmp_path):
    """Whoever is given the file needs nothing of ours to check it."""
    run(STAMP)
    *note, line = (tmp_path / "checkpoint.note").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "signed.note").write_text("".join(note), "utf-8")
    (tmp_path / "stamp.tsr").write_bytes(base64.b64decode(line.split(" ")[2])[4:])

    files = f"-in {tmp_path}/stamp.tsr -data {tmp_path}/signed.note -CAfile root.pem"
    assert "Verification: OK" in authority.openssl(f"ts -verify {files}")


def test_trail_that_was_put_back_is_not_stamped_again(put_back, authority, tmp_path, capfd):
    """Every byte of it is as the log wrote it: what was stamped before says that there was more."""
    kept, asked = (tmp_path / "checkpoint.note").read_text("utf-8"), authority.asked

    assert run(STAMP) == 1
    assert "TAMPERED: the log was put back or cut" in capfd.readouterr().err
    assert (tmp_path / "checkpoint.note").read_text("utf-8") == kept
    assert authority.asked == asked


def test_trail_that_was_put_back_is_found_by_verify(put_back, capfd):
    """Without the authority."""
    assert run(VERIFY) == 1
    assert "the log was cut, or an old copy put back" in capfd.readouterr().err


def test_key_of_the_log_makes_no_stamp(put_back, tmp_path, capfd):
    """Whoever has it puts the trail back, and signs a checkpoint to fit: only the stamp tells."""
    stamped = (tmp_path / "checkpoint.note").read_text("utf-8")
    forged = put_back.checkpoint_now()
    (tmp_path / "forged.note").write_text(forged, "utf-8")
    (tmp_path / "moved.note").write_text(forged + stamped.splitlines(keepends=True)[-1], "utf-8")

    assert run(["audit", "verify", "--checkpoint", "forged.note"]) == 3
    assert "has no time stamp" in capfd.readouterr().err
    assert run(["audit", "verify", "--checkpoint", "moved.note"]) == 1
    assert "the time stamp of a checkpoint is of something else" in capfd.readouterr().err
    assert run(["audit", "timestamp", "--out", "forged.note"]) == 3
    assert run(["audit", "timestamp", "--out", "moved.note"]) == 1


def test_signature_alone_would_believe_the_forger(put_back, tmp_path, monkeypatch):
    """The control of the test before: without roots the forged checkpoint is a good one."""
    monkeypatch.delenv("MNEMOSCOPE_TIMESTAMP_ROOTS")
    (tmp_path / "forged.note").write_text(put_back.checkpoint_now(), "utf-8")

    assert run(["audit", "verify", "--checkpoint", "forged.note"]) == 0


def test_stamp_by_somebody_else_is_not_believed(log, authority, tmp_path, capfd):
    """Of another root: the command keeps nothing of it, and verify cannot tell."""
    with loopback_authority(tmp_path / "other") as other:
        assert run([*STAMP, "--roots", str(other.roots)]) == 3
        assert "by nobody whom the roots know" in capfd.readouterr().err
        assert not (tmp_path / "checkpoint.note").exists()
        run(STAMP)

        assert run([*VERIFY, "--roots", str(other.roots)]) == 3
        assert "by nobody whom the roots know" in capfd.readouterr().err


def test_stamp_that_nobody_checks_is_said(log, authority, monkeypatch, capfd):
    """It is no proof where it is not known whom to believe."""
    run(STAMP)
    monkeypatch.delenv("MNEMOSCOPE_TIMESTAMP_ROOTS")

    assert run(VERIFY) == 3
    assert "is stamped: check it with --roots" in capfd.readouterr().err


@pytest.mark.parametrize("length", [74, 18])
def test_stamp_that_cannot_be_read_is_said(log, authority, tmp_path, capfd, length):
    """Cut, or empty."""
    run(STAMP)
    *note, line = (tmp_path / "checkpoint.note").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "checkpoint.note").write_text("".join(note) + line[:length] + "\n", "utf-8")

    assert run(VERIFY) == 3
    assert "the time stamp cannot be read" in capfd.readouterr().err


def test_changed_stamp_is_never_a_good_one(log, authority, tmp_path):
    """Every bit of it that means something: 0 is for what was stamped alone."""
    run(STAMP)
    *note, line = (tmp_path / "checkpoint.note").read_text("utf-8").splitlines(keepends=True)
    stamp = bytearray(base64.b64decode(line.split(" ")[2]))
    taken = []
    for place in range(4, len(stamp), 97):
        changed = bytes([*stamp[:place], stamp[place] ^ 1, *stamp[place + 1 :]])
        text = f"— rfc3161 {base64.b64encode(changed).decode()}\n"
        (tmp_path / "changed.note").write_text("".join(note) + text, "utf-8")
        if run(["audit", "verify", "--headers-only", "--checkpoint", "changed.note"]) == 0:
            taken.append(place)

    assert taken == []


def test_authority_that_is_away_is_said(log, authority, tmp_path, capfd):
    """The trail is neither right nor wrong for that, and what was kept stays."""
    run(STAMP)
    kept = (tmp_path / "checkpoint.note").read_text("utf-8")
    authority.status = 503

    assert run(STAMP) == 3
    assert "the authority answers with status 503" in capfd.readouterr().err
    assert run(["audit", "timestamp", "http://127.0.0.1:9/", *STAMP[2:]]) == 3
    assert "the authority cannot be asked" in capfd.readouterr().err
    assert (tmp_path / "checkpoint.note").read_text("utf-8") == kept


def test_answer_to_another_request_is_refused(log, authority, tmp_path, monkeypatch, capfd):
    """Of the same text too: it may be of long ago."""
    note = log.checkpoint_now()
    monkeypatch.setattr(AuditLog, "checkpoint_now", lambda _log: note)
    assert run(STAMP) == 0
    line = (tmp_path / "checkpoint.note").read_text("utf-8").splitlines()[-1]
    before = base64.b64decode(line.split(" ")[2])[4:]
    monkeypatch.setattr(authority, "answer", lambda _query: before)

    assert run(STAMP) == 3
    assert "by nobody whom the roots know" in capfd.readouterr().err


def test_without_the_package_it_says_which_extra(log, authority, monkeypatch, capfd):
    """One line."""
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)

    assert run(STAMP) == 3
    assert "pip install 'mnemoscope[timestamps]'" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ftp://a.example/", *STAMP[2:]], "begins with https:// or http://"),
        ([*STAMP[2:], "--roots", "none.pem"], "none.pem"),
        ([*STAMP[2:], "--roots", "audit.db"], "certificate"),
    ],
)
def test_wrong_usage_is_4(log, authority, capfd, words, said):
    """Said before anything is sent."""
    asked = authority.asked

    assert run(["audit", "timestamp", *words]) == 4
    assert said in capfd.readouterr().err
    assert authority.asked == asked


def test_what_was_stamped_grows_with_the_trail(log, authority, tmp_path, event_factory):
    """Each stamp is of the trail as it is, which continues what was stamped before."""
    sizes = []
    for number in range(3, 6):
        run(STAMP)
        sizes.append(int((tmp_path / "checkpoint.note").read_text("utf-8").splitlines()[1]))
        log.append([event_factory(writer_seq=number)])

    assert sizes == [3, 4, 5]
