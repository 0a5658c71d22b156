"""The name of a spool: one for each log, whoever's password is used."""

from __future__ import annotations

from hashlib import sha256

import pytest

from mnemoscope.audit.sink.spool import spool_of

LOGINS = (
    "postgresql://writer:hunter2@db.example:5432/trail?sslmode=require",
    "postgresql://writer:another@db.example:5432/trail?sslmode=require",
    "postgresql://writer@db.example:5432/trail?password=hunter2&sslmode=require",
    "postgresql://writer@db.example:5432/trail?sslmode=require",
)
"""One log, with two passwords, one of them in two places, and without one."""


def test_a_password_has_no_part_in_the_name_of_a_spool(tmp_path):
    """Whoever reads the name could guess it; and one that is renewed leaves no events behind."""
    assert len({spool_of(each, tmp_path) for each in LOGINS}) == 1


@pytest.mark.parametrize(
    "other",
    [
        "postgresql://writer@db.example:5432/other?sslmode=require",
        "postgresql://writer@another.example:5432/trail?sslmode=require",
        "postgresql://reader@db.example:5432/trail?sslmode=require",
        "sqlite:///audit.db",
    ],
)
def test_each_log_has_a_spool_of_its_own(tmp_path, other):
    """Two logs in one folder do not take each other's events."""
    assert spool_of(other, tmp_path) != spool_of(LOGINS[-1], tmp_path)


@pytest.mark.parametrize("left", ["{}.a1b2.events", "roll-{}.a1b2"])
def test_a_spool_that_an_earlier_release_named_is_gone_on_with(tmp_path, left):
    """Up to 0.2 the name was a digest of all of the URL: what waits there is not left behind."""
    name = f"audit-{sha256(LOGINS[0].encode()).hexdigest()[:12]}.spool"
    (tmp_path / left.format(name)).touch()

    assert spool_of(LOGINS[0], tmp_path) == tmp_path / name
    assert spool_of(LOGINS[1], tmp_path) != tmp_path / name
