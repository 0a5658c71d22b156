"""
A journal on a real disk that is full: it kills nobody, and a healthy store never waits for it.

The disk is a small file system in memory, which a child mounts in a namespace of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from shutil import which
from typing import Any

import pytest

from tests.kit.patience import GIVE_UP_S

_IN_A_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")

_CHILD = '''
import json, logging, os, subprocess, sys, threading, time
from collections import defaultdict
from itertools import product
from pathlib import Path

from langgraph.store.memory import InMemoryStore

from mnemoscope.memory.journal.inspection import problem
from mnemoscope.memory.testing import scope_for_tests

logging.disable(logging.CRITICAL)
CALLS, GIVE_UP_S = 40, float(sys.argv[2])


class Store(InMemoryStore):
    down = False

    def batch(self, ops):
        if self.down:
            raise ConnectionError("down")
        return super().batch(ops)


class Disk:
    """A file system of 3 MiB and 64 files, and somebody who takes all of one, or ever again."""

    def __init__(self, path):
        path.mkdir()
        size = "size=3m,nr_inodes=64"
        subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", path], check=True)
        self.path, self.ended, self.thread = path, threading.Event(), None

    def fill(self, how):
        (self.take_files if how == "files" else self.take)()
        if how == "greedy":
            self.thread = threading.Thread(target=self.go_on)
            self.thread.start()

    def take(self):
        with open(self.path / "ballast", "ab", buffering=0) as ballast:
            try:
                while ballast.write(bytes(4096)) == 4096:
                    pass
            except OSError:
                pass

    def take_files(self):
        for number in range(64):
            try:
                (self.path / f"file {number}").touch()
            except OSError:
                break

    def go_on(self):
        while not self.ended.wait(0.001):
            self.take()

    def close(self):
        self.ended.set()
        if self.thread is not None:
            self.thread.join()


def eventually(is_so):
    until = time.monotonic() + GIVE_UP_S
    while not is_so() and time.monotonic() < until:
        time.sleep(0.02)
    return is_so()


def story(path, moment, how):
    disk = Disk(path)
    if moment == "from the start":
        disk.fill(how)
    with scope_for_tests(journal=path / "writes.journal") as (scope, sink):
        outcome = told(scope, sink, disk, moment, how)
        disk.close()
    return outcome


def told(scope, sink, disk, moment, how):
    store = Store()
    guarded = scope.store(store)
    guarded.put(("notes",), "first", {"n": 0})
    if moment == "while nothing waits":
        disk.fill(how)
    store.down = True
    ends = defaultdict(list)

    def put(key, value):
        guarded.put(("notes",), key, value)
        scope.flush(GIVE_UP_S)
        ends[sink.events[-1].journal].append(key)

    for number in range(CALLS):
        put(f"waits {number}", {"text": "x" * 200})
    ends["lost"].clear()  # nobody could have kept them
    if moment == "while writes wait":
        disk.fill(how)
    store.down = False
    for guard in scope._parts.guards.guards:
        for limits in guard.limits.values():
            limits.breaker.forked()  # not open for five seconds more
    for number in range(CALLS):
        put(f"direct {number}", {"n": number})
    missing = lambda: [key for key in ends["appended"] if store.get(("notes",), key) is None]
    eventually(lambda: not missing())
    return {"missing": missing(), "lost": ends["lost"]}


moments = ("from the start", "while nothing waits", "while writes wait")
for number, (moment, how) in enumerate(product(moments, ("room", "greedy", "files"))):
    outcome = story(Path(sys.argv[1]) / str(number), moment, how)
    print(json.dumps([moment, how, outcome]), flush=True)

disk = Disk(Path(sys.argv[1]) / "left")
for name in ("blank", "journal"):
    (disk.path / name).touch(0o600)
with scope_for_tests(journal=disk.path / "journal") as (scope, _sink):
    scope.store(Store()).put(("notes",), "first", {"n": 0})
(disk.path / "journal.reserve").unlink()
disk.fill("room")
names = "blank", "journal", "missing"
print(json.dumps([problem(disk.path / name) for name in names]))
'''


@pytest.fixture(scope="module")
def namespace() -> tuple[str, ...]:
    """Return the command that runs another where it may mount file systems."""
    if (
        which("unshare") is None
        or subprocess.run([*_IN_A_NAMESPACE, "true"], check=False).returncode
    ):
        pytest.skip("no file system can be mounted here: unshare --user --mount is refused")
    return _IN_A_NAMESPACE


@pytest.fixture(scope="module")
def told(namespace, tmp_path_factory) -> list[Any]:
    """Return what a child tells that has lived through full disks of all kinds."""
    folder = tmp_path_factory.mktemp("disks")
    child = subprocess.run(
        [*namespace, sys.executable, "-c", _CHILD, str(folder), str(GIVE_UP_S)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (child.returncode, child.stderr) == (0, "")
    return [json.loads(line) for line in child.stdout.splitlines()]


@pytest.mark.long
def test_on_a_full_disk_a_healthy_store_takes_every_write(told):
    """
    Whenever it became so: without room, without any that becomes free, without another file.

    The application lives; what waited is made, and no write is lost since the store is back.
    """
    stories = {(moment, how): outcome for moment, how, outcome in told[:-1]}

    assert len(stories) == 9
    assert {story: found for story, found in stories.items() if any(found.values())} == {}


def test_a_full_disk_is_called_one(told):
    """Whether the journal cannot be read now, or nobody could begin it, or make its file."""
    assert set(told[-1]) == {"cannot be written: the disk is full"}
