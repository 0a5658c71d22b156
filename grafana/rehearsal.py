"""
The stack without containers: this machine's Prometheus and Alertmanager on free loopback ports.

Used by the test that runs every query for real, and for the pictures in the docs.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

HERE = Path(__file__).parent
_PACKAGES = "apt-get install prometheus prometheus-alertmanager"
_direct = build_opener(ProxyHandler({}))
"""Opens URLs without the proxy that the environment may name."""


class RehearsalError(Exception):
    """A part of the stack did not start. The message is one line with the cause and the action."""


def needed(name: str) -> str:
    """
    Return the path of the program *name*.

    Raises:
        RehearsalError: It is not installed.
    """
    found = shutil.which(name)
    if found is None:
        raise RehearsalError(f"{name} is not installed: {_PACKAGES}")
    return found


def free_port() -> int:
    """Return a free loopback port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def get(url: str, timeout_s: float = 30.0) -> Any:
    """Return the JSON at *url*."""
    with _direct.open(url, timeout=timeout_s) as answer:
        return json.load(answer)


class Program:
    """
    A process that serves on a port while it is entered.

    Args:
        name: Its name in errors.
        command: Its arguments.
        port: The port it listens on.
        folder: Folder of its output.
        environment: Its variables. None: those of this process.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        port: int,
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.port = name, port
        self._command, self._environment = command, environment
        self._output = folder / f"{name}.log"

    def __enter__(self) -> Self:
        with self._output.open("w") as output:
            self._process = subprocess.Popen(  # noqa: S603 - our own arguments
                self._command, stdout=output, stderr=output, env=self._environment
            )
        try:
            self._await_port()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._process.terminate()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def output(self) -> str:
        """Its output so far."""
        return self._output.read_text(errors="replace")

    def _await_port(self, timeout_s: float = 60.0) -> None:
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            if self._process.poll() is not None:
                last = (self.output.strip().splitlines() or ["it printed nothing"])[-1]
                raise RehearsalError(f"{self.name} ended at once: {last}")
            with socket.socket() as probe:
                probe.settimeout(1.0)
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.1)
        raise RehearsalError(f"{self.name} does not answer on port {self.port}: see {self._output}")


class Rehearsal:
    """
    Prometheus and Alertmanager while it is entered.

    Args:
        folder: Folder of their data.
        targets: Ports to scrape, by job.
        rules: Folder of rule files.
        history: OpenMetrics text to load first, or None.
        scrape_s: Seconds between two scrapes, and between two evaluations.
    """

    def __init__(
        self,
        folder: Path,
        targets: Mapping[str, int],
        *,
        rules: Path = HERE / "alerts",
        history: str | None = None,
        scrape_s: float = 1.0,
    ) -> None:
        self._folder, self._targets, self._rules = folder, targets, rules
        self._history, self._scrape_s = history, scrape_s
        self._programs = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as started:
            self.alertmanager = started.enter_context(self._alertmanager())
            self.prometheus = started.enter_context(self._prometheus())
            self._programs = started.pop_all()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._programs.close()

    def _alertmanager(self) -> Program:
        port = free_port()
        command = [
            needed("prometheus-alertmanager"),
            f"--config.file={HERE / 'alertmanager' / 'alertmanager.yml'}",
            f"--storage.path={self._folder / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
        ]
        return Program("alertmanager", command, port=port, folder=self._folder)

    def _prometheus(self) -> Program:
        port, data = free_port(), self._folder / "prometheus"
        if self._history:
            self._backfill(data, self._history)
        configuration = self._folder / "prometheus.json"
        configuration.write_text(json.dumps(self._configuration()))
        command = [
            needed("prometheus"),
            f"--config.file={configuration}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--enable-feature=exemplar-storage",
            "--log.level=warn",
        ]
        return Program("prometheus", command, port=port, folder=self._folder)

    def _backfill(self, data: Path, history: str) -> None:
        file = self._folder / "history.om"
        file.write_text(history)
        command = [needed("promtool"), "tsdb", "create-blocks-from", "openmetrics"]
        ended = subprocess.run(  # noqa: S603 - our own arguments
            [*command, str(file), str(data)], capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise RehearsalError(f"promtool did not take the history: {ended.stderr.strip()}")

    def _configuration(self) -> dict[str, Any]:
        # JSON is YAML.
        every = f"{round(self._scrape_s * 1_000)}ms"
        return {
            "global": {"scrape_interval": every, "evaluation_interval": every},
            "rule_files": [str(self._rules / "*.yaml")],
            "alerting": {"alertmanagers": [_target(self.alertmanager.port)]},
            "scrape_configs": [
                {"job_name": job, **_target(port)} for job, port in self._targets.items()
            ],
        }

    def ask(self, path: str, **parameters: str | float) -> Any:
        """Return the data that Prometheus' API has at *path*, for example ``query_range``."""
        address = f"http://127.0.0.1:{self.prometheus.port}/api/v1/{path}"
        return get(f"{address}?{urlencode(parameters)}")["data"]

    def alerts(self) -> list[dict[str, Any]]:
        """Return the alerts that reached Alertmanager."""
        found: list[dict[str, Any]] = get(
            f"http://127.0.0.1:{self.alertmanager.port}/api/v2/alerts"
        )
        return found

    def wait_for(self, is_so: Callable[[], bool], timeout_s: float) -> bool:
        """Poll until *is_so* returns True; return False after *timeout_s*."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            try:
                if is_so():
                    return True
            except (URLError, OSError, KeyError):
                pass  # not ready yet
            time.sleep(0.5)
        return False


def _target(port: int) -> dict[str, Any]:
    return {"static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
