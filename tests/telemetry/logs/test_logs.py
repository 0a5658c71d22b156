"""The log sink, read back line by line."""

from __future__ import annotations

import json
import logging
import os
import sys

import pytest
from loguru import logger

from mnemoscope.memory import Mnemoscope, load_settings
from mnemoscope.memory.api import (
    OperationClass,
    Redacted,
    Status,
    Subject,
    TraceRef,
    UnavailableError,
    Usage,
)
from mnemoscope.telemetry import JsonFormatter
from mnemoscope.telemetry.delivery.drain import Drain
from mnemoscope.telemetry.delivery.lane_stats import LaneLimits
from mnemoscope.telemetry.logs import records as log_records
from mnemoscope.telemetry.logs.sink import LogSink, sentence
from mnemoscope.telemetry.text import clean_text, json_text, utc_text
from tests.kit.patience import GIVE_UP_S


@pytest.fixture
def file(tmp_path):
    return tmp_path / "logs" / "mnemoscope.jsonl"


@pytest.fixture
def sink(file):
    sink = LogSink(file=file)
    yield sink
    sink.close(1.0)


@pytest.fixture
def host_records():
    """Collect what the host's loguru receives, and leave that as it was."""
    records = []
    handler = logger.add(lambda message: records.append(message.record), level=0, catch=False)
    yield records
    logger.remove(handler)


def lines(file):
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


class TestFile:
    def test_one_json_line_an_event(self, sink, file, event_factory):
        """Each event is one line of JSON with its fields by name, in order."""
        sink.write([event_factory(hits=3), event_factory(store="qdrant", top_score=0.5)])

        first, second = lines(file)
        assert first["time"] == "2023-11-14T22:13:20.123456Z"
        assert (first["level"], first["store"], first["hits"]) == ("DEBUG", "mem0", 3)
        assert first["message"] == "mem0 search_memory ok in 12.5 ms, 3 results"
        assert (second["store"], second["top_score"]) == ("qdrant", 0.5)

    def test_lines_carry_the_trace(self, sink, file, event_factory):
        """A line leads to its trace, and to its row in the audit trail."""
        event = event_factory(trace=TraceRef(0xABC, 0xDEF))
        sink.write([event])

        (line,) = lines(file)
        assert line["trace_id"] == f"{0xABC:032x}"
        assert line["span_id"] == f"{0xDEF:016x}"
        assert line["event_id"] == event.event_id

    def test_what_is_not_known_is_not_there(self, sink, file, event_factory):
        """Absent fields are left out rather than null: lines stay short."""
        sink.write([event_factory()])

        (line,) = lines(file)
        assert None not in line.values()
        assert not {"error", "neutral", "late", "nested", "redactions", "model"} & set(line)

    def test_model_calls_carry_their_usage(self, sink, file, event_factory):
        """Tokens and cost of a model call are fields of its line."""
        usage = Usage(model="m-1", namespace=("a", "b"), input_tokens=7, cost_usd=0.5)
        sink.write([event_factory(op_class=OperationClass.MODEL, usage=usage)])

        (line,) = lines(file)
        found = (line["model"], line["input_tokens"], line["cost_usd"], line["namespace"])
        assert found == ("m-1", 7, 0.5, "a/b")

    def test_a_checkpoint_of_the_trail_is_an_anchor(self, sink, file, checkpoint):
        """Its line has the log's name, its size and its root."""
        sink.write([checkpoint])

        line = json.loads(file.read_text())
        claim = line["operation"], line["collection"], line["hits"], line["root"]
        assert claim == ("audit_checkpoint", "log/1", 4_096, "ab" * 32)

    def test_a_notice_is_no_call_of_a_store(self, sink, file, notices):
        """What counts the lines of a store, a status or a duration counts no notice."""
        sink.write(notices)

        counted = {"store", "method", "class", "status", "duration_s", "waited_s"}
        found = [json.loads(line) for line in file.read_text().splitlines()]
        assert len(found) == len(notices)
        assert [counted & line.keys() for line in found] == [set()] * len(notices)

    def test_no_person_and_no_content(self, sink, file, event_factory):
        """The customer is a keyed hash of the logs' own, and content is left out."""
        sink.write([event_factory(content=Redacted("likes tea"), memory_ids=("memory-1",))])

        (line,) = lines(file)
        text = file.read_text()
        assert [word for word in ("ada@", "likes tea", "memory-1") if word in text] == []
        assert len(line["subject"]) == 26

    def test_the_hash_of_a_person_is_the_logs_own(self, sink, file, event_factory, subject_keys):
        """Nobody can join the logs with another sink by its hashes."""
        sink.write([event_factory()])

        (line,) = lines(file)
        subject = Subject("ada@example.com", tenant="acme", keys=subject_keys)
        assert line["subject"] == subject.hashed("logs")
        assert line["subject"] != subject.hashed("audit")

    def test_content_is_written_where_it_is_opted_in(self, file, event_factory):
        """With ``content=True`` a line holds the redacted content, as JSON."""
        sink = LogSink(file=file, content=True)
        sink.write([event_factory(content=Redacted({"query": "<PERSON> tea"}))])
        sink.close(1.0)

        assert lines(file)[0]["content"] == {"query": "<PERSON> tea"}

    def test_warning_level_leaves_out_ordinary_operations(self, file, event_factory):
        """With ``level="WARNING"`` only what went wrong is logged."""
        sink = LogSink(file=file, level="WARNING")
        sink.write([event_factory(), event_factory(status=Status.DEGRADED)])
        sink.close(1.0)

        assert [line["status"] for line in lines(file)] == ["degraded"]

    def test_odd_values_cost_only_themselves(self, sink, file, event_factory):
        """Lone surrogates, huge integers and NaN do not lose the line, nor its neighbours."""
        sink.write(
            [
                event_factory(run="\ud800", hits=2**70, top_score=float("nan")),
                event_factory(run="next"),
            ]
        )

        assert [line["run"] for line in lines(file)] == ["?", "next"]

    def test_a_line_feed_in_a_name_makes_no_second_line(self, sink, file, event_factory):
        """A caller's name cannot forge a line."""
        sink.write([event_factory(run='x\n{"level": "DEBUG"}', agent="{agent} <red>")])

        (line,) = lines(file)
        assert line["agent"] == "{agent} <red>"

    def test_a_deleted_file_is_begun_anew(self, sink, file, event_factory):
        """Somebody who deletes or moves the file does not end the log."""
        sink.write([event_factory(run="first")])
        file.unlink()
        sink.write([event_factory(run="second")])

        assert [line["run"] for line in lines(file)] == ["second"]

    def test_a_deleted_folder_is_made_again(self, sink, file, event_factory):
        """Even the folder may go."""
        sink.write([event_factory()])
        file.unlink()
        file.parent.rmdir()
        sink.write([event_factory(run="second")])

        assert [line["run"] for line in lines(file)] == ["second"]

    def test_the_file_is_rotated_and_old_ones_are_dropped(self, file, event_factory):
        """Size bounds the file, retention bounds the files."""
        sink = LogSink(file=file, most_bytes=2_048, kept=2)
        for number in range(30):
            sink.write([event_factory(run=f"run-{number}")])
        sink.close(1.0)

        assert len(list(file.parent.iterdir())) == 3
        assert lines(file)[-1]["run"] == "run-29"
        assert file.stat().st_size <= 2_048

    def test_a_path_with_braces_is_a_path(self, tmp_path, event_factory):
        """A file name is taken as it is, though loguru would see a template in it."""
        file = tmp_path / "log-{time}.jsonl"
        sink = LogSink(file=file)
        sink.write([event_factory()])
        sink.close(1.0)

        assert len(lines(file)) == 1

    def test_nothing_is_opened_before_the_first_event(self, file):
        """A process that never remembers anything has no log file."""
        LogSink(file=file)

        assert not file.parent.exists()

    def test_a_file_that_cannot_be_written_is_the_lanes_to_count(
        self, tmp_path, event_factory, capfd
    ):
        """Write raises, and standard error stays the host's."""
        (tmp_path / "taken").write_text("")
        sink = LogSink(file=tmp_path / "taken" / "log.jsonl")

        with pytest.raises(UnavailableError, match="taken"):
            sink.write([event_factory()])

        assert capfd.readouterr() == ("", "")

    def test_a_full_disk_raises_and_later_writes_succeed(self, sink, file, event_factory):
        """What a full disk refused is the lane's to write again; logging goes on after it."""
        sink.write([event_factory(run="first")])
        file.unlink()
        file.symlink_to("/dev/full")
        refused = [event_factory(run="refused")]
        with pytest.raises(UnavailableError, match="no space"):
            sink.write(refused)
        file.unlink()
        sink.write(refused)
        sink.write([event_factory(run="later")])

        assert [line["run"] for line in lines(file)] == ["refused", "later"]

    def test_a_lane_loses_no_line_to_a_write_that_failed(
        self, sink, file, event_factory, monkeypatch
    ):
        """It writes the batch again, and each line is there once, although half of it was."""
        write, left = os.write, [40, None]

        def stops(fd, data):
            if not left:
                return write(fd, data)
            if (most := left.pop(0)) is None:
                raise OSError(28, "No space left on device")
            return write(fd, data[:most])

        monkeypatch.setattr(os, "write", stops)
        drain = Drain([sink], limits=LaneLimits(linger_s=0.0, backoff_s=0.0))
        for number in range(3):
            drain.emit(event_factory(run=str(number)))
        assert drain.flush(GIVE_UP_S)
        (books,) = drain.stats()
        drain.close(GIVE_UP_S)

        assert left == []
        assert (books.delivered, books.dropped) == (3, {})
        assert [line["run"] for line in lines(file)] == ["0", "1", "2"]

    def test_what_the_host_was_given_is_not_given_again(self):
        """Its handlers have a part of a batch that failed, and nobody knows which."""
        assert not LogSink().idempotent

    def test_a_torn_line_spoils_no_other(self, sink, file, event_factory):
        """After a write that stopped half-way the next line begins on a line of its own."""
        file.parent.mkdir()
        file.symlink_to("/dev/full")
        with pytest.raises(UnavailableError, match="no space"):
            sink.write([event_factory()])
        file.unlink()
        file.write_text('{"half')
        sink.write([event_factory(run="whole")])

        torn, whole = file.read_text().splitlines()
        assert torn == '{"half'
        assert json.loads(whole)["run"] == "whole"

    def test_write_after_close_opens_again(self, sink, file, event_factory):
        """Closing lets go of the file, not of the sink."""
        sink.write([event_factory(run="first")])
        sink.close(1.0)
        sink.write([event_factory(run="second")])

        assert [line["run"] for line in lines(file)] == ["first", "second"]

    def test_the_file_is_not_open_to_everybody(self, sink, file, event_factory):
        """Others on the machine cannot read it, whatever the umask allows."""
        before = os.umask(0)
        try:
            sink.write([event_factory()])
        finally:
            os.umask(before)

        assert file.stat().st_mode & 0o007 == 0

    def test_host_and_file_do_not_mix(self, sink, file, host_records, event_factory):
        """The host's handlers get none of our lines, and our file none of the host's."""
        sink.write([event_factory(run="ours")])
        logger.info("the host's own")
        sink.write([event_factory(run="ours")])

        assert [record["message"] for record in host_records] == ["the host's own"]
        assert [line["run"] for line in lines(file)] == ["ours", "ours"]

    def test_the_hosts_remove_takes_nothing_from_us(self, sink, file, event_factory):
        """``logger.remove()``, which every loguru user calls first, leaves our file alone."""
        sink.write([event_factory()])
        logger.remove()
        logger.add(sys.__stderr__)
        sink.write([event_factory()])

        assert len(lines(file)) == 2


class TestHost:
    def test_an_ordinary_operation_is_a_sentence_at_debug(self, host_records, event_factory):
        """The message is for a person, the fields are bound as extra."""
        LogSink().write([event_factory(hits=1)])

        (record,) = host_records
        assert record["message"] == "mem0 search_memory ok in 12.5 ms, 1 result"
        assert record["level"].name == "DEBUG"
        assert record["extra"]["status"] == "ok"
        assert record["extra"]["trace_id"] == f"{0xA1:032x}"
        assert record["extra"]["occurred_at"].endswith("Z")

    @pytest.mark.parametrize(
        "overrides",
        [
            {"status": Status.DEGRADED},
            {"status": Status.DENIED},
            {"status": Status.REFUSED},
            {"foreign_hits": 1},
        ],
        ids=str,
    )
    def test_what_is_abnormal_is_a_warning(self, host_records, event_factory, overrides):
        """Degraded, denied and refused operations, and other people's results, stand out."""
        LogSink().write([event_factory(**overrides)])

        assert [record["level"].name for record in host_records] == ["WARNING"]

    def test_the_host_can_silence_us(self, host_records, event_factory):
        """``logger.disable("mnemoscope")`` does what it does for any library."""
        logger.disable("mnemoscope")
        try:
            LogSink().write([event_factory()])
        finally:
            logger.enable("mnemoscope")

        assert host_records == []

    def test_braces_and_markup_in_names_are_taken_as_they_are(self, host_records, event_factory):
        """A store named like a template is a name."""
        LogSink().write([event_factory(store="{0} <red>")])

        assert host_records[0]["message"].startswith("{0} <red> search_memory")

    def test_no_person_and_no_content(self, host_records, event_factory):
        """The host's log gets no more than our own."""
        LogSink().write([event_factory(content=Redacted("likes tea"))])

        shown = repr((host_records[0]["message"], host_records[0]["extra"]))
        assert [word for word in ("ada@", "likes tea") if word in shown] == []

    def test_names_that_are_not_utf8_reach_every_handler(self, host_records, event_factory):
        """A lone surrogate in a store's name cannot break the host's file handler."""
        LogSink().write([event_factory(store="bad\ud800")])

        assert host_records[0]["message"].startswith(r"bad\ud800 search_memory")

    def test_standard_logging_is_left_alone(self, event_factory, caplog):
        """Nothing goes through the root logger on the way."""
        with caplog.at_level(logging.DEBUG):
            LogSink().write([event_factory()])

        # A client of an earlier test may be collected meanwhile, and say so.
        assert [each for each in caplog.records if not each.name.startswith("langsmith.")] == []


class TestSentence:
    def test_a_degraded_recall_says_who_got_what(self, event_factory):
        """Store, end, time, cause, and what the agent was given."""
        event = event_factory(
            status=Status.TIMEOUT, duration_s=2.0, error="TimeoutError", neutral=True, late=True
        )

        assert sentence(event) == (
            "mem0 search_memory timeout in 2000.0 ms, because of TimeoutError, "
            "the agent was given a neutral value, the store was still at work"
        )

    def test_a_model_call_says_its_tokens(self, event_factory):
        """Spend is in the sentence, too."""
        event = event_factory(operation="chat", usage=Usage(model="m", input_tokens=9))

        assert sentence(event).endswith("9 tokens in, 0 out")

    def test_a_tripwire_is_in_the_sentence(self, event_factory):
        """Results that belong to somebody else are said so."""
        assert sentence(event_factory(hits=3, foreign_hits=2)).endswith("2 of somebody else's")


class TestText:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ({"a": [1, 2.5, None, True]}, '{"a":[1,2.5,null,true]}'),
            ({"a": "\ud800"}, '{"a":"?"}'),
            ({1: "key"}, '{"1":"key"}'),
            ([2**70], '["1180591620717411303424"]'),
            ({"a": {"b"}, "c": object()}, '{"a":["b"],"c":"<object>"}'),
            (b"bytes", '"<bytes>"'),
            (float("nan"), "null"),
        ],
        ids=["plain", "surrogate", "key", "integer", "types", "bytes", "nan"],
    )
    def test_json_text_always_succeeds(self, value, text):
        """What JSON cannot hold costs its own place only."""
        assert json_text(value) == text

    def test_cycles_and_depth_end(self):
        """A value that contains itself is cut off."""
        cyclic: list = []
        cyclic.append(cyclic)

        assert "<too deep>" in json_text(cyclic)

    def test_clean_text_keeps_what_is_fine(self):
        """Only lone surrogates change."""
        assert clean_text("zażółć 🍵 \udc80") == "zażółć 🍵 ?"

    @pytest.mark.parametrize(
        ("micros", "text"),
        [
            (0, "1970-01-01T00:00:00.000000Z"),
            (1_700_000_000_123_456, "2023-11-14T22:13:20.123456Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (2**63 - 1, "9999-12-31T23:59:59.999999Z"),
        ],
    )
    def test_times_are_utc_with_microseconds(self, micros, text):
        """Times sort as text, to the microsecond, whatever the clock says."""
        assert utc_text(micros) == text


class TestStandardLogging:
    """For hosts that log with the standard library, or with structlog over it."""

    @pytest.fixture
    def records(self):
        """Collect what the host's logging receives."""
        found = []
        handler = logging.Handler()
        handler.emit = found.append
        host = logging.getLogger(log_records.LOGGER)
        level = host.level
        host.addHandler(handler)
        host.setLevel(logging.DEBUG)
        yield found
        host.removeHandler(handler)
        host.setLevel(level)

    def test_the_fields_are_the_records_own(self, records, event_factory):
        """What adds a record's extra to a line, as structlog's ExtraAdder does, finds them."""
        LogSink(host="logging").write([event_factory(status=Status.DEGRADED)])
        (record,) = records

        assert record.levelname == "WARNING"
        assert (record.store, record.status) == ("mem0", "degraded")
        assert len(record.trace_id) == 32

    def test_its_formatter_gives_the_line_of_our_file(self, records, event_factory, file, sink):
        """Byte by byte."""
        events = [event_factory(), event_factory(status=Status.DEGRADED)]
        LogSink(host="logging").write(events)
        sink.write(events)
        lines = "".join(f"{JsonFormatter().format(each)}\n" for each in records)

        assert lines == file.read_text()

    def test_other_records_are_formatted_as_ever(self):
        """One handler may serve the whole application."""
        record = logging.LogRecord("app", logging.INFO, "app.py", 1, "hello %s", ("you",), None)

        assert JsonFormatter("%(levelname)s %(message)s").format(record) == "INFO hello you"

    def test_a_level_that_is_off_costs_nothing(self, records, event_factory):
        """The host's level decides, as for any logger."""
        logging.getLogger(log_records.LOGGER).setLevel(logging.WARNING)
        LogSink(host="logging").write([event_factory()])

        assert records == []


@pytest.mark.parametrize("place", ["a.jsonl", "taken/a.jsonl", "new/a.jsonl"])
def test_a_file_that_cannot_be_written_is_told_as_the_sink_is_made(tmp_path, caplog, place):
    """With its name; and nothing is said of one that can, or that is still to be made."""
    (tmp_path / "taken").touch()
    key = "bW5lbW9zY29wZSB0ZXN0cyBvbmx5"
    settings = load_settings(sinks=["logs"], log_file=tmp_path / place, audit_pseudonym_key=key)
    Mnemoscope(settings).close()

    is_told = [
        f"MNEMOSCOPE_LOG_FILE: {tmp_path / place} cannot" in each for each in caplog.messages
    ]
    assert is_told == [True] * place.startswith("taken")
    assert not (tmp_path / "new").exists()
