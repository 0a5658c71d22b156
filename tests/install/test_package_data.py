"""What the wheel has: every file of its packages, code or not."""

from __future__ import annotations

from pathlib import Path

from setuptools import Distribution

from tests.kit.empty_environments import ROOT


def test_every_file_of_a_package_travels_in_the_wheel():
    """What a package reads in its own folder, and where its data are from, is installed with it."""
    wheel = Distribution({"src_root": str(ROOT)})
    wheel.parse_config_files([str(ROOT / "pyproject.toml")])
    build = wheel.get_command_obj("build_py")
    build.ensure_finalized()
    shipped = {
        Path(source) / name
        for _package, source, _built, names in build.data_files
        for name in names
    }

    there = {
        path
        for _package, source, _built, _names in build.data_files
        for path in Path(source).rglob("*")
        if path.is_file() and path.suffix not in {".py", ".pyc"}
    }
    assert there
    assert there - shipped == set()
