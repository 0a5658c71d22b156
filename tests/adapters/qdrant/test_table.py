"""The table of methods against the installed client: nothing is forgotten, nothing is made up."""

from __future__ import annotations

import pytest

from mnemoscope.adapters.qdrant.methods import METHODS, table
from mnemoscope.memory.api import Method, OperationClass


def test_deleting_is_never_neutral():
    """Whatever removes something fails closed."""
    index = METHODS["delete_payload_index"]  # which holds nothing that the points do not hold
    removing = [each for name, each in METHODS.items() if "delete" in name or "clear" in name]
    removing.remove(index)

    assert len(removing) == 7
    assert {each.op_class for each in removing} == {OperationClass.FORGET}
    assert {each.neutral for each in removing} == {None}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_methods_that_touch_points_need_an_owner_once_there_is_one(name):
    """With an owner key each of them is confined, and knows whom it is for."""
    row = table("user_id")[name]
    method = row if isinstance(row, Method) else row({})
    whole = name.endswith(("_collection", "_vector_name", "_shard_key", "_payload_index"))
    whole = whole and name != "upload_collection"

    assert method.needs_owner is not whole
    assert (method.confine is None) is whole


def test_without_an_owner_key_there_is_no_owner_to_need():
    """And nothing confines a call: where tenancy is enforced a customer's is refused."""
    rows = [row for row in table(None).values() if isinstance(row, Method)]

    assert not any(each.needs_owner or each.confine or each.only for each in rows)
