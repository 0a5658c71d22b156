"""What all sinks that reach over the network share: a bound on the whole exchange, and silence."""

from __future__ import annotations

import logging
import threading
import time

import pytest
import requests

from mnemoscope.telemetry.network.http import BoundedSession
from mnemoscope.telemetry.network.timeouts import quiet, remaining_s, time_limit
from tests.kit.receivers import write_certificate


@pytest.fixture
def session():
    session = BoundedSession()
    yield session
    session.close()


def test_answers_arrive_whole(session, http_receiver):
    """A body of several reads, on a connection that is kept and used again, is complete."""
    body = b"x" * 300_000
    http_receiver.answer = lambda handler: http_receiver.respond(handler, 200, body)

    answers = [session.post(http_receiver.url, data=b"hello").content for _ in range(3)]

    assert answers == [body] * 3
    assert http_receiver.bodies("/") == [b"hello"] * 3


def test_an_answer_without_length_arrives_whole(session, http_receiver):
    """A body that ends with the connection is read to its end."""

    def answer(handler):
        handler.send_response(200)
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.wfile.write(b"y" * 100_000)

    http_receiver.answer = answer

    assert session.get(http_receiver.url).content == b"y" * 100_000


def test_tls_is_verified_and_spoken(session, secure_receiver, certificate):
    """HTTPS works with the authority that was given, and is refused without it."""
    url = secure_receiver.url.replace("http:", "https:")
    with time_limit(5.0):
        trusted = session.post(url, data=b"hello", verify=str(certificate))
        with pytest.raises(requests.exceptions.SSLError):
            session.post(url, data=b"hello")

    assert trusted.status_code == 200


def test_the_authority_of_a_session_is_not_the_environments_to_change(
    session, secure_receiver, certificate, monkeypatch, tmp_path
):
    """``REQUESTS_CA_BUNDLE``, which many images set, is for those who name none."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(write_certificate(tmp_path / "other.pem")))
    session.verify = str(certificate)

    with time_limit(5.0):
        answer = session.post(secure_receiver.url.replace("http:", "https:"), data=b"hello")

    assert answer.status_code == 200


def test_a_proxy_of_the_environment_is_used(session, http_receiver, monkeypatch):
    """``HTTP_PROXY`` means what it means to everything else built on requests."""
    monkeypatch.setenv("HTTP_PROXY", http_receiver.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    session.post("http://collector.example/v1/traces", data=b"hello")

    assert http_receiver.bodies("http://collector.example/v1/traces") == [b"hello"]


def test_requests_share_the_time_they_were_given(session, black_hole):
    """Two requests in one `time_limit` take its time together, not each."""
    started = time.monotonic()
    with time_limit(0.3):
        for _ in range(2):
            with pytest.raises(requests.exceptions.Timeout):
                session.get(black_hole)

    assert time.monotonic() - started < 1.0


def test_an_inner_time_cannot_be_longer():
    """The shorter of two bounds holds."""
    with time_limit(1.0), time_limit(60.0):
        left = remaining_s()

    assert left <= 1.0
    assert remaining_s() == float("inf")


def test_closing_closes_the_sockets(session, http_receiver, eventually):
    """The server sees the connection end, even while something still refers to the response."""
    answer = session.get(http_receiver.url)
    session.close()
    threads = threading.enumerate

    assert eventually(lambda: not any("process_request" in each.name for each in threads()))
    assert answer.ok


def test_only_this_thread_is_hushed(caplog):
    """The host's own use of the same library goes on being logged."""
    logger = logging.getLogger("some.exporter")
    with quiet("some.exporter"):
        logger.error("ours")
        other = threading.Thread(target=logger.error, args=("theirs",))
        other.start()
        other.join()
    logger.error("after")

    assert [record.message for record in caplog.records] == ["theirs", "after"]
