"""A copy in a topic of Kafka, whose order is in the numbers of its records."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import confluent_kafka as client
import jsonschema_rs
import orjson
from confluent_kafka import admin

from .record import CHECKPOINT, EVENT, CopyRecord, SealedDetail
from .target import CopyError

TIMEOUT_S: Final = 30
"""Seconds without an answer after which a broker is given up."""

DEAD: Final = ".dead"
"""Behind the name of a topic: that of the records that do not fit the schema."""

_ALL: Final = 1 << 62
_FORM: Final = "kafka://HOST:PORT[,HOST:PORT…]/TOPIC[?config=FILE]; a password stands in the file"


class _Topic:
    """A topic, and the settings of clients of it: of a file of librdkafka's properties."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        path = query.pop("config", None)
        self.name = parts.path.strip("/")
        if (
            "@" in parts.netloc
            or query
            or not (parts.netloc and re.fullmatch(r"[\w.-]+", self.name))
        ):
            raise ValueError(f"a topic is at {_FORM}")
        lines = Path(path).read_text(encoding="utf-8").splitlines() if path else []
        said = [each.partition("=") for each in lines if each.strip() and each.lstrip()[0] != "#"]
        self._settings: dict[str, Any] = {name.strip(): value.strip() for name, _, value in said}
        self._settings |= {"bootstrap.servers": parts.netloc, "log_level": 0}

    def opened(self, kind: Any, **settings: Any) -> Any:
        """Return a client: what is wrong in the file may be a secret, and is not quoted."""
        try:
            return kind(self._settings | {n.replace("_", "."): v for n, v in settings.items()})
        except client.KafkaException as exc:
            raise CopyError(f"Kafka's client refuses its settings ({_name(exc)})") from None

    def consumer(self) -> Any:
        """Return a consumer of partitions, which joins no group."""
        wanted = {"group_id": "mnemoscope", "enable_auto_commit": False}
        return self.opened(
            client.Consumer, **wanted, auto_offset_reset="earliest", enable_partition_eof=True
        )

    def partitions(self, consumer: Any, name: str) -> dict[int, tuple[int, int]]:
        """Return the first offset of each partition of topic *name*, and that after its last."""
        give_up_at = time.monotonic() + TIMEOUT_S
        while True:
            try:
                found = consumer.list_topics(name, timeout=TIMEOUT_S).topics[name].partitions
                places = {each: client.TopicPartition(name, each) for each in sorted(found)}
                return {n: consumer.get_watermark_offsets(p, TIMEOUT_S) for n, p in places.items()}
            except client.KafkaException as exc:
                # A broker that was started just now leads no partition yet.
                if time.monotonic() > give_up_at:
                    raise CopyError(f"the topic cannot be asked ({_name(exc)})") from None
                time.sleep(0.2)

    def read(self, consumer: Any, name: str, spans: Mapping[int, tuple[int, int]]) -> Iterator[Any]:
        """Yield the messages of *spans*: offsets ``[start, stop)`` of partitions."""
        left = {each: stop for each, (start, stop) in spans.items() if start < stop}
        consumer.assign([client.TopicPartition(name, each, spans[each][0]) for each in left])
        while left:
            message = consumer.poll(TIMEOUT_S)
            if message is None:
                raise CopyError("the topic does not answer")
            place, error = message.partition(), message.error()
            # The last ones may be gone: then the end of the partition ends it.
            if error is not None and error.name() != "_PARTITION_EOF":
                raise CopyError(f"the topic cannot be read to its end ({error.name()})")
            if error is None and message.offset() < left.get(place, 0):
                yield message
            if error is not None or message.offset() + 1 >= left.get(place, 0):
                left.pop(place, None)


class KafkaTarget:
    """A topic that is written, by an idempotent producer."""

    def __init__(self, url: str) -> None:
        self._topic = _Topic(url)
        schema = json.loads((files(f"{__package__}") / "../bundle/bundle.schema.json").read_bytes())
        self._schema = jsonschema_rs.validator_for(schema | {"$ref": "#/$defs/header"})
        self._acked = 0
        self._producer = self._topic.opened(
            client.Producer,
            enable_idempotence=True,
            acks="all",
            delivery_timeout_ms=TIMEOUT_S * 1_000,
        )

    def resume_at(self, origin: str, /) -> int:
        """Return what the last records of the partitions say: all before it was acknowledged."""
        consumer = self._topic.consumer()
        found = 0
        try:
            for name in (self._topic.name, self._topic.name + DEAD):
                for place, span in self._topic.partitions(consumer, name).items():
                    found = max(found, self._acked_in(consumer, name, place, span, origin))
        finally:
            consumer.close()
        self._acked = found
        return found

    def _acked_in(
        self, consumer: Any, name: str, place: int, span: tuple[int, int], origin: str
    ) -> int:
        low, stop = span
        length = 1
        while stop > low:  # back from the end, past records of others
            start = max(low, stop - length)
            found = [
                int(headers["acked"])
                for each in self._topic.read(consumer, name, {place: (start, stop)})
                if (headers := _headers(each)).get("origin") == origin.encode()
                and headers.get("acked", b"").isdigit()
            ]
            if found:
                return max(found)
            stop, length = start, length * 8
        return 0

    def send(self, records: Sequence[CopyRecord], /) -> int:
        """Send *records*, those that do not fit the schema to the topic for them."""
        faults: Counter[str] = Counter()
        set_aside = 0

        def acknowledged(error: Any, _message: Any) -> None:
            if error is not None:
                faults[error.name()] += 1

        for each in records:
            reason = self._reason(each)
            set_aside += reason is not None
            headers = _written(each) | {"acked": b"%d" % self._acked}
            topic = self._topic.name
            if reason is not None:
                topic, headers = topic + DEAD, headers | {"reason": reason.encode()}
            self._produce(topic, each, headers, acknowledged)
        while self._producer.flush(0.5):  # each is acknowledged or given up in the end
            pass
        if faults:
            said = ", ".join(f"{name} {number:,} times" for name, number in faults.items())
            raise CopyError(f"the topic did not take all records ({said})")
        self._acked = max(each.seq + (each.kind == EVENT) for each in records)
        return set_aside

    def _produce(
        self, topic: str, record: CopyRecord, headers: dict[str, bytes], acknowledged: Any
    ) -> None:
        sent = {"value": record.header, "key": record.key, "headers": list(headers.items())}
        try:
            self._producer.produce(topic, **sent, on_delivery=acknowledged)
        except BufferError:  # the client's queue is full: that many are under way
            self._producer.poll(1)
            self._produce(topic, record, headers, acknowledged)
        except client.KafkaException as exc:
            what = f"the topic cannot take event {record.seq:,} ({_name(exc)})"
            raise CopyError(f"{what}: see message.max.bytes") from None

    def _reason(self, record: CopyRecord) -> str | None:
        """Return where the header breaks the schema; never with what. None: it does not."""
        if record.kind != EVENT:
            return None
        try:
            wrong = next(self._schema.iter_errors(orjson.loads(record.header)), None)
        except ValueError:
            return "not JSON"
        return None if wrong is None else "/".join(map(str, wrong.schema_path))

    def close(self) -> None:
        """Give up what is under way."""
        self._producer.purge()
        self._producer.flush(1)


class KafkaCopy:
    """A topic that is read, with that of the records that do not fit the schema."""

    def __init__(self, url: str) -> None:
        self._topic = _Topic(url)
        self.expired = 0
        self.compacted, self.wrong = False, ()

    def records(self) -> Iterator[CopyRecord]:
        """Yield what the partitions have now, one after the other within each."""
        consumer = self._topic.consumer()
        try:
            self._ask_policy()
            names = (self._topic.name, self._topic.name + DEAD)
            noted = {name: self._topic.partitions(consumer, name) for name in names}
            # Asked again: what a checkpoint covers was acknowledged before it was sent, so that it
            # is behind no later end.
            for name in names:
                spans = self._topic.partitions(consumer, name)
                yield from self._of(consumer, name, spans, noted[name])
        finally:
            consumer.close()

    def _of(
        self,
        consumer: Any,
        name: str,
        spans: Mapping[int, tuple[int, int]],
        noted: Mapping[int, tuple[int, int]],
    ) -> Iterator[CopyRecord]:
        after = {place: low for place, (low, _high) in spans.items()}
        gone = {place for place, (low, _high) in spans.items() if low}
        for each in self._topic.read(consumer, name, spans):
            place, offset = each.partition(), each.offset()
            self.compacted |= offset > after[place]
            after[place] = offset + 1
            record = _record(each)
            if place in gone:
                self.expired = max(self.expired, record.seq)
                gone.remove(place)
            if record.kind != CHECKPOINT or offset < noted.get(place, (0, 0))[1]:
                yield record
        if gone:  # nothing is left in it that would say how far it went
            self.expired = _ALL

    def _ask_policy(self) -> None:
        of: Any = admin  # its stubs export no more than half of it
        resource = of.ConfigResource("topic", self._topic.name)
        try:
            asked = self._topic.opened(admin.AdminClient)
            found = asked.describe_configs([resource])[resource].result(TIMEOUT_S)
        except client.KafkaException:
            return  # not allowed: offsets that jump tell of it
        self.compacted = "compact" in str(found["cleanup.policy"].value)


def target(url: str) -> KafkaTarget:
    """Return the topic at *url*, to be written."""
    return KafkaTarget(url)


def copy(url: str) -> KafkaCopy:
    """Return the topic at *url*, to be read."""
    return KafkaCopy(url)


def _name(exc: client.KafkaException) -> str:
    return str(exc.args[0].name())


def _headers(message: Any) -> dict[str, bytes]:
    return {name: value or b"" for name, value in message.headers() or ()}


def _written(record: CopyRecord) -> dict[str, bytes]:
    """Return the headers of a record's message, each value in one spelling alone."""
    headers = {
        "schema": b"1",
        "origin": record.origin.encode(),
        "kind": record.kind.encode(),
        "seq": b"%d" % record.seq,
        "leaf": record.leaf.hex().encode(),
    }
    if (detail := record.detail) is not None:
        headers |= {"subject": detail.subject_uid.encode(), "dek": detail.dek_id.encode()}
        headers |= {"expires": b"%d" % detail.expires_us, "detail": detail.sealed}
    return headers


def _record(message: Any) -> CopyRecord:
    """Return the record of a message; one of no log, if it is not as it was sent."""
    known = _headers(message)
    value: bytes = message.value() or b""
    try:
        text = {name: each.decode() for name, each in known.items() if name != "detail"}
        detail = None
        if "detail" in known:
            owner = (text["subject"], text["dek"], known["detail"], int(text["expires"]))
            detail = SealedDetail(*owner)
        at = (text["origin"], text["kind"], int(text["seq"]), (message.key() or b"").decode())
        record = CopyRecord(*at, value, bytes.fromhex(text["leaf"]), detail)
        if record.kind in {EVENT, CHECKPOINT} and _written(record).items() <= known.items():
            return record
    except (KeyError, ValueError):
        pass
    return CopyRecord("", EVENT, 0, "", value, b"")
