"""
A real Kafka broker of one node on loopback, to be killed and started again on the same data.

Its artifacts are copied by `make build/kafka` from Maven; without them, or without Java, tests that
need it are skipped.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from tests.kit.patience import GIVE_UP_S, until

JARS = Path(__file__).parents[2] / "build" / "kafka"
_SETTINGS = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
num.partitions=3
offsets.topic.replication.factor=1
group.initial.rebalance.delay.ms=0
log.retention.check.interval.ms=500
log.segment.delete.delay.ms=100
log.initial.task.delay.ms=500
log.cleaner.backoff.ms=200
broker.session.timeout.ms=1000
broker.heartbeat.interval.ms=200
num.network.threads=2
num.io.threads=2
"""
_JAVA = ("java", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*")


class KafkaBroker:
    """
    A broker.

    Args:
        folder: Where it keeps everything.

    Attributes:
        address: Host and port. The same after a restart.
        data: The folder of its logs.
    """

    def __init__(self, folder: Path) -> None:
        port, controller = _free_ports()
        self.address = f"127.0.0.1:{port}"
        self.data = folder / "data"
        self._settings = folder / "server.properties"
        self._output = folder / "output.txt"
        self._process: subprocess.Popen[bytes] | None = None
        said = _SETTINGS.format(port=port, controller=controller, data=self.data)
        self._settings.write_text(said, encoding="utf-8")
        options = ("format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-c", str(self._settings))
        self._run("kafka.tools.StorageTool", *options).wait(GIVE_UP_S)
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers; does nothing where it runs."""
        if self._process is None:
            self._process = self._run("kafka.Kafka", str(self._settings))
        if not until(self._answers):
            raise AssertionError(self._output.read_text(encoding="utf-8")[-2_000:])

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it in order: the next start looks at no file for damage."""
        self._signal(signal.SIGTERM)
        if self._process is not None:
            self._process.wait(GIVE_UP_S)
            self._process = None

    def pause(self) -> None:
        """Have it do nothing, its connections open."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Have it work again."""
        self._signal(signal.SIGCONT)

    def new_topic(self, *, partitions: int = 3, **settings: str) -> str:
        """Return the URL of an empty topic; *settings* with underscores for dots."""
        from confluent_kafka.admin import NewTopic

        name = f"test-{time.monotonic_ns()}"
        config: Mapping[str, str] = {k.replace("_", "."): v for k, v in settings.items()}
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(config))
        admin = self.admin()  # held until it has answered
        admin.create_topics([topic])[name].result(GIVE_UP_S)
        return f"kafka://{self.address}/{name}"

    def admin(self) -> Any:
        """Return an administrator."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.address, "log_level": 0})

    def length(self, url: str) -> int | None:
        """Return how many messages the topic of a URL has. None: the broker does not answer now."""
        from confluent_kafka import KafkaException, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        name = url.rpartition("/")[2]
        try:
            places = self._looking.list_topics(name, timeout=0.2).topics[name].partitions
            asked = {TopicPartition(name, each): OffsetSpec.latest() for each in places}
            found = self._looking.list_offsets(asked, request_timeout=0.2)
            return sum(each.result(0.2).offset for each in found.values())
        except (KafkaException, TimeoutError):
            return None

    @cached_property
    def _looking(self) -> Any:
        return self.admin()  # one that is connected answers sooner

    def files_of(self, topic: str) -> list[Path]:
        """Return the files of a topic's partitions, and of its `.dead`."""
        return [each for each in self.data.glob(f"{topic}*/*") if each.is_file()]

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        if self._process is None or self._process.poll() is not None:
            raise AssertionError(self._output.read_text(encoding="utf-8")[-2_000:])
        try:
            return bool(self.admin().list_topics(timeout=GIVE_UP_S).brokers)
        except KafkaException:
            return False

    def _signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        with self._output.open("ab") as output:
            return subprocess.Popen([*_JAVA, *command], stdout=output, stderr=output)


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        for each in (one, other):
            each.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


@pytest.fixture(scope="session")
def kafka_server() -> Iterator[KafkaBroker]:
    """Return the broker of this process. Tests that kill it start it again."""
    pytest.importorskip("confluent_kafka", reason="needs mnemoscope[kafka]")
    if shutil.which("java") is None or not any(JARS.glob("kafka_*.jar")):
        pytest.skip("needs Java, and Kafka's artifacts from Maven: make build/kafka")
    folder = Path(tempfile.mkdtemp(prefix="kafka-"))
    broker = KafkaBroker(folder)
    yield broker
    broker.kill()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def kafka(kafka_server: KafkaBroker) -> Iterator[KafkaBroker]:
    """Return a broker that runs, and runs again afterwards."""
    yield kafka_server
    kafka_server.go_on()
    kafka_server.start()
