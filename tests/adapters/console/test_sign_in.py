"""The console's sign-in: tokens, sessions, and people whom a proxy names."""

from __future__ import annotations

import pytest

from mnemoscope.adapters.console import Right
from tests.kit.console_browser import ORIGIN


def test_a_token_signs_in_once_and_stays_in_no_address(stranger, tokens):
    """It is exchanged for a cookie by one redirect, and the next token is another one."""
    token = tokens[-1]

    entered = stranger.get("/sign-in", params={"token": token}, follow_redirects=False)
    replayed = stranger.get("/sign-in", params={"token": token}, follow_redirects=False)

    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert replayed.status_code == 403
    assert tokens[-1] != token


def test_a_look_at_the_address_uses_no_token_up(stranger, tokens):
    """A scanner of links asks by HEAD."""
    token = tokens[-1]
    looked = stranger.head("/sign-in", params={"token": token}, follow_redirects=False)
    entered = stranger.get("/sign-in", params={"token": token}, follow_redirects=False)

    assert "set-cookie" not in looked.headers
    assert entered.status_code == 303


def test_a_token_can_be_typed(stranger, tokens):
    """The form takes it in a body, so that it never was in an address."""
    answer = stranger.post("/sign-in", data={"token": tokens[-1]}, headers={"origin": ORIGIN})

    assert answer.status_code == 200
    assert "Nothing waits" in answer.text


def test_nobody_gets_in_without_signing_in(stranger):
    """Every page leads to the sign-in."""
    answer = stranger.get("/", follow_redirects=False)

    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in")


def test_signing_out_ends_the_session(browser):
    """The cookie of before opens nothing, even if it is sent again."""
    cookie = dict(browser.cookies)
    browser.submit("/sign-out")
    browser.cookies.update(cookie)

    assert browser.get("/", follow_redirects=False).status_code == 303


def test_a_session_ends_without_requests(browser, clock):
    """After fifteen minutes."""
    clock.now_s += 899
    assert browser.get("/", follow_redirects=False).status_code == 200
    clock.now_s += 900

    assert browser.get("/", follow_redirects=False).status_code == 303


def test_a_session_ends_in_any_case(browser, clock):
    """After eight hours, however often it is used."""
    for _ in range(40):
        clock.now_s += 719
        assert browser.get("/", follow_redirects=False).status_code == 200
    clock.now_s += 719

    assert browser.get("/", follow_redirects=False).status_code == 303


@pytest.mark.parametrize("is_work", [False, True])
def test_a_kept_result_that_is_false_is_there(site, is_work):
    """Nothing found is something that was kept, and no handle that nobody gave."""
    _secret, session = site.sessions.begin("grace@example.com", frozenset(Right))

    assert session.kept(session.keep((), is_work=is_work)) == ()
    assert session.kept("guessed") is None
