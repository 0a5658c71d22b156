"""The receipt of an erasure: what it says, and that nobody can make it say something else."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from mnemoscope.audit import AuditLog
from mnemoscope.audit.bundle import verify
from mnemoscope.audit.erasure.receipt import receipt_name, write_receipt
from mnemoscope.audit.erasure.run import ErasureRun
from mnemoscope.memory.api import Erased, OperationClass, SubjectRecord
from tests.kit.patience import GIVE_UP_S

ADA, TENANT = "ada@example.com", "acme"
TEXT = "her grandmother's marzipan recipe"


class Notes:
    """A store in memory."""

    name, store = "notes", "mem0"
    title = "Notes about you"
    unavailable = None

    def __init__(self) -> None:
        self.texts = [TEXT, "likes tea at 5 o'clock"]
        self.fails = False

    def records(self):
        return iter([SubjectRecord(kind="memory", id="n", content=each) for each in self.texts])

    def erase(self):
        removed, self.texts = len(self.texts), self.texts[:1] if self.fails else []
        return Erased(removed - len(self.texts), messages=("backups expire after 30 days",))

    def files(self):
        return ()


class House(Notes):
    """A store that cannot say whose its records are."""

    name = "house"
    unavailable = "no record says whose it is"


class Places:
    """An application with some stores, and a vault."""

    def __init__(self, *stores) -> None:
        self.notes = stores

    def settle(self):
        return ()

    def sealed(self):
        return {}

    def stores(self, _subject):
        return self.notes

    def erase_pseudonyms(self):
        return 2

    def files(self):
        return {}


@pytest.fixture
def remembered(log: AuditLog, event_factory) -> AuditLog:
    """Return a log that has three events of hers, and others around them."""
    write = {"op_class": OperationClass.REMEMBER, "operation": "create_memory"}
    log.append([event_factory(memory_ids=(f"m{n}",), **write) for n in range(3)])
    log.append([event_factory(customer="bob@example.com", **write)])
    return log


def erase(log, *stores, **given):
    return ErasureRun(log, Places(*stores), customer=ADA, tenant=TENANT, **given).run()


def receipt(log, folder, erasure, identities=(ADA, "+1 212 555 0173")):
    path = folder / receipt_name(erasure)
    write_receipt(path, log, erasure, identities=identities, tenant=TENANT)
    return path


def page_of(path):
    with zipfile.ZipFile(path) as archive:
        return archive.read("RECEIPT.txt").decode()


def manifest_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("manifest.json"))


class TestWhatItSays:
    def test_who_when_where_and_how_much(self, remembered, tmp_path):
        """In words, with the ids as they were given, and no content."""
        erasure = erase(remembered, Notes())

        page = page_of(receipt(remembered, tmp_path, erasure))

        for said in (ADA, "+1 212 555 0173", TENANT, erasure.request, "Notes about you", " UTC"):
            assert said in page
        assert "backups expire after 30 days" in page
        assert TEXT not in page
        assert max(map(len, page.splitlines())) <= 80

    @pytest.mark.parametrize("text", [TEXT, "tea"])
    def test_a_search_for_nothing_is_not_told_as_a_search(self, remembered, tmp_path, text):
        """Where no text was long enough to look for, the page does not say that none was found."""
        notes = Notes()
        notes.texts = [text]

        page = " ".join(page_of(receipt(remembered, tmp_path, erase(remembered, notes))).split())

        assert ("were not searched" in page) == (text != TEXT)
        assert ("were searched for 1 texts" in page) == (text == TEXT)

    def test_it_counts_all_runs_of_the_request(self, remembered, tmp_path):
        """What the first removed is removed, though the last did not find it."""
        notes = Notes()
        notes.fails = True
        assert not erase(remembered, notes).complete
        notes.fails = False

        manifest = manifest_of(receipt(remembered, tmp_path, erase(remembered, notes)))

        assert [each["removed"] for each in manifest["stores"]] == [2]
        assert (manifest["runs"], manifest["pseudonyms"], manifest["details"]) == (2, 4, 3)

    def test_whoever_vouched_is_on_it(self, remembered, tmp_path):
        """The customer may ask them."""
        path = receipt(remembered, tmp_path, erase(remembered, House(), vouched=["house"]))

        assert "The sender says that it has nothing of yours" in " ".join(page_of(path).split())
        assert verify.check(path).code == verify.OK

    @pytest.mark.parametrize("fails", [True, False], ids=["left", "unknown"])
    def test_there_is_none_while_something_may_be_left(self, remembered, tmp_path, fails):
        """A receipt says that it is done."""
        notes = Notes()
        notes.fails = fails

        with pytest.raises(ValueError, match="not complete"):
            receipt(remembered, tmp_path, erase(remembered, notes, House()))

    def test_it_is_its_owners_alone(self, remembered, tmp_path):
        """It has the id of somebody who wanted to be forgotten."""
        path = receipt(remembered, tmp_path, erase(remembered, Notes()))

        assert path.stat().st_mode & 0o777 == 0o600


class TestChecking:
    def test_it_checks_itself_without_us(self, remembered, tmp_path):
        """Unpacked, by its own verify.py, with nothing but Python's library."""
        path = receipt(remembered, tmp_path, erase(remembered, Notes()))
        folder = tmp_path / "unpacked"
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)

        done = subprocess.run(
            [sys.executable, "-I", str(folder / "verify.py")],
            capture_output=True,
            text=True,
            timeout=GIVE_UP_S,
            check=False,
        )

        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("OK: 7 files and 2 events are as they were recorded")

    def test_it_is_checked_against_the_key_that_was_published(self, remembered, tmp_path):
        """One that another log signed is not this one's."""
        path = receipt(remembered, tmp_path, erase(remembered, Notes()))
        key = manifest_of(path)["log"]["verifier_key"]
        another = key[:-4] + ("AAA=" if not key.endswith("AAA=") else "BBB=")

        assert verify.check(path, key).code == verify.OK
        assert verify.check(path, another).code == verify.CHANGED

    @pytest.mark.parametrize(
        "name",
        ["RECEIPT.txt", "manifest.json", "manifest.note", "checkpoint.note", "proofs.jsonl"],
    )
    def test_any_change_shows(self, remembered, tmp_path, name):
        """In each file, wherever it is: every byte in turn would take long, so every 97th."""
        path = receipt(remembered, tmp_path, erase(remembered, Notes()))
        missed = [at for at in range(0, _size(path, name), 97) if not _shows(path, name, at)]

        assert missed == []

    def test_what_it_says_is_what_the_log_says(self, remembered, tmp_path, monkeypatch):
        """Even whoever has the key cannot sign another outcome over the same events."""
        erasure = erase(remembered, Notes())
        from mnemoscope.audit.erasure import receipt as module

        def other(*given):
            document = documents(*given)
            return document | {"erasure": document["erasure"] | {"details": 99}}

        documents = module._document
        monkeypatch.setattr(module, "_document", other)
        found = verify.check(receipt(remembered, tmp_path, erasure))

        assert (found.code, "sealed event" in (found.problem or "")) == (verify.CHANGED, True)


def _size(path: Path, name: str) -> int:
    with zipfile.ZipFile(path) as archive:
        return archive.getinfo(name).file_size


def _shows(path: Path, name: str, at: int) -> bool:
    folder = path.parent / "changed"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    data = bytearray((folder / name).read_bytes())
    data[at] ^= 1
    (folder / name).write_bytes(data)
    return verify.check(folder).code == verify.CHANGED
