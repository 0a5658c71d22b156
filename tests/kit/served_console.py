"""`mnemoscope serve` in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from tests.kit.patience import GIVE_UP_S

_SERVE = "from mnemoscope.adapters.cli.root import main; main()"


class Served(NamedTuple):
    """
    A console that listens.

    Attributes:
        origin: Its address.
        sign_in: The address that signs in once.
        process: It.
    """

    origin: str
    sign_in: str
    process: subprocess.Popen[str]

    def stop(self) -> int:
        """End it in order, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(GIVE_UP_S)


def variables_of(settings: Mapping[str, object]) -> dict[str, str]:
    """Return *settings* as variables of an environment."""
    return {f"MNEMOSCOPE_{name.upper()}": str(value) for name, value in settings.items()}


@contextmanager
def served(*options: str, env: Mapping[str, str]) -> Generator[Served]:
    """Serve on a free port, with *env* besides this process's variables, and end it."""
    command = [sys.executable, "-c", _SERVE, "serve", "--port", "0", *options]
    known = {**os.environ, **env}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=known) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            found = next(filter(None, (re.search(r"(https?://\S+?)/sign-in\S+", x) for x in lines)))
            yield Served(found[1], found[0], process)
        finally:
            process.kill()
