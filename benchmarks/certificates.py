"""
Has the certificates of our gates verified by operon's own verifier, and operon's by ours.

    python -m benchmarks.certificates PYTHON [--certificates N]

PYTHON is an interpreter with operon-langgraph-gates, in a process of its own, which is given JSON
and nothing else. Certificates are those of gates that have seen texts and states made at random;
then their figures are changed at random, and both have to say the same of those too.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from random import Random
from typing import Any

from rich.console import Console

from mnemoscope.adapters.langgraph.gates import (
    INTEGRITY,
    STABILITY,
    Certificate,
    IntegrityGate,
    StagnationGate,
    certificate_from,
    predicate,
)

_CONSOLE = Console(highlight=False, soft_wrap=True)
_OPERON = """
import json, sys
import operon_langgraph_gates  # registers the theorem of its integrity gate
from operon_ai.core.certificate import certificate_from_dict, certificate_to_dict
from operon_langgraph_gates import StagnationGate

for line in sys.stdin:
    known = json.loads(line)
    if "texts" in known:
        gate = StagnationGate(threshold=0.5)
        for text in known["texts"]:
            gate.observe(text)
        print(json.dumps([certificate_to_dict(each) for each in gate.certificates]))
    else:
        certificate = certificate_from_dict({"conclusion": "", "source": "", **known})
        print(json.dumps(certificate.verify().holds))
"""
_WORDS = ("plan", "tea", "account", "again", "nothing", "new", "found", "look")


def main() -> None:
    """Print what was verified by whom; end with 1 if they disagree."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("python")
    parser.add_argument("--certificates", type=int, default=1_000)
    given = parser.parse_args()
    rng = Random(6)  # noqa: S311 - the same in every run
    ours = [each for _ in range(given.certificates // 2) for each in _certified(rng)]
    changed = [Certificate(each.theorem, _changed(rng, each), each.holds) for each in ours]
    said = _operon(given.python, [json.loads(each.text()) for each in (*ours, *changed)])
    same = sum(certificate.holds is holds for certificate, holds in zip(ours, said, strict=False))
    verified = [certificate_from(each.text()).verify() for each in changed]
    alike = sum(
        (each.holds is holds) is is_verified
        for each, holds, is_verified in zip(changed, said[len(ours) :], verified, strict=True)
    )
    theirs = [
        each
        for found in _operon(given.python, [{"texts": _texts(rng)} for _ in range(100)])
        for each in found
    ]
    agreed = sum(not predicate(each["theorem"], each["parameters"]) for each in theirs)
    _CONSOLE.print(f"our certificates, verified by operon from JSON: {same:,} of {len(ours):,}")
    _CONSOLE.print(f"with changed figures, both say the same: {alike:,} of {len(changed):,}")
    _CONSOLE.print(f"certificates of operon's, by our predicate: {agreed:,} of {len(theirs):,}")
    met = same == len(ours) and alike == len(changed) and agreed == len(theirs) > 0
    sys.exit(0 if met else 1)


def _texts(rng: Random) -> list[str]:
    words = _WORDS[: rng.randrange(1, len(_WORDS))]
    return [" ".join(rng.choice(words) for _ in range(4)) for _ in range(40)]


def _certified(rng: Random) -> list[Certificate]:
    """Return a certificate of each gate."""
    count, threshold = rng.randrange(1, 5), round(rng.uniform(0.05, 0.9), 3)
    stagnation = StagnationGate(
        lambda text: [text.count(each) + 0.01 for each in "abcdefghijklmnopqrstuvwxyz"],
        threshold=threshold,
        critical_duration=count,
        alpha=rng.uniform(0.1, 1.0),
    )
    text = rng.choice(_texts(rng))
    while not stagnation.certificates:
        stagnation.observe(text)
    invariants = [(f"invariant {n}", lambda out, n=n: out[n]) for n in range(rng.randrange(1, 6))]
    integrity = IntegrityGate(invariants)
    while not integrity.certificates:
        integrity.check([rng.random() < 0.7 for _ in invariants])
    return [stagnation.certificates[0], integrity.certificates[0]]


def _changed(rng: Random, certificate: Certificate) -> dict[str, Any]:
    known = json.loads(json.dumps(dict(certificate.parameters)))
    if certificate.theorem == STABILITY:
        known["threshold"] = rng.choice([known["threshold"], rng.random(), 1.0])
        known["signal_values"] = [
            rng.choice([each, rng.random(), known["threshold"]]) for each in known["signal_values"]
        ][: rng.randrange(len(known["signal_values"]) + 1)]
    if certificate.theorem == INTEGRITY:
        known["invariant_results"] = [
            [name, rng.random() < 0.8] for name, _held in known["invariant_results"]
        ]
    return known


def _operon(python: str, asked: list[dict[str, Any]]) -> list[Any]:
    lines = "\n".join(json.dumps(each) for each in asked)
    done = subprocess.run(
        [python, "-c", _OPERON], input=lines, capture_output=True, text=True, check=True
    )
    return [json.loads(each) for each in done.stdout.splitlines()]


if __name__ == "__main__":
    main()
