"""Run the demo, from the conversation to the last screen."""

from __future__ import annotations

import secrets
import time
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from prometheus_client import generate_latest
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from mnemoscope.memory.errors import ConfigurationError
from mnemoscope.memory.journal.journal import look
from mnemoscope.memory.scope import Mnemoscope
from mnemoscope.memory.settings import SINK_NAMES, Settings, load_settings
from mnemoscope.telemetry.event.event import OperationClass
from mnemoscope.telemetry.text import json_text

from .conversation import Dialogue, load_conversation
from .environment import environment, quiet, recorded_sinks, variables
from .faults import FaultMode, StoreFault
from .figures import (
    Figures,
    as_document,
    count_events,
    fate_of_writes,
    memories_of,
    observations,
)
from .options import DemoOptions
from .recorder import CollectorServer
from .screen import show
from .surge import Surge, surge_report
from .turn_time import turn_time

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from .memory_server import ServerChange
    from .replay import AnsweredTurn, ReplayResult
    from .stores import Stores

PRICES = Path(__file__).with_name("prices.json")
"""Invented prices of the scripted model."""

NEEDED = ("mem0", "qdrant_client", "wordllama", "langchain_core", "langgraph", "langsmith")
"""Packages that the demo's stores and sinks need."""

JOURNAL = "journal"
"""File of writes that a broken store did not take, beside the stores'."""

REPLAY_S = 15.0
"""Longest time that a store that is back is given to take them."""

SHORT_DEADLINE_S = 0.4
"""Deadline of a slow store's calls, so that the demo stays short."""


def run(options: DemoOptions, console: Console) -> int:
    """Run the demo; see `run_demo`."""
    _require((*NEEDED, *(("fastmcp",) if options.mcp else ())))
    conversation = load_conversation(options.conversation)
    shown = _shown_speaker(options.speaker, conversation)
    counted = recorded_sinks()
    before = observations(_metrics())
    surge = Surge(options.surge) if options.surge else None
    with _folder(options.out) as folder, CollectorServer() as recorder:
        stores = folder / "stores"
        stores.mkdir()
        with quiet(), environment(variables(recorder.url, stores, counted)):
            scope = Mnemoscope(_settings(options, folder))
            with closing(scope):
                result = _replay(
                    options, console, conversation, scope=scope, folder=stores, surge=surge
                )
                scope.flush(timeout_s=15)
        metrics = _metrics()
        figures = Figures(
            turns=len(conversation),
            failures=result.failures,
            shown=_three_of(result.turns, shown),
            time=turn_time(
                scope.audit.rows(), [(each.since_us, each.until_us) for each in result.turns]
            ),
            writes=fate_of_writes(scope.audit.rows()),
            seconds=result.seconds,
            scripted=options.model is None,
            broken=(options.break_store, options.how) if options.break_store else None,
            stores=tuple(scope.audit.latency()),
            recalls=tuple(scope.audit.latency(OperationClass.RECALL)),
            spend=tuple(scope.audit.spend("feature")),
            models=tuple(scope.audit.spend("model")),
            surge=surge_report(scope.audit, surge),
            requests=result.requests,
            server_change=result.server_change,
            memories=memories_of(scope.audit, shown, conversation.customers[shown]),
            sinks=count_events(
                scope.audit,
                prometheus=observations(metrics) - before,
                log_file=folder / "log.jsonl",
                recorder=recorder,
                counted=counted,
            ),
        )
        if options.out:
            _keep(folder, metrics, recorder)
        _show(figures, options, console)
    return 0 if figures.as_expected else 1


def _require(packages: tuple[str, ...]) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"the demo needs packages that are not installed ({', '.join(missing)}): "
            "pip install 'mnemoscope[all]'"
        )


def _shown_speaker(name: str | None, conversation: Dialogue) -> str:
    if name is None:
        return conversation.speakers[0]
    for speaker in conversation.speakers:
        if name.casefold() in {speaker.casefold(), *speaker.casefold().split()}:
            return speaker
    raise ConfigurationError("--speaker takes the name of one of the conversation's two speakers")


@contextmanager
def _folder(out: Path | None) -> Generator[Path]:
    if out is None:
        # A thread may still hold a file of a slow store; the system removes it later.
        with TemporaryDirectory(prefix="mnemoscope-demo-", ignore_cleanup_errors=True) as name:
            yield Path(name)
    else:
        out.mkdir(parents=True, exist_ok=True)
        yield out.resolve()


def _settings(options: DemoOptions, folder: Path) -> Settings:
    given: dict[str, Any] = {
        "sinks": tuple(each for each in SINK_NAMES if each != "webhooks"),
        "audit_url": f"sqlite:///{folder / 'audit.db'}",
        "log_file": folder / "log.jsonl",
        "vault": folder / "stores" / "names.db",
        "pii_operators": "*=pseudonym",
        "pii_reveal": "recall,resume",
        "disabled": False,
    }
    if options.model is None:
        given["prices"] = PRICES
    if options.out is None:
        # The trail is thrown away. With --out, an export needs the user's own key.
        given["audit_pseudonym_key"] = secrets.token_hex(32)
    if options.break_store:
        given["journal"] = folder / "stores" / JOURNAL
    if options.break_store and options.how == FaultMode.SLOW:
        threads = options.break_store == "checkpointer"
        classes = ("resume", "checkpoint") if threads else ("recall", "remember")
        given |= {f"deadline_{each}_s": SHORT_DEADLINE_S for each in classes}
    return load_settings(**given)


def _replay(
    options: DemoOptions,
    console: Console,
    conversation: Dialogue,
    *,
    scope: Mnemoscope,
    folder: Path,
    surge: Surge | None,
) -> ReplayResult:
    fault = _fault(options)
    with _progress(console, options) as progress:
        task = progress.add_task("opening the stores", total=len(conversation))
        # Not at the top: mem0 reads the environment when it is imported.
        from .export_and_erase import export_and_erase  # noqa: PLC0415
        from .replay import replay  # noqa: PLC0415
        from .stores import open_stores  # noqa: PLC0415

        scope.prepare()
        model = _model(options.model, surge)
        with open_stores(folder, scope, model) as stores:
            progress.update(task, description="replaying the conversation")
            try:
                result = replay(
                    conversation,
                    stores=stores,
                    model=model,
                    scope=scope,
                    fault=fault,
                    surge=surge,
                    advance=lambda: progress.advance(task),
                )
            finally:
                if fault:
                    fault.end()
            if fault:
                progress.update(task, description="making writes again that waited")
                _await_replay(folder / JOURNAL)
            if options.mcp:
                progress.update(task, description="asking over MCP")
                result = replace(
                    result, server_change=_over_mcp(scope, stores, conversation, folder)
                )
            progress.update(task, description="exporting and erasing")
            requests = export_and_erase(options, conversation, scope=scope)
            return replace(result, requests=requests)


def _over_mcp(
    scope: Mnemoscope, stores: Stores, conversation: Dialogue, folder: Path
) -> ServerChange:
    from .memory_server import change_server  # noqa: PLC0415 - an extra, for --mcp alone

    customer = conversation.customers[conversation.speakers[0]]
    return change_server(scope, stores.bare["mem0"], customer, folder)


def _await_replay(journal: Path) -> None:
    """Wait until the store that is back has the writes that waited for it."""
    gives_up_s = time.monotonic() + REPLAY_S
    while any(look(journal, 0).waiting.values()) and time.monotonic() < gives_up_s:
        time.sleep(0.05)


def _three_of(turns: Sequence[AnsweredTurn], speaker: str) -> tuple[AnsweredTurn, ...]:
    """Return the speaker's first turn, one for which something was recalled, and the last."""
    theirs = [each for each in turns if each.speaker == speaker]
    between = range(1, len(theirs) - 1)
    recalled = next((place for place in between if theirs[place].recalled), len(theirs) // 2)
    places = sorted({0, recalled, len(theirs) - 1}) if theirs else []
    return tuple(theirs[place] for place in places)


def _fault(options: DemoOptions) -> StoreFault | None:
    if options.break_store is None:
        return None
    return StoreFault(options.break_store, FaultMode(options.how), delay_s=1.5 * SHORT_DEADLINE_S)


def _progress(console: Console, options: DemoOptions) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    hidden = options.json or not console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=hidden)


def _model(name: str | None, surge: Surge | None) -> BaseChatModel:
    from .scripted_model import ScriptedModel  # noqa: PLC0415 - langchain-core takes its time

    if name is None:
        return ScriptedModel(tokens=surge.tokens) if surge else ScriptedModel()
    try:
        model: BaseChatModel = import_module("langchain.chat_models").init_chat_model(name)
    except ImportError as exc:
        raise ConfigurationError(
            f"--model needs a package that is not installed ({exc.name}): "
            "pip install langchain, and the integration of the provider"
        ) from exc
    except Exception as exc:
        raise ConfigurationError(
            f"--model could not be set up ({type(exc).__name__}): "
            "write it as provider:name, and set the provider's key in the environment"
        ) from exc
    return model


def _metrics() -> str:
    return generate_latest().decode()


def _keep(folder: Path, metrics: str, recorder: CollectorServer) -> None:
    (folder / "metrics.prom").write_text(metrics, encoding="utf-8")
    for name, records in (("spans", recorder.spans()), ("runs", recorder.runs())):
        lines = "".join(f"{json_text(record)}\n" for record in records)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")


def _show(figures: Figures, options: DemoOptions, console: Console) -> None:
    if options.json:
        console.print_json(json_text(as_document(figures)))
    else:
        show(figures, console, options.out)
