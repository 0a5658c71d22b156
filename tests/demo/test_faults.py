"""Faults of stores, below their guards."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from mnemoscope.demo.faults import BREAKABLE, FLAP_CALLS, FaultMode, StoreFault
from tests.kit.patience import GIVE_UP_S


class Client:
    """Has every method that can be broken, and counts its calls."""

    def __init__(self):
        self.calls = 0
        for names, _error in BREAKABLE.values():
            for name in names:
                setattr(self, name, self._answer)

    def _answer(self):
        self.calls += 1
        return "answer"


@pytest.mark.parametrize(
    ("store", "method", "error"),
    [
        ("mem0", "search", ConnectionRefusedError),
        ("store", "batch", sqlite3.OperationalError),
        ("checkpointer", "get_tuple", sqlite3.OperationalError),
    ],
)
def test_a_store_that_is_down_fails_as_the_real_one_does(store, method, error):
    """Every call raises what the real client would, and the client is not reached."""
    client = Client()
    StoreFault(store, FaultMode.DOWN, delay_s=0).begin(client)

    with pytest.raises(error):
        getattr(client, method)()

    assert client.calls == 0


def test_a_flapping_store_fails_and_answers_in_turn():
    """A few calls fail, as many are answered, and again."""
    client = Client()
    StoreFault("mem0", FaultMode.FLAPPING, delay_s=0).begin(client)

    seen = []
    for _ in range(3 * FLAP_CALLS):
        try:
            seen.append(client.search())
        except ConnectionError:
            seen.append(None)

    assert seen == [None] * FLAP_CALLS + ["answer"] * FLAP_CALLS + [None] * FLAP_CALLS


def test_calls_of_a_slow_store_are_let_go_at_the_end():
    """A call that waits is answered once the fault is over, and waited for."""
    client = Client()
    fault = StoreFault("mem0", FaultMode.SLOW, delay_s=60)
    fault.begin(client)
    waiting = threading.Thread(target=client.search)
    waiting.start()

    fault.end(timeout_s=GIVE_UP_S)
    waiting.join(GIVE_UP_S)

    assert not waiting.is_alive()
    assert client.calls == 1
