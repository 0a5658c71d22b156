"""
Scores the search for secrets on the test cases of two secret scanners, which are not ours.

    make bench-secrets GITLEAKS=CHECKOUT DETECT_SECRETS=CHECKOUT ARGS="--show RULE"

gitleaks states beside each rule texts that hold a secret and texts that hold none. Its generator is
built with Go, with a validator of ours that writes those cases down with the place of each secret.
detect-secrets has its cases in the parameters of its tests; they do not say where the secret is. A
secret is found when each of its characters would be replaced, by whatever entity; of
detect-secrets, when anything is found. Nothing of theirs is kept.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from mnemoscope.memory.privacy.detectors.finding import Finding
from mnemoscope.memory.privacy.engine.redactor import build_redactor
from mnemoscope.telemetry.event.subject import SubjectKeys

_VALIDATOR = """
package utils

import (
	"encoding/json"
	"os"

	"github.com/zricethezav/gitleaks/v8/config"
)

func note(rule config.Rule, text string, isSecret bool) {
	var span []int
	if isSecret && rule.Regex != nil {
		found := rule.Regex.FindStringSubmatchIndex(text)
		if len(found) > 1 {
			span = found[:2]
		}
		for at := 2; at+1 < len(found); at += 2 {
			if found[at] >= 0 && (rule.SecretGroup == 0 || rule.SecretGroup == at/2) {
				span = found[at : at+2]
				break
			}
		}
	}
	_ = json.NewEncoder(os.Stderr).Encode(map[string]any{
		"rule": rule.RuleID, "text": text, "is_secret": isSecret, "span": span,
	})
}

func Validate(rule config.Rule, truePositives []string, falsePositives []string) *config.Rule {
	for _, text := range truePositives {
		note(rule, text, true)
	}
	for _, text := range falsePositives {
		note(rule, text, false)
	}
	return &rule
}

func ValidateWithPaths(rule config.Rule, yes map[string]string, no map[string]string) *config.Rule {
	for _, text := range yes {
		note(rule, text, true)
	}
	for _, text := range no {
		note(rule, text, false)
	}
	return &rule
}
"""


class Case(NamedTuple):
    """
    A text of a scanner's tests.

    Attributes:
        rule: Rule whose test it is of.
        text: The text.
        is_secret: It holds a secret.
        span: Where. None: the test does not say.
    """

    rule: str
    text: str
    is_secret: bool
    span: tuple[int, int] | None = None


def read_gitleaks(checkout: Path) -> Iterator[Case]:
    """Yield the cases of a checkout of gitleaks, built with Go in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "gitleaks"
        shutil.copytree(checkout, copy, ignore=shutil.ignore_patterns(".git"))
        (copy / "cmd/generate/config/utils/validate.go").write_text(_VALIDATOR, "utf-8")
        template = copy / "cmd/generate/config"
        command = ("go", "run", ".", str(Path(folder) / "rules.toml"))
        ran = subprocess.run(command, cwd=template, capture_output=True, check=False)
    lines = ran.stderr.decode("utf-8").splitlines()
    for line in filter(lambda line: line.startswith('{"is_secret"'), lines):
        case = json.loads(line)
        span = case["span"] and _of_characters(case["text"], *case["span"])
        yield Case(case["rule"], case["text"], case["is_secret"], span)


def _of_characters(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span of bytes as one of characters."""
    held = text.encode()
    return len(held[:start].decode("utf-8", "ignore")), len(held[:end].decode("utf-8", "ignore"))


def read_detect_secrets(checkout: Path) -> Iterator[Case]:
    """Yield the cases in a checkout of detect-secrets: literal parameters of its plugins' tests."""
    for path in sorted((checkout / "tests/plugins").glob("*_test.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("parametrize"):
                yield from _parameters(path.stem.removesuffix("_test"), node.args[1])


def _parameters(rule: str, given: ast.expr) -> Iterator[Case]:
    for each in given.elts if isinstance(given, (ast.List, ast.Tuple)) else ():
        try:
            value = ast.literal_eval(each)
        except ValueError:
            continue
        match value:
            case str(text) | (str(text),):
                yield Case(rule, text, is_secret=True)
            case (str(text), bool(is_secret)):
                yield Case(rule, text, is_secret)


class Tally(NamedTuple):
    """The cases of one rule that were found, missed, found in part, and found for nothing."""

    found: list[Case]
    missed: list[Case]
    in_part: list[Case]
    wrong: list[Case]
    clean: list[Case]


def tally(cases: Iterator[Case]) -> dict[str, Tally]:
    """Return what becomes of *cases*, by rule."""
    redactor = build_redactor(model="none", keys=SubjectKeys(bytes(32)))
    tallies: dict[str, Tally] = defaultdict(lambda: Tally([], [], [], [], []))
    for case in cases:
        found = redactor.explain(case.text)
        each = tallies[case.rule]
        secrets = [finding for finding in found if finding.entity == "SECRET"]
        if not case.is_secret:
            (each.wrong if secrets else each.clean).append(case)
        elif case.span is None:
            (each.found if found else each.missed).append(case)
        else:
            left, whole = (_uncovered(case.text, _secret(case), some) for some in (found, []))
            outcome = each.missed if left == whole else each.in_part
            (outcome if left else each.found).append(case)
    return tallies


def _secret(case: Case) -> tuple[int, int]:
    """Return the span of a case without the scheme of an address."""
    start, end = case.span or (0, 0)
    scheme = re.match("https?://", case.text[start:end])
    return start + (scheme.end() if scheme else 0), end


def _uncovered(text: str, span: tuple[int, int], found: list[Finding]) -> int:
    """Return how many letters and digits of *span* would stay."""
    return sum(
        text[at].isalnum() and not any(each.start <= at < each.end for each in found)
        for at in range(*span)
    )


def report(console: Console, name: str, tallies: dict[str, Tally]) -> None:
    """Print the rules of which not all is found, or something is found for nothing."""
    table = Table("rule", "secrets", "whole", "in part", "clean texts", "false", title=name)
    for column in table.columns[1:]:
        column.justify = "right"
    whole = Tally([], [], [], [], [])
    for rule, each in sorted(tallies.items()):
        for into, cases in zip(whole, each, strict=True):
            into.extend(cases)
        if each.missed or each.in_part or each.wrong:
            table.add_row(rule, *_cells(each))
    table.add_section()
    table.add_row(f"all {len(tallies)} rules", *_cells(whole))
    console.print(table)
    secrets = len(whole.found) + len(whole.missed) + len(whole.in_part)
    clean = len(whole.wrong) + len(whole.clean)
    console.print(
        f"{name}: recall {len(whole.found) / max(1, secrets):.3f}, "
        f"false in {len(whole.wrong) / max(1, clean):.3f} of clean texts"
    )


def _cells(each: Tally) -> tuple[str, ...]:
    secrets = len(each.found) + len(each.missed) + len(each.in_part)
    clean = len(each.wrong) + len(each.clean)
    counts = (secrets, len(each.found), len(each.in_part), clean, len(each.wrong))
    return tuple(map(str, counts))


def main() -> None:
    """Score the cases of each checkout that is given."""
    parser = argparse.ArgumentParser(description="Score the search for secrets on others' tests.")
    parser.add_argument("--gitleaks", type=Path, help="a checkout of gitleaks; needs Go")
    parser.add_argument("--detect-secrets", type=Path, help="a checkout of detect-secrets")
    parser.add_argument("--show", help="print the cases of a rule that were missed or are wrong")
    chosen = parser.parse_args()
    console = Console(width=100)
    for name, read, checkout in (
        ("gitleaks", read_gitleaks, chosen.gitleaks),
        ("detect-secrets", read_detect_secrets, chosen.detect_secrets),
    ):
        if checkout is None:
            continue
        tallies = tally(read(checkout))
        report(console, name, tallies)
        for rule, each in tallies.items():
            if chosen.show in {rule, "ALL"}:
                for said, cases in (("missed", each.missed + each.in_part), ("wrong", each.wrong)):
                    for case in cases:
                        text = f"{rule} {said}: {case.text!r}"
                        console.print(text, highlight=False, markup=False, soft_wrap=True)


if __name__ == "__main__":
    main()
