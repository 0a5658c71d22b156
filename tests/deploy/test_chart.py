"""The chart: by Helm, the API's schemas, the Pod Security Standard, and what belongs together."""

from __future__ import annotations

import json
import subprocess
from itertools import product

import pytest
import yaml

from mnemoscope.memory import Settings
from tests.kit.chart import Chart, ChartError, containers_in, only, pods_in
from tests.kit.empty_environments import ROOT

VALUES = ("", "all-values.yaml", "proxy-values.yaml")
VERSIONS = ("1.29.0", "1.37.0")


KINDS = {
    "configmap-v1",
    "cronjob-batch-v1",
    "deployment-apps-v1",
    "networkpolicy-networking-v1",
    "poddisruptionbudget-policy-v1",
    "service-v1",
    "serviceaccount-v1",
    "statefulset-apps-v1",
}


@pytest.fixture(scope="session")
def schemas(api_schemas, tmp_path_factory):
    """Return a folder of schemas for kubeconform: each file with what they share in it."""
    out = tmp_path_factory.mktemp("schemas")
    shared = "/api/_definitions.json#"
    for version in VERSIONS:
        folder = api_schemas / f"v{version}-local-strict"
        (out / f"v{version}").mkdir()
        definitions = json.loads(
            (folder / "_definitions.json").read_text("utf-8").replace(shared, "#")
        )
        for kind in KINDS:
            text = (folder / f"{kind}.json").read_text("utf-8").replace(shared, "#")
            schema = {**json.loads(text), **definitions}
            schema.pop("$id", None)
            (out / f"v{version}" / f"{kind}.json").write_text(json.dumps(schema), "utf-8")
    return out


@pytest.mark.parametrize("values", VALUES)
def test_helm_finds_nothing_to_mend(chart, values):
    """By `helm lint --strict`."""
    assert "0 chart(s) failed" in chart.run("lint", values, "--strict")


def conforms(kubeconform, schemas, text, version):
    """Return kubeconform's code and what it says of a text of objects."""
    place = f"{schemas}/v{version}/{{{{.ResourceKind}}}}{{{{.KindSuffix}}}}.json"
    options = ["-strict", "-summary", "-output", "json", "-skip", "ServiceMonitor"]
    ran = subprocess.run(
        [kubeconform, *options, "-kubernetes-version", version, "-schema-location", place],
        input=text,
        check=False,
        capture_output=True,
        text=True,
    )
    return ran.returncode, json.loads(ran.stdout)


@pytest.mark.parametrize(("values", "version"), [*product(VALUES, VERSIONS)])
def test_objects_are_what_the_api_takes(chart, tool, schemas, values, version):
    """Of the oldest cluster that the chart allows, and of the newest one: no unknown field."""
    text = chart.run("template", values, version=version)

    code, told = conforms(tool("kubeconform"), schemas, text, version)

    assert (code, told["resources"]) == (0, [])
    assert told["summary"]["valid"] + told["summary"]["skipped"] == text.count("\nkind: ")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("replicas: 2", "replicas: two"),
        ("periodSeconds: 30", "periodSecond: 30"),
        ("concurrencyPolicy: Forbid", "concurrencyPolicy: 1"),
    ],
)
def test_a_mistake_in_an_object_is_found(chart, tool, schemas, right, wrong):
    """Schemas that take everything would prove nothing."""
    text = chart.run("template", "all-values.yaml")
    assert right in text

    code, told = conforms(tool("kubeconform"), schemas, text.replace(right, wrong), "1.37.0")

    assert code == 1
    assert {each["status"] for each in told["resources"]} == {"statusInvalid"}


def refused(tool, objects):
    """Return what a namespace that enforces the standard "restricted" says of pods."""
    pods = [
        {"name": name, "metadata": pod["metadata"], "spec": pod["spec"]}
        for name, pod in pods_in(objects)
    ]
    ran = subprocess.run(
        [tool("cluster")], input=json.dumps(pods), check=True, capture_output=True, text=True
    )
    return {each["name"]: each["reason"] for each in json.loads(ran.stdout)}


@pytest.mark.parametrize("values", VALUES)
def test_every_pod_holds_the_restricted_standard(chart, tool, values):
    """By the code that Kubernetes itself admits pods with."""
    objects = chart.objects(values)

    assert list(pods_in(objects))
    assert refused(tool, objects) == {}


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("securityContext", {}, "allowPrivilegeEscalation"),
        ("ports", [{"containerPort": 80, "hostPort": 80}], "hostPort"),
    ],
)
def test_a_pod_that_does_not_hold_it_is_refused(chart, tool, field, value, reason):
    """In each of its containers, the relay's as well."""
    for pod in (pod for _name, pod in pods_in(chart.objects("all-values.yaml"))):
        for container in containers_in(pod):
            before, container[field] = container.get(field), value
            found = refused(
                tool, [{"kind": "Deployment", "metadata": {"name": "x"}, "spec": {"template": pod}}]
            )
            container[field] = before
            assert reason in found["Deployment x"], container["name"]


def test_a_folder_of_the_node_is_refused(all_of_it, tool):
    """Which is why a relay stands in the pod of its agent, and there is none of each node."""
    pods = dict(pods_in(all_of_it))
    pod = json.loads(json.dumps(pods["StatefulSet r-agent"]))
    pod["spec"]["volumes"].append({"name": "x", "hostPath": {"path": "/var/lib/mnemoscope"}})

    found = refused(
        tool, [{"kind": "DaemonSet", "metadata": {"name": "x"}, "spec": {"template": pod}}]
    )

    assert "hostPath" in found["DaemonSet x"]


@pytest.mark.parametrize("values", VALUES)
def test_a_root_is_read_only_and_each_path_is_on_a_volume(chart, values):
    """Paths in variables are below a mount, mounts are of volumes, and no variable is set twice."""
    for name, pod in pods_in(chart.objects(values)):
        volumes = {each["name"] for each in pod["spec"]["volumes"]} | {"state"}
        for container in containers_in(pod):
            assert container["securityContext"]["readOnlyRootFilesystem"], name
            if container["name"] == "proxy":
                continue
            mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
            env = [each["name"] for each in container["env"]]
            paths = [each["value"] for each in container["env"] if each.get("value", "")[:1] == "/"]
            assert set(mounts.values()) <= volumes, name
            assert all(any(path.startswith(mount) for mount in mounts) for path in paths), name
            assert sorted(env) == sorted(set(env)), name


def test_the_settings_that_it_sets_are_settings(all_of_it):
    """A variable that nothing reads would be a mistake that nobody sees."""
    known = {f"MNEMOSCOPE_{name.upper()}" for name in Settings.__struct_fields__}
    named = {
        each["name"]
        for _name, pod in pods_in(all_of_it)
        for container in containers_in(pod)
        for each in container["env"]
        if each["name"].startswith("MNEMOSCOPE_")
    }

    assert named <= known
    schema = json.loads((ROOT / "deploy/chart/values.schema.json").read_text("utf-8"))
    taken = set(schema["properties"]["settings"]["propertyNames"]["not"]["enum"])
    assert named - {"MNEMOSCOPE_SINKS", "MNEMOSCOPE_WEBHOOK_SECRET"} <= taken
    assert taken - named == {"OTEL_SERVICE_NAME"}


def test_a_relay_begins_before_its_agent_and_shares_its_folder(all_of_it):
    """A sidecar of Kubernetes' own kind: it starts first, and ends last."""
    pod = only(all_of_it, "StatefulSet", "agent")["spec"]["template"]
    relay, agent = containers_in(pod)
    env = [{each["name"]: each.get("value") for each in of["env"]} for of in (relay, agent)]

    assert (relay["name"], relay["restartPolicy"]) == ("relay", "Always")
    assert relay["startupProbe"]["exec"]["command"] == ["mnemoscope", "relay", "--check"]
    assert env[0]["MNEMOSCOPE_RELAY"] == env[1]["MNEMOSCOPE_RELAY"] != None  # noqa: E711
    assert relay["volumeMounts"] == agent["volumeMounts"]
    assert "MNEMOSCOPE_PROMETHEUS_PORT" not in env[1]


def test_what_waits_outlives_the_pod_of_an_agent(all_of_it):
    """On a claim of one pod, whose folders kubelet does not open to the group at each start."""
    agent = only(all_of_it, "StatefulSet", "agent")["spec"]
    (claim,) = agent["volumeClaimTemplates"]

    assert (claim["metadata"]["name"], claim["spec"]["accessModes"]) == (
        "state",
        ["ReadWriteOncePod"],
    )
    context = agent["template"]["spec"]["securityContext"]
    assert context["fsGroupChangePolicy"] == "OnRootMismatch"


@pytest.mark.parametrize("values", VALUES)
def test_every_pod_has_a_network_policy_of_its_own(chart, values):
    """And none takes connections that nobody needs."""
    objects = chart.objects(values)
    policies = [each for each in objects if each["kind"] == "NetworkPolicy"]

    for name, pod in pods_in(objects):
        labels = pod["metadata"]["labels"].items()
        (policy,) = (
            each
            for each in policies
            if each["spec"]["podSelector"]["matchLabels"].items() <= labels
        )
        assert "Ingress" in policy["spec"]["policyTypes"]
        opened = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
        named = {
            port.get("name"): port["containerPort"]
            for container in containers_in(pod)
            for port in container.get("ports", [])
        }
        assert {named.get(each, each) for each in opened} == set(named.values()), name


def test_where_pods_may_go_is_limited_where_that_is_asked_for(all_of_it, chart):
    """DNS and what is named; without a word of it nothing is."""
    named = [each for each in all_of_it if each["kind"] == "NetworkPolicy"]
    others = [each for each in chart.objects() if each["kind"] == "NetworkPolicy"]

    assert all(each["spec"]["policyTypes"] == ["Ingress", "Egress"] for each in named)
    ports = [port["port"] for rule in named[0]["spec"]["egress"] for port in rule["ports"]]
    assert sorted(ports) == [53, 53, 4318, 5432]
    assert others
    assert all(each["spec"]["policyTypes"] == ["Ingress"] for each in others)


def test_services_and_budgets_find_their_pods(all_of_it):
    """By labels, and ports by their names or numbers."""
    pods = dict(pods_in(all_of_it))
    for kind, key in (("Service", None), ("PodDisruptionBudget", "matchLabels")):
        for each in (each for each in all_of_it if each["kind"] == kind):
            selector = each["spec"]["selector"]
            wanted = (selector[key] if key else selector).items()
            found = [pod for pod in pods.values() if wanted <= pod["metadata"]["labels"].items()]
            assert len(found) == 1, each["metadata"]["name"]
            ports = {
                value
                for container in containers_in(found[0])
                for port in container.get("ports", [])
                for value in (port.get("name"), port["containerPort"])
            }
            assert {port["targetPort"] for port in each["spec"].get("ports", [])} <= ports


def test_prometheus_finds_the_relay_as_it_finds_an_agent(all_of_it):
    """With the labels of grafana/kubernetes, whose schema its own test has."""
    monitor = only(all_of_it, "ServiceMonitor", "agent")
    text = (ROOT / "grafana/kubernetes/monitor.yaml").read_text("utf-8")
    (other,) = (each for each in yaml.safe_load_all(text) if each["kind"] == "ServiceMonitor")
    service = only(all_of_it, "Service", "agent")

    assert monitor["spec"]["endpoints"] == other["spec"]["endpoints"]
    assert monitor["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
    agent = only(all_of_it, "StatefulSet", "agent")["spec"]["template"]
    given = {"app_kubernetes_io_name", "environment"}
    assert given <= {name.translate({46: 95, 47: 95}) for name in agent["metadata"]["labels"]}


def test_a_job_is_tried_again_only_where_that_may_help(all_of_it):
    """3 is incomplete. What is tampered with or lost fails at once, and one runs at a time."""
    for each in (each for each in all_of_it if each["kind"] == "CronJob"):
        job = each["spec"]["jobTemplate"]["spec"]
        final, _disrupted = job["podFailurePolicy"]["rules"]
        assert final["onExitCodes"]["values"] == [1, 2, 4, 5, 6]
        assert job["template"]["spec"]["restartPolicy"] == "Never"
        assert each["spec"]["concurrencyPolicy"] == "Forbid"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("settings.MNEMOSCOPE_RELAY=/x", "MNEMOSCOPE_RELAY"),
        ("settings.PATH=/x", "PATH"),
        ("settings.MNEMOSCOPE_RELAY_MAX_BYTES=67108864", "want string"),
        ("agents.enabled=true", "agents"),
        ("image.digest=latest", "digest"),
        ("console.url=http://console.example.com", "url"),
        ("jobs.agent.enabled=true", "'agent'"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(chart, given, said):
    """By the schema of the values, before a cluster sees it."""
    with pytest.raises(ChartError, match=said):
        chart.run("template", "all-values.yaml", "--set", given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("agent.enabled=true", "agent.image is the image of your agent"),
        ("console.enabled=true", "console.tlsSecretName or console.proxy.header"),
        ("console.enabled=true,console.tlsSecretName=x", "console.url is the address"),
    ],
)
def test_what_is_missing_is_said(chart, given, said):
    """In a sentence, not by a template that is broken."""
    with pytest.raises(ChartError, match=said):
        chart.run("template", "", "--set", given)


def test_a_chart_of_ones_own_takes_the_relay(chart, tool, tmp_path):
    """By its named templates: the page's example, as it is printed."""
    page = (ROOT / "docs/containers.md").read_text("utf-8")
    own = tmp_path / "concierge"
    (own / "templates").mkdir(parents=True)
    (own / "charts").mkdir()
    (own / "charts/mnemoscope").symlink_to(chart.folder)
    blocks = page.split("```yaml\n")[1:]
    (template,) = (each.split("```")[0] for each in blocks if "mnemoscope.relay" in each)
    (own / "templates/deployment.yaml").write_text(template, "utf-8")
    about = {"apiVersion": "v2", "name": "concierge", "version": "1.0.0"}
    about["dependencies"] = [{"name": "mnemoscope", "version": "*", "repository": ""}]
    (own / "Chart.yaml").write_text(yaml.safe_dump(about), "utf-8")

    objects = Chart(tool("helm"), own).objects()

    pods = dict(pods_in(objects))
    relay, agent = containers_in(pods["Deployment concierge"])
    assert (relay["args"], relay["restartPolicy"]) == (["relay"], "Always")
    assert relay["volumeMounts"] == agent["volumeMounts"]
    assert refused(tool, objects) == {}
