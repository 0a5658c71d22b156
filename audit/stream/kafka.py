"""A copy in a topic of Kafka, whose order is in the numbers of its records."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
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

_FORM: Final = "kafka://HOST:PORT[,HOST:PORT…]/TOPIC[?config=FILE]; a password stands in the file"
_TAIL, _ALL = 64, 1 << 62
_Offsets = Mapping[int, tuple[int, int]]  # of each partition the first, and that after the last


class KafkaTopic:
    """A topic, written by an idempotent producer, and read by a consumer that joins no group."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        query = dict(parse_qsl(parts.query))
        path = query.pop("config", None)
        name = parts.path.strip("/")
        if "@" in parts.netloc or query or not (parts.netloc and re.fullmatch(r"[\w.-]+", name)):
            raise ValueError(f"a topic is at {_FORM}")
        self.expired = self._acked = 0
        self.compacted, self.wrong = False, ()
        self.unread: dict[str, tuple[int, int]] = {}
        self._name, self._dead = name, f"{name}.dead"
        lines = Path(path).read_text(encoding="utf-8").splitlines() if path else []
        said = [each.partition("=") for each in lines if each.strip() and each.lstrip()[0] != "#"]
        self._settings: dict[str, Any] = {option.strip(): to.strip() for option, _, to in said}
        self._settings |= {"bootstrap.servers": parts.netloc, "log_level": 0}

    def resume_at(self, origin: str, /) -> int:
        """Return how far the last records were acknowledged, and those follow without a hole."""
        acked, seen = 0, set[int]()
        with closing(self._consumer()) as consumer:
            for name in (self._name, self._dead):
                for place, span in self._offsets(consumer, name).items():
                    for mark, records in self._backwards(consumer, name, place, span, origin):
                        acked = max(acked, mark)
                        seen.update(each.seq for each in records if each.kind == EVENT)
                        if any(each.seq < acked for each in records):
                            break
        while acked in seen:
            acked += 1
        self._acked = acked
        return acked

    def _backwards(
        self, consumer: Any, name: str, place: int, span: tuple[int, int], origin: str
    ) -> Iterator[tuple[int, list[CopyRecord]]]:
        """Yield a log's records in more and more of a partition's end, and the last mark in it."""
        (low, stop), length = span, _TAIL
        while stop > low:  # past records of others
            start = max(low, stop - length)
            messages = [*self._read(consumer, name, {place: (start, stop)})]
            ours = [each for each in messages if _record(each).origin == origin]
            marks = [_headers(each).get("acked", b"") for each in ours]
            mark = max([int(each) for each in marks if each.isdigit()], default=0)
            yield mark, [*map(_record, ours)]
            stop, length = start, length * 8

    def send(self, records: Sequence[CopyRecord], /) -> int:
        """Send *records*, those that do not fit the schema to the topic of the dead letters."""
        faults: Counter[str] = Counter()
        set_aside = 0
        for each in records:
            reason = self._reason(each)
            headers = _written(each) | {"acked": b"%d" % self._acked}
            if reason is None:
                self._produce(self._name, each, headers, faults)
            else:
                set_aside += 1
                self._produce(self._dead, each, headers | {"reason": reason.encode()}, faults)
        while self._producer.flush(0.5):  # each is acknowledged or given up in the end
            pass
        if faults:
            said = ", ".join(f"{name} {number:,} times" for name, number in faults.items())
            raise CopyError(f"the topic did not take all records ({said})")
        self._acked = max(each.seq + (each.kind == EVENT) for each in records)
        return set_aside

    def _produce(
        self, topic: str, record: CopyRecord, headers: dict[str, bytes], faults: Counter[str]
    ) -> None:
        def acknowledged(error: Any, _message: Any) -> None:
            if error is not None:
                faults[error.name()] += 1

        sent = {"value": record.header, "key": record.key, "headers": list(headers.items())}
        while True:
            try:
                self._producer.produce(topic, **sent, on_delivery=acknowledged)
            except BufferError:  # the client's queue is full: that many are under way
                self._producer.poll(1)
            except client.KafkaException as exc:
                what = f"the topic cannot take event {record.seq:,} ({_fault(exc)})"
                raise CopyError(f"{what}: see message.max.bytes") from None
            else:
                return

    def _reason(self, record: CopyRecord) -> str | None:
        """Return where the header breaks the schema; never with what. None: it does not."""
        try:
            known = orjson.loads(record.header) if record.kind == EVENT else None
        except ValueError:
            return "not JSON"
        wrong = next(self._schema.iter_errors(known), None) if record.kind == EVENT else None
        return None if wrong is None else "/".join(map(str, wrong.schema_path))

    @cached_property
    def _schema(self) -> Any:
        bundle = files("mnemoscope.audit.bundle") / "bundle.schema.json"
        schema = json.loads(bundle.read_bytes())
        return jsonschema_rs.validator_for(schema | {"$ref": "#/$defs/header"})

    @cached_property
    def _producer(self) -> Any:
        # In this order, and each once, whatever a broker's death has it send again.
        wanted = {"enable.idempotence": True, "acks": "all"}
        return self._client(client.Producer, **wanted, **{"delivery.timeout.ms": TIMEOUT_S * 1_000})

    def close(self) -> None:
        """Give up what is under way."""
        if "_producer" in self.__dict__:
            self._producer.purge()
            self._producer.flush(1)

    def records(self) -> Iterator[CopyRecord]:
        """Yield what the partitions have now, one after the other within each."""
        with closing(self._consumer()) as consumer:
            self._ask_policy()
            names = (self._name, self._dead)
            noted = [self._offsets(consumer, name) for name in names]
            # Asked again: what a checkpoint covers was acknowledged before it was sent, so that it
            # is behind no later end.
            for name, before in zip(names, noted, strict=True):
                spans = self._offsets(consumer, name)
                yield from self._of(self._read(consumer, name, spans), spans, before)

    def _of(
        self, messages: Iterator[Any], spans: _Offsets, before: _Offsets
    ) -> Iterator[CopyRecord]:
        after = {place: low for place, (low, _stop) in spans.items()}
        gone = {place for place, (low, _stop) in spans.items() if low}
        for each in messages:
            place, offset, record = each.partition(), each.offset(), _record(each)
            self.compacted |= offset > after[place]
            after[place] = offset + 1
            if place in gone:
                self.expired = max(self.expired, record.seq)
                gone.remove(place)
            if record.kind != CHECKPOINT or offset < before.get(place, (0, 0))[1]:
                yield record
        if gone:  # nothing is left in it that would say how far it went
            self.expired = _ALL

    def _ask_policy(self) -> None:
        of: Any = admin  # its stubs export no more than half of it
        resource = of.ConfigResource("topic", self._name)
        try:
            asked = self._client(admin.AdminClient)
            found = asked.describe_configs([resource])[resource].result(TIMEOUT_S)
        except client.KafkaException:
            return  # not allowed: offsets that jump tell of it
        self.compacted = "compact" in str(found["cleanup.policy"].value)

    def _client(self, kind: Any, **settings: Any) -> Any:
        try:
            return kind(self._settings | settings)
        except client.KafkaException as exc:
            # What is wrong in the file may be a secret, and is not quoted.
            raise CopyError(f"Kafka's client refuses its settings ({_fault(exc)})") from None

    def _consumer(self) -> Any:
        wanted = {"group.id": "mnemoscope", "enable.auto.commit": False}
        wanted |= {"auto.offset.reset": "earliest", "enable.partition.eof": True}
        return self._client(client.Consumer, **wanted)

    def _offsets(self, consumer: Any, name: str) -> _Offsets:
        give_up_at = time.monotonic() + TIMEOUT_S
        while True:
            try:
                found = consumer.list_topics(name, timeout=TIMEOUT_S).topics[name].partitions
                places = {each: client.TopicPartition(name, each) for each in sorted(found)}
                return {n: consumer.get_watermark_offsets(p, TIMEOUT_S) for n, p in places.items()}
            except client.KafkaException as exc:
                # A broker that was started just now leads no partition yet.
                if time.monotonic() > give_up_at:
                    raise CopyError(f"the topic cannot be asked ({_fault(exc)})") from None
                time.sleep(0.2)

    def _read(self, consumer: Any, name: str, spans: _Offsets) -> Iterator[Any]:
        """Yield the messages of offsets ``[start, stop)`` of partitions."""
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


target = copy = KafkaTopic


def _fault(exc: client.KafkaException) -> str:
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
    is_once = len(known) == len(message.headers() or ())
    value: bytes = message.value() or b""
    try:
        text = {name: each.decode() for name, each in known.items() if name != "detail"}
        detail = None
        if "detail" in known:
            owner = (text["subject"], text["dek"], known["detail"], int(text["expires"]))
            detail = SealedDetail(*owner)
        at = (text["origin"], text["kind"], int(text["seq"]), (message.key() or b"").decode())
        record = CopyRecord(*at, value, bytes.fromhex(text["leaf"]), detail)
        # A header that is there twice is another one to whoever takes the first.
        is_as_sent = is_once and _written(record).items() <= known.items()
        if is_as_sent and record.kind in {EVENT, CHECKPOINT}:
            return record
    except (KeyError, ValueError):
        pass
    return CopyRecord("", EVENT, 0, "", value, b"")
