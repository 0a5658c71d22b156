"""The chart as Helm renders it, and the image as its Dockerfile makes it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.chart import Chart
from tests.kit.empty_environments import ROOT, build_wheel
from tests.kit.image_folder import Builder, Image, refusal

# Helm is built for these, and an image made: they run by `make test-deploy` alone.
collect_ignore_glob = [] if os.environ.get("DEPLOY_TESTS") else ["test_*.py"]

BUILT = ROOT / "build/cluster"
TOOLS = ROOT / ".venv-deploy/bin"


@pytest.fixture(scope="session")
def tool() -> Callable[[str], str]:
    """Return where a program is that `make test-deploy` builds or installs, or skip the test."""

    def found(name: str) -> str:
        path = shutil.which(name, path=f"{BUILT}{os.pathsep}{TOOLS}")
        if path is None:
            pytest.skip(f"{name} could not be built or installed here: see make test-deploy")
        return path

    return found


@pytest.fixture(scope="session")
def api_schemas() -> Path:
    """Return the folder of the schemas of Kubernetes' API, by version."""
    found = sorted(TOOLS.parent.glob("lib/*/site-packages/kubernetes_validate"))
    if not found:
        pytest.skip("kubernetes-validate could not be installed here: see make test-deploy")
    return found[0] / "kubernetes-json-schema"


@pytest.fixture(scope="session")
def chart(tool: Callable[[str], str]) -> Chart:
    """Return the chart that is shipped."""
    return Chart(tool("helm"), ROOT / "deploy/chart")


@pytest.fixture(scope="session")
def all_of_it(chart: Chart) -> list[dict[str, Any]]:
    """Return the objects of everything that the chart has."""
    return chart.objects("all-values.yaml")


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Image]:
    """Return the stages of the image, made of what is in the repository."""
    if (why_not := refusal()) is not None:
        pytest.skip(why_not)
    folder = tmp_path_factory.mktemp("image")
    context = folder / "context"
    context.mkdir()
    allowed = (ROOT / "deploy/image/Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert allowed[0] == "*"
    wheel = build_wheel(folder)
    for pattern in allowed[1:]:
        kept = pattern.removeprefix("!")
        place = context / Path(kept).parent
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(wheel if kept.endswith(".whl") else ROOT / kept, place)
    builder = Builder(context, folder / "stages", ROOT / "build/image-cache")
    return builder.build((ROOT / "deploy/image/Dockerfile").read_text("utf-8"))


@pytest.fixture(scope="session")
def image(stages: dict[str, Image]) -> Image:
    """Return the image that is built where no stage is named."""
    return stages["relay"]


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Return a maker of the folders behind volumes, which belong to the image's user."""

    def folder(name: str) -> Path:
        path = tmp_path / name
        if not path.exists():
            path.mkdir(mode=0o700)
            subprocess.run(["chown", "10001:10001", path], check=True)  # noqa: S607 - the machine's
        return path

    return folder
