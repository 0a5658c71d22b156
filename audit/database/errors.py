"""The errors of the audit trail."""

from __future__ import annotations

from collections.abc import Sequence

from ...telemetry.delivery.sink import UnavailableError
from ...telemetry.event.spelling import Identity

UNREADABLE = (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)
"""What a changed row may raise where it is read: it can break anything."""


class AuditError(UnavailableError):
    """
    The audit database cannot be used. One line: what is wrong, and what to do.

    Events that could not be recorded are kept and retried.
    """


class KeyMissingError(AuditError):
    """
    A secret is missing with which the trail, or a part of it, was written.

    Nobody is found without it, which is not the same as nobody being there.
    """


class TamperedError(AuditError):
    """
    The trail is not as it was written, so that no answer can rest on it.

    Attributes:
        what: What does not fit, in one line about nobody.
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the audit trail was changed by somebody else: {what}. No answer is given and nothing "
            "was erased; run `mnemoscope audit verify`, and restore what was changed"
        )
        self.what = what


class SubjectConflictError(AuditError):
    """Two customers would be one: an identifier belongs to somebody else already."""


class DatabaseMissingError(AuditError):
    """There is no audit database at that place, or nothing was ever written to it."""


class UnknownSubjectError(AuditError):
    """
    Nobody is known by that id, so that nothing can be said of them: not that nothing is held.

    Attributes:
        others: Who is known by another spelling of it, or in another tenant. Personal data.
        doubts: Why there may be somebody all the same, a line each.
        is_further: It was one of the further ids that were given.
    """

    def __init__(
        self,
        *,
        others: tuple[Identity, ...] = (),
        doubts: tuple[str, ...] = (),
        is_further: bool = False,
    ) -> None:
        name = "a further name" if is_further else "this name"
        super().__init__(
            f"cannot tell: nobody of {name} is known here"
            + (", others are known by another spelling or in another tenant" if others else "")
            + ". Check id and tenant, and that this is the audit trail they were recorded in"
        )
        self.others = others
        self.doubts = doubts
        self.is_further = is_further


class UnknownTenantError(AuditError):
    """
    No tenant is known by that name, so that nothing can be said of it: not that nothing was done.

    Attributes:
        others: Other spellings of it that are known.
    """

    def __init__(self, *, others: tuple[str, ...] = ()) -> None:
        super().__init__(
            "cannot tell: no tenant of this name is known here"
            + (", others are known by another spelling" if others else "")
            + ". Check the name, and that this is the audit trail it was recorded in"
        )
        self.others = others


class AmbiguousSubjectError(AuditError):
    """
    Several people are known by that id: in several tenants, or by spellings of it.

    Attributes:
        found: All of them. Personal data.
        asked: The id that was asked for, likewise.
    """

    def __init__(self, *, found: tuple[Identity, ...], asked: str) -> None:
        super().__init__(
            f"{len(found):,} people of this name are known here, so nothing was done. Name a "
            "tenant, or all tenants; and whether other spellings are the same person"
        )
        self.found = found
        self.asked = asked


class UnknownMemoryError(AuditError):
    """The trail has no operation on a memory of that id, so that nothing can be said of it."""

    def __init__(self) -> None:
        super().__init__(
            "cannot tell: no memory of this id is known here. Check the id, and that this is the "
            "audit trail it was recorded in"
        )


class AmbiguousMemoryError(AuditError):
    """
    Several memories have that id: in several stores or collections.

    Attributes:
        places: Store and collection of each, as the trail has them.
    """

    def __init__(self, places: Sequence[tuple[str, str | None]]) -> None:
        super().__init__(
            f"{len(places):,} memories have this id, so nothing was done. Name its store, and its "
            "collection where one has several"
        )
        self.places = tuple(places)


def reason_of(exc: OSError) -> str:
    """Return the file system's reason in a few words."""
    if isinstance(exc, (FileExistsError, NotADirectoryError)):
        return "a part of its path is a file, not a folder"
    return (exc.strerror or type(exc).__name__).lower()
