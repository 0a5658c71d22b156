"""How many may be inside a store at once."""

from __future__ import annotations

import threading

from mnemoscope.memory.limits.bulkhead import Bulkhead


def test_there_are_so_many_places_and_no_more():
    """Nobody waits for a place: a queue in front of a slow store only adds to the wait."""
    bulkhead = Bulkhead(2)

    assert [bulkhead.enter() for _ in range(3)] == [True, True, False]
    assert bulkhead.in_flight == 2


def test_a_place_given_back_can_be_taken_again():
    """When the store has really answered."""
    bulkhead = Bulkhead(1)
    bulkhead.enter()
    bulkhead.leave()

    assert bulkhead.enter()


def test_a_forked_child_begins_empty():
    """The calls in flight are the parent's; one that the child ends counts nobody out."""
    bulkhead = Bulkhead(2)
    bulkhead.enter()
    bulkhead.forked()
    bulkhead.leave()

    assert bulkhead.in_flight == 0
    assert [bulkhead.enter() for _ in range(3)] == [True, True, False]


def test_threads_never_exceed_it():
    """Eight threads, three places, and none left taken in the end."""
    bulkhead, inside, most = Bulkhead(3), [], []

    def work():
        for _ in range(2_000):
            if bulkhead.enter():
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                bulkhead.leave()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert max(most) <= 3
    assert bulkhead.in_flight == 0
