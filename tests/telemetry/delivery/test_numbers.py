"""The numbers that a writer gives its events."""

from __future__ import annotations

import threading

import pytest

from mnemoscope.telemetry.delivery.numbers import WriterNumbers


def test_they_begin_with_one_and_leave_none_out():
    """Looking at how many there were takes none."""
    numbers = WriterNumbers()
    assert numbers.taken() == 0
    assert [numbers.take() for _ in range(3)] == [1, 2, 3]
    assert numbers.taken() == numbers.taken() == 3
    assert numbers.take() == 4


def test_another_beginning_is_another_writer():
    """As in a forked child: another identity, and one again."""
    numbers = WriterNumbers()
    before = numbers.writer_id
    numbers.take()
    numbers.begin()

    assert numbers.writer_id != before
    assert (numbers.taken(), numbers.take()) == (0, 1)


def test_it_is_said_which_events_nobody_waits_for():
    """Each that is not taken as awaited, and all so far when a call waits no longer."""
    numbers, said = WriterNumbers(), []
    numbers.note_let_go = said.append
    for take in (numbers.take, numbers.take_awaited, numbers.take, numbers.take_awaited):
        take()
    assert said == [1, 3]
    numbers.let_go()

    assert said == [1, 3, 4]


@pytest.mark.parametrize("ahead", [1, 3])
def test_none_is_used_that_was_not_granted(ahead):
    """Whoever grants them is asked with the first, and whenever those are used up."""
    numbers, asked = WriterNumbers(), []

    def grant(writer_id, number):
        asked.append((writer_id, number))
        return number + ahead - 1

    numbers.grant = grant
    for number in range(1, 8):
        assert numbers.take() == number
        assert asked[-1][1] + ahead - 1 >= number

    assert {writer_id for writer_id, _number in asked} == {numbers.writer_id}
    assert [number for _writer_id, number in asked] == list(range(1, 8, ahead))


def test_threads_take_each_once():
    """And never one beyond what was granted by then."""
    numbers, granted, taken = WriterNumbers(), [0], []

    def grant(_writer_id, number):
        granted[0] = max(granted[0], number + 9)
        return number + 9

    def take():
        for _ in range(2_000):
            number = numbers.take()
            assert number <= granted[0]
            taken.append(number)

    numbers.grant = grant
    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(taken) == list(range(1, 8_001))
