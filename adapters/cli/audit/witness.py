"""``mnemoscope audit witness``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..exit_codes import INCOMPLETE, TAMPERED, USAGE, CommandError, say
from ..options import AuditUrl


def witness(
    url: Annotated[str, typer.Argument(metavar="URL", help="The witness's submission prefix.")],
    key: Annotated[str, typer.Option(metavar="KEY", help="The witness's verifier key.")],
    out: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Where to write the cosigned checkpoint.")
    ] = None,
    audit_url: AuditUrl = None,
) -> None:
    """
    Have a witness countersign the audit trail, and find out if it was put back.

    The witness remembers how far the trail had come. Exits with 0 if it has signed, 1 if it has
    seen a newer trail or another one, 3 if it cannot be asked or does not know the trail, 4 for
    wrong usage.
    """
    from ....audit.database.errors import AuditError, TamperedError
    from ....audit.proof.note import parse_checkpoint
    from ....audit.witness import Witness, cosign
    from ..scope import open_trail

    try:
        note = cosign(open_trail(audit_url), Witness(url, key))
    except TamperedError as exc:
        raise CommandError(f"TAMPERED: {exc.what}", TAMPERED) from exc
    except AuditError as exc:
        raise CommandError(" ".join(str(exc).split()), INCOMPLETE) from exc
    except ValueError as exc:
        raise CommandError(str(exc), USAGE) from exc
    if out is None:
        print(note, end="")  # noqa: T201 - the answer, for scripts too
    else:
        out.write_text(note, encoding="utf-8")
    say(f"cosigned: {parse_checkpoint(note).size:,} events")
