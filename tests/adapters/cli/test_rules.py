"""``mnemoscope rules`` and ``mnemoscope dashboards``: from what is installed, wherever that is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

from mnemoscope.adapters.cli.root import run
from tests.kit.patience import GIVE_UP_S

yaml = pytest.importorskip("yaml", reason="extra rules")

OBJECTIVES = """
stores:
  qdrant:
    recall: {target: 99.9%, within: 100ms}
    write: none
"""
WIKI = "https://wiki.example/runbooks.md"


@pytest.fixture
def objectives(tmp_path):
    """Return an objectives file."""
    path = tmp_path / "objectives.yaml"
    path.write_text(OBJECTIVES)
    return path


def alerts(document):
    """Return the alerts of a rule file."""
    return [rule for group in document["groups"] for rule in group["rules"] if "alert" in rule]


def passes(*command):
    """Run Prometheus' tool, or skip the test."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: apt-get install prometheus")
    ended = subprocess.run([promtool, *command], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.long
def test_rules_are_installed_with_their_tests(tmp_path, objectives, capfd):
    """Prometheus takes the rules, and every story of the objectives comes true."""
    folder = tmp_path / "rules"

    code = run(["rules", "install", str(folder), "--objectives", str(objectives)])

    assert code == 0
    runbooks = folder / "mnemoscope-runbooks.md"
    assert capfd.readouterr().out == (
        f"wrote {folder}/mnemoscope.yaml\nwrote {folder}/tests/mnemoscope.yaml\nwrote {runbooks}\n"
        f"links to the runbooks lead to file://{runbooks}: pass --runbooks URL for another place\n"
    )
    told = [
        each["name"]
        for each in yaml.safe_load((folder / "tests/mnemoscope.yaml").read_text())["tests"]
    ]
    assert "qdrant: 20 % slower than 100 ms" in told
    passes("check", "rules", str(folder / "mnemoscope.yaml"))
    passes("test", "rules", str(folder / "tests/mnemoscope.yaml"))


def test_rules_are_printed(objectives, capfd):
    """With the objectives in them, and the address of the runbooks in every alert."""
    code = run(["rules", "render", "--objectives", str(objectives), "--runbooks", WIKI])

    found = yaml.safe_load(capfd.readouterr().out)
    assert code == 0
    assert len(alerts(found)) > 20
    for alert in alerts(found):
        assert alert["annotations"]["runbook_url"] == f"{WIKI}#{alert['alert'].lower()}"
    text = json.dumps(found)
    assert 'store=\\"qdrant\\",status=~\\"ok|empty\\",le=\\"0.1\\"' in text
    assert 'class=~\\"recall\\",store!=\\"qdrant\\"' in text


def test_stories_are_printed(capfd):
    """For whoever renders the rules to a file of another name."""
    code = run(["rules", "render", "--stories"])

    found = yaml.safe_load(capfd.readouterr().out)
    assert code == 0
    assert found["rule_files"] == ["mnemoscope.yaml"]
    assert len(found["tests"]) == 8


def test_rules_for_kubernetes_are_one_object(tmp_path, capfd):
    """Of the Prometheus operator's kind, with the rules as they are."""
    run(["rules", "render"])
    plain = yaml.safe_load(capfd.readouterr().out)

    code = run(["rules", "install", str(tmp_path), "--kubernetes"])

    found = yaml.safe_load((tmp_path / "mnemoscope.yaml").read_text())
    assert code == 0
    assert (found["kind"], found["spec"]) == ("PrometheusRule", plain)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "mnemoscope-runbooks.md",
        "mnemoscope.yaml",
    ]


def test_the_objectives_in_force_are_printed_to_begin_with(tmp_path, capfd):
    """Rules that are made from them are those without a file."""
    run(["rules", "objectives"])
    file = tmp_path / "objectives.yaml"
    file.write_text(capfd.readouterr().out)
    run(["rules", "render"])
    without = capfd.readouterr().out

    assert run(["rules", "render", "--objectives", str(file)]) == 0
    assert capfd.readouterr().out == without


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (
            "stores: {qdrant: {read: {target: 99%, within: 120ms}}}",
            2,
            "must be the bound of a bucket",
        ),
        ("stores: [qdrant]", 2, "stores must have lines such as"),
        (None, 2, "No such file"),
    ],
)
def test_objectives_that_make_no_sense_end_in_one_line(tmp_path, capfd, text, code, said):
    """It names the file and what is wrong; nothing is written."""
    path, folder = tmp_path / "objectives.yaml", tmp_path / "rules"
    if text is not None:
        path.write_text(text)

    ended = run(["rules", "install", str(folder), "--objectives", str(path)])

    error = capfd.readouterr().err
    assert (ended, error.count("\n")) == (code, 1)
    assert error.startswith(f"mnemoscope: {path}: ")
    assert said in error
    assert not folder.exists()


def test_without_pyyaml_the_rules_are_installed_all_the_same(tmp_path, objectives):
    """Objectives alone need it, and say in one line what to install."""
    script = (
        "import sys; sys.modules['yaml'] = None\n"
        "from mnemoscope.adapters.cli.root import run\n"
        f"print(run(['rules', 'install', {str(tmp_path)!r}]),"
        f" run(['rules', 'render', '--objectives', {str(objectives)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=GIVE_UP_S,
        check=True,
    )

    assert done.stdout.splitlines()[-1] == "0 2"
    assert done.stderr.count("\n") == 1
    assert "pip install 'mnemoscope[rules]'" in done.stderr


LINK = re.compile(r"(?:file:|https?:)//[^\s\"']+|mnemoscope-runbooks\.md[^\s\"']*")
FORMS = [
    [command, "install", *options]
    for command in ("rules", "dashboards")
    for options in ([], ["--kubernetes"])
]


@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_what_is_installed_leads_nowhere_that_is_not_there(form, tmp_path):
    """Every link to the runbooks is to a section of a file that was written beside it."""
    folder = tmp_path / "installed here"

    assert run([*form, str(folder)]) == 0

    written = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md"]
    links = [link for path in written for link in LINK.findall(path.read_text())]
    runbooks = folder / "mnemoscope-runbooks.md"
    headings = re.findall(r"^## (\w+)$", runbooks.read_text(), re.MULTILINE)
    there = {f"#{heading.lower()}" for heading in headings} | {""}
    name = runbooks.name if "--kubernetes" in form else runbooks.as_uri()
    ours = [link for link in links if "runbooks" in link]
    assert len(ours) >= 4
    assert {link.removeprefix(name) for link in ours} <= there
    assert [link for link in links if "localhost" in link] == []


def test_runbooks_that_travel_stand_alone(tmp_path):
    """They lead to no page that is not installed with them."""
    run(["rules", "install", str(tmp_path)])

    text = (tmp_path / "mnemoscope-runbooks.md").read_text()
    assert re.findall(r"\]\((?!https?:|#)", text) == []
    assert "docs/" not in text


def test_with_an_address_no_runbooks_are_written(tmp_path):
    """Your people read them there."""
    run(["rules", "install", str(tmp_path), "--runbooks", WIKI])

    assert not (tmp_path / "mnemoscope-runbooks.md").exists()


def test_dashboards_are_installed(tmp_path, capfd):
    """All of them, for any Prometheus that Grafana knows, with links to the runbooks."""
    code = run(["dashboards", "install", str(tmp_path), "--runbooks", WIKI])

    boards = {path.name: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    assert (code, len(capfd.readouterr().out.splitlines())) == (0, len(boards))
    assert sorted(boards) == [
        f"mnemoscope-{name}.json" for name in ("clickhouse", "overview", "privacy", "self", "spend")
    ]
    for board in boards.values():
        assert {link["title"]: link.get("url") for link in board["links"]}["Runbooks"] == WIKI
        sources = {panel["datasource"]["uid"] for panel in board["panels"] if "datasource" in panel}
        assert sources == {"${datasource}"}


def test_dashboards_for_kubernetes_are_config_maps(tmp_path):
    """Grafana's sidecar finds each by its label, and none is too large for one."""
    code = run(["dashboards", "install", str(tmp_path), "--kubernetes"])

    maps = list(yaml.safe_load_all((tmp_path / "mnemoscope-dashboards.yaml").read_text()))
    assert (code, len(maps)) == (0, 5)
    for each in maps:
        assert each["metadata"]["labels"]["grafana_dashboard"] == "1"
        ((name, text),) = each["data"].items()
        assert json.loads(text)["uid"] == name.removesuffix(".json")
        assert len(text.encode()) < 2**20


def test_a_folder_that_cannot_be_written_ends_in_one_line(tmp_path, capfd):
    """With the exit code for a file that cannot be used."""
    taken = tmp_path / "taken"
    taken.write_text("")

    assert run(["dashboards", "install", str(taken)]) == 2
    assert capfd.readouterr().err.count("\n") == 1
