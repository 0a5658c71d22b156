"""What is in the image, run as the chart runs it: without rights, on a root that is read-only."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess

import httpx
import pytest

from tests.kit.chart import containers_in, only
from tests.kit.empty_environments import ROOT
from tests.kit.image_folder import Container
from tests.kit.patience import until
from tests.kit.receivers import write_certificate

DOCKERFILE = ROOT / "deploy/image/Dockerfile"
KEY = "5e" * 32
LABELS = {"metadata.labels['app.kubernetes.io/name']": "agent"}
SECRETS = {
    "audit-url": "sqlite:////var/lib/mnemoscope/audit.db",
    "secret": "whsec_c2VjcmV0LW9mLW5vYm9keS1hdC1hbGwtaW4taXQ=",
}

AGENT = """
from mnemoscope.memory import configure, context
scope = configure()
recall = scope.observe(store="crm", operation="search_memory", neutral=list, inline=True)(list)
with context(tenant="acme", customer="c-42"):
    for _ in range(3):
        recall()
print(scope.flush(timeout_s=60))
"""

LIMITS = """
import os, json
def may(path):
    try:
        open(path, "w").close()
    except OSError as exc:
        return exc.strerror
    return "written"
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
rights = {each: status[each].strip() for each in ("CapEff", "CapBnd", "NoNewPrivs")}
places = ["/x", "/opt/mnemoscope/x", "/usr/local/x", "/etc/x", "/run/secrets/mnemoscope/x"]
print(json.dumps({
    "user": [os.getuid(), os.getgid(), os.getgroups(), os.getpid()],
    "rights": rights,
    "refused": sorted({may(each) for each in places}),
    "written": [may("/tmp/x"), may("/var/lib/mnemoscope/x")],
}))
"""


@pytest.fixture
def run_as(stages, folders):
    """Return a maker of the containers of a pod, from this image and by its chart."""
    (folders("keys") / "pseudonym-key").write_text(KEY, "ascii")
    (folders("policy") / "retention.yaml").write_text('purposes: {"*": 30d}\n', "ascii")

    def started(container, *more, command=None, stage="tool"):
        variables = {each["name"]: value_of(each) for each in container["env"]}
        mounts = container["volumeMounts"]
        image = stages[stage]
        default = [*container.get("command", image.entrypoint), *container.get("args", ())]
        return Container(
            image,
            command or [*default, *more],
            {each["mountPath"]: folders(each["name"]) for each in mounts},
            variables,
            kept=[each["mountPath"] for each in mounts if each.get("readOnly")],
        )

    return started


def value_of(variable):
    """Return what a variable of a container is in a cluster, but for the back ends."""
    if variable["name"] == "MNEMOSCOPE_SINKS":
        return "prometheus,audit"
    source = variable.get("valueFrom", {})
    if "secretKeyRef" in source:
        return SECRETS[source["secretKeyRef"]["key"]]
    if "fieldRef" in source:
        return LABELS[source["fieldRef"]["fieldPath"]]
    return variable["value"]


def free_port():
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.fixture
def pod(all_of_it):
    """Return the relay and the agent of the chart."""
    relay, agent = containers_in(only(all_of_it, "StatefulSet", "agent")["spec"]["template"])
    port = str(free_port())
    for each in relay["env"]:
        if each["name"] == "MNEMOSCOPE_PROMETHEUS_PORT":
            each["value"] = port
    return relay, agent


def job(objects, name):
    """Return the container of a job of the chart."""
    spec = only(objects, "CronJob", name)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    return container


def test_hadolint_finds_nothing_to_mend(tool):
    """With all of its rules."""
    ran = subprocess.run(
        [tool("hadolint"), "--no-color", str(DOCKERFILE)],
        check=False,
        capture_output=True,
        text=True,
    )

    assert (ran.returncode, ran.stdout) == (0, "")


def test_it_may_do_nothing_and_writes_on_volumes_alone(run_as, pod):
    """Neither as root, nor with a right that it could gain."""
    _relay, agent = pod
    ran = run_as(agent, command=["python", "-c", LIMITS]).ran()

    assert ran.returncode == 0, ran.stdout
    assert json.loads(ran.stdout) == {
        "user": [10001, 10001, [], 1],
        "rights": {"CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1"},
        "refused": ["Read-only file system"],
        "written": ["written", "written"],
    }


def test_it_has_no_shell(run_as, pod):
    """So that whatever runs in these tests needs none."""
    ran = run_as(pod[0], command=["sh", "-c", "true"]).ran()

    assert ran.returncode == 126, ran.stdout


def test_a_relay_delivers_what_the_agent_beside_it_leaves(run_as, pod, all_of_it):
    """From its start to SIGTERM; the job that verifies the trail finds it whole afterwards."""
    relay, agent = pod
    check = relay["startupProbe"]["exec"]["command"]
    (port,) = (e["value"] for e in relay["env"] if e["name"] == "MNEMOSCOPE_PROMETHEUS_PORT")

    address = f"http://127.0.0.1:{port}/metrics"
    before = run_as(relay, command=check).ran()
    with run_as(relay, stage="relay") as running:
        ready = until(lambda: run_as(relay, command=check).ran().returncode == 0 or running.ended)
        told = run_as(agent, command=["python", "-c", AGENT]).ran()
        seen = "mnemoscope_operation_duration_seconds_count{"
        metrics = until(lambda: running.ended or seen in httpx.get(address).text)
        code = running.stop()
        said = running.said()
    after = run_as(relay, command=check).ran()
    verified = run_as(job(all_of_it, "verify"), "--json").ran()

    assert (before.returncode, ready, told.stdout, metrics) == (1, True, "True\n", True), said
    assert (code, after.returncode) in {(0, 0), (0, 1)}, said
    assert "delivers to prometheus, audit" in said
    assert verified.returncode == 0, verified.stdout
    shown = run_as(
        job(all_of_it, "verify"), command=["mnemoscope", "audit", "show", "--json"]
    ).ran()
    assert shown.stdout.count('"search_memory"') == 3


def test_the_health_check_is_that_of_the_chart(image, pod):
    """One command says whether there is a relay, to an engine and to a cluster."""
    assert list(image.check) == pod[0]["livenessProbe"]["exec"]["command"]
    assert [*image.entrypoint, *image.command] == ["mnemoscope", "relay"]


def test_the_console_answers_its_probe_and_under_its_own_name_alone(run_as, all_of_it, folders):
    """By TLS, as somebody who has a number and no name."""
    spec = only(all_of_it, "Deployment", "console")["spec"]["template"]["spec"]
    (console,) = spec["containers"]
    both = write_certificate(folders("tls") / "tls.crt")
    (folders("tls") / "tls.key").write_bytes(both.read_bytes())
    port = free_port()
    probe = console["readinessProbe"]["httpGet"]
    address = f"{probe['scheme'].lower()}://127.0.0.1:{port}{probe['path']}"
    headers = {each["name"]: each["value"] for each in probe["httpHeaders"]}
    trusting = ssl.create_default_context(cafile=str(folders("tls") / "tls.crt"))

    def answer(**more):
        with httpx.Client(verify=trusting) as client:
            try:
                return client.get(address, **more).status_code
            except httpx.ConnectError:
                return None

    made = run_as(job(all_of_it, "verify"), command=["python", "-c", AGENT]).ran()
    assert made.stdout == "True\n", made.stdout
    with run_as(console, "--port", str(port)) as running:
        ready = until(lambda: answer(headers=headers) is not None or running.ended)
        ours, another = answer(headers=headers), answer()
        code, said = running.stop(), running.said()

    assert (ready, ours, code) == (True, 200, 0), said
    assert another in {400, 403, 404, 421}, another
    assert "sign in, once: https://console.example.com/sign-in?token=" in said


def test_a_copy_is_streamed_by_the_job(run_as, all_of_it):
    """Into Parquet, with what the image has for it."""
    stream = job(all_of_it, "stream")
    made = run_as(stream, command=["python", "-c", AGENT]).ran()
    assert made.stdout == "True\n", made.stdout
    to = "file:///var/lib/mnemoscope/copy"

    ran = run_as(stream, command=["mnemoscope", *stream["args"][:2], "--to", to]).ran()
    verified = run_as(stream, command=["mnemoscope", "audit", "verify", "--from", to]).ran()

    assert ran.returncode == 0, ran.stdout
    assert verified.returncode == 0, verified.stdout


def test_it_reaches_databases_and_brokers(run_as, pod):
    """The clients come with their own libraries: none of the system's is missing."""
    clients = "psycopg, confluent_kafka, clickhouse_connect, pyarrow.parquet"
    code = f"import {clients}; print(psycopg.pq.__impl__)"
    ran = run_as(pod[0], command=["python", "-c", code]).ran()

    assert ran.stdout == "binary\n"


def test_a_job_without_its_scope_says_so(run_as, all_of_it):
    """The sweeper in an image without your code ends by one line, and is not tried again."""
    ran = run_as(job(all_of_it, "retention")).ran()

    assert ran.returncode == 4, ran.stdout
    assert len(ran.stdout.splitlines()) == 1
    assert "your_app" in ran.stdout
