"""The page *A person*: who is found, what is shown, and what is sealed of each look."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from mnemoscope.adapters.console import build_console
from mnemoscope.audit import AuditLog
from mnemoscope.memory.api import OperationClass, Redacted, Subject
from tests.kit.console_browser import ORIGIN, Browser

ADA, TENANT = "c-ada", "acme"
WRITE = {"op_class": OperationClass.REMEMBER, "method": "add", "operation": "create_memory"}
HOSTILE = "<script>alert(1)</script> \u202egnp.exe \x1b[2J\x07 <b>Ada</b> & \"'"


@pytest.fixture
def remember(log, event_factory, subject_keys):
    """Return what records a write for somebody."""

    def record(customer, *texts, tenant=TENANT, at_s=1_700_000_000, **given):
        subject = Subject(customer, tenant=tenant, keys=subject_keys)
        log.append(
            [
                event_factory(
                    subject=subject,
                    tenant=tenant,
                    started_ns=(at_s + number) * 10**9,
                    memory_ids=(f"m-{text[:20]}",),
                    content=Redacted({"text": text}),
                    **{"run": "r-1", "agent": "sales", **WRITE, **given},
                )
                for number, text in enumerate(texts)
            ]
        )

    return record


def look_up(browser, customer=ADA, **fields):
    """Return the page to which a look-up leads."""
    return browser.submit("/person", customer=customer, **fields)


def words(page):
    """Return what a page says, without its markup."""
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", page.text)).split())


def looks(log):
    """Return purpose, subject and status of each look that is sealed, oldest first."""
    rows = [each for each in log.rows() if each.store == "console" and each.method != "sign_in"]
    return [(each.purpose, each.subject_uid, each.status.value) for each in rows]


def log_events(log, prefix):
    """Return the names of sealed events about the log that begin so."""
    with log.reading() as snapshot:
        rows = snapshot.execute(
            "SELECT operation FROM audit_event WHERE kind = 'log' ORDER BY seq"
        ).fetchall()
    return [name for (name,) in rows if name.startswith(prefix)]


class TestLookingUp:
    def test_what_is_remembered_and_where_from_is_shown(self, browser, remember):
        """Text, times, store, agent and run, as the command has them."""
        remember(ADA, "likes tea")

        page = look_up(browser)

        assert page.status_code == 200
        said = words(page)
        for each in ("found in tenant acme", "likes tea", "2023-11-14 22:13:20", "sales", "r-1"):
            assert each in said

    def test_no_personal_value_is_in_a_url(self, browser, remember):
        """The id is posted, and the page is under a handle that means nothing."""
        remember(ADA, "likes tea")

        page = look_up(browser)

        assert ADA not in str(page.url)
        links = re.findall('(?:href|action)="([^"]*)"', page.text)
        assert links
        assert not [each for each in links if ADA in each]

    def test_a_handle_is_of_one_session(self, site, browser, remember, tokens):
        """Another session that learns the address sees nobody."""
        remember(ADA, "likes tea")
        path = look_up(browser).url.path

        with Browser(build_console(site)) as other:
            other.get("/sign-in", params={"token": tokens[-1]})
            page = other.get(path)

        assert page.status_code == 404
        assert "tea" not in page.text

    def test_any_spelling_finds_them(self, browser, remember):
        """Only where it is said that all spellings are one person; else it is asked."""
        remember(ADA, "likes tea")

        asked = look_up(browser, "C-ADA", any="on")

        assert "another spelling is included: 'c-ada'" in words(asked)
        assert look_up(browser, "C-ADA").status_code == 404

    @pytest.mark.parametrize(
        "typed", ["C-ADA", "\u201cc\u2011ada\u201d", "mailto:c-ada", "<c-ada>"]
    )
    def test_a_near_spelling_is_offered_and_not_shown(self, browser, remember, typed):
        """Whoever looked says that it is them; of another tenant nobody is offered."""
        remember(ADA, "likes tea")

        asked = look_up(browser, typed)
        elsewhere = look_up(browser, typed, tenant="globex")

        assert asked.status_code == elsewhere.status_code == 404
        assert "Known by a near spelling tenant acme: \u201cc-ada\u201d" in words(asked)
        assert "likes tea" not in asked.text
        assert "near spelling" not in elsewhere.text
        (offered,) = re.findall("<li>(.*?)</li>", asked.text, re.DOTALL)
        form = dict(re.findall('name="([^"]+)" value="([^"]*)"', offered))
        assert "likes tea" in browser.post("/person", data=form, headers={"origin": ORIGIN}).text

    def test_an_address_without_its_tag_is_offered_alone(self, browser, remember):
        """In any spelling it is not taken for theirs."""
        remember("ada@example.com", "likes tea")

        page = look_up(browser, "ada+news@example.com", any="on")

        assert page.status_code == 404
        assert "\u201cada@example.com\u201d" in words(page)

    def test_further_ids_are_the_same_person(self, browser, remember):
        """As --also has it: what is known by either id is on one page."""
        remember(ADA, "likes tea")
        remember("ada@old.example", "likes coffee")

        page = look_up(browser, also="ada@old.example\n")

        assert "likes tea" in page.text
        assert "likes coffee" in page.text

    def test_several_people_of_an_id_are_told_apart(self, browser, remember):
        """They are listed with their tenants; nothing of theirs is shown until one is chosen."""
        remember(ADA, "likes tea")
        remember(ADA, "likes gin", tenant="globex")

        asked = look_up(browser)

        assert asked.status_code == 409
        assert "tenant globex" in words(asked)
        assert "likes" not in asked.text
        assert "likes gin" in look_up(browser, tenant="globex").text
        assert "likes gin" in look_up(browser, any="on").text

    def test_nobody_and_another_tenants_person_have_one_answer(self, browser, remember):
        """Status, words and size: whoever tries ids learns nothing of other tenants."""
        remember(ADA, "likes tea", tenant="globex")

        stranger = look_up(browser, ADA, tenant=TENANT)
        nobody = look_up(browser, "x-nil", tenant=TENANT)

        assert (stranger.status_code, stranger.text) == (nobody.status_code, nobody.text)

    def test_a_site_of_one_tenant_knows_no_other(self, site, tokens, remember):
        """Whatever tenant the form names."""
        import dataclasses

        remember(ADA, "likes tea", tenant="globex")
        own = dataclasses.replace(site, tenant=TENANT)
        with Browser(build_console(own)) as browser:
            browser.get("/sign-in", params={"token": tokens[-1]})
            pages = [look_up(browser, tenant="globex"), look_up(browser, any="on")]

        assert [each.status_code for each in pages] == [404, 404]

    def test_every_look_is_sealed_about_them(self, browser, remember, log):
        """A look at a page, at the history and at recipients; refused ones about nobody."""
        remember(ADA, "likes tea")
        uid = log.subjects.resolve(ADA, TENANT)
        page = look_up(browser)
        browser.get(f"{page.url.path}/history")
        browser.get(f"{page.url.path}/recipients")
        look_up(browser, "x-nil")

        found = looks(log)

        assert found[:3] == [("look", uid, "ok")] * 3
        assert (found[3][0], found[3][2]) == ("look", "denied")
        assert found[3][1] != uid

    def test_a_look_that_cannot_be_sealed_shows_nothing(self, browser, remember, log, monkeypatch):
        """The trail is full, say: then nobody looks at anybody."""
        remember(ADA, "likes tea")
        path = look_up(browser).url.path

        def full(_self, _events):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(AuditLog, "append", full)
        page = browser.get(path)

        assert page.status_code == 503
        assert "tea" not in page.text

    def test_an_empty_id_is_nobodys(self, browser):
        """It would be everybody's in some stores."""
        assert look_up(browser, "  ").status_code == 400


class TestWhatIsShown:
    def test_hostile_text_is_text(self, browser, remember):
        """No tag, no turned line and no control character of a memory's reaches the page."""
        remember(ADA, HOSTILE)

        page = look_up(browser)

        assert "<script>alert" not in page.text
        assert "<b>Ada</b>" not in page.text
        assert not {"\u202e", "\x1b", "\x07"} & set(page.text)
        assert r"\u202egnp.exe" in page.text

    def test_a_hostile_id_is_text(self, browser, remember):
        """It is on the page of its own person, and in the form for several of that id."""
        name = "<img src=x>\u202e"
        remember(name, "likes tea")
        remember(name, "likes gin", tenant="globex")

        pages = [look_up(browser, name), look_up(browser, name, tenant=TENANT)]

        assert [each.status_code for each in pages] == [409, 200]
        assert not [each for each in pages if "<img src" in each.text]

    def test_a_text_of_a_megabyte_is_cut_and_said(self, browser, remember):
        """A page that a browser can show; the export has all of it."""
        remember(ADA, "tea " * 250_000)

        page = look_up(browser)

        assert len(page.text) < 20_000
        assert "and 997,999 more characters" in page.text

    @pytest.mark.long
    def test_ten_thousand_memories_come_in_pages(self, browser, remember):
        """The latest first, fifty at once; the last page has the oldest."""
        remember(ADA, *(f"fact {number:05}" for number in range(10_000)))
        page = look_up(browser)
        last = browser.get(page.url.path, params={"page": "200"})
        beyond = browser.get(page.url.path, params={"page": "9999999999"})

        assert re.findall(r"fact \d+", page.text)[:2] == ["fact 09999", "fact 09998"]
        assert len(re.findall(r"fact \d+", page.text)) == 50
        assert re.findall(r"fact \d+", last.text)[-1] == "fact 00000"
        assert "Page 1 of 200" in beyond.text

    def test_the_state_of_a_day_is_rebuilt(self, browser, remember):
        """At the end of that day, UTC: what was written later is not there."""
        remember(ADA, "likes tea")
        remember("c-other", "x", at_s=1_700_000_000)
        remember(ADA, "likes tea", "likes gin", at_s=1_700_100_000)
        path = look_up(browser).url.path

        then = browser.get(path, params={"as_of": "2023-11-14"})
        wrong = browser.get(path, params={"as_of": "some day"})

        assert "1 remembered at 2023-11-14 23:59:59 UTC" in words(then)
        assert "likes gin" not in then.text
        assert wrong.status_code == 400

    def test_the_history_says_when_and_for_what(self, browser, remember):
        """Purpose, feature and run of each use, and the operator's own looks."""
        remember(ADA, "likes tea")
        recall = {"op_class": OperationClass.RECALL, "method": "search"}
        use = {"purpose": "support", "feature": "reply", "run": "r-2", "at_s": 1_700_000_100}
        remember(ADA, "what do they like?", **recall, **use)
        path = look_up(browser).url.path

        said = words(browser.get(f"{path}/history"))

        assert "2023-11-14 22:15:00 search (mem0) support reply sales r-2" in said
        assert "look (console)" in said

    def test_recipients_are_those_of_the_export(self, browser, remember):
        """Agents and stores, with how many events and when."""
        remember(ADA, "likes tea", "likes gin")
        path = look_up(browser).url.path

        said = words(browser.get(f"{path}/recipients"))

        assert "agents sales" in said
        assert "stores mem0 redacted content, ids 2 2023-11-14 22:13" in said


class TestWithoutAnId:
    """Somebody whom the trail's own word for them names: their number in JSON, or an alias."""

    @pytest.fixture
    def known(self, log, remember):
        """Number and alias of somebody."""
        remember(ADA, "likes tea")
        remember("c-bob", "likes rum", tenant="globex")
        (uid,) = log.person(ADA).uids
        with log.reading() as snapshot:
            (alias,) = [alias for _key, alias, _kind in snapshot.aliases(uid)]
        return {"uid": uid, "alias": alias}

    @pytest.mark.parametrize("what", ["uid", "alias"])
    def test_they_are_found_and_shown(self, browser, known, what):
        """What is remembered, their history and their recipients: all that needs no store."""
        page = look_up(browser, "", reference=known[what])

        assert "likes tea" in page.text
        assert "found in tenant acme" in page.text
        assert "rum" not in page.text
        assert "add" in browser.get(f"{page.url}/history").text
        assert browser.get(f"{page.url}/recipients").status_code == 200

    def test_the_look_is_sealed_about_them(self, browser, known, log):
        """Though nobody has typed an id: it is exported and erased with them."""
        look_up(browser, "", reference=known["uid"])

        assert looks(log) == [("look", known["uid"], "ok")]

    @pytest.mark.parametrize("what", ["export", "erase"])
    def test_stores_are_asked_by_an_id_alone(self, browser, known, what):
        """Neither is offered, and neither is done."""
        page = look_up(browser, "", reference=known["uid"])
        path = f"{page.url.path}/{what}"

        assert path not in page.text
        assert browser.submit(path, phrase="erase ").status_code == 409

    @pytest.mark.parametrize("reference", ["0" * 32, "%", "' OR 1=1 --", "nobody/acme"])
    def test_a_reference_of_nobody_is_nobody(self, browser, known, reference):
        """The same answer as to an id that nobody has."""
        assert known
        unknown = look_up(browser, "c-nobody")

        answer = look_up(browser, "", reference=reference)

        assert answer.status_code == unknown.status_code == 404
        assert words(answer) == words(unknown)

    def test_the_nobody_of_a_tenant_is_no_person(self, browser, known, event_factory, log):
        """What was done in nobody's name has a number too."""
        assert known
        log.append([event_factory(subject=None, tenant=TENANT, content=Redacted({"text": "rum"}))])
        with log.reading() as snapshot:
            (uid,) = snapshot.nobodies(TENANT)

        assert look_up(browser, "", reference=uid).status_code == 404

    def test_a_site_of_one_tenant_finds_its_own_alone(self, site, tokens, known):
        """Another tenant's are nobody there."""
        with Browser(build_console(replace(site, tenant="globex"))) as browser:
            browser.get("/sign-in", params={"token": tokens[-1]})
            assert look_up(browser, "", reference=known["uid"]).status_code == 404

    def test_one_of_both_is_given(self, browser, known):
        """An id or a reference: of two it would be open whom of them is meant."""
        assert look_up(browser, ADA, reference=known["uid"]).status_code == 400
        assert look_up(browser, "", reference=" ").status_code == 400

    def test_who_was_erased_is_not_found(self, browser, known, log):
        """Their number stays in the tables, and names nobody."""
        log.subjects.erase(known["uid"])

        assert look_up(browser, "", reference=known["uid"]).status_code == 404

    def test_no_store_is_asked_for_a_reference(self, site, tokens, known, scoped):
        """Also where there are stores, a reference of nobody is nobody."""
        assert known
        with Browser(build_console(replace(site, scope=scoped()))) as browser:
            browser.get("/sign-in", params={"token": tokens[-1]})

            assert look_up(browser, "", reference="0" * 32).status_code == 404
