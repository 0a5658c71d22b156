"""
Encoding of runs to the multipart body of LangSmith's client, at a tenth of its cost.

The client transforms, copies and checks each run, and puts each of its parts through an encoder
that reads it in pieces: a hundred microseconds for what takes ten to write. Everything else stays
the client's: where to, with which key, over which session. That both ways send the same, byte for
byte, is found out once with each client; where they do not, since hiding or sampling is configured,
there are several endpoints, or another version does it otherwise, the client does all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

import orjson
import requests

from ..event.examples import EXAMPLES
from .runs import runs_of

if TYPE_CHECKING:
    from langsmith import Client

_APART: Final = ("inputs", "outputs", "events", "extra", "error")
"""Fields of a run that are parts of their own, in the client's order."""

_PART: Final = (
    b'--%b\r\nContent-Disposition: form-data; name="post.%%b%b"\r\n'
    b"Content-Type: application/json\r\nContent-Length: %%d\r\n\r\n%%b\r\n"
)
_json: Final = partial(orjson.dumps, option=orjson.OPT_PASSTHROUGH_SUBCLASS)
_ATTEMPTS: Final = 3
_TIMEOUT_S: Final = (3, 10)
"""To connect and to read, as the client has it. The session has shorter ones."""


class DirectRuns:
    """Sends runs through a client."""

    def __init__(self, client: Client, boundary: bytes) -> None:
        self._client = client
        self._boundary = boundary
        marked = boundary.replace(b"%", b"%%")
        self._whole = _PART % (marked, b"")
        self._apart = [(field, _PART % (marked, b"." + field.encode())) for field in _APART]

    def body(self, runs: Iterable[Mapping[str, Any]]) -> bytes:
        """
        Return the body of the request that creates *runs*, each once; empty: there are none.

        Raises:
            TypeError: Something in it is no JSON.
        """
        # Of one id the last.
        bodies = {run["id"]: self._parts(run) for run in runs}
        return b"%b--%b--\r\n" % (b"".join(bodies.values()), self._boundary) if bodies else b""

    def _parts(self, run: Mapping[str, Any]) -> bytes:
        name: bytes = run["id"].encode()
        rest, parts = dict(run), [b""]
        for field, part in self._apart:
            value = rest.pop(field, None)
            if value is not None:
                data = _json(value)
                parts.append(part % (name, len(data), data))
        # What is left once each field that has a part has been taken out.
        data = _json(rest)
        parts[0] = self._whole % (name, len(data), data)
        return b"".join(parts)

    def send(self, body: bytes) -> None:
        """Send *body*, with up to three attempts, or raise as the client does."""
        from langsmith import utils  # noqa: PLC0415 - 0.4 s, and imported by now

        passing = (
            utils.LangSmithConnectionError,
            utils.LangSmithRequestTimeout,
            utils.LangSmithAPIError,
        )
        # At once: the batch has three seconds in all, and the lane waits longer before it tries
        # anew.
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._post(body)
            except utils.LangSmithConflictError:
                return None  # it has them already
            except passing:
                if attempt == _ATTEMPTS:
                    raise
        return None

    def _post(self, body: bytes) -> None:
        content_type = f"multipart/form-data; boundary={self._boundary.decode()}"
        self._client.request_with_retries(  # pyright: ignore[reportUnknownMemberType] - its dicts are bare
            "POST",
            f"{self._client.api_url}/runs/multipart",
            request_kwargs={
                "data": body,
                "headers": {"Content-Type": content_type},
                "timeout": _TIMEOUT_S,
            },
            stop_after_attempt=1,
        )


class _RecordingSession:
    """A session that records requests, sends none and answers 202."""

    def __init__(self) -> None:
        self.seen: list[dict[str, Any]] = []

    def request(self, method: str, url: str, **how: Any) -> requests.Response:
        self.seen.append({"method": method, "url": url, **how})
        answer = requests.Response()
        answer.status_code = HTTPStatus.ACCEPTED
        return answer


def direct_runs(client: Client) -> DirectRuns | None:
    """Return an encoder equal to *client*'s own, or None if there is a difference."""
    # A sample is drawn by the client, at random: two bodies equal by chance would prove nothing.
    if getattr(client, "tracing_sample_rate", 1.0) is not None:
        return None
    if getattr(client, "_failed_traces_dir", None):
        return None  # the client keeps there what it could not send
    # Ignored: its dicts are bare.
    theirs = _requests_of(client, lambda: client.multipart_ingest(create=_example_runs()))  # pyright: ignore[reportUnknownMemberType]
    # To several endpoints, or in several bodies: a version that sends otherwise than we know.
    if len(theirs) != 1:
        return None
    boundary = str(theirs[0].get("headers", {}).get("Content-Type")).partition("boundary=")[2]
    direct = DirectRuns(client, boundary.encode())
    # With the boundary of theirs, so that bodies, headers and limits can be compared as they are.
    ours = _requests_of(client, lambda: direct.send(direct.body(_example_runs())))
    return direct if ours == theirs else None


def _example_runs() -> list[dict[str, Any]]:
    runs = runs_of(EXAMPLES, "project", content=False)
    # Inputs that a client configured to hide them would change.
    return [run | {"inputs": {"query": "q", "n": 1.5}} for run in runs]


def _requests_of(client: Client, send: Callable[[], None]) -> list[dict[str, Any]]:
    """Return the requests that *send* would make of *client*'s session, without sending them."""
    session, spy = client.session, _RecordingSession()
    # In the place of the session and no sooner: what the client does to a request up to there
    # counts.
    client.session = cast("requests.Session", spy)
    try:
        send()
    except Exception:  # noqa: BLE001 - another version may fail in any way: then it does all
        return []
    finally:
        client.session = session
    return spy.seen
