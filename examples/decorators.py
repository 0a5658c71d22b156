"""
Guard any function that touches a store, and attribute its operations to a feature.

Runs offline: the "CRM" is a dictionary that goes down half-way.

Prints:
    Dear customer, we noted: Prefers e-mail in the morning; Renews in May.
    crm: ok, 2 hits, feature reply-draft
    Dear customer, we noted: nothing yet.
    crm: degraded, neutral answer: True
"""

from mnemoscope.memory import configure, context, feature, observe

CONTACTS = {"c-42": ["Prefers e-mail in the morning", "Renews in May"]}
crm_is_up = True


@observe(store="crm", operation="search_memory", neutral=list)
def contact_facts(contact_id: str) -> list[str]:
    """Return the CRM's facts about a contact."""
    if not crm_is_up:
        raise ConnectionError("crm.internal:5432 refused the connection")
    return CONTACTS.get(contact_id, [])


@feature("reply-draft")
def draft(contact_id: str) -> str:
    """Write a reply from the contact's facts."""
    facts = contact_facts(contact_id)
    return f"Dear customer, we noted: {'; '.join(facts) or 'nothing yet'}."


scope = configure(sinks=[])

with context(tenant="acme", customer="c-42", agent="sales", purpose="reply"):
    print(draft("c-42"))
    outcome = scope.last_outcome()
    assert outcome is not None
    print(f"{outcome.store}: {outcome.status}, {outcome.hits} hits, feature {outcome.feature}")

    crm_is_up = False
    print(draft("c-42"))
    outcome = scope.last_outcome()
    assert outcome is not None
    print(f"{outcome.store}: {outcome.status}, neutral answer: {outcome.neutral}")

scope.close()
