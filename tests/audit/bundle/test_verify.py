"""The check that travels with a bundle: by itself, and against whoever changes the bundle."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import shutil
import subprocess
import sys
import zipfile

import pytest

from mnemoscope.audit.bundle.alone import verify_alone
from mnemoscope.audit.bundle.manifest import manifest_note
from mnemoscope.audit.bundle.source import source
from mnemoscope.audit.bundle.statements import (
    ACCESS_COLUMNS,
    access_lines,
    csv_lines,
    event_document,
    event_line,
)
from mnemoscope.audit.bundle.verify import check, main
from mnemoscope.audit.proof.note import Signer
from mnemoscope.memory.api import OperationClass, Redacted
from tests.kit.patience import GIVE_UP_S

ADA = "ada@example.com"


@pytest.fixture
def bundle(log, bundled, things, event_factory):
    """Return a bundle of a few events, complete."""
    store, thing = things
    write = {"op_class": OperationClass.REMEMBER, "memory_ids": ("m-1",)}
    log.append([event_factory(**write, content=Redacted({"text": "tea"})), event_factory()])
    log.append([event_factory(customer="bob") for _ in range(5)])
    log.append([event_factory(memory_ids=("m-1",), scores=(0.5,))])
    return bundled(store("mem0", thing("m-1"))).path


@pytest.fixture
def folder(bundle, tmp_path):
    """Return the bundle, unpacked."""
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(bundle) as archive:
        archive.extractall(folder)
    return folder


def run_alone(folder, *arguments):
    """Run the verify.py of a bundle with nothing but Python."""
    return subprocess.run(
        [sys.executable, "-I", "-S", folder / "verify.py", *arguments],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=False,
    )


def test_it_runs_by_itself_on_the_folder_and_on_the_archive(folder, bundle):
    """No package, no site, no environment: Python alone."""
    for done in (run_alone(folder), run_alone(folder, bundle)):
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("OK: 11 files and 3 events are as they were recorded")
        assert "signed by mnemoscope/" in done.stdout


def test_it_is_written_for_old_pythons():
    """A customer has whatever Python their computer came with."""
    ast.parse(verify_alone(), feature_version=(3, 8))


def test_it_imports_nothing_but_the_standard_library():
    """And it opens no network."""
    tree = ast.parse(verify_alone())
    names = {
        (each.module if isinstance(each, ast.ImportFrom) else each.names[0].name).partition(".")[0]
        for each in ast.walk(tree)
        if isinstance(each, ast.Import | ast.ImportFrom)
    }

    assert names <= sys.stdlib_module_names
    assert not names & {"socket", "urllib", "http", "ssl"}


def test_a_changed_file_is_named(folder):
    """Any file, and its name in the answer."""
    for path in sorted(folder.iterdir()):
        if path.name in {"manifest.json", "manifest.note"}:
            continue
        before = path.read_bytes()
        path.write_bytes(before + b" ")
        assert check(folder).problem == f"{path.name} was changed" or path.suffix == ".note"
        assert check(folder).code == 1
        path.write_bytes(before)

    assert check(folder).code == 0


@pytest.mark.parametrize("name", ["events.jsonl", "README.html", "manifest.note", "proofs.jsonl"])
def test_a_missing_file_is_named(folder, name):
    """It was there when the list was signed."""
    (folder / name).unlink()

    assert check(folder).problem == f"{name} is missing"


def test_an_archive_whose_files_begin_before_it_is_damaged(folder, bundle):
    """Whoever changes where its table begins gets an answer, and no traceback."""
    data = bytearray(bundle.read_bytes())
    begins = slice(-6, -2)  # of the table, in the last record: APPNOTE 4.3.16, without a comment
    data[begins] = (int.from_bytes(data[begins], "little") + len(data)).to_bytes(4, "little")
    bundle.write_bytes(data)

    assert check(bundle).problem == "it is damaged, or no export"
    assert run_alone(folder, bundle).returncode == 1


def test_a_file_that_was_slipped_in_is_named(folder):
    """Something that looks as if it belonged."""
    (folder / "memories2.jsonl").write_text("{}")

    assert check(folder).problem == "memories2.jsonl was not in it when it was signed"


def test_a_manifest_that_was_made_to_fit_is_not_signed(folder):
    """Whoever changes a file and its hash lacks the key."""
    path = folder / "memories.jsonl"
    path.write_text("")
    manifest = json.loads((folder / "manifest.json").read_text())
    for each in manifest["files"]:
        if each["path"] == path.name:
            each["sha256"] = hashlib.sha256(b"").hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))

    assert check(folder).problem == "manifest.json is not the one that was signed"


def forged(folder, log, change):
    """Have the holder of the key itself change a file, and sign again."""
    change()
    manifest = json.loads((folder / "manifest.json").read_text())
    for each in manifest["files"]:
        each["sha256"] = hashlib.sha256((folder / each["path"]).read_bytes()).hexdigest()
    text = json.dumps(manifest).encode()
    (folder / "manifest.json").write_bytes(text)
    with source(log, ADA, "acme") as found:

        class Request:
            request_id = "x"

        (folder / "manifest.note").write_text(manifest_note(Request, found.evidence, text))


def test_even_the_sender_cannot_tell_another_story_than_was_sealed(folder, log):
    """Signed again by the right key: the proofs are of what was recorded."""
    path = folder / "events.jsonl"
    lines = path.read_text()
    forged(folder, log, lambda: path.write_text(lines.replace("tea", "gin")))
    assert check(folder).problem == "events.jsonl does not say what the sealed events say"

    path.write_text(lines)
    path = folder / "accesses.csv"
    rows = path.read_bytes()
    forged(folder, log, lambda: path.write_bytes(rows.replace(b"m-1", b"m-2")))
    assert check(folder).problem == "accesses.csv does not say what the sealed events say"


def test_even_the_sender_cannot_change_a_detail_or_a_header(folder, log):
    """The commitment, and the path to the root, are of what was recorded."""
    path = folder / "proofs.jsonl"
    lines = path.read_text().splitlines()
    first = json.loads(lines[0])
    for name, problem in (("detail", "the detail of event"), ("header", "is not the one that")):
        data = base64.b64decode(first[name]).replace(b"tea", b"gin").replace(b"mem0", b"mem9")
        changed = {**first, name: base64.b64encode(data).decode()}
        text = "\n".join([json.dumps(changed), *lines[1:]]) + "\n"
        forged(folder, log, lambda text=text: path.write_text(text))
        assert problem in check(folder).problem


def test_another_key_is_refused(folder):
    """Where the reader knows the sender's key, a bundle signed by another is none."""
    ours = json.loads((folder / "manifest.json").read_text())["log"]["verifier_key"]
    other = Signer(ours.split("+")[0], bytes(32)).verifier_key

    assert check(folder, key=ours).code == 0
    assert check(folder, key=other).code == 1
    assert check(folder, key=other).key == ""


@pytest.mark.long
def test_a_sample_of_bytes_of_the_archive(bundle, tmp_path):
    """Flipped, it is found; or what is in it is the same (names, times and modes of a zip)."""
    data = bundle.read_bytes()
    with zipfile.ZipFile(bundle) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    copy = tmp_path / "copy.zip"
    changed_unseen = []
    for place in range(0, len(data), 101):
        copy.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        if check(copy).code != 1:
            with zipfile.ZipFile(copy) as archive:
                same = {name: archive.read(name) for name in archive.namelist()} == contents
            if not same:
                changed_unseen.append(place)

    assert changed_unseen == []


@pytest.mark.parametrize("data", [b"", b"PK", b"nothing of the kind", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_bundle_is_said_in_a_line(tmp_path, data):
    """Whatever was handed in, without a traceback."""
    path = tmp_path / "export.zip"
    path.write_bytes(data)

    report = check(path)
    assert report.code == 1
    assert "\n" not in report.verdict()


def test_a_file_that_is_twice_in_the_archive_is_found(bundle):
    """Readers differ in which of the two they show."""
    with zipfile.ZipFile(bundle, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("events.jsonl", b"")

    assert check(bundle).problem == "a file is in it twice"


def test_declared_losses_and_missing_stores_have_codes_of_their_own(
    log, bundled, things, event_factory
):
    """In order, and yet not the whole story: 2 and 3."""
    store, _thing = things
    log.append([event_factory()])
    assert check(bundled().path).code == 3

    gap = {"writer": "aa", "from_wseq": 2, "to_wseq": 4, "count": 3, "reason": "lane full"}
    log.append_log_event("audit.gap", gap)
    report = check(bundled(store("mem0")).path)
    assert report.code == 2
    assert "3 events" in report.verdict()


def test_the_command_says_what_is_wrong_with_its_use(tmp_path, capsys):
    """Nothing there, or an option that is none: 4."""
    assert main([str(tmp_path / "nowhere")]) == 4
    assert main(["--frobnicate"]) == 4
    assert main(["--help"]) == 0
    assert "Traceback" not in capsys.readouterr().err


def test_progress_is_told_of_every_event(bundle):
    """So that a bar moves."""
    steps = []
    check(bundle, progress=steps.append)

    assert sum(steps) == 3


def test_a_bundle_that_was_unpacked_and_run_leaves_no_cache_in_doubt(folder):
    """Python's own folder beside the files is not one of them."""
    (folder / "__pycache__").mkdir()
    shutil.copy(folder / "verify.py", folder / "__pycache__" / "verify.pyc")

    assert check(folder).code == 0


def test_a_bundle_of_the_first_specification_is_still_in_order(folder, log):
    """Its events say less, and are written again to the byte; nested look-ups are listed twice."""

    def older():
        proofs = [json.loads(each) for each in (folder / "proofs.jsonl").read_text().splitlines()]
        events, accesses = b"", csv_lines([list(ACCESS_COLUMNS)])
        for proof in proofs:
            del proof["stated"]
            parts = [base64.b64decode(proof[name]) for name in ("header", "detail")]
            document = event_document(*map(json.loads, parts), proof["withheld"])
            assert "origin" not in document
            events += event_line(document)
            accesses += access_lines(document)
        (folder / "events.jsonl").write_bytes(events)
        (folder / "accesses.csv").write_bytes(accesses)
        text = "".join(json.dumps(each) + "\n" for each in proofs)
        (folder / "proofs.jsonl").write_text(text)
        manifest = json.loads((folder / "manifest.json").read_text())
        del manifest["incomplete"]
        for each in manifest["files"]:
            del each["n"]
        (folder / "manifest.json").write_text(json.dumps(manifest))

    forged(folder, log, older)
    assert check(folder).problem is None
    assert check(folder).code == 0


def test_what_the_operator_stated_of_an_event_is_what_was_listed(folder, log):
    """Legal basis, end and recipients of events.jsonl are those beside the proof."""
    path = folder / "events.jsonl"
    lines = path.read_text()
    forged(folder, log, lambda: path.write_text(lines.replace("the legal_bases", "consent")))

    assert check(folder).problem == "events.jsonl does not say what the sealed events say"
