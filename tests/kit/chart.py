"""A Helm chart as its objects, and the pods that those make."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

NEWEST = "1.37.0"
RELEASE = "r"


class ChartError(Exception):
    """Helm refuses: what it says."""


class Chart:
    """
    A chart in a folder.

    Args:
        helm: Where Helm is.
        folder: Of the chart.
    """

    def __init__(self, helm: str, folder: Path) -> None:
        self._helm = helm
        self.folder = folder

    def run(self, command: str, values: str = "", *more: str, version: str = NEWEST) -> str:
        """
        Return what Helm says.

        Args:
            command: ``lint`` or ``template``.
            values: A file of the chart's folder ``ci``, or none.
            *more: Further options.
            version: Of the cluster.

        Raises:
            ChartError: It refuses.
        """
        place = [RELEASE, str(self.folder)] if command == "template" else [str(self.folder)]
        given = ["--values", str(self.folder / "ci" / values)] if values else []
        ran = subprocess.run(
            [self._helm, command, *place, *given, "--kube-version", version, *more],
            check=False,
            capture_output=True,
            text=True,
        )
        if ran.returncode:
            raise ChartError(ran.stdout + ran.stderr)
        return ran.stdout

    def objects(self, values: str = "", *more: str) -> list[dict[str, Any]]:
        """Return the objects that it renders."""
        return [each for each in yaml.safe_load_all(self.run("template", values, *more)) if each]


def pods_in(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the pod templates of *objects*, by the name of their owner."""
    for each in objects:
        spec = each.get("spec", {})
        if each["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if "template" in spec:
            yield f"{each['kind']} {each['metadata']['name']}", spec["template"]


def containers_in(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return all containers of a pod template, in the order in which they begin."""
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def only(objects: Sequence[Mapping[str, Any]], kind: str, name: str) -> Mapping[str, Any]:
    """Return the one object of that kind and name, of this release."""
    (found,) = (
        each
        for each in objects
        if (each["kind"], each["metadata"]["name"]) == (kind, f"{RELEASE}-{name}")
    )
    return found
