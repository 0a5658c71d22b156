"""
Builds a release, twice: ``make release``.

The second build is in another folder and time zone, and both must come to the same bytes. What is
built is what is committed. The result is in ``build/release``: the source distribution and the
wheel, their hashes, and the bill of materials (CycloneDX) of what the wheel brings with it.

    python -m benchmarks.install.release --uv .venv-uv/bin/uv
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from tests.kit.empty_environments import ROOT

OUT = ROOT / "build/release"
PLAIN, PROGRAM = 0o644, 0o755


def committed(folder: Path) -> None:
    """Write what is committed into *folder*."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", "HEAD"],  # noqa: S607 - git of the machine
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")


def built(folder: Path, sources: Path, epoch: int, zone: str) -> Iterator[Path]:
    """Yield the source distribution and the wheel that *sources* come to."""
    how = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "TZ": zone, "PYTHONHASHSEED": zone[-1]}
    # Without isolation: with the setuptools that constraints.txt names, whatever is newest.
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)]

    def run(kind: str, where: Path) -> None:
        # The umask of whoever builds would be the mode of what is made on the way.
        command = [*build, kind, str(where)]
        done = subprocess.run(command, check=False, env=how, umask=0o022, capture_output=True)
        if done.returncode:
            sys.exit(done.stderr.decode())

    run("--sdist", sources)
    (sdist,) = folder.glob("*.tar.gz")
    name = normalise(sdist, epoch)
    yield sdist
    # Of the source distribution: who has that alone can build the same.
    with tarfile.open(sdist) as tar:
        tar.extractall(folder, filter="data")
    run("--wheel", folder / name)
    yield from folder.glob("*.whl")


def normalise(sdist: Path, epoch: int) -> str:
    """Write *sdist* anew without what the machine and the hour add, and return its one folder."""
    with tarfile.open(sdist) as tar:
        members = sorted(tar.getmembers(), key=lambda each: each.name)
        contents = {each.name: tar.extractfile(each).read() for each in members if each.isfile()}
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for each in members:
            each.mtime, each.uid, each.gid, each.uname, each.gname = epoch, 0, 0, "", ""
            each.mode = PROGRAM if each.isdir() or each.mode & 0o100 else PLAIN
            each.pax_headers = {}
            tar.addfile(each, io.BytesIO(contents.get(each.name, b"")))
    with sdist.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=epoch) as packed:
        packed.write(plain.getvalue())
    return members[0].name.partition("/")[0]


def bill_of_materials(uv: str, wheel: Path, out: Path) -> None:
    """Write the bill of what *wheel* brings with all its extras, by the pinned versions."""
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/venv/bin/python"
        constraints = str(ROOT / "constraints.txt")
        pip = [uv, "pip", "install", "--quiet", "--python", python, "--constraint", constraints]
        describe = [uv, "tool", "run", "--quiet", "--from", "cyclonedx-bom>=7.5", "cyclonedx-py"]
        describe += ["environment", "--output-reproducible"]
        for command in (
            [uv, "venv", "--quiet", "--python", sys.executable, f"{folder}/venv"],
            [*pip, f"{wheel}[all]"],
            [*describe, "--pyproject", str(ROOT / "pyproject.toml"), "--output-file", out, python],
        ):
            subprocess.run(command, check=True, cwd=ROOT)
    # Where the wheel lay as it was looked at is nobody's business.
    out.write_text(out.read_text("utf-8").replace(wheel.parent.as_uri(), "file:///"), "utf-8")


def main() -> int:
    """Build twice, compare, and write the bill; exits with 1 where the two differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--uv", required=True, help="where uv is")
    uv = str(Path(parser.parse_args().uv).absolute())
    log = ["git", "log", "-1", "--format=%ct"]
    epoch = int(subprocess.run(log, cwd=ROOT, check=True, capture_output=True).stdout)
    shutil.rmtree(OUT, ignore_errors=True)
    (OUT / "dist").mkdir(parents=True)
    hashes: list[dict[str, str]] = []
    for zone in ("UTC0", "PST8"):
        with tempfile.TemporaryDirectory(prefix=zone) as name:
            sources, folder = Path(name) / "sources", Path(name) / "dist"
            sources.mkdir()
            folder.mkdir()
            committed(sources)
            found = [*built(folder, sources, epoch, zone)]
            hashes.append({each.name: sha256(each.read_bytes()).hexdigest() for each in found})
            for each in found:
                shutil.copy(each, OUT / "dist")
    for name, one in hashes[0].items():
        said = "same" if hashes[1].get(name) == one else "DIFFERENT"
        sys.stdout.write(f"{said}  {one}  {name}\n")
    if hashes[0] != hashes[1]:
        return 1
    (wheel,) = (OUT / "dist").glob("*.whl")
    bill_of_materials(uv, wheel, OUT / "mnemoscope.cdx.json")
    sums = [f"{one}  dist/{name}\n" for name, one in sorted(hashes[0].items())]
    (OUT / "SHA256SUMS").write_text("".join(sums), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
