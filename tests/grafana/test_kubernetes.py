"""
The objects for Kubernetes, by what its API and the Prometheus operator's take.

The schemas below are written down from theirs, without what we do not use: a field that they do
not name is a mistake here.
"""

from __future__ import annotations

import json
import re

import pytest

from mnemoscope.alerting.runbooks import FILE, STACK
from mnemoscope.memory import Settings
from mnemoscope.memory.settings import variable_of

yaml = pytest.importorskip("yaml", reason="dependency group grafana")
jsonschema = pytest.importorskip("jsonschema", reason="dependency group grafana")


def object_of(*required, **fields):
    """Return the schema of an object that has these *fields* and no others."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(required),
        "additionalProperties": False,
    }


def list_of(items, least=1):
    return {"type": "array", "items": items, "minItems": least}


TEXT = {"type": "string"}
NUMBER, FLAG = {"type": "integer"}, {"type": "boolean"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
NAME = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}
PORT = {"type": "integer", "minimum": 1, "maximum": 65_535}
PORT_NAME = {"type": "string", "pattern": "^(?=.*[a-z])[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?$"}
QUANTITY = {"type": "string", "pattern": "^[0-9]+(m|Ki|Mi|Gi)?$"}
DURATION = {"type": "string", "pattern": "^(0|([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?)$"}
METADATA = object_of("name", name=NAME, labels=TEXTS, annotations=TEXTS)
SELECTOR = object_of("matchLabels", matchLabels=TEXTS)
KEY = object_of("key", "name", key=TEXT, name=NAME)
SOURCE = object_of(secretKeyRef=KEY, fieldRef=object_of("fieldPath", fieldPath=TEXT))
CONTAINER = object_of(
    "name",
    "image",
    name=NAME,
    image=TEXT,
    ports=list_of(object_of("containerPort", name=PORT_NAME, containerPort=PORT)),
    env=list_of(object_of("name", name=TEXT, value=TEXT, valueFrom=SOURCE)),
    resources=object_of(
        requests=object_of(cpu=QUANTITY, memory=QUANTITY),
        limits=object_of(cpu=QUANTITY, memory=QUANTITY),
    ),
    securityContext=object_of(
        allowPrivilegeEscalation=FLAG,
        readOnlyRootFilesystem=FLAG,
        capabilities=object_of(drop=list_of(TEXT)),
    ),
    volumeMounts=list_of(
        object_of("name", "mountPath", name=NAME, mountPath=TEXT, readOnly=FLAG),
    ),
)
VOLUME = object_of(
    "name",
    name=NAME,
    emptyDir=object_of(sizeLimit=QUANTITY),
    secret=object_of(
        "secretName",
        secretName=NAME,
        items=list_of(object_of("key", "path", key=TEXT, path=TEXT)),
    ),
)
POD = object_of(
    "containers",
    containers=list_of(CONTAINER),
    volumes=list_of(VOLUME),
    terminationGracePeriodSeconds=NUMBER,
    securityContext=object_of(
        runAsNonRoot=FLAG,
        runAsUser=NUMBER,
        fsGroup=NUMBER,
        seccompProfile=object_of("type", type={"enum": ["RuntimeDefault"]}),
    ),
)
POD_METADATA = object_of(labels=TEXTS, annotations=TEXTS)
RULE = object_of(
    "expr",
    alert=TEXT,
    record={"type": "string", "pattern": "^[a-zA-Z_:][a-zA-Z0-9_:]*$"},
    expr=TEXT,
    keep_firing_for=DURATION,
    labels=TEXTS,
    annotations=TEXTS,
    **{"for": DURATION},
) | {"oneOf": [{"required": ["alert"]}, {"required": ["record"]}]}


def kind(api, name, **rest):
    """Return the schema of an object of this kind."""
    fields = {"apiVersion": {"const": api}, "kind": {"const": name}, "metadata": METADATA}
    return object_of(*fields, *rest, **fields, **rest)


SCHEMAS = {
    "Deployment": kind(
        "apps/v1",
        "Deployment",
        spec=object_of(
            "selector",
            "template",
            replicas=NUMBER,
            selector=SELECTOR,
            template=object_of("metadata", "spec", metadata=POD_METADATA, spec=POD),
        ),
    ),
    "Service": kind(
        "v1",
        "Service",
        spec=object_of(
            "ports",
            clusterIP={"const": "None"},
            selector=TEXTS,
            ports=list_of(object_of("port", name=PORT_NAME, port=PORT, targetPort=PORT_NAME)),
        ),
    ),
    "ServiceMonitor": kind(
        "monitoring.coreos.com/v1",
        "ServiceMonitor",
        spec=object_of(
            "selector",
            "endpoints",
            selector=SELECTOR,
            endpoints=list_of(
                object_of(
                    port=PORT_NAME,
                    path=TEXT,
                    interval=DURATION,
                    relabelings=list_of(
                        object_of(
                            sourceLabels=list_of({"type": "string", "pattern": "^[a-z_]+$"}),
                            targetLabel=TEXT,
                        )
                    ),
                )
            ),
        ),
    ),
    "PrometheusRule": kind(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        spec=object_of(
            "groups",
            groups=list_of(
                object_of("name", name=TEXT, interval=DURATION, rules=list_of(RULE)),
            ),
        ),
    ),
    "ConfigMap": kind("v1", "ConfigMap", data=TEXTS),
}


@pytest.fixture(scope="module")
def objects(grafana):
    """Return all objects of the folder by their kind."""
    found = {}
    for path in (grafana / "kubernetes").glob("*.yaml"):
        if path.name != "kustomization.yaml":
            for each in yaml.safe_load_all(path.read_text()):
                found.setdefault(each["kind"], []).append(each)
    return found


@pytest.fixture(scope="module")
def pod(objects):
    """Return the pod that the deployment makes."""
    (deployment,) = objects["Deployment"]
    return deployment["spec"]["template"]


@pytest.fixture(scope="module")
def container(pod):
    """Return the agent's container."""
    (found,) = pod["spec"]["containers"]
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_objects_are_what_their_api_takes(objects, name):
    """Every field is known, of its type, and none that is needed is missing."""
    for each in objects[name]:
        jsonschema.Draft202012Validator(SCHEMAS[name]).validate(each)


def test_every_kind_has_a_schema(objects):
    """Whoever adds an object writes down what it may be."""
    assert set(objects) == set(SCHEMAS)


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("PrometheusRule", {"spec": {"groups": [{"name": "a", "rules": [{"record": "a b"}]}]}}),
        ("ConfigMap", {"data": {"a": 1}}),
        ("Service", {"spec": {"ports": [{"port": "9464"}]}}),
    ],
)
def test_the_schemas_find_mistakes(objects, name, broken):
    """A schema that takes everything would prove nothing."""
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMAS[name]).validate(objects[name][0] | broken)


def test_the_folder_is_applied_whole(grafana):
    """Kustomize is told of every file."""
    folder = grafana / "kubernetes"
    told = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]

    assert sorted(told) == sorted(
        path.name for path in folder.glob("*.yaml") if path.name != "kustomization.yaml"
    )


def test_what_selects_finds_what_it_is_meant_to(objects, pod, container):
    """Deployment and service select the pod, the monitor the service, ports by their names."""
    labels = pod["metadata"]["labels"].items()
    (deployment,), (service,) = objects["Deployment"], objects["Service"]
    (monitor,) = objects["ServiceMonitor"]
    (port,) = container["ports"]

    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels
    assert service["spec"]["selector"].items() <= labels
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert wanted <= service["metadata"]["labels"].items()
    (served,), (endpoint,) = service["spec"]["ports"], monitor["spec"]["endpoints"]
    assert (endpoint["port"], served["targetPort"]) == (served["name"], port["name"])
    told = pod["metadata"]["annotations"]
    assert told["prometheus.io/port"] == str(port["containerPort"]) == str(served["port"])
    assert told["prometheus.io/path"] == endpoint["path"]


def test_targets_get_the_labels_that_dashboards_ask_for(objects, pod):
    """Service, environment and instance, each from a label that the pod has."""
    (monitor,) = objects["ServiceMonitor"]
    (endpoint,) = monitor["spec"]["endpoints"]
    given = {each["targetLabel"]: each["sourceLabels"] for each in endpoint["relabelings"]}

    assert set(given) == {"service", "environment", "instance"}
    labels = {re.sub(r"[^a-z]", "_", name) for name in pod["metadata"]["labels"]}
    for (source,) in given.values():
        name = source.removeprefix("__meta_kubernetes_pod_")
        assert name == "name" or name.removeprefix("label_") in labels


def test_settings_of_the_deployment_are_settings(container):
    """A variable that nothing reads would be a mistake that nobody sees."""
    named = {each["name"] for each in container["env"] if each["name"].startswith("MNEMOSCOPE_")}

    assert named <= {variable_of(name) for name in Settings.__struct_fields__}
    values = {each["name"]: each.get("value") for each in container["env"]}
    (port,) = container["ports"]
    assert values["MNEMOSCOPE_PROMETHEUS_PORT"] == str(port["containerPort"])


def test_what_is_written_goes_to_a_volume(pod, container):
    """The root is read-only: every path in a variable is below a mount, every mount a volume."""
    mounts = {each["mountPath"]: each["name"] for each in container["volumeMounts"]}
    paths = [each["value"] for each in container["env"] if each.get("value", "")[:1] == "/"]

    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert paths
    assert all(any(path.startswith(mount) for mount in mounts) for path in paths)
    assert set(mounts.values()) == {each["name"] for each in pod["spec"]["volumes"]}


def test_rules_and_dashboards_are_those_of_the_stack(objects, grafana):
    """Built by one script: what alerts here alerts there, but for the stack's own address."""
    (rule,) = objects["PrometheusRule"]
    texts = [path.read_text().replace(STACK, FILE) for path in (grafana / "alerts").glob("*.yaml")]
    files = [yaml.safe_load(text) for text in texts]
    shipped = {group["name"]: group for each in files for group in each["groups"]}
    boards = {
        name: json.loads(text)
        for each in objects["ConfigMap"]
        for name, text in each["data"].items()
    }

    assert {group["name"]: group for group in rule["spec"]["groups"]} == shipped
    assert boards == {
        f"mnemoscope-{path.stem}.json": json.loads(path.read_text().replace(STACK, FILE))
        for path in (grafana / "dashboards").glob("*.json")
    }
