"""The console's pages in Chromium: axe-core, widths, light and dark, and the keyboard alone."""

from __future__ import annotations

import pytest

PATHS = ("/", "/person", "/runs", "/health", "/nothing-here")
WIDTHS = (360, 768, 1280)


def signed_in(chromium, console, **options):
    """Return a page of a browser that has signed in, and what it complains about."""
    page = chromium.new_context(**options).new_page()
    complaints = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(console.sign_in)
    return page, complaints


def violations(page, axe):
    """Return what axe-core finds wrong with a page, for a person who reads it."""
    page.evaluate(axe)
    found = page.evaluate("async () => (await axe.run()).violations")
    return [f"{each['id']}: {node['html']}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_keeps_anybody_out(chromium, console, axe, scheme):
    """Nothing that axe-core finds, is wider than the screen, or is blocked by the policy."""
    page, complaints = signed_in(chromium, console, color_scheme=scheme)
    wrong = []
    for path in PATHS:
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            page.goto(console.origin + path)
            for each in page.locator("details").all():
                each.evaluate("it => it.open = true")
            wrong += [f"{path} at {width}: {each}" for each in violations(page, axe)]
            if page.evaluate("document.documentElement.scrollWidth") > width:
                wrong.append(f"{path} at {width}: wider than the screen")
    page.context.close()

    assert wrong == []
    assert [each for each in complaints if "status of 404" not in each] == []


def test_the_sign_in_keeps_nobody_out(chromium, console, axe):
    """Nor does it when the token is refused."""
    page = chromium.new_context().new_page()
    page.goto(f"{console.origin}/sign-in")
    before = violations(page, axe)
    page.get_by_label("Token").fill("guessed")
    page.get_by_role("button").click()
    refused = violations(page, axe)

    assert page.get_by_role("alert").is_visible()
    assert before + refused == []
    page.context.close()


def test_a_card_is_decided_by_keyboard_without_script(chromium, console):
    """Tab, arrows, letters and Enter, with JavaScript off; the skip link comes first."""
    page, _complaints = signed_in(chromium, console, java_script_enabled=False)
    page.keyboard.press("Tab")
    first = page.locator(":focus").inner_text()
    page.keyboard.press("Enter")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.locator(":focus").get_attribute("type") == "radio":
            break
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    chosen = page.locator(":focus").get_attribute("value")
    page.keyboard.press("Tab")  # the text, for an edit
    text = page.locator(":focus").get_attribute("name")
    page.keyboard.press("Tab")
    page.keyboard.type("by_keyboard")
    with page.expect_navigation():
        page.keyboard.press("Enter")

    assert first == "Skip to the content"
    assert (chosen, text) == ("reject", "text")
    assert "Recorded: reject" in page.locator("main").inner_text()
    page.context.close()


_OUTLINE = """it => ({
    style: getComputedStyle(it).outlineStyle,
    width: parseFloat(getComputedStyle(it).outlineWidth),
    html: it.outerHTML,
})"""


def test_what_has_the_focus_is_seen(chromium, console):
    """Each thing that Tab reaches has an outline."""
    page, _complaints = signed_in(chromium, console)
    bare, reached = [], 0
    page.keyboard.press("Tab")
    while page.locator(":focus").count():
        reached += 1
        seen = page.locator(":focus").evaluate(_OUTLINE)
        bare += [] if seen["width"] >= 2 and seen["style"] == "solid" else [seen["html"]]
        page.keyboard.press("Tab")

    assert reached > 10
    assert bare == []
    page.context.close()


def test_the_verdict_is_folded_away(chromium, console):
    """Until somebody opens it."""
    page, _complaints = signed_in(chromium, console)
    reason = page.get_by_text("from_outside")
    before = reason.is_visible()
    card = page.get_by_role("article").filter(has=reason)
    card.get_by_text("What the rule says").click()

    assert not before
    assert reason.is_visible()
    page.context.close()


def test_a_token_in_the_address_is_gone_at_once(chromium, console):
    """Neither the address nor the way back has it."""
    page, _complaints = signed_in(chromium, console)
    address = page.url
    page.goto(f"{console.origin}/nothing-here")
    page.go_back()

    assert address == f"{console.origin}/"
    assert "token" not in page.url
    page.context.close()
