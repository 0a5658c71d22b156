"""A person's two requests on the site: the export and the erasure; and a memory's withdrawal."""

from __future__ import annotations

import dataclasses
import html
import json
import re
import subprocess
import sys
import threading
from textwrap import dedent
from zipfile import ZipFile

import pytest
from langgraph.store.memory import InMemoryStore

from mnemoscope.adapters.console import ProxySignIn, Right, build_console
from mnemoscope.memory import context
from tests.kit.console_browser import Browser
from tests.kit.patience import GIVE_UP_S, until

ADA, BOB, TENANT = "c-ada", "c-bob", "acme"


@pytest.fixture
def scope(scoped):
    """A scope whose trail the site shows."""
    return scoped()


@pytest.fixture
def store(scope):
    """A store with a memory of Ada's, which a run of hers recalled, and one of Bob's."""
    plain = InMemoryStore()
    guarded = scope.store(plain, customer_at=1)
    with context(tenant=TENANT, customer=ADA, run="r-1", agent="sales", purpose="support"):
        guarded.put(("profiles", ADA), "likes", {"text": "likes marzipan in her porridge"})
        guarded.get(("profiles", ADA), "likes")
    with context(tenant=TENANT, customer=BOB, run="r-2"):
        guarded.put(("profiles", BOB), "likes", {"text": "likes liquorice in his tea"})
    assert scope.flush()
    yield plain
    del guarded  # it takes part while somebody has it


@pytest.fixture
def site(site, scope, store):
    """The site with the scope's stores."""
    return dataclasses.replace(site, scope=scope)


def words(page):
    """Return what a page says, without its markup."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page.text)).split())


def look_up(browser, customer=ADA, **fields):
    """Return the path under which somebody is shown."""
    page = browser.submit("/person", customer=customer, **fields)
    assert page.status_code == 200, words(page)
    return page.url.path


def done(browser, page):
    """Return the page of some work once it has ended."""
    pages = [page]

    def has_ended():
        pages.append(browser.get(page.url.path))
        return 'http-equiv="refresh"' not in pages[-1].text

    assert until(has_ended)
    return pages[-1]


def file_of(browser, page):
    """Return the file that some work has made."""
    answer = browser.get(f"{page.url.path}/file")
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    return answer.content


def sealed(log, prefix):
    """Return name and data of sealed events about the log that begin so, oldest first."""
    with log.reading() as snapshot:
        rows = snapshot.execute(
            "SELECT operation, header FROM audit_event WHERE kind = 'log' ORDER BY seq"
        ).fetchall()
    return [
        (name, json.loads(bytes(header))["data"])
        for name, header in rows
        if name.startswith(prefix)
    ]


def erase(browser, customer=ADA):
    """Look somebody up, erase them, and return the page that says what came of it."""
    path = look_up(browser, customer)
    return done(browser, browser.submit(f"{path}/erase", phrase=f"erase {customer}"))


class TestStoresAlone:
    def test_whom_only_a_store_knows_is_found_there(self, browser, store):
        """Written past mnemoscope, or before it: export and erasure have them all the same."""
        store.put(("profiles", "c-eve"), "likes", {"text": "likes gooseberries on toast"})
        store.put(("profiles", "c-eve"), "likes too", {"text": "likes quinces on toast"})

        page = browser.submit("/person", customer="c-eve")
        ended = erase(browser, "c-eve")

        assert "found in live stores alone" in words(page)
        assert "Forgotten." in words(ended)
        assert store.search(("profiles", "c-eve")) == []

    def test_a_store_that_hangs_keeps_nobody_waiting(self, site, tokens, monkeypatch, store):
        """An id that the trail does not know is looked for there, for so many seconds."""
        released = threading.Event()
        search = InMemoryStore.batch

        def hangs(self, ops):
            released.wait(GIVE_UP_S)
            return search(self, ops)

        with monkeypatch.context() as patched:
            patched.setattr(InMemoryStore, "batch", hangs)
            hasty = dataclasses.replace(site, answer_s=0.05)
            with Browser(build_console(hasty)) as browser:
                browser.get("/sign-in", params={"token": tokens[-1]})
                known = browser.submit("/person", customer=ADA)
                unknown = browser.submit("/person", customer="c-nil")
            released.set()

        assert known.status_code == 200
        assert unknown.status_code == 503
        assert "The stores do not answer" in words(unknown)


class TestExport:
    def test_it_is_the_bundle_of_the_command(self, browser, log, tmp_path):
        """Trail and stores, with proofs that its own verify.py checks."""
        page = browser.submit(f"{look_up(browser)}/export")
        bundle = tmp_path / "bundle.zip"
        bundle.write_bytes(file_of(browser, done(browser, page)))

        with ZipFile(bundle) as opened:
            manifest = json.loads(opened.read("manifest.json"))
            opened.extract("verify.py", tmp_path)
            memories = opened.read("memories.jsonl").decode()
        checked = subprocess.run(
            [sys.executable, str(tmp_path / "verify.py"), str(bundle)],
            capture_output=True,
            timeout=GIVE_UP_S,
            check=False,
        )

        assert checked.returncode in {0, 3}, checked.stderr  # 3: nothing states Art. 15
        assert "marzipan" in memories
        assert "liquorice" not in memories
        assert manifest["stores"]

    def test_the_site_is_no_store_that_was_not_asked(self, browser, tmp_path):
        """It has looked, and holds nothing: the bundle says the one, and is as whole as without."""
        page = done(browser, browser.submit(f"{look_up(browser)}/export"))
        (tmp_path / "bundle.zip").write_bytes(file_of(browser, page))

        with ZipFile(tmp_path / "bundle.zip") as opened:
            manifest = json.loads(opened.read("manifest.json"))
            recipients = json.loads(opened.read("recipients.json"))

        assert "not asked" not in words(page)
        assert "console" not in {each["name"] for each in manifest["stores"]}
        received = {each["name"]: each["received"] for each in recipients["stores"]}
        assert received["console"] == "what its pages showed"

    def test_no_folder_of_the_server_is_shown(self, browser):
        """The file is named as it is downloaded."""
        page = done(browser, browser.submit(f"{look_up(browser)}/export"))

        assert "mnemoscope-console-" not in page.text

    def test_it_is_sealed_before_and_after(self, browser, log):
        """Who asked is in the person's own history; what came of it, in the log's events."""
        done(browser, browser.submit(f"{look_up(browser)}/export"))
        names = [name for name, _data in sealed(log, "privacy.export")]
        looks = [each.purpose for each in log.history(ADA, TENANT) if each.store == "console"]

        assert names == ["privacy.export.requested", "privacy.export.completed"]
        assert "export" in looks

    def test_what_is_missing_is_said(self, browser, monkeypatch):
        """As on the terminal: what only the controller knows."""
        monkeypatch.delenv("MNEMOSCOPE_NOTICE", raising=False)

        page = done(browser, browser.submit(f"{look_up(browser)}/export"))

        assert "not stated, for want of --notice: controller.name" in words(page)

    def test_a_notice_that_is_wrong_is_said_and_nothing_is_made(
        self, browser, monkeypatch, tmp_path
    ):
        """Its name and what is wrong with it."""
        (tmp_path / "notice.json").write_text("[]")
        monkeypatch.setenv("MNEMOSCOPE_NOTICE", str(tmp_path / "notice.json"))

        page = done(browser, browser.submit(f"{look_up(browser)}/export"))

        assert "expected an object with controller" in words(page)
        assert browser.get(f"{page.url.path}/file").status_code == 404

    def test_a_file_is_of_one_session(self, site, browser, tokens):
        """Nobody else takes it away, with the address or without."""
        page = done(browser, browser.submit(f"{look_up(browser)}/export"))
        with Browser(build_console(site)) as other:
            other.get("/sign-in", params={"token": tokens[-1]})
            taken = other.get(f"{page.url.path}/file")

        assert taken.status_code == 404


class TestErasure:
    def test_nothing_of_them_is_left_and_there_is_a_receipt(self, browser, log, store, tmp_path):
        """In the store and the trail; another customer's is where it was."""
        page = browser.submit(f"{look_up(browser)}/erase", phrase=f"erase {ADA}")
        ended = done(browser, page)
        receipt = tmp_path / "receipt.zip"
        receipt.write_bytes(file_of(browser, ended))

        with ZipFile(receipt) as opened:
            manifest = json.loads(opened.read("manifest.json"))
        assert "Forgotten." in words(ended)
        assert store.search(("profiles", ADA)) == []
        assert len(store.search(("profiles", BOB))) == 1
        assert manifest["subject"]["identities"] == [ADA]
        assert browser.submit("/person", customer=ADA).status_code == 404
        names = [name for name, _data in sealed(log, "privacy.erase")]
        assert names == [f"privacy.erase.{each}" for each in ("requested", "completed", "closed")]

    @pytest.mark.parametrize("phrase", ["", "erase", f"erase {BOB}", f"ERASE {ADA}", ADA])
    def test_another_phrase_changes_nothing(self, browser, log, store, phrase):
        """It names the person: the tab may be another one's than its reader thinks."""
        refused = browser.submit(f"{look_up(browser)}/erase", phrase=phrase)

        assert refused.status_code == 400
        assert len(store.search(("profiles", ADA))) == 1
        assert sealed(log, "privacy.erase") == []

    def test_who_may_see_may_not_erase(self, site, log, store):
        """Neither the page nor the form; the link is not there."""
        people = {"bea": frozenset({Right.SEE, Right.DECIDE})}
        proxy = ProxySignIn(header="x-user", people=people, addresses=frozenset({"testclient"}))
        entrance = dataclasses.replace(site.entrance, token=None, proxy=proxy)
        app = build_console(dataclasses.replace(site, entrance=entrance))
        with Browser(app, headers={"x-user": "bea"}) as browser:
            path = look_up(browser)
            page, form = browser.get(path), browser.get(f"{path}/erase")
            refused = browser.submit(f"{path}/erase", phrase=f"erase {ADA}")

        assert "/erase" not in page.text
        assert (form.status_code, refused.status_code) == (403, 403)
        assert len(store.search(("profiles", ADA))) == 1

    def test_twice_at_once_is_one_erasure(self, browser, log, scope, store, monkeypatch):
        """Whoever asks while it is under way is shown the one that is."""
        begun, released = threading.Event(), threading.Event()
        settle = type(scope).flush

        def waits(self, *args, **given):
            begun.set()
            released.wait(GIVE_UP_S)
            return settle(self, *args, **given)

        path = look_up(browser)
        monkeypatch.setattr(type(scope), "flush", waits)
        try:
            first = browser.submit(f"{path}/erase", phrase=f"erase {ADA}")
            assert begun.wait(GIVE_UP_S)
            second = browser.submit(f"{path}/erase", phrase=f"erase {ADA}")
        finally:
            released.set()
        pages = [done(browser, each) for each in (first, second)]

        assert all("Forgotten." in words(each) for each in pages)
        assert [name for name, _data in sealed(log, "privacy.erase.requested")] == [
            "privacy.erase.requested"
        ]
        assert len(sealed(log, "privacy.erase.completed")) == 1

    def test_who_is_gone_is_not_made_known_again(self, browser, log):
        """A look that is sealed about somebody who was erased would be all that is known."""
        path = look_up(browser)
        done(browser, browser.submit(f"{path}/erase", phrase=f"erase {ADA}"))

        again = [browser.get(f"{path}{each}") for each in ("", "/history", "/erase")]
        post = browser.submit(f"{path}/erase", phrase=f"erase {ADA}")

        assert [each.status_code for each in (*again, post)] == [410] * 4
        assert log.subjects.resolve(ADA, TENANT) is None

    def test_a_store_that_fails_is_named_and_the_next_time_goes_on(
        self, browser, log, store, monkeypatch
    ):
        """No receipt until nothing is left; the trail has the incomplete end, too."""
        answer = InMemoryStore.batch

        def down(self, ops):
            if any(getattr(each, "value", 0) is None for each in ops):
                raise ConnectionError("c-ada's store is down")
            return answer(self, ops)

        with monkeypatch.context() as patched:
            patched.setattr(InMemoryStore, "batch", down)
            first = erase(browser)
        second = erase(browser)

        assert "Not forgotten yet." in words(first)
        assert "c-ada's store" not in first.text
        assert browser.get(f"{first.url.path}/file").status_code == 404
        assert "Forgotten (resumed)." in words(second)
        requests = {data["request"] for _name, data in sealed(log, "privacy.erase")}
        assert len(requests) == 1

    def test_a_receipt_that_cannot_be_written_is_made_the_next_time(
        self, browser, log, monkeypatch, tmp_path
    ):
        """Nobody is known by then but the request: a look at it makes nobody known again."""
        with monkeypatch.context() as patched:
            patched.setattr("tempfile.mkdtemp", lambda **_given: str(tmp_path / "no" / "folder"))
            first = erase(browser)
        path = look_up(browser)
        shown = browser.get(path)
        known = log.subjects.resolve(ADA, TENANT)
        second = erase(browser)

        assert "no receipt could be written" in words(first)
        assert "An erasure of them is under way" in words(shown)
        assert known is None
        assert "Forgotten (resumed)." in words(second)
        assert file_of(browser, second)

    def test_a_receipt_stays_however_many_pages_are_looked_at(self, browser, store):
        """It is all that a customer has of their erasure."""
        page = erase(browser)
        for _ in range(40):
            browser.get("/runs")

        assert file_of(browser, page)

    @pytest.mark.parametrize("vouched", [False, True], ids=["form", "operator"])
    def test_of_stores_that_tenants_share_a_site_of_one_takes_nothing(
        self, site, tokens, scope, store, vouched
    ):
        """Whoever serves it may say that they are that tenant's alone, and no form."""
        guarded = scope.store(InMemoryStore(), customer_at=1)
        with context(tenant="globex", customer=ADA, run="r-9"):
            guarded.put(("profiles", ADA), "likes gin", {"text": "likes gin"})
        assert scope.flush()
        own = dataclasses.replace(site, tenant=TENANT, own_stores=vouched)
        with Browser(build_console(own)) as browser:
            browser.get("/sign-in", params={"token": tokens[-1]})
            path = look_up(browser, own_stores="on")
            page = done(browser, browser.submit(f"{path}/erase", phrase=f"erase {ADA}"))

        assert ("Forgotten." in words(page)) is vouched
        assert len(store.search(("profiles", ADA))) == (0 if vouched else 1)

    def test_without_stores_the_command_is_said(self, site, tokens, store):
        """Whole, quoted as a shell needs it; and nothing is erased."""
        bare = dataclasses.replace(site, scope=None)
        with Browser(build_console(bare)) as browser:
            browser.get("/sign-in", params={"token": tokens[-1]})
            path = look_up(browser, tenant=TENANT, exact="on")
            said = words(browser.get(f"{path}/erase"))
            refused = browser.submit(f"{path}/erase", phrase=f"erase {ADA}")

        command = f"mnemoscope audit erase --customer {ADA} --tenant {TENANT} --exact --scope"
        assert "This site has no stores, so it can erase nothing" in said
        assert command in said
        assert refused.status_code == 409
        assert len(store.search(("profiles", ADA))) == 1


PROCESS = """
    import sqlite3, sys, time
    from pathlib import Path

    from langgraph.store.sqlite import SqliteStore

    from mnemoscope.adapters.console import Entrance, OneTimeToken, Sessions, Site, build_console
    from mnemoscope.memory import Mnemoscope, context, load_settings
    from tests.kit.console_browser import ORIGIN, Browser

    here, number = Path(sys.argv[1]), sys.argv[2]
    settings = load_settings(
        audit_url=f"sqlite:///{here}/audit.db", audit_pseudonym_key="ab" * 32,
        audit_spool=here / f"spool-{number}", sinks="audit", pii_model="none",
    )
    scope = Mnemoscope(settings)
    connection = sqlite3.connect(
        here / "store.db", check_same_thread=False, isolation_level=None, timeout=60
    )
    plain = SqliteStore(connection)
    plain.setup()
    guarded = scope.store(plain, customer_at=1)
    if number == "0":
        with context(tenant="acme", customer="c-ada", run="r-1"):
            guarded.put(("profiles", "c-ada"), "likes", {"text": "likes marzipan in her porridge"})
        scope.close()
        sys.exit()
    tokens = []
    entrance = Entrance(
        origins=frozenset({ORIGIN}), who="grace", token=OneTimeToken(tokens.append)
    )
    site = Site(
        log=scope.audit, scope=scope, entrance=entrance, sessions=Sessions(time.monotonic),
        look_step_s=0.0,
    )
    with Browser(build_console(site)) as browser:
        browser.get("/sign-in", params={"token": tokens[-1]})
        path = browser.submit("/person", customer="c-ada").url.path
        csrf = browser.csrf()
        print("ready", flush=True)
        sys.stdin.readline()
        page = browser.post(
            f"{path}/erase", data={"csrf": csrf, "phrase": "erase c-ada"},
            headers={"origin": ORIGIN},
        )
        while 'http-equiv="refresh"' in page.text:
            time.sleep(0.02)
            page = browser.get(page.url.path)
        print(page.status_code, " ".join(page.text.split()), flush=True)
    scope.close()
"""


class TestTwoProcesses:
    @pytest.mark.long
    def test_two_sites_erase_somebody_once(self, log, tmp_path):
        """One request, one proof and one end are sealed, whoever came first."""
        program = [sys.executable, "-c", dedent(PROCESS), str(tmp_path)]
        subprocess.run([*program, "0"], check=True, timeout=GIVE_UP_S)
        both = [
            subprocess.Popen(
                [*program, number], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            for number in "12"
        ]
        for each in both:
            assert each.stdout.readline() == "ready\n"
        for each in both:  # both stand before the button
            each.stdin.write("\n")
            each.stdin.flush()
        said = [each.communicate(timeout=GIVE_UP_S)[0] for each in both]

        found = sealed(log, "privacy.erase")
        names = [name.rpartition(".")[2] for name, _data in found]
        assert any("Forgotten" in each for each in said)
        assert all(
            "Forgotten" in each or "another run has erased" in each or each.startswith("410")
            for each in said
        ), said
        assert len({data["request"] for _name, data in found}) == 1
        assert [names.count(each) for each in ("requested", "completed", "closed")] == [1, 1, 1]


class TestWithdrawal:
    def test_a_memory_is_taken_out(self, browser, log, store):
        """And what was written after it, where that is what was typed."""
        page = browser.submit("/radius", memory="likes", collection=collection_of(log))
        work = browser.submit(f"{page.url.path}/withdraw", phrase="withdraw 1 memory")

        assert "Withdrawn: none is left." in words(done(browser, work))
        assert store.search(("profiles", ADA)) == []
        assert len(store.search(("profiles", BOB))) == 1
        assert [name for name, _data in sealed(log, "memory.withdraw")] == [
            "memory.withdraw.requested",
            "memory.withdraw.completed",
        ]

    def test_another_number_of_memories_is_another_phrase(self, browser, log, store):
        """What was reached since the page was shown is not withdrawn unseen."""
        page = browser.submit("/radius", memory="likes", collection=collection_of(log))
        refused = browser.submit(f"{page.url.path}/withdraw", phrase="withdraw 2 memories")

        assert refused.status_code == 400
        assert len(store.search(("profiles", ADA))) == 1


def collection_of(log):
    """Return the place of Ada's memory, as the trail has it."""
    (row,) = (each for each in log.history(ADA, TENANT) if each.method == "put")
    return row.collection
