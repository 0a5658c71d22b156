"""The states of a thread that others need: no thread is damaged by what goes of it."""

from __future__ import annotations

from mnemoscope.adapters.langgraph.checkpoint import keep_set


def state(name, parent=None, *, namespace="", held=(), replayed=(), resets=(), roots=(), version=4):
    """Return a state of that name."""
    return keep_set.SavedState(
        key=(namespace, name),
        parent=None if parent is None else (namespace, parent),
        roots=tuple(("", root) for root in roots),
        held=frozenset(held),
        replayed=frozenset(replayed),
        resets=frozenset(resets),
        version=version,
        status=keep_set.ThreadStatus.DONE,
    )


def stays(states, *going):
    """Return the names of those of *going* that stay."""
    keys = {each.key for each in states if each.key[1] in going}
    return {name for _namespace, name in keep_set.needed(states, keys)}


def chain(length, **of):
    """Return states 1 to *length*, each made from the one before; *of* are fields by name."""
    names = [str(number) for number in range(1, length + 1)]
    parents = [None, *names[:-1]]
    pairs = zip(names, parents, strict=True)
    return [state(name, parent, **of.get(f"s{name}", {})) for name, parent in pairs]


def test_states_that_hold_their_values_need_none():
    """All but the newest may go."""
    states = chain(4)

    assert stays(states, "1", "2", "3") == set()
    assert stays(states, "1", "2", "3", "4") == {"4"}


def test_a_delta_channel_needs_the_states_back_to_its_value():
    """Its value is replayed from the writes to them."""
    of = {f"s{n}": {"replayed": ["messages"]} for n in (2, 4, 5)}
    states = chain(5, s3={"held": ["messages"]}, **of)

    assert stays(states, "1", "2", "3", "4") == {"3", "4"}


def test_without_a_value_all_before_it_stay():
    """The channel begins empty at the first."""
    states = chain(4, **{f"s{n}": {"replayed": ["messages"]} for n in (2, 3, 4)})

    assert stays(states, "1", "2", "3") == {"1", "2", "3"}


def test_a_reset_ends_what_is_needed():
    """What was before it is no part of the value any more."""
    of = {f"s{n}": {"replayed": ["messages"]} for n in (2, 4, 5)}
    states = chain(5, s3={"replayed": [], "resets": ["messages"]}, **of)

    assert stays(states, "1", "2", "3", "4") == {"3", "4"}


def test_each_channel_is_followed_by_itself():
    """One ends at its value, the other goes on."""
    both = {"replayed": ["a", "b"]}
    states = chain(4, s1={"held": ["b"]}, s2={"replayed": ["b"], "held": ["a"]}, s3=both, s4=both)

    assert stays(states, "1", "2", "3") == {"1", "2", "3"}
    assert stays(states[1:], "2", "3") == {"2", "3"}


def test_the_base_of_a_fork_stays_while_its_branches_do():
    """Whoever looks at the fork finds where it began; of one branch it is no base any more."""
    states = [*chain(3), state("4", "2")]

    assert stays(states, "1", "2") == {"2"}
    assert stays(states, "1", "2", "3") == set()


def test_a_subgraph_that_outlives_its_calls_keeps_its_newest():
    """It is asked for again by the next run."""
    states = [*chain(2), state("a", namespace="child"), state("b", "a", namespace="child")]

    assert stays(states, "1", "a", "b") == {"b"}


def test_a_call_of_a_subgraph_goes_with_the_state_that_made_it():
    """And stays with it, the state that made it likewise."""
    states = [*chain(3), state("a", namespace="child:1", roots=["1"])]

    assert stays(states, "1", "2", "a") == set()
    assert stays(states, "2", "a") == {"a"}
    assert stays(states, "1", "2") == {"1"}


def test_states_of_earlier_versions_need_the_one_before():
    """It has the tasks that were sent."""
    states = chain(3, s3={"version": 3})

    assert stays(states, "1", "2") == {"2"}
