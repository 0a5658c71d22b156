"""``mnemoscope audit witness`` and ``mnemoscope audit timestamp``."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from ..exit_codes import INCOMPLETE, TAMPERED, USAGE, CommandError, say
from ..options import AuditUrl, Roots


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
    from ....audit.witness import Witness, cosign
    from ..scope import open_trail

    with _anchoring():
        note = cosign(open_trail(audit_url), Witness(url, key))
    if out is None:
        print(note, end="")  # noqa: T201 - the answer, for scripts too
    else:
        out.write_text(note, encoding="utf-8")
    say(f"cosigned: {_events(note)}")


def timestamp(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="The time stamp authority.", envvar="MNEMOSCOPE_TIMESTAMP_URL"
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="PATH", help="The checkpoint: kept, and replaced each time.")
    ],
    roots: Roots = None,
    audit_url: AuditUrl = None,
) -> None:
    """
    Have an authority stamp the audit trail with the time, and find out if it was put back.

    The trail is held against what was stamped before. Exits with 0 if it is stamped, 1 if the trail
    does not continue that, 3 if the authority cannot be asked or believed, 4 for wrong usage.
    """
    from ....audit.timestamps import stamp
    from ..scope import open_trail

    if roots is None:
        raise CommandError("--roots is needed: the certificates of the authority, PEM", USAGE)
    with _anchoring():
        kept = out.read_text(encoding="utf-8") if out.exists() else ""
        note = stamp(open_trail(audit_url), url, roots.read_bytes(), kept=kept)
        draft = out.with_name(f"{out.name}.draft")
        draft.write_text(note, encoding="utf-8")
        draft.replace(out)
    say(f"stamped: {_events(note)}")


@contextmanager
def _anchoring() -> Generator[None]:
    from ....audit.database.errors import AuditError, TamperedError

    try:
        yield
    except TamperedError as exc:
        raise CommandError(f"TAMPERED: {exc.what}", TAMPERED) from exc
    except AuditError as exc:
        raise CommandError(" ".join(str(exc).split()), INCOMPLETE) from exc
    except OSError as exc:
        raise CommandError(f"{exc.filename}: {exc.strerror}", USAGE) from exc
    except ValueError as exc:
        raise CommandError(str(exc), USAGE) from exc


def _events(note: str) -> str:
    from ....audit.proof.note import parse_checkpoint

    return f"{parse_checkpoint(note).size:,} events"
