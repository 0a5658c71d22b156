"""``mnemoscope doctor``: what it finds, how it ends, and that it leaves things as they are."""

from __future__ import annotations

import json
import os
import socket
import sys
from textwrap import dedent

import pytest

from mnemoscope.adapters.cli.root import run
from mnemoscope.memory.api import Database, Faults
from mnemoscope.memory.guard.touches import UNTOLD
from mnemoscope.memory.journal.journal import Journal, JournalWrite, Parked
from mnemoscope.memory.journal.records import Write
from tests.kit.bounds import pins

KEY = "00112233445566778899aabbccddeeff"


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Begin each test with no settings but the cheapest, in folders of its own."""
    for name in list(os.environ):
        if name.startswith(("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
    (tmp_path / "application").mkdir()
    monkeypatch.chdir(tmp_path / "application")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    monkeypatch.setenv("MNEMOSCOPE_SINKS", "logs,audit")


@pytest.fixture
def doctor(capfd):
    """Return how to run it: the exit code, what it printed, and what it said beside."""

    def call(*arguments):
        code = run(["doctor", *arguments])
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def checks(doctor):
    """Return how to run it for its checks by name."""

    def call(*arguments):
        code, out, _err = doctor("--json", *arguments)
        document = json.loads(out)
        assert document["ok"] is (code == 0)
        return {each["name"]: each for each in document["checks"]}

    return call


@pytest.fixture
def application(request, tmp_path):
    """Return how to write a module of an application; its name is the test's own."""
    made = []

    def write(code):
        name = f"app_of_{request.node.name.partition('[')[0]}_{len(made)}"
        (tmp_path / "application" / f"{name}.py").write_text(dedent(code))
        made.append(name)
        return name

    yield write
    for name in made:
        sys.modules.pop(name, None)


def test_a_healthy_environment_ends_with_0(doctor):
    """A table for a person, in 80 columns, without colour where there is no terminal."""
    code, out, _err = doctor()

    assert code == 0
    assert "Healthy" in out
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out


def test_an_unhealthy_one_ends_with_1(doctor, monkeypatch):
    """By words, not by colour alone."""
    monkeypatch.setenv("MNEMOSCOPE_SINKS", "otlp")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    code, out, _err = doctor()

    assert code == 1
    assert "✗ failed" in out
    assert "Unhealthy: 1 failed" in out


def test_it_changes_nothing(doctor, tmp_path, monkeypatch):
    """No key, no database, no journal, no log: they are the application's to make."""
    monkeypatch.setenv("MNEMOSCOPE_JOURNAL", str(tmp_path / "data" / "journal"))
    monkeypatch.setenv("MNEMOSCOPE_LOG_FILE", str(tmp_path / "data" / "log.jsonl"))
    monkeypatch.setenv("MNEMOSCOPE_VAULT", str(tmp_path / "data" / "vault"))
    before = sorted(tmp_path.rglob("*"))
    doctor()

    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("variable", "value", "name"),
    [
        ("MNEMOSCOPE_AUDIT_URL", "sqlite:///{}/audit.db", "sink.audit"),
        ("MNEMOSCOPE_LOG_FILE", "{}/log.jsonl", "sink.logs"),
        ("MNEMOSCOPE_JOURNAL", "{}/journal", "journal"),
        ("MNEMOSCOPE_VAULT", "{}/vault", "vault"),
        ("XDG_DATA_HOME", "{}", "key"),
    ],
)
def test_what_cannot_be_made_is_not_ok(checks, monkeypatch, variable, value, name):
    """It is tried: permissions of /proc say that a file can be made there, and none can."""
    monkeypatch.setenv(variable, value.format("/proc/mnemoscope"))

    assert checks()[name]["state"] == "failed"


def test_a_variable_that_nothing_reads_is_named(checks, monkeypatch):
    """With what it may have been meant to be."""
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_ULR", "sqlite:///x")
    found = checks()["settings"]

    assert found["state"] == "warning"
    assert "MNEMOSCOPE_AUDIT_ULR" in found["detail"]
    assert "did you mean MNEMOSCOPE_AUDIT_URL?" in found["detail"]


def test_a_setting_that_makes_no_sense_is_a_finding(checks, monkeypatch):
    """Whoever monitors this reads JSON, whatever is wrong."""
    monkeypatch.setenv("MNEMOSCOPE_TENANCY", "hunter2")
    found = checks()

    assert list(found) == ["settings"]
    assert "MNEMOSCOPE_TENANCY" in found["settings"]["detail"]
    assert "hunter2" not in found["settings"]["detail"]


def test_a_key_that_is_open_to_others_is_a_finding(checks, tmp_path):
    """Nothing starts with it, and that is what this command is for."""
    file = tmp_path / "data" / "mnemoscope" / "subject.key"
    file.parent.mkdir(parents=True)
    file.write_text(KEY)
    file.chmod(0o644)

    assert "chmod 600" in checks()["settings"]["detail"]


def test_a_model_that_cannot_be_had_is_a_finding(checks, monkeypatch):
    """It is really loaded, since nothing else shows whether it can be."""
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "en_no_such_model")
    found = checks()

    assert found["names"]["state"] == "failed"
    assert "en_no_such_model" in found["names"]["detail"]


def test_a_disabled_library_is_not_unhealthy(checks, monkeypatch):
    """It is off, and that is all there is to say."""
    monkeypatch.setenv("MNEMOSCOPE_DISABLED", "1")

    assert [each["state"] for each in checks().values()] == ["off"]


class TestJournal:
    @pytest.fixture
    def path(self, tmp_path, monkeypatch):
        path = tmp_path / "journal"
        monkeypatch.setenv("MNEMOSCOPE_JOURNAL", str(path))
        return path

    @pytest.fixture
    def running(self, path):
        """The journal of an application that runs, with a write that waits."""
        journal = Journal(path, key=bytes(32), faults=Faults())
        queue = journal.queue(Database.named("mem0", "crm"), "mem0")
        journal.append(
            queue, JournalWrite(Write(id="1", method="add", arguments="{}", created_ns=1), UNTOLD)
        )
        yield journal
        journal.close()

    def test_what_a_running_application_has_in_it_is_seen(self, checks, running, path):
        """And left to it: nothing is claimed, taken over or made."""
        before = sorted(path.parent.iterdir()), path.read_bytes()
        found = checks()

        assert found["journal"]["state"] == "warning"
        assert "1 for mem0" in found["journal"]["detail"]
        assert (sorted(path.parent.iterdir()), path.read_bytes()) == before

    def test_what_was_set_aside_is_seen(self, checks, running):
        """With what to do about it."""
        queue = running.queue(Database.named("mem0", "crm"), "mem0")
        running.settle(
            queue, done=[], parked=[Parked(each, "KeyError") for each in running.take(queue)]
        )
        found = checks()

        assert found["journal"]["state"] == "warning"
        assert "set aside: 1 for mem0; look with mnemoscope journal" in found["journal"]["detail"]

    @pytest.mark.parametrize(
        ("harm", "said"),
        [
            (lambda path: path.mkdir(), "is not a file"),
            (lambda path: path.touch(0o600), "is empty: see that its disk has room"),
            (lambda path: _write_privately(path, b"rubble"), "is no journal of this version"),
            (lambda path: path.touch(0o644), "chmod 600"),
        ],
        ids=["a folder", "empty", "a file of another kind", "open to others"],
    )
    def test_what_cannot_be_a_journal_has_failed(self, checks, path, harm, said):
        """There would be none when it is needed."""
        harm(path)
        found = checks()

        assert found["journal"]["state"] == "failed"
        assert said in found["journal"]["detail"]


def _write_privately(path, content):
    path.touch(0o600)
    path.write_bytes(content)


class TestMetricsPort:
    def port(self, monkeypatch, url):
        monkeypatch.setenv("MNEMOSCOPE_PROMETHEUS_PORT", url.rpartition(":")[2])

    def test_a_running_application_serves_it(self, checks, monkeypatch, http_receiver):
        """It is asked, not bound."""
        self.port(monkeypatch, http_receiver.url)

        assert checks()["metrics port"]["state"] == "ok"

    def test_somebody_elses_server_is_a_failure(self, checks, monkeypatch, http_receiver):
        """Ours could not be served there."""
        http_receiver.answer = lambda handler: http_receiver.respond(handler, 404)
        self.port(monkeypatch, http_receiver.url)

        assert checks()["metrics port"]["state"] == "failed"

    def test_nobody_is_a_warning(self, checks, monkeypatch):
        """The application may not run just now."""
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port(monkeypatch, f"x:{sock.getsockname()[1]}")

            assert checks()["metrics port"]["state"] == "warning"


class TestScope:
    SCOPE = """
        from mnemoscope.memory import Mnemoscope
        from mnemoscope.memory.settings import load_settings
        from mnemoscope.memory.testing import CapturingSink

        def make():
            settings = load_settings(audit_pseudonym_key="00112233445566778899aabbccddeeff")
            scope = Mnemoscope(settings, only_sinks=[CapturingSink()])
            scope.observe(store="crm", operation="search_memory")(list)()
            return scope
    """

    @pytest.mark.parametrize("name", ["make", "made", "Inside.made"])
    def test_the_applications_own_is_looked_at(self, checks, application, name):
        """A scope, or a function that returns one, with the stores that it guards."""
        module = application(dedent(self.SCOPE) + "made = make()\nclass Inside:\n    made = made\n")
        found = checks("--scope", f"{module}:{name}")

        assert found["store.crm"]["state"] == "ok"
        assert "sink.capture" in found

    def test_the_environment_may_name_it(self, checks, application, monkeypatch):
        """As ``MNEMOSCOPE_SCOPE``."""
        monkeypatch.setenv("MNEMOSCOPE_SCOPE", f"{application(self.SCOPE)}:make")

        assert "store.crm" in checks()

    def test_an_application_that_has_not_run_yet_is_healthy(self, doctor, application, tmp_path):
        """In a folder without key and trail the environment is checked, and nothing is made."""
        module = application("from mnemoscope.memory import configure\nmade = configure()")
        ended, out, _err = doctor("--scope", f"{module}:made")

        assert ended == 0
        assert "has not run here yet" in " ".join(out.split())
        assert [each for each in (tmp_path / "data").rglob("*") if each.is_file()] == []

    @pytest.mark.parametrize(
        ("code", "address", "said"),
        [
            ("", "{}", "takes package.module:name"),
            ("", "no.such.module:x", "there is no module no"),
            ("", "{}:x", "there is no x in"),
            ("x = 'ada@example.com'", "{}:x", "is a str, not a Mnemoscope"),
            ("def x(): return None", "{}:x", "is a NoneType, not a Mnemoscope"),
            ("async def x(): ...", "{}:x", "is a coroutine function"),
            ("import no_such_dependency", "{}:x", "failed: ModuleNotFoundError at"),
            ("raise SystemExit('ada@example.com')", "{}:x", "failed: SystemExit at"),
            ("def x(): raise ValueError('ada@example.com')", "{}:x", "failed: ValueError at"),
            ("def x(y): ...", "{}:x", "is a function, not a Mnemoscope"),
        ],
    )
    def test_what_is_none_ends_in_one_line(self, doctor, application, code, address, said):
        """It says what is wrong and where, and quotes nothing of the application's."""
        ended, out, err = doctor("--scope", address.format(application(code)))

        assert ended == 4
        assert out == ""
        assert len(err.splitlines()) == 1
        assert said in err
        assert "ada@example.com" not in err


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Return how to have a version of a distribution found before the one that is installed."""

    def install(distribution, version):
        folder = tmp_path / "elsewhere" / f"{distribution.replace('-', '_')}-{version}.dist-info"
        folder.mkdir(parents=True, exist_ok=True)
        told = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        (folder / "METADATA").write_text(told)
        monkeypatch.setattr(sys, "path", [str(folder.parent), *sys.path])

    return install


@pytest.mark.parametrize(
    ("distribution", "version", "said"),
    [
        ("langgraph-checkpoint-sqlite", "3.0.0", "CVE-2025-67644): install 3.0.1 or newer"),
        ("langgraph-checkpoint", "3.9", "CVE-2026-27794): install 4.0.0 or newer"),
        ("langgraph", "1.0.9", "CVE-2026-28277): install 1.0.10 or newer"),
        ("langchain-core", "1.3.3rc1", "CVE-2026-44843): install 1.3.3 or newer"),
        ("langsmith", "0.8.17", "GHSA-f4xh-w4cj-qxq8): install 0.8.18 or newer"),
        ("chromadb", "1.5.9", "CVE-2026-45829): no version was known without it"),
        ("de-core-news-md", "999.9.9", "by somebody else than its name says: uninstall it"),
    ],
)
def test_a_version_with_a_known_hole_is_a_warning(installed, checks, distribution, version, said):
    """With the first version that has it no more; its name and number are the package index's."""
    installed(distribution, version)

    found = checks()["versions"]
    assert found["state"] == "warning"
    assert said in found["detail"]


@pytest.mark.parametrize(
    ("distribution", "version"),
    [("de-core-news-md", "3.8.0"), ("chromadb", "1.5.10"), ("langsmith", "0.8.18")],
)
def test_a_version_without_a_known_hole_is_none(installed, checks, distribution, version):
    """A model of spaCy's own has the name that somebody else took on the package index."""
    installed(distribution, version)

    assert distribution not in checks()["versions"]["detail"]


def test_our_lowest_versions_have_no_hole_that_a_newer_one_has_not(installed, checks):
    """Who installs us with any resolver gets none of them."""
    for pin in pins():
        installed(*pin.partition(";")[0].strip().split("=="))

    assert "or newer" not in checks()["versions"]["detail"]


def test_langgraph_that_calls_what_a_checkpoint_names_is_a_warning(checks, installed, monkeypatch):
    """Until its strict reading is on; then nothing is known of what is installed here."""
    installed("chromadb", "1.5.10")
    assert "LANGGRAPH_STRICT_MSGPACK is off" in checks()["versions"]["detail"]
    for value in ("true", "TRUE", "1"):
        monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", value)
        assert checks()["versions"]["state"] == "ok"
    monkeypatch.setenv("LANGGRAPH_STRICT_MSGPACK", "on")  # LangGraph does not take that for on
    assert checks()["versions"]["state"] == "warning"
