"""
Makes the verdicts of runs made at random again, and has one fact of each changed.

    python -m benchmarks.verdicts [--verdicts N]

All rules are on, in front of memory operations, model calls, nodes and tools. Each verdict is made
again from the audit trail by ``mnemoscope audit verdicts``, in another process and without a scope;
then one of its facts, whichever is drawn, is changed or taken away, and has to be named.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from random import Random
from typing import Any

from rich.console import Console

from mnemoscope.adapters.cli.audit.verdicts import kinds_of
from mnemoscope.memory.rules.recheck import Answer, recheck
from tests.kit.rule_runs import KINDS, change_one, live

_KEY = "ab" * 32
_CONSOLE = Console(highlight=False, soft_wrap=True)


def main() -> None:
    """Print both figures, in all and by kind; end with 1 if one is not all of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("--verdicts", type=int, default=10_000)
    wanted = parser.parse_args().verdicts
    with tempfile.TemporaryDirectory() as folder:
        verdicts = _made(f"sqlite:///{folder}/audit.db", wanted)[:wanted]
    again = Counter(each["kind"] for each in verdicts if each["recomputed"] == "same")
    rng, kinds, named = Random(len(verdicts)), kinds_of(None), Counter[str]()  # noqa: S311 - likewise
    for each in verdicts:
        name, facts = change_one(rng, each["facts"])
        found = recheck({**each, "facts": facts}, kinds)
        named[each["kind"]] += found.answer is Answer.DIFFERS and name in found.why.split(";")[0]
    of = Counter(each["kind"] for each in verdicts)
    for kind, count in sorted(of.items()):
        _CONSOLE.print(f"{kind}: {again[kind]:,} of {count:,} again, {named[kind]:,} named")
    _CONSOLE.print(
        f"{again.total():,} of {of.total():,} verdicts made again; of as many changed facts "
        f"{named.total():,} were named"
    )
    met = again.total() == named.total() == of.total() == wanted and of.keys() == KINDS
    sys.exit(0 if met else 1)


def _made(url: str, wanted: int) -> list[dict[str, Any]]:
    """Return what the command prints of worlds that left at least so many verdicts."""
    live(url, wanted)
    environment = {**os.environ, "MNEMOSCOPE_AUDIT_PSEUDONYM_KEY": _KEY}
    program = "from mnemoscope.adapters.cli.root import main; main()"
    command = [sys.executable, "-c", program, "audit", "verdicts", "--json"]
    done = subprocess.run(
        [*command, "--audit-url", url], capture_output=True, check=False, env=environment
    )
    return list(json.loads(done.stdout))


if __name__ == "__main__":
    main()
