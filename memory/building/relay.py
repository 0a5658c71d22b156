"""Building a relay from the settings of its applications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...telemetry.delivery.drain import Drain
from ...telemetry.delivery.registry import AttachedSink
from ...telemetry.event.subject import SubjectKeys
from ...telemetry.process.faults import Faults
from ...telemetry.prometheus.live import SampleDisplay, SampleSource
from ..errors import ConfigurationError
from ..privacy.engine.content import content_again
from ..settings import Settings
from .opening import previous_keys, secret_of
from .sinks import build_sinks

if TYPE_CHECKING:
    from pathlib import Path

    from ...telemetry.files.file_lock import FileLock
    from ...telemetry.relay.relay import Relay


def build_relay(settings: Settings, folder: Path, lock: FileLock | None = None) -> Relay:
    """
    Build the relay of *folder*, with the sinks that *settings* name; *lock* is the folder's.

    Raises:
        ConfigurationError: The folder, a sink or a key cannot be used as asked.
        FolderTakenError: Another relay reads the folder.
    """
    from ...telemetry.relay.folder import take_folder  # noqa: PLC0415 - only where it is wanted
    from ...telemetry.relay.relay import LIMITS, Relay  # noqa: PLC0415 - as above

    faults = Faults()
    try:
        lock = lock or take_folder(folder)
        keys = SubjectKeys(secret_of(settings))
        sinks = build_sinks(settings, keys)
        drain = Drain(sinks, limits=LIMITS, faults=faults, keys=keys, are_kept=True)
        rings = [keys, *previous_keys(settings)]
    except (ValueError, OSError) as exc:
        raise ConfigurationError(str(exc)) from None
    for sink in sinks:
        if isinstance(sink, AttachedSink):
            sink.attach(drain)
    relay = Relay(folder, lock, drain, rings=rings, content=content_again, faults=faults)
    own = [each.samples for each in sinks if isinstance(each, SampleSource)]
    for sink in sinks:
        if isinstance(sink, SampleDisplay):
            for read in (relay.samples, *own):
                sink.show(read)
    return relay
