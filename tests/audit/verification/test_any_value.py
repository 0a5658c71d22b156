"""
Whatever stands in a row, `verify` ends, and says that it is not what was written.

Any bytes, any type, any number, in every column of every table: SQLite keeps them all.
"""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from mnemoscope.audit import AuditError, AuditLog
from mnemoscope.audit.database.errors import TamperedError
from mnemoscope.audit.verification.whole import verify
from tests.kit import database_attacks


def found_in(path, keys):
    """Return what is found; and see that it can be told: on a screen, and as JSON."""
    with closing(AuditLog(path, keys)) as log:
        try:
            found = verify(log)
        except TamperedError as exc:
            return [exc.what]
    lines = [line for each in found.findings.values() for line in each]
    assert all(line.isprintable() for line in (*lines, found.verdict()))
    json.dumps(found.as_document()).encode()
    return [*found.findings["tampered"], *found.findings["unverifiable"]]


@pytest.mark.long
def test_any_value_is_found(sealed, tmp_path, subject_keys):
    """NULL, bytes that are no text, the largest number, half a JSON, a terminal's command."""
    with closing(database_attacks.SqliteTarget(sealed)) as target:
        attacks = [*database_attacks.odd_values(target)]
    some = attacks[:: max(1, len(attacks) // 150)]
    some += [each for each in attacks if each.target.startswith("audit_log")]
    some += [each for each in attacks if each.name == "text that is no UTF-8"][::2]
    made = database_attacks.attacked_files(sealed, some, tmp_path / "copy.db")
    found = {attack[:2]: found_in(path, subject_keys) for attack, path in made}

    assert len(found) > 200
    assert [attack for attack, findings in found.items() if not findings] == []


@pytest.mark.long
def test_a_head_of_any_value_loses_no_event(sealed, tmp_path, subject_keys, event_factory):
    """The writer goes on behind it, or says that the trail cannot be used: then they wait."""
    with closing(database_attacks.SqliteTarget(sealed)) as target:
        attacks = [*database_attacks.odd_values(target)]
    chosen = [each for each in attacks if each.target.startswith("audit_log")]
    refused = 0
    for _attack, path in database_attacks.attacked_files(sealed, chosen, tmp_path / "copy.db"):
        with closing(AuditLog(path, subject_keys)) as log:
            try:
                assert log.append([event_factory(writer_seq=9_999)]) == 1
            except AuditError:
                refused += 1

    assert 20 < refused < len(chosen)
