"""``mnemoscope rules``: alert rules for Prometheus, made from latency objectives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .exit_codes import USAGE, CommandError
from .options import Folder, Kubernetes, Runbooks
from .written import write_linked

if TYPE_CHECKING:
    from mnemoscope.alerting.objectives import Objectives

ObjectivesFile = Annotated[
    Path | None,
    typer.Option(
        "--objectives",
        metavar="FILE",
        help="Latency objectives by store and class, in YAML. Default: those of `objectives`.",
    ),
]


def objectives_() -> None:
    """
    Print an objectives file that says what holds without one, to begin with.

    `read` is recall and resume, `write` is remember, checkpoint and forget; a class may also be
    named by itself, and `none` switches one off.
    """
    from mnemoscope.alerting.objectives_file import template

    typer.echo(template(), nl=False)


def render(
    objectives: ObjectivesFile = None,
    runbooks: Runbooks = None,
    stories: Annotated[
        bool,
        typer.Option(
            "--stories", help="Instead: tests of the latency rules, for promtool test rules."
        ),
    ] = False,
    kubernetes: Kubernetes = False,
) -> None:
    """
    Print the recording and alert rules as YAML.

    Burn-rate alerts over several windows for each objective, and all others. Exits with 2 if the
    objectives cannot be read or make no sense.
    """
    if stories and kubernetes:
        raise CommandError("pass one of --stories and --kubernetes, not both", USAGE)
    from mnemoscope.alerting.runbooks import FILE
    from mnemoscope.alerting.yaml_text import yaml_text

    of, address = _objectives(objectives), runbooks or FILE
    if stories:
        typer.echo(yaml_text(_stories(of, address, ["mnemoscope.yaml"])), nl=False)
    else:
        typer.echo(yaml_text(_rules(of, address, kubernetes=kubernetes)), nl=False)


def install(
    folder: Folder,
    objectives: ObjectivesFile = None,
    runbooks: Runbooks = None,
    kubernetes: Kubernetes = False,
) -> None:
    """
    Write the rules into a folder that Prometheus' rule_files names, as DIR/*.yaml.

    And tests of the latency rules into DIR/tests, for promtool test rules. Without --runbooks the
    runbooks are written beside the rules, and the alerts' links lead there. Files of other names
    are left alone. Exits with 2 if the objectives make no sense or the folder cannot be written.
    """
    from mnemoscope.alerting.yaml_text import yaml_text

    of, name = _objectives(objectives), "mnemoscope.yaml"

    def texts(address: str) -> Mapping[str, str]:
        documents = {name: _rules(of, address, kubernetes=kubernetes)}
        if not kubernetes:
            # In a folder of their own: Prometheus takes each `*.yaml` beside the rules for rules.
            documents[f"tests/{name}"] = _stories(of, address, [f"../{name}"])
        return {each: yaml_text(document) for each, document in documents.items()}

    write_linked(folder, runbooks, texts, kubernetes=kubernetes)


def _objectives(path: Path | None) -> Objectives:
    from mnemoscope.alerting.objectives import Objectives, ObjectivesError

    if path is None:
        return Objectives()
    from mnemoscope.alerting.objectives_file import read_objectives

    try:
        return read_objectives(path)
    except ObjectivesError as exc:
        raise CommandError(f"{path}: {exc}") from None
    except UnicodeDecodeError:
        raise CommandError(f"{path}: this is no UTF-8 text") from None


def _rules(of: Objectives, runbooks: str, *, kubernetes: bool) -> Mapping[str, Any]:
    from mnemoscope.alerting.kubernetes import prometheus_rule
    from mnemoscope.alerting.rules import groups, rule_file

    document = rule_file(groups(of), runbooks)
    return prometheus_rule(document) if kubernetes else document


def _stories(of: Objectives, runbooks: str, rule_files: list[str]) -> Mapping[str, Any]:
    from mnemoscope.alerting.stories import stories

    return stories(of, runbooks, rule_files)
