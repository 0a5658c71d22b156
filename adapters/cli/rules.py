"""``mnemoscope rules``: alert rules for Prometheus, made from latency objectives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .exit_codes import USAGE, CommandError
from .options import Folder, Kubernetes, Runbooks
from .written import write_files

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
    from mnemoscope.alerting.yaml_text import yaml_text

    of = _objectives(objectives)
    if stories:
        typer.echo(yaml_text(_stories(of, runbooks, ["mnemoscope.yaml"])), nl=False)
    else:
        typer.echo(yaml_text(_rules(of, runbooks, kubernetes=kubernetes)), nl=False)


def install(
    folder: Folder,
    objectives: ObjectivesFile = None,
    runbooks: Runbooks = None,
    kubernetes: Kubernetes = False,
) -> None:
    """
    Write the rules into a folder that Prometheus' rule_files names, as DIR/*.yaml.

    And tests of the latency rules into DIR/tests, for promtool test rules. Files of other names are
    left alone. Exits with 2 if the objectives make no sense or the folder cannot be written.
    """
    from mnemoscope.alerting.yaml_text import yaml_text

    of, name = _objectives(objectives), "mnemoscope.yaml"
    documents = {name: _rules(of, runbooks, kubernetes=kubernetes)}
    if not kubernetes:
        documents[f"tests/{name}"] = _stories(of, runbooks, [f"../{name}"])
    write_files(folder, {each: yaml_text(document) for each, document in documents.items()})


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


def _rules(of: Objectives, runbooks: str | None, *, kubernetes: bool) -> Mapping[str, Any]:
    from mnemoscope.alerting.kubernetes import prometheus_rule
    from mnemoscope.alerting.rules import RUNBOOKS, groups, rule_file

    document = rule_file(groups(of), runbooks or RUNBOOKS)
    return prometheus_rule(document) if kubernetes else document


def _stories(of: Objectives, runbooks: str | None, rule_files: list[str]) -> Mapping[str, Any]:
    from mnemoscope.alerting.rules import RUNBOOKS
    from mnemoscope.alerting.stories import stories

    return stories(of, runbooks or RUNBOOKS, rule_files)
