"""``relay="auto"``: which relay a scope has by its settings, and whether it can have one."""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ..telemetry.event.subject import SubjectKeys
from ..telemetry.queue.folder import files_in, open_folder
from ..telemetry.relay.folder import standing
from ..telemetry.relay.starter import RelayStarter
from .secret import Secret
from .sinks import SINKS

if TYPE_CHECKING:
    from .settings import Settings

logger = logging.getLogger("mnemoscope")

_SHOWN = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "XDG_DATA_HOME", "LD_LIBRARY_PATH", "PYTHONHOME")
"""Variables that a relay is started with. This user can see them."""

_PASSED = (
    *("OTEL_", "LANGSMITH_", "LANGCHAIN_", "PG", "GRPC_", "SSL_CERT_", "REQUESTS_CA_BUNDLE"),
    *("CURL_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
"""Those that sinks read, by their beginning. A relay gets them through a pipe, and no other."""

_SERVERLESS = ("AWS_LAMBDA_FUNCTION_NAME", "FUNCTIONS_WORKER_RUNTIME", "K_SERVICE")
_INITS = ("systemd", "init")


def relayed_sinks(settings: Settings) -> tuple[str, ...]:
    """Return the sinks that another process can feed as well as this one."""
    from ..telemetry.langsmith.factory import is_tracing  # noqa: PLC0415 - where it is wanted
    from ..telemetry.otlp.factory import has_endpoint  # noqa: PLC0415 - as above
    from ..telemetry.otlp.host import host_tracer_provider  # noqa: PLC0415 - as above

    can = {
        "otlp": has_endpoint() and host_tracer_provider() is None,
        "prometheus": settings.prometheus_port is not None,
        "logs": settings.log_file is not None,
        "langsmith": settings.sinks is not None or is_tracing(),
        "webhooks": settings.webhook_url is not None,
        "audit": True,
    }
    names = SINKS.built_in if settings.sinks is None else settings.sinks
    return tuple(each for each in names if can.get(each))


def started_relay(
    settings: Settings, keys: SubjectKeys, sinks: Collection[str]
) -> tuple[Path, RelayStarter | None, str | None]:
    """Return the folder of the relay of *sinks*, what keeps one there, or why there can be none."""
    passed = {name: each for name, each in os.environ.items() if name.upper().startswith(_PASSED)}
    chosen = dict(_plain(settings, sinks))
    shared = json.dumps([chosen, passed], sort_keys=True).encode()
    # Others have another relay. Keyed: there are passwords among them, and some can be guessed.
    name = hmac.new(keys.key("relay/settings"), shared, hashlib.sha256).hexdigest()[:16]
    folder = settings.data_folder / "relay" / name
    # What is no folder is a hook's, which knows it as it is.
    path = [str(Path(each).absolute()) if Path(each).is_dir() else each for each in sys.path]
    message = json.dumps({"path": path, "variables": passed, "settings": chosen}).encode()
    # Of a dozen threads each would have a heap of its own.
    shown = {name: os.environ[name] for name in _SHOWN if name in os.environ}
    problem = _unfit()
    if problem or not sinks:
        return folder, None, problem if sinks else None
    try:
        for each in (folder.parent, folder):
            open_folder(each)
            if each.is_symlink():
                return folder, None, f"{each} is a link"
        for each in folder.parent.iterdir():
            if each != folder and files_in(each) and not standing(each).is_alive:
                logger.warning("%s: events wait for a process with its settings", each)
        return folder, RelayStarter(folder, message, {**shown, "MALLOC_ARENA_MAX": "1"}), None
    except OSError as exc:
        return folder, None, exc.strerror or str(exc)


def _plain(settings: Settings, sinks: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield the settings of a relay that are not as without any, as JSON has them."""
    unset = structs.asdict(type(settings)())
    given: dict[str, Any] = structs.asdict(settings) | {"sinks": sinks, "relay": None}
    for name, value in given.items():
        if isinstance(value, Path):
            yield name, str(value.absolute())  # a relay works in a folder of its own
        elif name == "audit_url" and value and value.startswith("sqlite:///"):
            yield name, f"sqlite:///{Path(value.removeprefix('sqlite:///')).absolute()}"
        elif value != unset[name]:
            yield name, value.get_secret_value() if isinstance(value, Secret) else value


def _unfit() -> str | None:
    """Return in a few words why no relay can live beside this process; None: nothing is known."""
    interpreter = Path(sys.executable or "").name
    if getattr(sys, "frozen", False) or not interpreter.startswith(("python", "pypy")):
        return "this program is no Python interpreter that could start another"
    affinity = getattr(os, "sched_getaffinity", None)
    if (len(affinity(0)) if affinity else os.cpu_count() or 1) == 1:
        return "there is one processor, which both would share"
    if (found := next((each for each in _SERVERLESS if os.environ.get(each)), None)) is not None:
        return f"{found} is set, and such a service stops processes between two requests"
    first = Path("/proc/1/comm")
    is_first = os.getppid() == 1 and first.exists() and first.read_text().strip() not in _INITS
    if os.getpid() == 1 or is_first:
        return "this container ends with this process, and a relay with it"
    return None
