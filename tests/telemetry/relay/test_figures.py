"""The figures of processes that are no event's, as their relay shows them."""

from __future__ import annotations

import os
import signal

import pytest

from mnemoscope.memory.api import LiveMetric
from mnemoscope.telemetry.prometheus.live import counter, latest
from mnemoscope.telemetry.relay.figures import SILENT_AFTER_S, FiguresTeller, WritersFigures
from tests.kit.children import exit_code_of_child
from tests.kit.patience import until
from tests.kit.still_clock import Clock

A, B = "a" * 16, "b" * 16
IN_FLIGHT = LiveMetric("mnemoscope_operations_in_flight", "Now")
WAITING = latest("mnemoscope_journal_waiting", "Of all")
LATE = counter("mnemoscope_late_results_total", "Ever")


@pytest.fixture
def clock():
    return Clock(1_700_000_000.0)


@pytest.fixture
def figures(folder, clock):
    """Return the relay's side of it."""
    found = WritersFigures(folder, clock)
    yield found
    found.close()


@pytest.fixture
def teller(folder, clock):
    """Return a function that makes the teller of one more process, which says what is in a list."""
    made = []

    def make(said):
        made.append(FiguresTeller(folder, lambda: said, clock))
        return made[-1]

    yield make
    for each in made:
        each.forked()


def shown(figures):
    """Return names and values, as of now."""
    figures.look()
    return [(each.name, each.value) for each in figures.samples()]


def test_what_a_process_says_is_shown(teller, figures):
    """As it said it last, with labels, and how it is added up."""
    said = [IN_FLIGHT.sample(1, store="mem0")]
    process = teller(said)
    process.tell(A)
    first = shown(figures)
    said[:] = [IN_FLIGHT.sample(2, store="mem0"), WAITING.sample(7), LATE.sample(3)]
    process.tell(A)
    figures.look()

    assert first == [(IN_FLIGHT.name, 1)]
    assert [*figures.samples()] == said


def test_what_was_longer_leaves_nothing(teller, figures):
    """A file is written over, and not made anew."""
    said = [IN_FLIGHT.sample(1, store="s" * 500)]
    process = teller(said)
    process.tell(A)
    said[:] = [LATE.sample(3)]
    process.tell(A)

    assert shown(figures) == [(LATE.name, 3)]


@pytest.mark.parametrize("at", [0, 40, 60])
def test_what_is_being_written_is_not_shown(teller, figures, folder, at):
    """What was said before holds until all of it is there."""
    said = [IN_FLIGHT.sample(1)]
    process = teller(said)
    process.tell(A)
    before = shown(figures)
    (file,) = folder.glob("*.figures")
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)

    assert shown(figures) == before == [(IN_FLIGHT.name, 1)]


def test_a_killed_process_leaves_what_it_has_counted(folder, figures, clock):
    """A counter does not go down; what held at the moment holds no more. Its file is removed."""

    def work(count):
        told = [IN_FLIGHT.sample(1), LATE.sample(count)]
        FiguresTeller(folder, lambda: told, clock).tell(f"{count:016}")
        os.kill(os.getpid(), signal.SIGKILL)

    exit_code_of_child(lambda: work(3))
    exit_code_of_child(lambda: work(4))

    assert shown(figures) == [(LATE.name, 7)]
    assert [*folder.glob("*.figures")] == []
    assert shown(figures) == [(LATE.name, 7)]


def test_of_a_silent_process_only_what_it_has_counted_is_shown(teller, figures, clock):
    """It may hang as a whole, and speak again."""
    process = teller([IN_FLIGHT.sample(1), LATE.sample(3)])
    process.tell(A)
    figures.look()
    clock.now_s += SILENT_AFTER_S + 0.1
    silent = shown(figures)
    process.tell(A)

    assert silent == [(LATE.name, 3)]
    assert len(shown(figures)) == 2


def test_a_process_whose_clock_stands_is_heard(folder, figures, clock):
    """It lives while it speaks."""
    process = FiguresTeller(folder, lambda: [IN_FLIGHT.sample(1)], lambda: 1_000.0)
    for _ in range(3):
        process.tell(A)
        assert shown(figures) == [(IN_FLIGHT.name, 1)]
        clock.now_s += SILENT_AFTER_S - 0.1
    process.forked()


@pytest.mark.parametrize("step_s", [86_400.0, -86_400.0, 10**9, -(10**9)])
def test_a_process_whose_clock_is_another_is_silent_when_it_is(figures, clock, folder, step_s):
    """Its figures are shown while it speaks, and no longer, whatever time it takes it to be."""
    process = FiguresTeller(folder, lambda: [IN_FLIGHT.sample(1)], lambda: clock.now_s + step_s)
    process.tell(A)
    speaking = shown(figures)
    clock.now_s += SILENT_AFTER_S + 0.1

    assert speaking == [(IN_FLIGHT.name, 1)]
    assert shown(figures) == []
    process.forked()


def test_a_forked_child_speaks_for_itself(teller, figures, folder):
    """And holds nothing of its parent's: that one is gone when it is gone."""
    process = teller([IN_FLIGHT.sample(1)])
    process.tell(A)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            process.tell(B)
            os.close(writing)
            os.read(reading, 1)
        finally:
            os._exit(0)
    os.close(reading)
    both = until(lambda: len(shown(figures)) == 2)
    process.forked()  # as the kernel does at its end
    alone = shown(figures)
    os.close(writing)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

    assert both
    assert alone == [(IN_FLIGHT.name, 1)]
    assert shown(figures) == []


def test_it_speaks_from_its_first_event_to_its_end(teller, figures):
    """Its last words are those of its end; and it begins once."""
    said = [LATE.sample(1)]
    process = teller(said)
    process.begin(A)
    process.begin(A)
    begun = until(lambda: shown(figures) == [(LATE.name, 1)])
    said[:] = [LATE.sample(2)]
    process.close(10.0)

    assert begun
    assert until(lambda: shown(figures) == [(LATE.name, 2)])


def test_figures_that_cannot_be_read_cost_nothing_else(folder, teller, figures):
    """Of another release, say."""
    teller([LATE.sample(1)]).tell(A)
    (folder / f"{B}.figures").write_bytes(b"something else")

    assert shown(figures) == [(LATE.name, 1)]
