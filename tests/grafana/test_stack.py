"""The stack's files, by the tools and schemas of those who read them. No container runs here."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="dependency group grafana")

SERVICES = {
    "alertmanager",
    "grafana",
    "loki",
    "otel-collector",
    "postgres",
    "prometheus",
    "qdrant",
    "tempo",
}
NO_SHELL = {"otel-collector"}
"""Images that hold one program and nothing to check it with."""


@pytest.fixture(scope="module")
def compose(grafana):
    return yaml.safe_load((grafana / "compose.yaml").read_text())


def passes(*command):
    """Run *command*; return its output, or fail with it."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_compose_file_is_one(grafana):
    """By the Compose specification's own schema."""
    pytest.importorskip("check_jsonschema", reason="dependency group grafana")

    passes(
        *(sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"),
        str(grafana / "compose.yaml"),
    )


def test_every_part_is_there_pinned_and_checked(compose):
    """Whoever starts it next year gets the same, and Compose knows when it is up."""
    services = compose["services"]

    assert set(services) >= SERVICES
    for name, service in services.items():
        assert "healthcheck" in service or name in NO_SHELL
        if "build" not in service:
            assert re.fullmatch(r"[\w/-]+:v?\d+\.\d+(\.\d+)?(-\w+)?", service["image"]), name


def test_it_is_for_this_machine_alone(compose):
    """A viewer without a login is served on loopback only."""
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]

    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_files_it_mounts_exist(compose, grafana):
    """A typing error would mount an empty folder."""
    mounts = [
        volume.split(":")[0]
        for service in compose["services"].values()
        for volume in service.get("volumes", ())
        if volume.startswith(".")
    ]

    assert mounts
    assert [mount for mount in mounts if not (grafana / mount).exists()] == []


def test_traffic_is_made_on_request_only(compose):
    """The demo is a profile."""
    assert [name for name, each in compose["services"].items() if "profiles" in each] == ["traffic"]
    assert compose["services"]["traffic"]["profiles"] == ["demo"]


def test_prometheus_takes_its_configuration_and_rules(grafana, promtool):
    """By promtool."""
    rules = sorted((grafana / "alerts").glob("*.yaml"))

    passes(
        promtool, "check", "config", "--syntax-only", str(grafana / "prometheus" / "prometheus.yml")
    )
    passes(promtool, "check", "rules", *map(str, rules))


def test_alertmanager_takes_its_configuration(grafana, amtool):
    """By amtool."""
    passes(amtool, "check-config", str(grafana / "alertmanager" / "alertmanager.yml"))


def test_alerts_go_where_their_severity_says(grafana, amtool):
    """Critical ones to whoever is on call."""
    config = f"--config.file={grafana / 'alertmanager' / 'alertmanager.yml'}"

    told = {
        severity: passes(amtool, "config", "routes", "test", config, f"severity={severity}").strip()
        for severity in ("critical", "warning")
    }

    assert told == {"critical": "on-call", "warning": "everybody"}


def test_every_pipeline_of_the_collector_is_made_of_what_it_has(grafana):
    """A name that is nowhere defined ends it at its start."""
    config = yaml.safe_load((grafana / "otel-collector" / "config.yaml").read_text())

    used = {"receivers": set(), "processors": set(), "exporters": set()}
    for pipeline in config["service"]["pipelines"].values():
        for kind, names in used.items():
            names |= set(pipeline[kind])
    assert used == {kind: set(config[kind]) for kind in used}
    assert set(config["service"]["extensions"]) == set(config["extensions"])


def test_links_between_sources_lead_somewhere(grafana):
    """From an exemplar to its trace, from a trace to its logs and back."""
    file = grafana / "provisioning" / "datasources" / "stack.yaml"
    sources = {each["uid"]: each for each in yaml.safe_load(file.read_text())["datasources"]}

    linked = set(re.findall(r"datasourceUid: (\w+)", file.read_text()))
    assert linked == {"prometheus", "tempo", "loki"} == set(sources)


def test_hosts_in_the_configurations_are_services(compose, grafana):
    """Names resolve to services of the stack, on ports that they listen on."""
    files = [*grafana.glob("*/*.yml"), *grafana.glob("*/config.yaml")]
    files += [*(grafana / "provisioning" / "datasources").glob("*.yaml")]
    text = "".join(path.read_text() for path in files)
    hosts = set(re.findall(r"(?:http://|\"|endpoint: )([a-z][a-z-]+):\d{4,5}", text))

    assert hosts <= {*compose["services"], "host.docker.internal", "localhost"}
    assert hosts >= {"alertmanager", "traffic", "tempo", "loki", "prometheus"}


def test_the_demos_image_is_built_from_what_is_there(grafana):
    """Paths in the Dockerfile are the repository's."""
    text = (grafana / "demo" / "Dockerfile").read_text()

    assert (Path(grafana).parent / "constraints.txt").is_file()
    assert "grafana/traffic.py" in text
    assert (grafana / "traffic.py").is_file()
