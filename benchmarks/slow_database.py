"""A PostgreSQL that is far away: a proxy on a Unix socket that delays whatever clients send."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from tests.kit.patience import until
from tests.kit.relay_kills import forked, kill

_SOCKET = ".s.PGSQL.5432"


@contextmanager
def slow_database(url: str, folder: Path, delay_s: float) -> Iterator[str]:
    """Yield another URL of the database at *url*, each message to which takes *delay_s* longer."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    target, listening = Path(query["host"]) / _SOCKET, folder / _SOCKET
    folder.mkdir(parents=True, exist_ok=True)
    child = forked(lambda: asyncio.run(_serve(target, listening, delay_s)), 3_600)
    until(listening.exists)
    options = urlencode(query | {"host": str(folder)}, quote_via=quote)
    try:
        yield parts._replace(query=options).geturl()
    finally:
        kill(child)
        listening.unlink(missing_ok=True)


async def _serve(target: Path, listening: Path, delay_s: float) -> None:
    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, to_upstream = await asyncio.open_unix_connection(str(target))
        await asyncio.gather(_pass(reader, to_upstream, delay_s), _pass(upstream, writer, 0.0))

    server = await asyncio.start_unix_server(meet, str(listening))
    await server.serve_forever()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 20):
            await asyncio.sleep(delay_s)
            writer.write(data)
            await writer.drain()
    writer.close()
