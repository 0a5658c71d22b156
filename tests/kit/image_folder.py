"""
A container image as a folder: its Dockerfile's own steps, and programs that run from it.

A builder of images and a container engine are what this stands in for: one stage after another is
made in a folder, and a program is run from it as an engine would run it, as the image's user,
without rights, on a root that cannot be written, with the volumes that it is given. The stage's
base image is this machine's: its system, and its Python in the place of the image's own.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from tests.kit.patience import GIVE_UP_S

SYSTEM = ("bin", "dev", "lib", "lib64", "proc", "usr")
"""Folders of the machine that stand in for those of a base image."""

NETWORK = (
    "group",
    "hosts",
    "ld.so.cache",
    "nsswitch.conf",
    "passwd",
    "pip.conf",
    "resolv.conf",
    "ssl",
)
"""What an image or its engine has in /etc, and a package index needs to be reached."""

SHELLS = ("bash", "dash", "sh")
_MOUNT = "--mount=type=cache,target="


class UnknownInstructionError(Exception):
    """An instruction that these few lines do not follow: extend them, or write another one."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile: its name, its flags, and the rest of it."""

    name: str
    flags: Mapping[str, str]
    rest: str

    @property
    def words(self) -> list[str]:
        """The rest as a list: of JSON, or of words."""
        return json.loads(self.rest) if self.rest.startswith("[") else shlex.split(self.rest)


@dataclass(frozen=True, slots=True)
class Image:
    """
    One stage.

    Attributes:
        root: Its folder.
        variables: What its programs find set.
        user: Whom they run as, by number: ``10001:10001``.
        folder: Where they run.
        check: The command of its health check; empty: it has none.
    """

    root: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    user: str = "0:0"
    folder: str = "/"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    check: tuple[str, ...] = ()


def instructions_of(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile, without comments, in their order."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        name, _, rest = line.strip().partition(" ")
        flags: dict[str, str] = {}
        while (found := re.match(r"--([a-z-]+)=(\S+)\s*", rest)) is not None:
            flags[found[1]] = found[2]
            rest = rest[found.end() :]
        if name:
            yield Instruction(name, flags, rest.strip())


def refusal() -> str | None:
    """Return why no image can be followed here; None: it can."""
    if os.geteuid() != 0:
        return "following a Dockerfile needs root, or a machine that lends it"
    if sys.base_prefix == "/usr":
        return "the machine's Python has no folder of its own that could be an image's"
    for each in ("unshare", "setpriv", "chroot"):
        if shutil.which(each) is None:
            return f"{each} is not installed: apt-get install util-linux coreutils"
    tried = subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True)  # noqa: S607 - the machine's
    return None if tried.returncode == 0 else "the kernel refuses a mount namespace"


class Builder:
    """
    Follows a Dockerfile.

    Args:
        context: The folder that COPY copies from.
        folder: Where the stages are made.
        cache: What a cache mount keeps from one build to the next.
        options: Values of build arguments.
    """

    def __init__(
        self, context: Path, folder: Path, cache: Path, options: Mapping[str, str] | None = None
    ) -> None:
        self._context, self._folder, self._cache = context, folder, cache
        self._options = options or {}
        self.stages: dict[str, Image] = {}

    def build(self, text: str) -> dict[str, Image]:
        """Return the stages of a Dockerfile by their names."""
        name = ""
        for each in instructions_of(text):
            if each.name == "FROM":
                base, _as, name = each.words
                self.stages[name] = self._begin(base, name)
                continue
            step = getattr(self, f"_{each.name.lower()}", None)
            if step is None:
                raise UnknownInstructionError(f"{each.name}: this builder does not know it")
            self.stages[name] = step(self.stages[name], each)
        return self.stages

    def _begin(self, base: str, name: str) -> Image:
        if base in self.stages:  # nothing is written into it any more
            return self.stages[base]
        if not base.startswith("python:"):
            raise UnknownInstructionError(f"FROM {base}: only Python's images are stood in for")
        root = self._folder / name
        (root / "tmp").mkdir(parents=True)
        for each in SYSTEM:
            if (there := Path("/", each)).is_symlink():  # such as /bin to usr/bin
                (root / each).symlink_to(there.readlink())
            elif there.is_dir():
                (root / each).mkdir()
        (root / "etc").mkdir()
        for each in NETWORK:
            if (there := Path("/etc", each)).is_dir():
                shutil.copytree(there, root / "etc" / each, symlinks=True)
            elif there.exists():
                shutil.copy(there, root / "etc")
        # What an image of Python sets; and where this machine's has its library.
        path = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
        return Image(root, {"PATH": path, "LD_LIBRARY_PATH": "/usr/local/lib"})

    def _arg(self, image: Image, told: Instruction) -> Image:
        name, _, default = told.rest.partition("=")
        return self._env(
            image, Instruction("ENV", {}, f"{name}={self._options.get(name, default)}")
        )

    def _env(self, image: Image, told: Instruction) -> Image:
        given = dict(each.split("=", 1) for each in shlex.split(told.rest))
        return replace(image, variables={**image.variables, **given})

    def _workdir(self, image: Image, told: Instruction) -> Image:
        (image.root / told.rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        return replace(image, folder=told.rest)

    def _user(self, image: Image, told: Instruction) -> Image:
        return replace(image, user=told.rest)

    def _entrypoint(self, image: Image, told: Instruction) -> Image:
        return replace(image, entrypoint=tuple(_exec_form(told)), command=())

    def _cmd(self, image: Image, told: Instruction) -> Image:
        return replace(image, command=tuple(_exec_form(told)))

    def _healthcheck(self, image: Image, told: Instruction) -> Image:
        if told.rest == "NONE":
            return replace(image, check=())
        name, _, rest = told.rest.partition(" ")
        return replace(image, check=tuple(_exec_form(Instruction(name, {}, rest))))

    def _copy(self, image: Image, told: Instruction) -> Image:
        *sources, target = told.words
        taken = self.stages[told.flags["from"]].root if "from" in told.flags else self._context
        into = image.root / target.lstrip("/")
        for source in sources:
            found = sorted(taken.glob(source.lstrip("/")))
            if not found:
                raise FileNotFoundError(f"COPY {source}: there is none")
            for each in found:
                if each.is_dir():
                    shutil.copytree(each, into, symlinks=True, dirs_exist_ok=True)
                else:
                    into.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(each, into)
        if (owner := told.flags.get("chown")) is not None:
            subprocess.run(["chown", "-R", owner, into], check=True)  # noqa: S607 - the machine's
        return image

    def _run(self, image: Image, told: Instruction) -> Image:
        volumes: dict[str, Path] = {}
        for name, value in told.flags.items():
            if not f"--{name}={value}".startswith(_MOUNT):
                raise UnknownInstructionError(f"RUN --{name}={value}: only a cache is known")
            volumes[value.partition("target=")[2]] = self._cache
        # What this machine has set for reaching its package index.
        index = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        ran = subprocess.run(
            entered(image, ["/bin/sh", "-c", told.rest], volumes, is_building=True),
            env={**index, **image.variables, "PIP_NO_INPUT": "1", "HOME": "/root"},
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if ran.returncode:
            raise RuntimeError(f"RUN ended with {ran.returncode}: {ran.stdout}")
        return image


def _exec_form(told: Instruction) -> Sequence[str]:
    if not told.rest.startswith("["):
        raise UnknownInstructionError(f"{told.name} {told.rest}: needs a shell in the image")
    return told.words


def entered(
    image: Image,
    command: Sequence[str],
    volumes: Mapping[str, Path],
    *,
    user: str = "0:0",
    kept: Collection[str] = (),
    is_building: bool = False,
) -> list[str]:
    """
    Return the command that runs *command* in an image's folder.

    Unless the image is being built its root is read-only, its shells cannot be run, and the program
    is the first process of its own, and *user*'s, who has no capability and can gain none.

    Args:
        image: Whose folder.
        command: The program, and what it is given.
        volumes: Folders of the machine by where they are mounted.
        user: Whom it runs as, by number.
        kept: Those mounts that cannot be written.
        is_building: Whether it makes the image.
    """
    root = image.root
    steps = [["mount", "--bind", str(root), str(root)]]
    steps += [
        ["mount", "--rbind", f"/{each}", str(root / each)]
        for each in SYSTEM
        if (root / each).is_dir() and not (root / each).is_symlink()
    ]
    steps.append(["mount", "--bind", sys.base_prefix, f"{root}/usr/local"])
    for target, source in volumes.items():
        where = root / target.lstrip("/")
        where.mkdir(parents=True, exist_ok=True)
        source.mkdir(parents=True, exist_ok=True)
        steps.append(["mount", "--bind", str(source), str(where)])
    if is_building:
        return _in_a_namespace([*steps, ["exec", "chroot", str(root), *command]])
    read_only = ["usr", "usr/local", *(each.lstrip("/") for each in kept), ""]
    steps += [["mount", "-o", "remount,bind,ro", str(root / each)] for each in read_only]
    for each in SHELLS:
        if (shell := Path("/usr/bin", each)).exists():
            steps.append(["mount", "--bind", "/dev/null", f"{root}{shell.resolve()}"])
    steps.append(["mount", "-t", "proc", "proc", str(root / "proc")])
    uid, _, gid = user.partition(":")
    rights = ["--reuid", uid, "--regid", gid or uid, "--clear-groups", "--no-new-privs"]
    rights += ["--bounding-set=-all", "--inh-caps=-all"]
    place = ["env", f"--chdir={image.folder}", f"PATH={image.variables['PATH']}"]
    inside = ["chroot", str(root), "/usr/bin/setpriv", *rights, *place, *command]
    return _in_a_namespace([*steps, ["exec", *inside]], "--pid", "--fork", "--kill-child")


def _in_a_namespace(steps: Sequence[Sequence[str]], *kinds: str) -> list[str]:
    script = "\n".join(["set -e", *map(shlex.join, steps)])
    return ["unshare", "--mount", "--propagation", "private", *kinds, "sh", "-c", script]


class Container:
    """
    A program that runs from an image's folder, until it is stopped; a context manager.

    Args:
        image: Whose folder, variables and user.
        command: What it runs.
        volumes: Folders of the machine by where they are mounted.
        variables: Set on top of the image's.
        kept: Mounts that cannot be written.
    """

    def __init__(
        self,
        image: Image,
        command: Sequence[str],
        volumes: Mapping[str, Path],
        variables: Mapping[str, str],
        kept: Collection[str] = (),
    ) -> None:
        self._command = entered(image, command, volumes, user=image.user, kept=kept)
        self._variables = {**image.variables, **variables, "PATH": os.environ["PATH"]}

    def ran(self) -> subprocess.CompletedProcess[str]:
        """Return what it ended with, and what it said on both of its streams."""
        return subprocess.run(
            self._command,
            env=self._variables,
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=GIVE_UP_S,
        )

    def __enter__(self) -> Self:
        """Start it."""
        self._lines = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(
            self._command,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            stdout=self._lines,
            stderr=subprocess.STDOUT,
        )
        return self

    def said(self) -> str:
        """Return what it has said until now."""
        self._lines.seek(0)
        return self._lines.read()

    @property
    def ended(self) -> bool:
        """Whether it has ended by itself."""
        return self._process.poll() is not None

    def stop(self) -> int:
        """Ask it to end as an engine does, by SIGTERM, and return what it ended with."""
        for each in Path("/proc").glob("[0-9]*/stat"):
            with suppress(FileNotFoundError, ProcessLookupError):  # one that has ended meanwhile
                parent = each.read_text("utf-8").rpartition(")")[2].split()[1]
                if int(parent) == self._process.pid:
                    os.kill(int(each.parent.name), signal.SIGTERM)
        return self._process.wait(GIVE_UP_S)

    def __exit__(self, *_: object) -> None:
        """End it, however it is."""
        self._process.kill()  # and with it the program
        self._process.wait()
        self._lines.close()
