"""The page of symptoms: from what somebody sees to the runbook of an alert, for each alert."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
SYMPTOMS = (DOCS / "symptoms.md").read_text(encoding="utf-8")
HEADING = re.compile(r"^#{2,4} (.+)$", re.MULTILINE)


def anchors_of(page):
    """Return the ids that the site gives the headings of a page."""
    headings = HEADING.findall((DOCS / page).read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", each.lower()).replace(" ", "-") for each in headings}


def test_each_alert_has_a_symptom():
    """Whoever is woken knows what they see, and not what we call it."""
    led_to = set(re.findall(r"runbooks\.md#(\w+)", SYMPTOMS))

    assert anchors_of("runbooks.md") - led_to == set()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\((\S+\.md#\S+)\)", SYMPTOMS))))
def test_each_link_leads_to_a_section(link):
    """A runbook that was renamed is found by nobody."""
    page, _hash, anchor = link.partition("#")

    assert anchor in anchors_of(page)


def test_each_symptom_has_a_title_of_its_own():
    """What the search matches first is the title: so it has the words that are typed."""
    symptoms = re.findall(r"^### (.+)$", SYMPTOMS, re.MULTILINE)

    assert len(symptoms) == len(set(symptoms)) > 25
    assert not [each for each in symptoms if "Mnemoscope" in each]
