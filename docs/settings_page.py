"""Write docs/settings.md, the list of all settings, from their model: ``make reference``."""

from __future__ import annotations

from pathlib import Path

from docstrings import bullet, fill, parse
from msgspec import inspect

from mnemoscope.memory import Settings
from mnemoscope.memory.settings import kind_in_words, variable_of

PAGE = Path(__file__).parent / "settings.md"

HEAD = """\
# Settings

Each setting is an environment variable `MNEMOSCOPE_<NAME>` and, in lower case and without the
prefix, a keyword argument of `configure()` and `load_settings()`, which wins over the environment
(`raise_` for `MNEMOSCOPE_RAISE`).
A setting that makes no sense is refused when the scope is built, in one line that names the
variable and never quotes its value.

<!-- Written by docs/settings_page.py (make reference). -->
"""

STANDARD = """\
## Standard variables

These mean what they mean everywhere:
"""

STANDARD_VARIABLES = (
    (
        "`OTEL_EXPORTER_OTLP_ENDPOINT`, `…_TRACES_ENDPOINT`, `…_METRICS_ENDPOINT`",
        "where the otlp sink sends; set, that sink is on. A provider of the host's comes first.",
    ),
    (
        "`OTEL_EXPORTER_OTLP_PROTOCOL`, and for each signal",
        "`grpc` or `http/protobuf`. Unset: HTTP if the endpoint's port is 4318, else gRPC.",
    ),
    (
        "`OTEL_EXPORTER_OTLP_TIMEOUT`, and for each signal",
        "followed where shorter than the sink's own: 2 s for traces, 1 s for metrics.",
    ),
    (
        "`OTEL_EXPORTER_OTLP_HEADERS`, `…_CERTIFICATE`, `…_COMPRESSION` and their like",
        "read by the exporters.",
    ),
    ("`OTEL_TRACES_EXPORTER`, `OTEL_METRICS_EXPORTER`", "`none` switches that signal off."),
    ("`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`", "the resource of spans and metrics."),
    ("`OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG`", "the sampling of spans."),
    (
        "`OTEL_METRIC_EXPORT_INTERVAL`",
        "milliseconds between two exports of metrics, 60,000 by default.",
    ),
    (
        "`OTEL_METRICS_EXEMPLAR_FILTER`, `OTEL_SDK_DISABLED` and their like",
        "as for every application of the OpenTelemetry SDK.",
    ),
    (
        "`OTEL_PYTHON_DISABLED_INSTRUMENTATIONS`",
        "with `mnemoscope` in it, `opentelemetry-instrument` guards nothing.",
    ),
    (
        "`LANGSMITH_TRACING`, `LANGSMITH_TRACING_V2`, `LANGCHAIN_TRACING`, `LANGCHAIN_TRACING_V2`",
        "`true` switches the langsmith sink on.",
    ),
    (
        "`LANGSMITH_API_KEY`, `LANGSMITH_ENDPOINT`, `LANGSMITH_PROJECT`",
        "where the langsmith sink sends. The older names, `LANGCHAIN_…`, are followed too.",
    ),
    (
        "`PROMETHEUS_MULTIPROC_DIR`",
        "metrics of several processes: see [Traces, metrics and logs](telemetry.md).",
    ),
    (
        "`MEM0_TELEMETRY`",
        "mem0's own telemetry. Unset: it is switched off when a mem0 client is wrapped.",
    ),
    ("`MNEMOSCOPE_NOTICE`", "on the command line, stands for `--notice FILE` of `audit export`."),
    ("`MNEMOSCOPE_SCOPE`", "on the command line, stands for `--scope package.module:name`."),
)


def page() -> str:
    """Return the page."""
    meanings = dict(parse(Settings.__doc__).items("Attributes"))
    parts = [HEAD]
    for field in inspect.type_info(Settings).fields:
        parts.append(f"## {variable_of(field.name)}\n")
        parts.append(f"* Type: {kind_in_words(field.type)}\n* Default: {default_of(field)}\n")
        parts.append(fill(meanings[field.name].replace("None:", "Unset:")) + "\n")
    standard = (bullet(f"{names}: {meaning}") for names, meaning in STANDARD_VARIABLES)
    return "\n".join((*parts, STANDARD, *standard)) + "\n"


def default_of(field: inspect.Field) -> str:
    """Return the default of a setting in words."""
    value = field.default
    if value in (None, (), inspect.NODEFAULT):  # a mapping has a factory
        return "unset"
    if isinstance(value, bool):
        return f"`{int(value)}`"
    if isinstance(value, float):
        return f"`{value:g}`"
    return f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
