"""The key file and the key from the environment."""

from __future__ import annotations

import base64
import logging
import os
import subprocess
import sys

import pytest

from mnemoscope.audit.record.keys import SECRET_BYTES, key_id_of, load_secret, parse_secret
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.patience import GIVE_UP_S

SECRET = bytes(range(200, 232))


class TestParse:
    @pytest.mark.parametrize(
        "text",
        [
            SECRET.hex(),
            SECRET.hex().upper() + "\n",
            base64.b64encode(SECRET).decode(),
            base64.urlsafe_b64encode(SECRET).decode().rstrip("="),
        ],
    )
    def test_hex_and_base64_are_understood(self, text):
        """Either alphabet, padded or not, with a line feed or not."""
        assert parse_secret(text) == SECRET

    @pytest.mark.parametrize("text", ["", "hunter2!", "aGk=", "00" * 15, "pässwörter sind keine"])
    def test_what_is_no_key_is_refused_without_being_quoted(self, text):
        """The error says what is wrong, and nothing of the value."""
        with pytest.raises(ValueError, match="pseudonym key") as caught:
            parse_secret(text)

        assert not text or text not in str(caught.value)


class TestFile:
    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / "data" / "pseudonym.key"

    def test_a_key_is_made_at_first_use_with_one_warning(self, path, caplog):
        """Mode 0600, 32 random bytes, and the same ones the next time, in silence."""
        with caplog.at_level(logging.WARNING, logger="mnemoscope.audit"):
            first, second = load_secret(path), load_secret(path)

        assert first == second
        assert len(first) == SECRET_BYTES
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        (record,) = caplog.records
        assert str(path) in record.getMessage()
        assert first.hex() not in record.getMessage()

    def test_it_is_the_only_file_left(self, path):
        """The draft it was written to is gone."""
        load_secret(path)

        assert [each.name for each in path.parent.iterdir()] == ["pseudonym.key"]

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777])
    def test_a_key_that_others_may_read_is_refused(self, path, mode):
        """The error says the mode and what to do."""
        load_secret(path)
        path.chmod(mode)

        with pytest.raises(ValueError, match=f"{mode:04o}.*chmod 600"):
            load_secret(path)

    @pytest.mark.parametrize("content", [b"", b"abcd", b"\xff\xfe\x00", b"not a key at all!"])
    def test_a_file_without_a_key_is_refused_and_kept(self, path, content):
        """A damaged key is never replaced by a new one: that would lose everybody."""
        path.parent.mkdir()
        path.write_bytes(content)
        path.chmod(0o600)

        with pytest.raises(ValueError, match="does not hold a key") as caught:
            load_secret(path)

        assert path.read_bytes() == content
        assert not content or content.decode("latin-1") not in str(caught.value)

    def test_a_folder_is_refused(self, path):
        """What is not a file is said so."""
        path.mkdir(parents=True)

        with pytest.raises(ValueError, match="is not a file"):
            load_secret(path)

    def test_a_path_that_cannot_be_made_is_one_clear_error(self, tmp_path):
        """The error names the path, the reason and the way out."""
        (tmp_path / "file").write_text("")

        with pytest.raises(ValueError, match=r"is a file, not a folder.*MNEMOSCOPE_AUDIT"):
            load_secret(tmp_path / "file" / "key")

    def test_processes_that_come_together_get_the_same_key(self, path):
        """Whoever is first makes it; the others read it whole."""
        script = (
            "import sys, pathlib; from mnemoscope.audit.record.keys import load_secret;"
            "sys.stdin.read(); print(load_secret(pathlib.Path(sys.argv[1])).hex())"
        )
        racers = [
            subprocess.Popen(
                [sys.executable, "-c", script, str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ},
            )
            for _ in range(4)
        ]
        for racer in racers:
            racer.stdin.close()
            racer.stdin = None
        found = {racer.communicate(timeout=GIVE_UP_S)[0] for racer in racers}

        assert len(found) == 1
        assert [each.name for each in path.parent.iterdir()] == ["pseudonym.key"]


def test_a_keys_name_tells_keys_apart_and_nothing_more():
    """Two secrets have two names, and a name is no secret of any sink."""
    keys, others = SubjectKeys(SECRET), SubjectKeys(SECRET[::-1])

    assert key_id_of(keys) == key_id_of(SubjectKeys(SECRET))
    assert key_id_of(keys) != key_id_of(others)
    assert key_id_of(keys) not in keys.key("audit").hex()
