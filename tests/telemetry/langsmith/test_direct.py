"""What we write ourselves, against what LangSmith's client would have sent in its place."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemoscope.memory.api import OperationClass, Redacted
from mnemoscope.telemetry.event.parent_run import RUNS
from mnemoscope.telemetry.langsmith import direct as langsmith_direct
from mnemoscope.telemetry.langsmith import sink as langsmith
from mnemoscope.telemetry.langsmith.direct import _requests_of, direct_runs
from mnemoscope.telemetry.langsmith.runs import runs_of
from mnemoscope.telemetry.langsmith.sink import LangSmithSink
from tests.kit.lengths import examples
from tests.kit.sample_events import events

BATCHES = st.lists(events, min_size=1, max_size=5)
MUCH = settings(
    max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def make_client(**settings):
    """Return a client as the sink makes it, which reaches nobody."""
    from langsmith.utils import get_env_var

    known = {"ENDPOINT": "http://127.0.0.1:9", "API_KEY": "key"} | settings
    with pytest.MonkeyPatch.context() as patch:
        for name, value in known.items():
            patch.setenv(f"LANGSMITH_{name}", value)
        get_env_var.cache_clear()
        outlet = langsmith._Connection(None, "project")
    get_env_var.cache_clear()
    return outlet._client


@pytest.fixture(scope="module")
def client():
    """Return one client for many examples."""
    return make_client()


def theirs(client, runs):
    """Return the body that the client itself would send."""
    (request,) = _requests_of(client, lambda: client.multipart_ingest(create=runs))
    body = request["data"]
    return body if isinstance(body, bytes) else body.read()


class TestRuns:
    @MUCH
    @given(batch=BATCHES)
    def test_the_body_is_the_one_the_client_encodes(self, client, batch):
        """Byte for byte, wherever all text is Unicode; where it is not, the client encodes it."""
        try:
            ours = direct_runs(client).body(runs_of(batch, "project", content=True))
        except TypeError:
            assert "\\ud" in ascii([*runs_of(batch, "project", content=True)])
            return

        assert ours == theirs(client, [*runs_of(batch, "project", content=True)])

    def test_it_is_what_is_sent(self, client):
        """With the version that is installed here."""
        assert direct_runs(client) is not None

    @pytest.mark.parametrize(
        "setting",
        [
            {"HIDE_INPUTS": "true"},
            {"HIDE_OUTPUTS": "true"},
            {"HIDE_METADATA": "true"},
            {"TRACING_SAMPLING_RATE": "0.9999999"},
            {"FAILED_TRACES_DIR": "failed"},
        ],
    )
    def test_what_the_client_does_to_runs_is_left_to_it(self, setting):
        """Whoever has it hide, sample, keep or copy runs still has it."""
        assert direct_runs(make_client(**setting)) is None

    def test_a_client_that_cannot_be_asked_is_left_to_it(self, langsmith_server, make_event):
        """As with another version, whose calls have other names."""
        sink = LangSmithSink()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("langsmith.Client.request_with_retries", None)
            sink._out = langsmith._Connection(None, None)
        direct = sink._out._direct
        sink.write([make_event()])
        sink.close(1.0)

        assert direct is None
        assert len(langsmith_server.runs) == 1

    def test_asking_sends_nothing(self, langsmith_server):
        """The made-up runs stay in the process."""
        outlet = langsmith._Connection(None, None)
        outlet.close()

        assert not langsmith_server.http.requests

    def test_what_is_no_json_costs_its_own_place(self, langsmith_server, make_event):
        """The client makes of it what it can, as for a number beyond all bounds."""
        sink = LangSmithSink(content=True)
        sink.write([make_event(content=Redacted({"n": 2**70})), make_event()])
        sink.close(1.0)

        assert len(langsmith_server.runs) == 2

    def test_a_langsmith_without_multipart_gets_a_batch(self, langsmith_server, make_event):
        """One that answers 404 is asked as older ones are, from then on."""
        accept = langsmith_server.http.answer

        def answer(handler):
            if handler.path == "/runs/multipart":
                langsmith_server.http.respond(handler, 404)
            else:
                accept(handler)

        langsmith_server.http.answer = answer
        sink = LangSmithSink()
        sink.write([make_event()])
        sink.close(1.0)

        assert len(langsmith_server.http.bodies("/runs/batch")) == 1

    def test_what_is_there_already_is_delivered(self, langsmith_server, make_event):
        """A batch that LangSmith has, and says so, is not sent again."""
        langsmith_server.status = 409
        sink = LangSmithSink()
        sink.write([make_event()])
        sink.close(1.0)

        assert len(langsmith_server.http.bodies("/runs/multipart")) == 1

    @pytest.mark.parametrize(("status", "attempts"), [(500, 3), (429, 1), (413, 1)])
    def test_it_is_asked_as_often_as_the_client_asks(
        self, langsmith_server, make_event, status, attempts
    ):
        """Three times where that may help, and once where it does not."""
        langsmith_server.status = status
        sink = LangSmithSink()
        with pytest.raises(Exception, match=str(status)):
            sink.write([make_event()])
        sink.close(1.0)

        assert len(langsmith_server.http.bodies("/runs/multipart")) == attempts

    def test_a_run_that_is_in_a_batch_twice_is_sent_once(self, client, make_event):
        """Parts of one name would be two runs of one id."""
        runs = [*runs_of([make_event()], "project", content=False)]

        body = langsmith_direct.DirectRuns(client, b"x").body(runs * 2)

        assert body.count(b"otel_span_id") == 1


class TestIds:
    @MUCH
    @given(event=events)
    def test_a_run_has_the_uuid_of_its_event(self, event):
        """The fifth version, of the event's id, or of its span where others hang below that."""
        (run,) = runs_of([event], "project", content=False)

        is_run = event.op_class is OperationClass.MODEL and not event.is_notice
        span = f"{event.trace.trace_hex}-{event.trace.span_hex}"
        assert run["id"] == str(uuid.uuid5(RUNS, span if is_run else event.event_id))
        assert run["dotted_order"].endswith(run["id"])

    @MUCH
    @given(event=events)
    def test_times_are_exact_to_the_microsecond(self, event):
        """In UTC, with six digits, in the run and in its dotted order."""
        (run,) = runs_of([event], "project", content=False)

        began = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=event.started_ns // 1_000)
        assert run["start_time"] == began.isoformat(timespec="microseconds")
        assert run["dotted_order"].startswith(f"{began:%Y%m%dT%H%M%S%f}Z")
