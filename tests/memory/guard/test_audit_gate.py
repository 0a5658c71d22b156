"""The modes of the audit trail: never waited for, waited for, and insisted on."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import nullcontext

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.audit import AuditLog
from mnemoscope.audit.sink.sink import AuditSink
from mnemoscope.audit.sink.spool import Spool
from mnemoscope.memory import (
    AuditUnavailableError,
    ConfigurationError,
    Mnemoscope,
    MnemoscopeError,
    load_settings,
)
from mnemoscope.memory.api import OperationClass, Status
from mnemoscope.memory.guard.steps.audit_gate import AwaitAudit, RequireAudit
from mnemoscope.memory.limits.audit_mode import parse_audit_mode
from mnemoscope.memory.privacy.engine.content import content_again

KEY = "00112233445566778899aabbccddeeff"
FORGET, RECALL = OperationClass.FORGET, OperationClass.RECALL


@pytest.fixture
def trail(tmp_path):
    """Return the path of the database; its folder is there only once it is made."""
    return tmp_path / "trail" / "audit.db"


@pytest.fixture
def make_scope(tmp_path, trail, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    made = []

    def make(mode, **settings):
        settings = {"sinks": "audit", "audit_url": f"sqlite:///{trail}", **settings}
        scope = Mnemoscope(
            load_settings(audit_mode=mode, audit_pseudonym_key=KEY, pii_model="none", **settings)
        )
        made.append(scope)
        return scope

    yield make
    for each in made:
        each.close()


def recorded(scope):
    try:
        return [row.method for row in scope.audit.rows()]
    except Exception as exc:  # noqa: BLE001 - there is no database
        return [type(exc).__name__]


class TestParse:
    @pytest.mark.parametrize(
        ("text", "durable", "strict"),
        [
            ("fail_open", set(), set()),
            ("durable:forget, recall", {FORGET, RECALL}, set()),
            ("strict:forget", {FORGET}, {FORGET}),
        ],
    )
    def test_modes(self, text, durable, strict):
        """A mode, and perhaps the classes that it is limited to."""
        mode = parse_audit_mode(text)

        assert (mode.durable, mode.strict) == (durable, strict)

    def test_without_classes_it_is_for_all(self):
        """Save model calls, which touch no memory."""
        assert parse_audit_mode("strict").strict == set(OperationClass) - {OperationClass.MODEL}

    @pytest.mark.parametrize(
        "text", ["", "always", "strict:", "strict:model", "durable:everything"]
    )
    def test_what_is_no_mode_is_refused(self, text):
        """One line, that says what would be one."""
        with pytest.raises(ConfigurationError, match="expected fail_open, durable or strict"):
            load_settings(audit_mode=text)


class TestModes:
    def test_fail_open_waits_for_nothing(self, make_scope):
        """No step of the guard has anything to do with the trail."""
        scope = make_scope("fail_open")
        guard = scope.observe(store="crm", operation="search_memory")

        assert guard(lambda: [1])() == [1]
        (made,) = scope._parts.guards.guards
        assert not any(isinstance(each, AwaitAudit | RequireAudit) for each in made.steps)

    def test_durable_calls_return_when_they_are_recorded(self, make_scope):
        """Each is in the database before its caller goes on."""
        scope = make_scope("durable")

        @scope.observe(store="crm", operation="search_memory")
        def find():
            return [1]

        for number in range(1, 4):
            assert find() == [1]
            assert recorded(scope) == ["find"] * number

    def test_failed_calls_are_waited_for_too(self, make_scope):
        """Whatever the end of a call, its event is there when the caller hears of it."""
        scope = make_scope("durable")

        @scope.observe(store="crm", operation="search_memory")
        def find():
            raise ValueError

        with pytest.raises(ValueError):  # noqa: PT011 - the caller's own, unchanged
            find()
        assert recorded(scope) == ["find"]

    @pytest.mark.parametrize("outer", ["search_memory", "delete_memory"])
    def test_a_call_inside_another_waits_for_itself(self, make_scope, outer):
        """One that its mode is for does, whatever it is called inside of."""
        scope = make_scope("durable:forget")
        store = scope.store(InMemoryStore())
        seen = []

        @scope.observe(store="crm", operation=outer)
        def look():
            store.delete(("notes",), "1")
            seen.extend(recorded(scope))

        look()

        assert seen == ["delete"]

    async def test_asynchronous_calls_wait_without_holding_the_loop(self, make_scope):
        """Others go on meanwhile; the event is there when the call returns."""
        scope = make_scope("durable")

        @scope.observe(store="crm", operation="search_memory")
        async def find():
            return [1]

        ticks = []

        async def tick():
            while True:
                ticks.append(1)
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        before = len(ticks)
        assert await find() == [1]
        ticking.cancel()
        assert recorded(scope) == ["find"]
        assert len(ticks) > before + 1

    def test_many_callers_share_a_commit(self, make_scope, eventually):
        """Threads that wait at the same time wait for one transaction, not for one each."""
        scope, asked = make_scope("durable"), []

        @scope.observe(store="crm", operation="search_memory")
        def find():
            asked.append(1)
            return [1]

        find()
        log, batches = scope.audit, []
        record = log.record

        def slow(drafts, **how):
            batches.append(len(drafts))
            eventually(lambda: len(asked) == 33)
            time.sleep(0.02)  # to come from there to the gate
            return record(drafts, **how)

        log.record = slow
        threads = [threading.Thread(target=find) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert sum(batches) == 32
        assert len(batches) < 16

    def test_durable_is_content_with_the_spool(self, make_scope, trail, tmp_path):
        """With the database away a call returns when its event is in the spool."""
        trail.parent.touch()
        scope = make_scope("durable")

        @scope.observe(store="crm", operation="search_memory")
        def find():
            return [1]

        assert find() == [1]
        (spool,) = (tmp_path / "data").rglob("audit-*.spool.*.events")
        assert spool.stat().st_size > 500
        assert not scope._parts.faults.counts["audit_gate.settle"]
        trail.parent.unlink()

    @pytest.mark.parametrize("is_async", [False, True])
    @pytest.mark.parametrize(
        ("how", "ends"),
        [("in time", None), ("not at all", KeyboardInterrupt()), ("too late", None)],
    )
    def test_who_does_not_wait_says_so(self, make_scope, monkeypatch, how, ends, is_async):
        """Its call is over, and its event perhaps on no disk: a kill may lose it."""
        scope, noted = make_scope("durable"), []
        drain = scope._parts.drain
        monkeypatch.setattr(drain.numbers, "let_go", lambda: noted.append(how))
        if how == "too late":
            monkeypatch.setattr(drain, "settle", lambda *_given: False)

        def find():
            if ends is not None:
                raise ends

        async def afind():
            find()

        observed = scope.observe(store="crm", operation="search_memory")
        with nullcontext() if ends is None else pytest.raises(KeyboardInterrupt):
            asyncio.run(observed(afind)()) if is_async else observed(find)()

        assert noted == ([] if how == "in time" else [how])

    @pytest.mark.parametrize("mode", ["strict", "strict:recall"])
    def test_strict_refuses_what_could_not_be_audited(self, make_scope, trail, tmp_path, mode):
        """Neither database nor spool: the store is not asked, and the caller is told."""
        trail.parent.touch()
        (tmp_path / "file").touch()
        scope = make_scope(mode, audit_spool=tmp_path / "file" / "spool")
        asked = []

        @scope.observe(store="crm", operation="search_memory", neutral=list)
        def find():
            asked.append(1)

        with pytest.raises(AuditUnavailableError, match="mnemoscope doctor") as caught:
            find()
        assert isinstance(caught.value, MnemoscopeError)
        assert asked == []
        assert scope.last_outcome().status is Status.DENIED
        trail.parent.unlink()

    def test_strict_is_for_its_classes_alone(self, make_scope, trail, tmp_path):
        """A recall goes through where only what is forgotten must be audited."""
        trail.parent.touch()
        (tmp_path / "file").touch()
        scope = make_scope("strict:forget", audit_spool=tmp_path / "file" / "spool")

        @scope.observe(store="crm", operation="search_memory", neutral=list)
        def find():
            return [1]

        @scope.observe(store="crm", operation="delete_memory")
        def drop():
            raise AssertionError

        assert find() == [1]
        with pytest.raises(AuditUnavailableError):
            drop()
        trail.parent.unlink()

    def test_strict_works_again_when_the_database_is_back(self, make_scope, trail, tmp_path):
        """What was refused is tried again by the caller, and then audited."""
        trail.parent.touch()
        (tmp_path / "file").touch()
        scope = make_scope("strict", audit_spool=tmp_path / "file" / "spool")

        @scope.observe(store="crm", operation="search_memory")
        def find():
            return [1]

        with pytest.raises(AuditUnavailableError):
            find()
        trail.parent.unlink()
        (sink,) = scope._parts.drain.sinks
        sink.probe()
        assert not sink.waiting

        assert find() == [1]
        assert recorded(scope) == ["find"] * 2


def test_a_sink_that_has_somewhere_to_write_accepts(tmp_path, subject_keys):
    """At first, and as long as either database or spool takes something."""
    log = AuditLog(tmp_path / "audit.db", subject_keys)
    sink = AuditSink(log, Spool(tmp_path / "spool", log.ring, content=content_again))
    sink.probe()

    assert sink.accepts()
    sink.close(1.0)
