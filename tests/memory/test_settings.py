"""Settings from the environment, each variable by the same rules: generated from the model."""

from __future__ import annotations

import logging
import os
import re
import traceback
from pathlib import Path

import pytest

from mnemoscope.memory import (
    Budget,
    ConfigurationError,
    Settings,
    configure,
    feature,
    load_settings,
)
from mnemoscope.memory import environment as environment_module
from mnemoscope.memory.environment import unknown_variables, variable_of
from mnemoscope.memory.setting_values import SettingValues
from mnemoscope.memory.settings import unknown_settings
from mnemoscope.memory.testing import scope_for_tests
from tests.kit.patience import GIVE_UP_S

NAMES = tuple(Settings.__struct_fields__)
KEY = "00112233445566778899aabbccddeeff"
WRONG = "hunter2,\nhunter3="
"""A value that most settings refuse, in two lines."""

ANY_TEXT = {
    "audit_spool": "a file of any name can be made",
    "log_file": "a file of any name can be made",
    "vault": "a file of any name can be made",
    "journal": "a file of any name can be made",
    "relay": "a folder of any name can be made",
}
"""Settings that take every text, and why that is right."""


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Begin each test with no settings, a data folder of its own, and nothing told yet."""
    for name in list(os.environ):
        if name.startswith(("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment_module, "_reported", set())
    monkeypatch.setattr("mnemoscope.memory.default_scope._default", None)


@pytest.mark.parametrize("empty", ["", " ", "\t\n"])
@pytest.mark.parametrize("name", NAMES)
def test_an_empty_variable_is_unset(monkeypatch, name, empty):
    """As compose files write it for each name that they list."""
    monkeypatch.setenv(variable_of(name), empty)

    assert load_settings() == Settings()


@pytest.mark.parametrize("name", [name for name in NAMES if name != "disabled"])
def test_disabled_wins_over_an_invalid_variable(monkeypatch, name):
    """Whoever switches it off has no time to find out what else is wrong."""
    monkeypatch.setenv("MNEMOSCOPE_DISABLED", "1")
    monkeypatch.setenv(variable_of(name), WRONG)

    scope = configure()

    assert scope.is_disabled
    assert scope.mem0(name) is name


def test_disabled_keeps_the_variables_that_are_right(monkeypatch):
    """The command line reads the audit trail of an application that is switched off."""
    monkeypatch.setenv("MNEMOSCOPE_DISABLED", "1")
    monkeypatch.setenv("MNEMOSCOPE_TENANCY", WRONG)
    monkeypatch.setenv("MNEMOSCOPE_AUDIT_URL", "sqlite:///audit.db")

    settings = load_settings()

    assert (settings.disabled, settings.tenancy) == (True, "observe")
    assert settings.audit_url == "sqlite:///audit.db"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ANY_TEXT])
def test_an_invalid_value_is_one_line_without_the_value(monkeypatch, name):
    """At `configure`, wherever it is found out: which variable, and what was expected."""
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    monkeypatch.setenv("MNEMOSCOPE_SINKS", "logs,audit")
    monkeypatch.setenv(variable_of(name), WRONG)

    with pytest.raises(ConfigurationError) as seen:
        configure()

    message = str(seen.value)
    assert variable_of(name) in message
    assert "\n" not in message
    assert "hunter" not in message


def test_no_sink_is_a_name():
    """Since an empty variable is unset, the name ``none`` stands for no sink."""
    assert load_settings(sinks="none").sinks == ()


def test_a_misspelt_variable_has_a_nearest_name():
    """Of each setting, whichever letter is missing."""
    right = {name: variable_of(name) for name in NAMES}
    wrong = {n: each[:-2] + each[-1] if len(n) > 5 else f"{each}S" for n, each in right.items()}

    nearest = unknown_variables(dict.fromkeys(wrong.values(), "1"), NAMES)

    assert nearest == {wrong[name]: right[name] for name in NAMES}


def test_a_misspelt_variable_is_told_with_the_nearest_name(monkeypatch, caplog):
    """Once in the log, and in `health`; it is never an error."""
    monkeypatch.setenv("MNEMOSCOPE_SINK", "1")

    with caplog.at_level(logging.WARNING, "mnemoscope"):
        for _ in range(2):
            with scope_for_tests() as (scope, _sink):
                (check,) = (
                    each for each in scope.health(GIVE_UP_S).checks if each.name == "settings"
                )

    told = "MNEMOSCOPE_SINK is not a setting, nothing reads it: did you mean MNEMOSCOPE_SINKS?"
    # A thread that another test has left may warn of something else.
    assert [each.message for each in caplog.records if "a setting" in each.message] == [told]
    assert (check.state, check.detail) == ("warning", told)


@pytest.mark.parametrize("name", NAMES)
def test_a_variable_that_is_read_is_not_told(monkeypatch, name):
    """In whatever case it is written."""
    monkeypatch.setenv(variable_of(name).lower(), "1")

    assert unknown_settings() == {}


def test_a_variable_of_an_installed_package_is_not_told(monkeypatch):
    """A sink or store of another package reads variables that begin with its name."""
    known = unknown_variables({"MNEMOSCOPE_PARQUET_FOLDER": "x"}, ())
    monkeypatch.setattr(
        environment_module, "_prefixes_of_packages", lambda: ("MNEMOSCOPE_PARQUET_",)
    )

    assert list(known) == ["MNEMOSCOPE_PARQUET_FOLDER"]
    assert unknown_variables({"MNEMOSCOPE_PARQUET_FOLDER": "x"}, ()) == {}


def test_type_checkers_know_each_setting():
    """As a keyword of `configure`: a setting that is missing there would be a mistake to them."""
    assert set(SettingValues.__annotations__) == set(NAMES)


MISTAKES = (object(), 5, -1, True, "hunter2", b"hunter2", ["hunter2"], {"hunter2": 2}, float("nan"))
"""What a program may give to a setting by mistake."""


def mistake_of(settings: dict[str, object]) -> ConfigurationError | None:
    """Return the error of a scope that is configured with *settings*, if they are not usable."""
    try:
        configure(**settings).close()
    except ConfigurationError as error:
        return error
    return None


def test_most_mistakes_are_errors(monkeypatch):
    """Else the next test would look at none."""
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")

    wrong = [name for name in NAMES if mistake_of({"sinks": "logs", name: object()}) is not None]

    assert wrong == list(NAMES)


@pytest.mark.parametrize("given", MISTAKES, ids=lambda given: type(given).__name__)
@pytest.mark.parametrize("name", NAMES)
def test_a_mistake_is_one_error_without_a_chain(monkeypatch, name, given):
    """Of any setting, in any type: either it is usable, or one line says what was expected."""
    monkeypatch.setenv("MNEMOSCOPE_PII_MODEL", "none")
    monkeypatch.setenv("MNEMOSCOPE_SINKS", "logs,audit")
    error = mistake_of({name: given})

    if error is not None:
        assert error.__cause__ is None
        assert error.__suppress_context__ or error.__context__ is None
        assert "\n" not in str(error)
        assert "hunter" not in str(error)


@pytest.mark.parametrize(
    ("argument", "given", "said"),
    [
        ("budgets", 5, "budgets is a int: expected a list of Budget objects"),
        ("budgets", ["5"], "budgets: number 1 is a str, expected a Budget object"),
        ("budgets", [Budget], "budgets: number 1 is a type, expected a Budget object"),
        ("rules", 5, "rules is a int: expected a list of Rule objects"),
        (
            "only_sinks",
            ["logs"],
            "only_sinks: number 1 is a str, expected a Sink object; names of sinks go into sinks=",
        ),
        ("extra_sinks", [print], "number 1 is a builtin_function_or_method, expected a Sink"),
    ],
)
def test_what_is_no_budget_rule_or_sink_is_one_error(argument, given, said):
    """Which argument, which of its objects, and what was expected."""
    with pytest.raises(ConfigurationError, match=re.escape(said)):
        configure(sinks="none", **{argument: given})


def test_a_feature_without_its_name_is_an_error_where_it_stands():
    """Not where the function is called, which may be in production."""
    with pytest.raises(ConfigurationError, match=r'expected the name .*@feature\("reply-draft"\)'):

        @feature
        def draft():
            """Return a draft."""


SECRETS = {
    "audit_url": "postgresql://app:hunter2@db.internal/audit?password=hunter2",
    "audit_pseudonym_key": "hunter2hunter2hunter2hunter2hunter2h",
    "audit_previous_keys": "hunter2hunter2hunter2hunter2hunter2h",
}


@pytest.mark.parametrize("name", NAMES)
def test_no_secret_in_any_setting_is_shown(name):
    """In repr, str, a traceback's locals or a pretty printer, an error: of every setting."""
    text = SECRETS.get(name, "https://app:hunter2@db.internal")
    told: list[str] = []
    try:
        settings = load_settings(**{name: text})
        if not isinstance(getattr(settings, name), Path):
            told = [repr(settings), f"{settings}", str(settings.__rich_repr__())]
    except ConfigurationError as exc:
        told = traceback.format_exception(exc)

    assert not any("hunter2" in each for each in told)


def test_what_was_chosen_is_shown():
    """As anybody needs who looks for a mistake."""
    settings = load_settings(audit_url="sqlite:///a.db", tenancy="enforce")

    assert repr(settings) == "Settings(audit_url='sqlite:///a.db', tenancy='enforce')"
