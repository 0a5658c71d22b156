"""The front door: settings, the scope, and what it does at exit and when it is switched off."""

from __future__ import annotations

import copy
import os
import pickle
import stat
import subprocess
import sys
import threading
from textwrap import dedent

import pytest

from mnemoscope.memory import (
    ConfigurationError,
    Mnemoscope,
    MnemoscopeError,
    ScopeError,
    Settings,
    UnsupportedClientError,
    configure,
    context,
    load_settings,
    observe,
)
from mnemoscope.memory import errors as errors_module
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.limits.policy import CLASSES
from mnemoscope.memory.testing import CapturingSink, scope_for_tests
from mnemoscope.telemetry.process.exit_deadline import EXIT_DEADLINE_S
from tests.kit.patience import GIVE_UP_S

KEY = "00112233445566778899aabbccddeeff"


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """Begin each test with no settings, a data folder of its own, and nothing configured."""
    for name in list(os.environ):
        if name.startswith(("MNEMOSCOPE_", "OTEL_", "LANGSMITH_", "LANGCHAIN_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr("mnemoscope.memory.default_scope._default", None)


@pytest.fixture
def scope():
    """Return a scope with a list for a sink."""
    with scope_for_tests() as (scope, _sink):
        yield scope


@pytest.fixture
def configured():
    """Return `configure`; what it makes is closed in the end."""
    made = []

    def call(**settings):
        made.append(configure(**{"audit_pseudonym_key": KEY, "pii_model": "none", **settings}))
        return made[-1]

    yield call
    for each in made:
        each.close()


class TestSettings:
    def test_defaults_need_no_environment(self):
        """Everything has one."""
        settings = load_settings()

        assert settings.sinks is None
        assert settings.tenancy == "observe"
        assert settings.policy.deadline_s(OperationClass.RECALL) == 2
        assert not settings.policy.enforce_tenancy

    def test_the_environment_is_read(self, monkeypatch):
        """Lists are comma-separated, spaces do not matter."""
        monkeypatch.setenv("MNEMOSCOPE_SINKS", "logs, audit")
        monkeypatch.setenv("MNEMOSCOPE_DEADLINE_RECALL_S", "0.5")
        monkeypatch.setenv("MNEMOSCOPE_TENANCY", "enforce")
        monkeypatch.setenv("MNEMOSCOPE_DISABLED", "1")
        settings = load_settings()

        assert settings.sinks == ("logs", "audit")
        assert settings.policy.deadline_s(OperationClass.RECALL) == 0.5
        assert settings.policy.enforce_tenancy
        assert settings.disabled

    def test_the_case_of_a_variable_does_not_matter(self, monkeypatch):
        """As in Windows, where it cannot."""
        monkeypatch.setenv("mnemoscope_Tenancy", "enforce")

        assert load_settings().tenancy == "enforce"

    def test_a_variable_that_is_no_setting_is_left_alone(self, monkeypatch):
        """It may be another program's, or a later version's."""
        monkeypatch.setenv("MNEMOSCOPE_TEA", "green")

        assert not hasattr(load_settings(), "tea")

    def test_operators_are_read_as_pairs(self, monkeypatch):
        """By entity, with commas between them; as a mapping from code."""
        monkeypatch.setenv("MNEMOSCOPE_PII_OPERATORS", "PERSON=pseudonym, LOCATION = tag,*=mask,")
        expected = {"PERSON": "pseudonym", "LOCATION": "tag", "*": "mask"}

        assert load_settings().pii_operators == expected
        assert load_settings(pii_operators=expected).pii_operators == expected

    @pytest.mark.parametrize(
        ("operators", "told"),
        [
            ("PERSON=hash", "operator of PERSON must be one of tag, pseudonym, mask, drop, keep"),
            ("NAME=tag", "NAME is not an entity"),
            ("PERSON", "MNEMOSCOPE_PII_OPERATORS: .*expected ENTITY=operator"),
            ("=tag", "MNEMOSCOPE_PII_OPERATORS: .*expected ENTITY=operator"),
            ("PERSON=", "MNEMOSCOPE_PII_OPERATORS: .*expected ENTITY=operator"),
        ],
    )
    def test_operators_are_checked_when_configured(self, configured, operators, told):
        """Which entity, or which operator, is said at the start and not in a call."""
        with pytest.raises(ConfigurationError, match=told):
            configured(pii_operators=operators)

    def test_operators_are_used(self, configured):
        """In every call of the scope."""
        scope = configured(pii_operators="DATE_TIME=tag,EMAIL_ADDRESS=mask,PERSON=keep")
        redaction = scope._parts.guards.redactor.redactor.begin()

        assert redaction.text("Ada Lovelace, ada@example.com, on 2024-05-17") == (
            "Ada Lovelace, ********, on <DATE_TIME>"
        )

    def test_arguments_override_the_environment(self, monkeypatch):
        """As keyword arguments of `configure`."""
        monkeypatch.setenv("MNEMOSCOPE_SINKS", "logs")

        assert load_settings(sinks="audit").sinks == ("audit",)

    @pytest.mark.parametrize("op_class", CLASSES)
    def test_every_class_has_a_deadline_that_can_be_set(self, monkeypatch, op_class):
        """By the name of the class."""
        monkeypatch.setenv(f"MNEMOSCOPE_DEADLINE_{op_class.upper()}_S", "7.5")

        assert load_settings().policy.deadline_s(op_class) == 7.5

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("SINKS", "logs,hunter2"),
            ("TENANCY", "hunter2"),
            ("DEADLINE_RECALL_S", "hunter2"),
            ("DEADLINE_RECALL_S", "-1"),
            ("PROMETHEUS_PORT", "70000"),
            ("AUDIT_MODE", "hunter2"),
            ("DISABLED", "hunter2"),
        ],
    )
    def test_what_makes_no_sense_is_named_and_not_quoted(self, monkeypatch, name, value):
        """In one line, with the variable to look at: a value may be a secret in the wrong place."""
        monkeypatch.setenv(f"MNEMOSCOPE_{name}", value)

        with pytest.raises(ConfigurationError) as seen:
            load_settings()

        message = str(seen.value)
        assert message.startswith(f"MNEMOSCOPE_{name}")
        assert "\n" not in message
        assert value not in message
        assert seen.value.__cause__ is None

    def test_a_misspelt_argument_is_named_with_the_nearest(self):
        """A setting that is silently ignored would be worse; all of them would be a page."""
        with pytest.raises(ConfigurationError, match=r"_recal_s is not .* mean deadline_recall_s "):
            load_settings(deadline_recal_s=1)

    def test_secrets_do_not_show(self):
        """Settings may be logged."""
        assert KEY not in repr(load_settings(audit_pseudonym_key=KEY))

    def test_each_setting_is_documented(self):
        """In the docstring that the reference is made from."""
        documented = Settings.__doc__

        for name in Settings.__struct_fields__:
            assert f"{name}:" in documented or name.startswith("deadline_"), name


class TestScope:
    def test_a_guarded_function_is_observed(self):
        """From the decorator to the sink."""
        with scope_for_tests() as (scope, sink):

            @scope.observe(store="crm", operation="search_memory", neutral=list)
            def facts():
                return ["tea"]

            with context(tenant="acme", customer="c-1", feature="reply"):
                answer = facts()
            flushed = scope.flush(GIVE_UP_S)

        assert (answer, flushed) == (["tea"], True)
        (event,) = sink.events
        assert (event.store, event.method, event.feature) == ("crm", "facts", "reply")
        assert scope.last_outcome() is event

    def test_functions_of_one_store_share_its_guard(self, scope):
        """And so its breaker: it is the store that is down."""
        assert scope.guard_for("crm") is scope.guard_for("crm")
        assert scope.guard_for("crm") is not scope.guard_for("erp")

    def test_a_copy_of_it_is_itself_and_another_process_has_none(self, scope):
        """Frameworks copy what an agent holds, deeply; and pickle it for their workers."""
        held = {"scope": scope}

        assert copy.copy(scope) is scope
        assert copy.deepcopy(held)["scope"] is scope
        with pytest.raises(TypeError, match=r"call configure\(\) in the other one"):
            pickle.dumps(held)

    def test_wrapped_functions_stay_usable_after_close(self, scope):
        """The agent goes on; what it does is counted as lost, not raised."""

        @scope.observe(store="crm", operation="search_memory", neutral=list)
        def facts():
            return ["tea"]

        scope.close()

        assert facts() == ["tea"]
        assert scope._parts.drain.stats()[0].dropped == {"closed": 1}

    def test_a_neutral_answer_says_so(self, scope):
        """Else the agent would take a store that is down for an empty memory."""

        @scope.observe(store="crm", operation="search_memory", neutral=list)
        def facts():
            raise ConnectionError

        assert facts() == []
        assert scope.last_outcome().neutral
        assert scope.last_outcome().status is Status.DEGRADED

    @pytest.mark.parametrize(
        ("method", "needs"),
        [
            ("mem0", "mem0"),
            ("qdrant", "qdrant_client"),
            ("store", "langgraph"),
            ("checkpointer", "langgraph"),
        ],
    )
    def test_a_client_it_cannot_guard_is_refused(self, scope, method, needs):
        """At the line that wraps it, with the classes that can be."""
        pytest.importorskip(needs)

        with pytest.raises(UnsupportedClientError, match=r"builtins\.object") as seen:
            getattr(scope, method)(object())

        assert seen.value.client is object
        assert seen.value.wanted

    def test_without_an_audit_trail_there_is_none_to_read(self, scope):
        """The error says how to have one."""
        with pytest.raises(ConfigurationError, match="MNEMOSCOPE_SINKS"):
            _ = scope.audit

    def test_two_sinks_of_one_name_are_refused(self):
        """Their figures could not be told apart."""
        settings = load_settings(audit_pseudonym_key=KEY)

        with pytest.raises(ConfigurationError, match="same name"):
            Mnemoscope(settings, only_sinks=[CapturingSink(), CapturingSink()])

    def test_a_key_that_is_none_is_refused_and_not_quoted(self):
        """It is a secret, if a wrong one."""
        with pytest.raises(ConfigurationError, match="key") as seen:
            Mnemoscope(load_settings(audit_pseudonym_key="hunter2"), only_sinks=[])

        assert "hunter2" not in str(seen.value)

    def test_making_one_starts_no_thread(self):
        """Nor opens anything: the first event does."""
        before = set(threading.enumerate())
        scope = Mnemoscope(load_settings(audit_pseudonym_key=KEY, pii_model="none"), only_sinks=[])

        # Idle workers of others may end meanwhile.
        assert set(threading.enumerate()) <= before
        scope.close()

    def test_a_key_is_made_where_none_is_given(self, tmp_path):
        """In the data folder, readable by its owner alone."""
        Mnemoscope(load_settings(pii_model="none"), only_sinks=[]).close()

        (key,) = tmp_path.rglob("*.key")
        assert stat.S_IMODE(key.stat().st_mode) == 0o600


class TestConfigure:
    def test_decorators_find_what_was_configured_later(self, configured):
        """Modules are imported before the application reads its settings."""

        @observe(store="crm", operation="search_memory", neutral=list)
        def facts():
            raise ConnectionError

        with pytest.raises(ConnectionError):
            facts()
        scope = configured(sinks=[])

        assert facts() == []
        assert scope.last_outcome().store == "crm"

    async def test_until_then_it_is_said_that_nothing_is_guarded(self, configured, caplog):
        """Once for each store, by whatever kind of function."""

        @observe(store="billing", operation="search_memory", neutral=list)
        def facts():
            return ["tea"]

        @observe(store="billing", operation="search_memory", neutral=list)
        async def later_facts():
            return ["tea"]

        answers = [facts(), await later_facts(), facts()]
        (said,) = [each.getMessage() for each in caplog.records if "billing" in each.getMessage()]
        configured(sinks=[])
        with context(customer="c-42"):
            facts()

        assert answers == [["tea"]] * 3
        assert "before configure()" in said
        assert len([each for each in caplog.records if "billing" in each.getMessage()]) == 1

    def test_sinks_can_be_named(self, configured):
        """As a list or as text; the audit trail is there to read."""
        scope = configured(sinks=["audit"])

        assert scope.audit is not None
        assert [each.sink for each in scope._parts.drain.stats()] == ["audit"]

    def test_by_default_sinks_that_need_no_address_are_on(self, configured):
        """The others wait for one."""
        scope = configured()

        assert {each.sink for each in scope._parts.drain.stats()} == {
            "prometheus",
            "logs",
            "audit",
        }

    def test_a_configured_scope_replaces_the_one_before(self, configured):
        """Configuring twice, as reloading servers do, observes once."""

        @observe(store="crm", operation="search_memory")
        def facts():
            return ["tea"]

        first, second = configured(sinks=["audit"]), configured(sinks=["audit"])
        facts()
        books = [each._parts.drain.stats()[0].offered for each in (first, second)]

        assert books == [0, 1]


class TestDisabled:
    def test_wrappers_return_what_they_were_given(self):
        """No class is checked, no library imported."""
        client = object()
        scope = configure(disabled=True)

        assert {scope.mem0(client), scope.qdrant(client)} == {client}
        assert {scope.store(client), scope.checkpointer(client)} == {client}

    def test_functions_are_called_as_they_are(self):
        """With their own errors."""
        configure(disabled=True)

        @observe(store="crm", operation="search_memory", neutral=list)
        def facts():
            raise ConnectionError

        with pytest.raises(ConnectionError):
            facts()

    def test_nothing_at_all_happens(self, tmp_path):
        """No thread, file or heavy import."""
        script = dedent(
            """
            import sys, threading
            from mnemoscope.memory import configure, context, observe

            scope = configure()
            client = object()
            assert scope.mem0(client) is client

            @observe(store="crm", operation="search_memory", neutral=list)
            def facts():
                return ["tea"]

            with context(tenant="acme"):
                facts()
            assert scope.flush() and scope.last_outcome() is None
            scope.close()
            heavy = {"presidio_analyzer", "spacy", "mem0", "qdrant_client", "langgraph", "requests",
                     "prometheus_client", "opentelemetry.sdk", "opentelemetry.exporter", "grpc",
                     "langsmith", "loguru", "sqlite3", "cryptography"}
            print(sorted(heavy & set(sys.modules)), threading.active_count())
            """
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "MNEMOSCOPE_DISABLED": "1"},
            capture_output=True,
            text=True,
            timeout=GIVE_UP_S,
            check=True,
        )

        assert done.stdout.split("\n")[0] == "[] 1"
        assert list(tmp_path.iterdir()) == []


LOST = (
    "closing: sink hung did not acknowledge 1 event in time, which may be missing there: "
    "`mnemoscope doctor` tells whether it answers"
)


class TestExit:
    def run(self, script, *said):
        """Run *script* after what all share and return what it printed; it *said* so on stderr."""
        shared = dedent(
            """
            import atexit, sys, time
            ended = []  # and, when all the library does at exit is done:
            took = lambda: f"{time.monotonic() - ended[0]:.1f}\\n"
            atexit.register(lambda: ended and sys.stdout.write(took()))
            from mnemoscope.memory import Mnemoscope, context
            from mnemoscope.memory.settings import load_settings

            class Sink:
                idempotent = True
                def __init__(self, name="mine", hangs=False): self.name, self.hangs = name, hangs
                def write(self, batch):
                    if self.hangs: time.sleep(600)
                    sys.stdout.write(f"{len(batch)} delivered\\n")
                def flush(self, timeout_s): return True
                def close(self, timeout_s): sys.stdout.write("closed\\n")

            def scope(*sinks):
                settings = load_settings(audit_pseudonym_key=KEY, pii_model="none")
                made = Mnemoscope(settings, only_sinks=sinks)
                with context(customer="c-42"):
                    made.observe(store="crm", operation="search_memory")(lambda: ["tea"])()
                return made
            """
        )
        done = subprocess.run(
            [sys.executable, "-c", f"KEY = {KEY!r}\n{shared}\n{dedent(script)}"],
            capture_output=True,
            text=True,
            timeout=GIVE_UP_S,
            check=False,
        )
        assert done.stderr.splitlines() == [*said]
        return done.stdout.splitlines()

    @pytest.mark.parametrize(
        "ending", ["", "sys.exit(3)", "import asyncio\nasyncio.run(nothing())"]
    )
    def test_a_process_that_ends_delivers_what_it_has(self, ending):
        """Without being asked, however it ends."""
        script = f"async def nothing(): pass\nmine = scope(Sink())\n{ending}"

        assert self.run(script) == ["1 delivered", "closed"]

    def test_many_scopes_with_hung_sinks_hold_it_no_longer_than_one(self):
        """All sinks of all scopes share the time there is; healthy ones deliver."""
        script = """
            scopes = [scope(Sink("hung", hangs=True), Sink()) for _ in range(4)]
            ended.append(time.monotonic())
            """
        lines = self.run(script, *[LOST] * 4)

        assert lines.count("1 delivered") == 4
        (took_s,) = {*lines} - {"1 delivered", "closed"}
        assert 0.9 * EXIT_DEADLINE_S <= float(took_s) < 2 * EXIT_DEADLINE_S

    def test_a_sink_that_hangs_leaves_the_others_time_to_close(self):
        """What a healthy sink has in a buffer is written when it is closed."""
        script = f"""
            from mnemoscope.telemetry.process import exit_deadline
            exit_deadline.EXIT_DEADLINE_S = 2 * {EXIT_DEADLINE_S}  # so that a slow machine has some

            class Buffered(Sink):
                def close(self, timeout_s):
                    time.sleep(0.2)
                    super().close(timeout_s)

            scopes = [scope(Sink("hung", hangs=True), Buffered())]
            """
        assert self.run(script, LOST) == ["1 delivered", "closed"]


class TestErrors:
    def test_all_are_caught_by_one_name(self):
        """And those with a builtin sense by that one, too."""
        ours = [
            each
            for each in vars(errors_module).values()
            if isinstance(each, type) and issubclass(each, Exception)
        ]

        assert all(each.__name__ in (errors_module.__doc__ or "") for each in ours)
        assert all(issubclass(each, MnemoscopeError) for each in ours)
        assert issubclass(ScopeError, ValueError)
        assert issubclass(errors_module.DeadlineExceededError, TimeoutError)


def test_a_price_file_that_makes_no_sense_is_refused_at_once(tmp_path):
    """It is an error of configuration, in one line, and never one of a run."""
    file = tmp_path / "prices.json"
    file.write_text("{")

    with pytest.raises(ConfigurationError, match="MNEMOSCOPE_PRICES: the file: line 1: not JSON"):
        Mnemoscope(load_settings(prices=file, sinks="", pii_model="none"))
