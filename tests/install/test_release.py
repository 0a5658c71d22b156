"""What a release is made with: the forms and the workflow for GitHub, and the same bytes twice."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import tomllib

import pytest
import yaml

from benchmarks.install.release import normalise
from tests.kit.empty_environments import ROOT

FILES = {
    ".github/ISSUE_TEMPLATE/bug.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/wish.yml": "vendor.github-issue-forms",
    ".github/ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
    ".github/workflows/release.yml": "vendor.github-workflows",
    "CITATION.cff": "vendor.citation-file-format",
}
WORKFLOW = ROOT / ".github/workflows/release.yml"


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_of_its_schema(name):
    """Of GitHub's and of the Citation File Format, as check-jsonschema has them."""
    command = ["check_jsonschema", "--builtin-schema", FILES[name], str(ROOT / name)]
    told = [sys.executable, "-m", *command]
    done = subprocess.run(told, check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout + done.stderr


def test_what_one_cites_is_this_version():
    """The version and the licence of `pyproject.toml`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))

    assert cited["version"] == project["version"]
    assert cited["license"] == project["license"]


def test_the_chart_is_of_this_version():
    """And so is the image that it runs where no tag is named."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    chart = yaml.safe_load((ROOT / "deploy/chart/Chart.yaml").read_text("utf-8"))

    assert chart["version"] == chart["appVersion"] == project["version"]


def test_only_the_job_that_publishes_may_sign():
    """It builds nothing itself, and there is no secret that could be stolen."""
    text = WORKFLOW.read_text("utf-8")
    workflow = yaml.safe_load(text)
    jobs = workflow["jobs"]

    assert workflow["permissions"] == {}
    may = {name for name, job in jobs.items() if job["permissions"].get("id-token") == "write"}
    assert may == {"publish"}
    assert [step for step in jobs["publish"]["steps"] if "run" in step] == []
    assert "secrets." not in text


def archive(path, members, mtime, owner):
    """Write a source distribution as a machine makes it."""
    with tarfile.open(path, "w:gz") as tar:
        for name in members:
            info = tarfile.TarInfo(name)
            info.mtime, info.uname, info.uid = mtime, owner, len(owner)
            info.mode = 0o664 if owner == "ada" else 0o600
            info.size = len(name)
            tar.addfile(info, io.BytesIO(name.encode()))
    return path


def test_a_source_distribution_does_not_say_where_and_when_it_was_made(tmp_path):
    """Order, owner, times and umask are left out; what is in it stays."""
    names = ["m-1/a.py", "m-1/b.py", "m-1/PKG-INFO"]
    one = archive(tmp_path / "one.tar.gz", names, 1_000, "ada")
    other = archive(tmp_path / "other.tar.gz", names[::-1], 9_999_999, "bob")

    assert one.read_bytes() != other.read_bytes()
    assert (normalise(one, 7), normalise(other, 7)) == ("m-1", "m-1")
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as tar:
        assert {each.name: tar.extractfile(each).read().decode() for each in tar} == {
            name: name for name in names
        }
