"""The registry of sinks: names, entry points, and what cannot be built."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from msgspec import structs

from mnemoscope.memory import ConfigurationError, Mnemoscope, load_settings
from mnemoscope.memory.api import SinkContext
from mnemoscope.memory.settings import SINK_NAMES
from mnemoscope.memory.sinks import SINKS
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.delivery.registry import GROUP, SinkRegistry
from mnemoscope.telemetry.event.subject import SubjectKeys
from tests.kit.patience import GIVE_UP_S

PYPROJECT = Path(__file__).parents[3] / "pyproject.toml"

PACKAGE = """
import sys
from mnemoscope.memory.testing import CapturingSink

class Elsewhere(CapturingSink):
    name = "elsewhere"

def build(context):
    sink = Elsewhere()
    sink.context = context
    return sink

def absent(context):
    return None

def incomplete(context):
    import a_package_that_nobody_has
"""


@pytest.fixture
def context(tmp_path) -> SinkContext:
    """Return what a named sink is built from."""
    receiver = {"webhook_url": "https://hooks.example.com", "webhook_format": "slack"}
    settings = structs.asdict(load_settings(pii_model="none", **receiver))
    return SinkContext(settings=settings, data_folder=tmp_path, keys=SubjectKeys(bytes(32)))


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a package with entry points of the group."""
    monkeypatch.setattr(SINKS, "_has_looked", False)
    monkeypatch.setattr(SINKS, "_found", dict(SINKS._found))

    def installed(extras: str = "", **entries: str) -> None:
        (tmp_path / "elsewhere_sinks.py").write_text(PACKAGE)
        info = tmp_path / "elsewhere_sinks-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: elsewhere-sinks\nVersion: 1.0\n{extras}")
        lines = "".join(f"{name} = elsewhere_sinks:{what}\n" for name, what in entries.items())
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{lines}")
        monkeypatch.syspath_prepend(tmp_path)

    yield installed
    sys.modules.pop("elsewhere_sinks", None)


@pytest.fixture
def make_scope():
    """Return a factory of scopes with a key of their own."""
    scopes: list[Mnemoscope] = []

    def make(**given) -> Mnemoscope:
        own = {each: given.pop(each) for each in ("only_sinks", "extra_sinks") if each in given}
        settings = load_settings(audit_pseudonym_key="ab" * 32, pii_model="none", **given)
        scopes.append(Mnemoscope(settings, **own))
        return scopes[-1]

    yield make
    for scope in scopes:
        scope.close()


def names(scope: Mnemoscope) -> list[str]:
    """Return the names of the sinks of *scope*."""
    return [each.name for each in scope._parts.drain.sinks]


@pytest.mark.skipif(not PYPROJECT.exists(), reason="the source tree is needed")
def test_our_own_sinks_are_entry_points_like_any_other():
    """The list that needs no look at installed packages is the one that is installed."""
    listed = tomllib.loads(PYPROJECT.read_text())["project"]["entry-points"][GROUP]

    assert {name: SINKS._found[name] for name in SINK_NAMES} == listed


@pytest.mark.parametrize("name", SINK_NAMES)
def test_each_of_ours_is_built_under_its_name(name, context):
    """The name of an entry point is the sink's, and so its metric label."""
    pytest.importorskip("langsmith") if name == "langsmith" else None

    sink = SINKS.build(name, context)

    assert sink is not None
    assert sink.name == name


def test_names_of_ours_need_no_look_at_installed_packages(monkeypatch):
    """Which takes as long as there are packages."""
    monkeypatch.setattr("mnemoscope.telemetry.delivery.registry._entry_points", None)
    registry = SinkRegistry({"logs": "mnemoscope.telemetry.logs.factory:build"})

    registry.check(["logs"])


def test_an_unknown_name_is_answered_with_the_known_ones():
    """And not quoted: it may be a secret in the wrong place."""
    with pytest.raises(ConfigurationError) as seen:
        load_settings(sinks="logs,hunter2")

    expected = "MNEMOSCOPE_SINKS: name 2 is not a sink: expected some of otlp, prometheus, logs"
    assert str(seen.value).startswith(expected)
    assert "hunter2" not in str(seen.value)


def test_a_package_adds_a_sink_by_its_entry_point(install, make_scope):
    """Named like ours, and given all that ours are."""
    install(elsewhere="build")

    scope = make_scope(sinks="logs,elsewhere", content_sinks="elsewhere")

    assert names(scope) == ["logs", "elsewhere"]
    context = scope._parts.drain.sinks[1].context
    assert context.content
    assert context.is_named
    assert context.settings["log_to"] == "loguru"


def test_a_packages_sink_is_off_unless_it_is_named(install, make_scope):
    """To install a package sends nothing anywhere."""
    install(elsewhere="build")

    assert "elsewhere" not in names(make_scope())


def test_nobody_takes_the_name_of_one_of_ours(install, make_scope):
    """Else a package could receive what was meant for the audit trail."""
    install(logs="build")

    (sink,) = make_scope(sinks="logs")._parts.drain.sinks
    assert type(sink).__name__ == "LogSink"


def test_a_named_sink_that_is_not_configured_is_said(install, make_scope):
    """It would be missed otherwise."""
    install(elsewhere="absent")

    with pytest.raises(ConfigurationError, match="the elsewhere sink is not configured"):
        make_scope(sinks="elsewhere")


@pytest.mark.parametrize(
    ("extras", "advice"),
    [
        ("Provides-Extra: elsewhere\n", r"pip install 'elsewhere-sinks\[elsewhere\]'"),
        ("", "pip install 'a_package_that_nobody_has'"),
    ],
)
def test_a_missing_package_is_named_with_what_to_install(install, make_scope, extras, advice):
    """The extra of the sink's name where there is one."""
    install(extras, elsewhere="incomplete")
    expected = f"^the elsewhere sink needs the a_package_that_nobody_has package: {advice}$"

    with pytest.raises(ConfigurationError, match=expected):
        make_scope(sinks="elsewhere")


def test_langsmith_without_its_package_names_our_extra(make_scope, monkeypatch):
    """The one sink of ours whose library is optional."""
    monkeypatch.setattr("mnemoscope.telemetry.langsmith.sink.find_spec", lambda _name: None)

    with pytest.raises(ConfigurationError, match=r"pip install 'mnemoscope\[langsmith\]'$"):
        make_scope(sinks="langsmith")


def test_extra_sinks_are_added_to_those_that_settings_name(make_scope):
    """For what goes to a place of the application's own."""
    assert names(make_scope(sinks="logs", extra_sinks=[CapturingSink()])) == ["logs", "capture"]


def test_only_sinks_replace_those_that_settings_name(make_scope):
    """Nothing of these is even imported."""
    assert names(make_scope(sinks="logs", only_sinks=[CapturingSink()])) == ["capture"]


def test_importing_and_configuring_look_at_no_entry_points():
    """That is done for a name that is not ours."""
    script = """
import importlib.metadata as metadata
asked, look = [], metadata.entry_points
metadata.entry_points = lambda **kwargs: asked.append(kwargs.get("group")) or look(**kwargs)
import mnemoscope.memory
mnemoscope.memory.configure(sinks="logs", audit_pseudonym_key="ab" * 32, pii_model="none").close()
assert "mnemoscope.sinks" not in asked, asked
"""
    subprocess.run([sys.executable, "-c", script], timeout=GIVE_UP_S, check=True)
