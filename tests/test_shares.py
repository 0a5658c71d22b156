"""Long tests: the cases that stay short, and the shares of which each day has another."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest

pytest_plugins = ["pytester"]

NUMBERS = """
import pytest

@pytest.mark.parametrize("number", range(30))
def test_it(number): ...
"""

# pytest-asyncio warns where its scope of loops is not said, and warnings are errors here.
WITH = ("-p", "tests.kit.long_tests", "-p", "no:asyncio")


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Give a folder that has thirty tests."""
    pytester.makepyfile(test_numbers=NUMBERS)
    return pytester


def collected(suite: pytest.Pytester, *given: str) -> list[str]:
    """Return the tests that pytest would run with these options."""
    done = suite.runpytest_inprocess("--collect-only", "-q", *WITH, *given)
    return [each for each in done.outlines if "::" in each]


def test_each_test_is_in_one_share(suite: pytest.Pytester) -> None:
    """Three shares have each test once, and no share has all."""
    shares = [collected(suite, "--share", f"{share}/3") for share in range(3)]

    assert Counter(chain.from_iterable(shares)) == Counter(collected(suite))
    assert 0 < max(map(len, shares)) < 30


def test_a_share_that_is_not_there_is_refused(suite: pytest.Pytester) -> None:
    """The fourth of three shares ends pytest with the exit code of a wrong option."""
    done = suite.runpytest_inprocess(*WITH, "--share", "3/3")

    assert done.ret == pytest.ExitCode.USAGE_ERROR


LONG = NUMBERS.replace("@pytest", "@pytest.mark.long_but_each(10)\n@pytest", 1)


def test_each_nth_case_of_a_long_test_is_short(pytester: pytest.Pytester) -> None:
    """The first, the eleventh and the twenty-first of thirty; a long run has all of them."""
    pytester.makepyfile(test_numbers=LONG)
    short = collected(pytester, "-m", "not long")

    assert [each.partition("::")[2] for each in short] == [f"test_it[{n}]" for n in (0, 10, 20)]
    assert len(collected(pytester, "-m", "long or short")) == 30
