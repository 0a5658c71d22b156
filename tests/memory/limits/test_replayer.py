"""The end of replays as a process ends: what a store has taken by then is an event of the sinks."""

from __future__ import annotations

import subprocess
import sys

from tests.kit.patience import GIVE_UP_S

PROGRAM = """
import threading
import time

from mnemoscope.memory import Mnemoscope, load_settings
from mnemoscope.memory.api import Faults
from mnemoscope.memory.limits.replayer import Replayer
from mnemoscope.telemetry.process.exit_deadline import is_exiting

began = threading.Event()


class Sink:
    name, idempotent = "custom", True

    def write(self, batch):
        pass

    def flush(self, timeout_s):
        print("delivered", flush=True)
        return True

    def close(self, timeout_s):
        pass


class Guard:
    def replay(self):
        began.set()
        while not is_exiting():
            time.sleep(0.001)
        time.sleep(0.03)
        print("made again", flush=True)
        return False


scope = Mnemoscope(load_settings(pii_model="none"), only_sinks=[Sink()])
scope.outcome("used", run="r-1")
guard, replayer = Guard(), Replayer(Faults())
replayer.watch(guard)
began.wait()
"""


def test_sinks_deliver_once_replays_have_ended():
    """A write that is being made again is finished first, and none is begun after it."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )

    assert done.stdout.splitlines() == ["made again", "delivered"]
