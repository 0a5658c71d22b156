"""The shard of a tenant, and the databases of the shards."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from ...telemetry.event.subject import SubjectKeys, keyed_hash
from ..database.errors import AuditError
from ..database.opening import SQLITE, path_of

_KNOWN_TENANTS = 16_384
_SEARCH_PATH = re.compile(r"-c\s*search_path=(\w+)")


def shard_map(keys: SubjectKeys, shards: int) -> Callable[[str | None], int]:
    """
    Return the function from a tenant, or none, to its shard: rendezvous hashing.

    One more shard takes an equal share of the tenants from each of the others, and moves nobody
    else. The hash is keyed, so that an outsider cannot choose a shard by the name of a tenant.
    """
    key, numbers = keys.key("audit/shards"), [*map(str, range(shards))]

    @lru_cache(_KNOWN_TENANTS)
    def shard_of(tenant: str | None) -> int:
        return int(max(numbers, key=lambda number: keyed_hash(key, number, tenant or "")))

    return shard_of


def url_of(url: str, number: int) -> str:
    """Return the URL of a shard: a file beside the first one's, or a schema beside its schema."""
    if not number:
        return url
    if urlsplit(url).scheme not in {"postgres", "postgresql"}:
        path = path_of(url)
        return f"{SQLITE}{path.with_name(f'{path.stem}.{number}{path.suffix}')}"
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    # The last of several settings of one name is the one that counts.
    options = f"{query.get('options', '')} -csearch_path={_schema_of(url, number)}".strip()
    text = urlencode(query | {"options": options}, quote_via=quote)
    return parts._replace(query=text).geturl()


def make_schema(url: str, number: int) -> None:
    """
    Make the schema of a shard, where shards are schemas and it is not there yet.

    Raises:
        AuditError: It is not there, and cannot be made.
    """
    if urlsplit(url).scheme not in {"postgres", "postgresql"}:
        return
    import psycopg  # noqa: PLC0415 - an extra

    name = _schema_of(url, number)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{name}"'.encode())
    except psycopg.errors.UniqueViolation:
        return  # another process was as fast
    except psycopg.Error as exc:
        raise AuditError(
            f"the schema {name} of an audit shard cannot be made ({type(exc).__name__}): have its "
            "owner make it, and let this user create tables in it"
        ) from None


def _schema_of(url: str, number: int) -> str:
    found = _SEARCH_PATH.findall(dict(parse_qsl(urlsplit(url).query)).get("options", ""))
    return f"{found[-1] if found else 'audit'}_shard_{number}"
