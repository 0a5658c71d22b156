"""Values that are made at random and reach nobody, alone and in a few words, in any number."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.privacy.corpora.document import Document, Half

from .templates import Template
from .values import Values

_KINDS = {
    "UUIDs": ("<<uuid>>", "thread:<<uuid>>", "The run <<uuid>> was resumed.", '{"id":"<<uuid>>"}'),
    "hashes": ("<<hex:32>>", "<<hex:40>>", "<<hex:64>>", "sha256:<<hex:64>>", "at <<hex:7>> now"),
    "ids": ("<<ulid>>", "<<hex:24>>", "req_<<token:24>>", "call_<<token:24>>", "<<token:21>>"),
    "base64": ("<<b64:32>>", "sha384-<<b64:48>>", "etag <<b64:18>>", "h1:<<b64:32>>"),
    "timestamps": (
        "<<time:%Y-%m-%dT%H:%M:%S.%fZ>>",
        "<<time:%Y-%m-%d %H:%M:%S%z>>",
        "<<time:%Y-%m-%dT%H:%M:%S>>+0700",
        "<<time:%d/%b/%Y:%H:%M:%S>> +0700",
        "<<time:%a, %d %b %Y %H:%M:%S %z>>",
        "<<time:%Y%m%d%H%M%S>>",
        "<<time:%d.%m.%Y %H:%M>>",
        "<<epoch>>",
        "<<epoch:3>>",
        "at <<epoch:9>>",
    ),
    "versions": (
        "<<version>>",
        "v<<version:2>>",
        "version <<version:4>>",
        "<<int:0-9>>.<<int:0-99>>.<<int:0-99>>-<<int:1-9>>",
        "libfoo <<version>>+dfsg-<<int:1-9>>ubuntu<<int:1-9>>.<<int:1-9>>",
        "foo==<<version>>",
    ),
    "order numbers": (
        "order <<digits:8>>",
        "Order #<<int:100000-9999999>>",
        "ORD-<<digits:4>>-<<digits:6>>",
        "invoice <<time:%Y>>-<<digits:5>>",
        "Bestellung <<digits:10>>",
        "SKU <<hexup:3>>-<<digits:5>>",
    ),
    "amounts": (
        "EUR <<money:1-900000>>",
        "$<<money:1-90000>>",
        "<<num:0-99-4>>",
        "<<int:1-99999>>",
    ),
    "coordinates": ("<<lat>>, <<lon>>", "lat=<<lat>> lon=<<lon>>", "[<<lon>>,<<lat>>]"),
}


def random_values(half: Half, count: int, *, seed: int = 0) -> Iterator[Document]:
    """Yield *count* values of each kind, by turns in each of its forms; the genre is the kind."""
    random = Random(f"{half} {seed}")  # noqa: S311 - it keeps no secret
    for kind, forms in _KINDS.items():
        templates = [Template(f"{kind}/{form}", kind, "", form) for form in forms]
        for number in range(count):
            template = templates[number % len(templates)]
            text = template.fill(Values(random, half, {}))
            yield Document(text, (), language="", genre=kind, template=template.name)
