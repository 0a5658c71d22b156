"""Attacks on the console, each as an attacker would make it, and each refused."""

from __future__ import annotations

import time
from dataclasses import replace

import anyio
import pytest
from starlette.responses import PlainTextResponse

from mnemoscope.adapters.console import ProxySignIn, Right, build_console
from tests.kit.console_browser import ORIGIN, Browser
from tests.kit.held_writes import Quarantine, held_write

ELSEWHERE = "https://evil.example"
OURS = {"origin": ORIGIN}
DECISION = {"choice": "approve", "why": ""}


@pytest.fixture
def approval(scoped):
    """A write that waits, which every forged request is to approve."""
    return held_write(scoped(Quarantine()))


@pytest.fixture
def waits(browser):
    """Return a function that says whether the write still waits."""
    return lambda: "likes marzipan" in browser.get("/").text


def forged(browser, approval, headers=OURS, **fields):
    """Post a decision as another site makes a browser do it."""
    data = {**DECISION, "approval": approval, **fields}
    return browser.post("/decide", data=data, headers=headers, follow_redirects=False)


@pytest.mark.parametrize("fields", [{}, {"csrf": ""}, {"csrf": "x" * 43}], ids=str)
def test_a_form_without_the_sessions_token_decides_nothing(browser, approval, waits, fields):
    """CSRF with a cookie alone, an empty token, a made-up token."""
    assert forged(browser, approval, **fields).status_code == 403
    assert waits()


def test_a_token_of_another_session_decides_nothing(browser, approval, waits, site, tokens):
    """An attacker who may sign in has a token of their own, for nobody else."""
    with Browser(build_console(site)) as attacker:
        attacker.get("/sign-in", params={"token": tokens[-1]})
        theirs = attacker.csrf()

    assert forged(browser, approval, csrf=theirs).status_code == 403
    assert waits()


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": ELSEWHERE},
        {"origin": ORIGIN, "sec-fetch-site": "cross-site"},
        {"origin": "null"},
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": f"{ORIGIN}.evil.example"},
        {"origin": ORIGIN.replace("8765", "8766"), "sec-fetch-site": "same-site"},
        {"referer": ORIGIN},
    ],
    ids=str,
)
def test_a_request_of_another_site_decides_nothing(browser, approval, waits, headers):
    """Even with the right token: by Origin and Sec-Fetch-Site, where one is missing by both."""
    answer = forged(browser, approval, headers=headers, csrf=browser.csrf())

    assert answer.status_code == 403
    assert waits()


def test_a_browser_that_hides_the_origin_of_our_own_page_decides(browser, approval, waits):
    """Under no-referrer it says null, and that the request is of the same site."""
    headers = {"origin": "null", "sec-fetch-site": "same-origin"}

    assert forged(browser, approval, headers=headers, csrf=browser.csrf()).status_code == 303
    assert not waits()


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "multipart/form-data", ""])
def test_a_body_that_is_no_form_decides_nothing(browser, approval, waits, kind):
    """The kinds that other sites can send without asking first, and those that hold objects."""
    body = f"csrf={browser.csrf()}&approval={approval}&choice=approve"

    answer = browser.post("/decide", content=body, headers={**OURS, "content-type": kind})

    assert answer.status_code == 400
    assert waits()


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_another_method_decides_nothing(browser, approval, waits, method):
    """Nor by an address, as a link or a picture has it."""
    fields = {**DECISION, "approval": approval, "csrf": browser.csrf()}

    answer = browser.request(method, "/decide", params=fields, headers=OURS)

    assert answer.status_code == 405
    assert waits()


@pytest.mark.parametrize(
    "override", [{"x-http-method-override": "POST"}, {"x-method-override": "POST"}], ids=str
)
def test_a_method_is_not_overridden(browser, approval, waits, override):
    """Neither by a header nor by a field."""
    fields = {**DECISION, "approval": approval, "csrf": browser.csrf(), "_method": "POST"}

    assert browser.get("/decide", params=fields, headers=override).status_code == 405
    assert waits()


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "' autofocus onfocus=alert(1) x='",
        "</div></main><form action=//evil.example><input name=token>",
        "<style>@import '//evil.example'</style>",
        "{{ session.csrf }}{% include 'base.html' %}",
    ],
)
def test_a_memory_is_text_and_nothing_else(browser, scoped, text):
    """Markup, attributes, forms, styles and templates in a memory are shown as they are written."""
    before = browser.get("/").text.count("<")
    held_write(scoped(Quarantine()), "a b c")
    plain = browser.get("/").text.count("<") - before
    held_write(scoped(Quarantine()), text, "other")

    page = browser.get("/").text

    assert page.count("<") - before == 2 * plain
    assert (
        browser.csrf() not in page.partition("a b c")[2].partition("<h3")[0].partition("<form")[0]
    )
    assert "alert(1)>" not in page


def test_a_memory_turns_and_hides_nothing_around_it(browser, scoped):
    """Characters that reverse what follows, or move a cursor, are shown by their codes."""
    held_write(scoped(Quarantine()), "pay \u202e001 \x1b[2Jto\u2066 bob")

    page = browser.get("/").text

    assert not {"\u202e", "\x1b", "\u2066"} & {*page}
    assert "\\u202e001" in page


@pytest.mark.parametrize(
    "path",
    [
        "/style.css/../../entrance.py",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/templates/base.html",
        "/style.css%00.html",
        "/decided/..%2f..%2fstyle.css",
        "//etc/passwd",
    ],
)
def test_no_path_leads_to_a_file(browser, path):
    """But for the one style sheet, whatever is written in it."""
    answer = browser.get(path)

    assert answer.status_code == 404
    assert "There is no such page." in answer.text


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:8765.evil.example", ""])
def test_another_hosts_name_is_refused(browser, host):
    """DNS rebinding: a name of the attacker's that leads to this machine."""
    answer = browser.get("/", headers={"host": host})

    assert answer.status_code == 421
    assert "Sign out" not in answer.text


def test_no_header_changes_the_address_of_the_site(browser):
    """Neither of a proxy's nor of a cache's."""
    names = ("x-forwarded-host", "x-host", "forwarded", "x-original-url", "x-rewrite-url")
    answer = browser.get("/", headers=dict.fromkeys(names, "host=evil.example"))

    assert answer.status_code == 200
    assert "evil.example" not in answer.text + str(answer.headers)


@pytest.mark.parametrize("path", ["/", "/sign-in", "/style.css", "/nothing", "/decide"])
def test_no_answer_can_be_framed_sniffed_or_kept(browser, path):
    """Errors neither: no script, no frame, no cache, no referrer."""
    for answer in (
        browser.get(path),
        browser.post(path),
        browser.get(path, headers={"host": "evil.example"}),
    ):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy
        assert "script" not in policy
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_a_cookie_of_an_attackers_is_not_made_a_session(site, tokens):
    """Session fixation: whatever cookie a browser had before, sign-in gives it another."""
    with Browser(build_console(site)) as browser:
        browser.cookies.set(site.cookie, "chosen-by-the-attacker", domain="127.0.0.1")
        answer = browser.get("/sign-in", params={"token": tokens[-1]}, follow_redirects=False)
        given = answer.cookies[site.cookie]
        with Browser(build_console(site)) as attacker:
            attacker.cookies.set(site.cookie, "chosen-by-the-attacker", domain="127.0.0.1")
            theirs = attacker.get("/", follow_redirects=False)

    assert given != "chosen-by-the-attacker"
    assert theirs.status_code == 303


def test_signing_in_again_ends_the_session_of_before(browser, site, tokens):
    """Whoever has the earlier cookie is out."""
    earlier = browser.cookies[site.cookie]
    browser.get("/sign-in", params={"token": tokens[-1]})
    with Browser(build_console(site)) as thief:
        thief.cookies.set(site.cookie, earlier, domain="127.0.0.1")

        assert thief.get("/", follow_redirects=False).status_code == 303


@pytest.mark.parametrize("given", ["", " ", "x", "é", "\udc80", "x" * 10_000], ids=ascii)
def test_a_guessed_token_signs_nobody_in(stranger, given):
    """Empty, strange, long: one answer, and no cookie."""
    data = "token=" + "".join(f"%{each:02x}" for each in given.encode("utf-8", "surrogateescape"))
    kind = {"content-type": "application/x-www-form-urlencoded"}

    answer = stranger.post("/sign-in", content=data, headers={**OURS, **kind})

    assert answer.status_code in {400, 403}
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("is_declared", [True, False], ids=["declared", "in pieces"])
def test_a_body_without_end_is_not_read(browser, is_declared):
    """Whether it says its length or comes in pieces without one."""

    def pieces():
        for _ in range(1_000):
            yield b"a" * 1_024

    body = b"a" * 1_024_000 if is_declared else pieces()
    kind = {"content-type": "application/x-www-form-urlencoded"}

    answer = browser.post("/decide", content=body, headers={**OURS, **kind})

    assert answer.status_code in {400, 413}


@pytest.mark.parametrize("length", ["-1", "1e3", "9" * 5_000, "+5", "0x10", ""], ids=len)
def test_a_length_that_is_none_is_refused(browser, length):
    """Two readers would read two lengths."""
    answer = browser.post("/decide", headers={**OURS, "content-length": length})

    assert answer.status_code == 413


@pytest.mark.parametrize(
    "twice",
    [
        [("host", "127.0.0.1:8765"), ("host", "evil.example")],
        [("content-length", "0"), ("content-length", "10")],
        [("content-length", "0"), ("transfer-encoding", "chunked")],
        [("origin", ORIGIN), ("origin", ELSEWHERE)],
        [("cookie", "mnemoscope=a"), ("cookie", "mnemoscope=b")],
    ],
    ids=lambda pairs: pairs[0][0],
)
def test_a_header_is_not_smuggled_in_twice(stranger, twice):
    """Of two of a kind, a proxy may have read one and this site another."""
    answer = stranger.get("/sign-in", headers=twice)

    assert answer.status_code == 400


def test_headers_without_end_are_refused(browser):
    """However many, in sum."""
    headers = {f"x-{number}": "a" * 1_000 for number in range(40)}

    assert browser.get("/", headers=headers).status_code == 431


@pytest.mark.parametrize("way", ["//evil.example", "https://evil.example", "/\\evil.example"])
def test_no_answer_leads_to_another_site(stranger, tokens, way):
    """Open redirects: neither by a field nor by a path."""
    names = ("next", "url", "return", "redirect", "continue")
    entered = stranger.get(
        "/sign-in",
        params={"token": tokens[-1], **dict.fromkeys(names, way)},
        follow_redirects=False,
    )
    elsewhere = stranger.get("/" + way.lstrip("/"), follow_redirects=False)

    assert entered.headers["location"] == "/"
    assert elsewhere.headers.get("location", "/").startswith("/")


@pytest.mark.parametrize(
    "body",
    [b"csrf=%00", b"csrf=%ff", b"csrf=\xff", b"&".join([b"a=1"] * 100), b"a", b"=", b""],
    ids=ascii,
)
def test_a_form_of_anything_is_refused_and_no_fault(browser, body):
    """NUL, no UTF-8, too many fields, none."""
    kind = {"content-type": "application/x-www-form-urlencoded"}

    assert browser.post("/decide", content=body, headers={**OURS, **kind}).status_code in {400, 403}


def test_a_field_with_nul_is_refused(browser):
    """No database takes it as text; PostgreSQL says so in an error."""
    assert browser.submit("/decide", approval="a\0b", choice="approve").status_code == 400


@pytest.fixture
def behind_proxy(site):
    """Return a maker of browsers whose requests come from an address with a proxy's header."""
    people = {
        "ada@example.com": frozenset({Right.SEE, Right.DECIDE}),
        "eve@example.com": frozenset({Right.SEE}),
    }
    proxy = ProxySignIn(header="x-forwarded-user", people=people, addresses=frozenset({"10.0.0.5"}))
    entrance = replace(site.entrance, token=None, proxy=proxy)
    app = build_console(replace(site, entrance=entrance))

    def browse(who, address="10.0.0.5"):
        headers = {} if who is None else {"x-forwarded-user": who}
        return Browser(app, client=(address, 50_000), headers=headers)

    return browse


def test_a_proxy_signs_in_whom_it_names(behind_proxy, approval):
    """With the rights of the list."""
    with behind_proxy("ada@example.com") as browser:
        answer = browser.submit("/decide", approval=approval, choice="approve", why="")

    assert "Recorded" in answer.text


@pytest.mark.parametrize("who", [None, "", "mallory@example.com", "ada@example.com, eve"])
def test_nobody_else_comes_in_by_the_proxy(behind_proxy, who):
    """Neither nobody nor somebody who is not on the list; one answer for all."""
    with behind_proxy(who) as browser:
        answer = browser.get("/")

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_a_proxys_header_of_somebody_else_is_a_forgery(behind_proxy):
    """From an address that is not the proxy's."""
    with behind_proxy("ada@example.com", address="10.0.0.6") as browser:
        assert browser.get("/").status_code == 403


def test_a_proxys_header_is_nothing_where_there_is_no_proxy(stranger):
    """On a site with a token."""
    answer = stranger.get(
        "/", headers={"x-forwarded-user": "ada@example.com"}, follow_redirects=False
    )

    assert answer.status_code == 303


def test_a_client_without_cookies_does_not_fill_the_trail(behind_proxy, log):
    """Each of its requests would be a sign-in, which is sealed: thirty in ten seconds are."""
    with behind_proxy("ada@example.com") as browser:
        codes = []
        for _ in range(32):
            browser.cookies.clear()
            codes.append(browser.get("/").status_code)

    assert codes == [200] * 30 + [429] * 2
    assert sum(row.method == "sign_in" for row in log.rows()) == 30


def test_a_cookie_of_one_person_is_not_anothers(behind_proxy, site):
    """A stolen cookie behind the proxy: it is of whom the proxy names, or ends."""
    with behind_proxy("ada@example.com") as ada:
        cookie = (ada.get("/"), ada.cookies[site.cookie])[1]
    with behind_proxy("eve@example.com") as eve:
        eve.cookies.set(site.cookie, cookie, domain="127.0.0.1")
        csrf = eve.csrf()
        answer = eve.post("/decide", data={"csrf": csrf, **DECISION}, headers=OURS)

    assert answer.status_code == 403
    assert "the right to decide" in answer.text


def test_who_may_only_look_decides_nothing(behind_proxy, approval, waits):
    """Nor is there a form for it."""
    with behind_proxy("eve@example.com") as browser:
        page = browser.get("/").text
        answer = browser.submit("/decide", approval=approval, choice="approve", why="")

    assert "likes marzipan" in page
    assert 'action="/decide"' not in page
    assert answer.status_code == 403
    assert waits()


@pytest.fixture
def looking(site, clock):
    """A browser at a site with a page that looks people up, and fails for one of them."""

    def look(visit):
        if visit.form["who"] == "fails":
            raise KeyError(visit.form["who"])
        return PlainTextResponse(visit.form["who"])

    app = build_console(site)
    app.router.routes.append(
        site.route("/look", look, needs=Right.SEE, method="POST", is_look=True)
    )
    return app


def test_people_are_not_looked_up_without_end(looking, tokens, clock):
    """Enumeration: twenty in ten seconds, of a session."""
    with Browser(looking) as browser:
        browser.get("/sign-in", params={"token": tokens[-1]})
        codes = [browser.submit("/look", who="ada").status_code for _ in range(22)]
        clock.now_s += 11
        later = browser.submit("/look", who="ada").status_code

    assert codes == [200] * 20 + [429] * 2
    assert later == 200


def test_more_sessions_look_up_no_more_people(looking, tokens, site):
    """Over all of them there is a limit too."""
    codes = []
    for _ in range(11):
        with Browser(looking) as browser:
            browser.get("/sign-in", params={"token": tokens[-1]})
            csrf = browser.csrf()
            codes += [
                browser.post("/look", data={"csrf": csrf, "who": "ada"}, headers=OURS).status_code
                for _ in range(20)
            ]

    assert codes == [200] * 200 + [429] * 20


@pytest.mark.parametrize("stands", [False, True], ids=["asyncio", "uvloop"])
def test_how_long_a_look_takes_says_nothing(stands, site, tokens, monkeypatch):
    """It ends on a step of a quarter of a second, whoever was met and whether it failed."""
    if stands:  # the loop's clock, within one round of it
        monkeypatch.setattr(anyio, "current_time", lambda: 7.0)
    slow = replace(site, look_step_s=0.1)

    def look(visit):
        time.sleep(0.03 * len(visit.form["who"]))
        return PlainTextResponse("")

    app = build_console(slow)
    app.router.routes.append(
        slow.route("/look", look, needs=Right.SEE, method="POST", is_look=True)
    )
    with Browser(app) as browser:
        browser.get("/sign-in", params={"token": tokens[-1]})
        csrf = browser.csrf()
        took = []
        for who in ("", "a", "aa"):
            started = time.perf_counter()
            browser.post("/look", data={"csrf": csrf, "who": who}, headers=OURS)
            took.append(time.perf_counter() - started)

    assert min(took) >= 0.1


def test_a_fault_tells_no_value(looking, tokens, capfd):
    """Neither on the page nor in the log: the kind of error and its line."""
    with Browser(looking) as browser:
        browser.get("/sign-in", params={"token": tokens[-1]})
        answer = browser.submit("/look", who="fails")

    said = capfd.readouterr().err
    assert answer.status_code == 500
    assert "KeyError at test_attacks.py" in said
    assert "fails" not in said + answer.text
