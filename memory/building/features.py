"""
The features of this package, one row each: when a scope has it, and how it is made.

A row imports its room inside its maker: what is not configured is not imported.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..errors import ConfigurationError
from ..features import Feature, FeatureContext, FeatureFactory, load_features, not_configured
from .opening import purposes_of

if TYPE_CHECKING:
    from ...audit.log import AuditLog
    from ...telemetry.prometheus.live import Sample
    from ..accounting import ModelAccounting
    from ..budgets.budgets import Budgets
    from ..journal.journal import Journal
    from ..privacy.vault.vault import Vault
    from ..rules.rulebook import Rulebook
    from ..settings import Settings
    from ..subject_data.registry import SubjectDataRegistry


class Materials(NamedTuple):
    """
    What a feature is made with.

    Attributes:
        stores: What the wrapped clients' stores hold about people.
        audit: The audit trail, if that sink is on.
    """

    settings: Settings
    context: FeatureContext
    stores: SubjectDataRegistry
    audit: AuditLog | None


class FeatureRow(NamedTuple):
    """
    A feature that settings turn on.

    Attributes:
        name: Of its health check.
        setting: Its name in `Settings`. Where that is empty or 0, the feature is off.
        off: What its check says where they do not. Empty: there is no check.
        make: Makes it.
    """

    name: str
    setting: str
    off: str
    make: Callable[[Materials], Feature]


def _retention(given: Materials) -> Feature:
    path = given.settings.retention
    if path is None or not path.is_file():
        raise ConfigurationError(
            "MNEMOSCOPE_RETENTION: there is no such file: expected a YAML file of periods by "
            "purpose, as in docs/retention.md"
        )
    from ..retention.feature import retention_feature  # noqa: PLC0415 - only where it is wanted

    settings = given.settings
    return retention_feature(
        path,
        settings.audit_retention_days,
        has_trail=settings.sinks is None or "audit" in settings.sinks,
    )


def _growth(given: Materials) -> Feature:
    from ..growth.feature import growth_feature  # noqa: PLC0415 - only where it is wanted
    from ..growth.sampler import GrowthSampler  # noqa: PLC0415 - as above

    sampler = GrowthSampler(
        given.stores.named,
        purposes_of(given.audit),
        limits=given.settings.growth_limits,
        path=given.settings.growth_file,
        every_s=given.settings.growth_every_s,
        faults=given.context.faults,
    )
    return growth_feature(sampler)


def _integrity(given: Materials) -> Feature:
    from ..integrity.feature import integrity_feature  # noqa: PLC0415 - only where it is wanted

    return integrity_feature(given.context, str(given.settings.integrity))


def _shared_recalls(given: Materials) -> Feature:
    from ..shared_recalls.sharing import shared_recalls  # noqa: PLC0415 - only where it is wanted

    return Feature(steps=(shared_recalls(given.settings.shared_recalls_s, time.monotonic),))


OUTSIDE: Sequence[FeatureRow] = (
    FeatureRow(
        "growth",
        "growth_every_s",
        "MNEMOSCOPE_GROWTH_EVERY_S is 0: stores are not measured",
        _growth,
    ),
    FeatureRow(
        "retention",
        "retention",
        "MNEMOSCOPE_RETENTION is not set: no record goes by age",
        _retention,
    ),
)
"""In front of other packages' features: their steps see a call first, and its answer last."""

INSIDE: Sequence[FeatureRow] = (
    # What it withholds no other feature sees.
    FeatureRow(
        "integrity",
        "integrity",
        "MNEMOSCOPE_INTEGRITY is not set: what is read is not compared with what was written",
        _integrity,
    ),
    FeatureRow("shared recalls", "shared_recalls_s", "", _shared_recalls),
)
"""Behind them, next to the store."""


def make_features(given: Materials, extra: Sequence[FeatureFactory]) -> list[Feature]:
    """
    Return the features that settings ask for, and *extra*, in the order of their steps.

    Raises:
        ConfigurationError: One is not installed, or its settings make no sense.
    """
    others = load_features(given.settings.features, given.context)
    return [
        *(_made(row, given) for row in OUTSIDE),
        *others,
        *(make(given.context) for make in extra),
        *(_made(row, given) for row in INSIDE),
    ]


def _made(row: FeatureRow, given: Materials) -> Feature:
    if getattr(given.settings, row.setting):
        return row.make(given)
    return not_configured(row.name, row.off) if row.off else Feature()


# -- what a scope is given as objects ----------------------------------------------------------


def rules_feature(rulebook: Rulebook | None) -> Feature:
    """Return the steps, the observer and the samples of rules."""
    if rulebook is None:
        return Feature()
    from ...telemetry.prometheus.live import SampleSource  # noqa: PLC0415 - only where wanted
    from ..rules.maker import rule_steps  # noqa: PLC0415 - as above
    from ..rules.observer import RuleObserver  # noqa: PLC0415 - as above

    sources = [each for each in rulebook.rules if isinstance(each, SampleSource)]
    return Feature(
        steps=(rule_steps(rulebook),),
        observers=(RuleObserver(rulebook),),
        samples=lambda: [sample for each in sources for sample in each.samples()],
    )


def gates_feature(accounting: ModelAccounting) -> Feature:
    """Return the samples of approval gates, once there is a rule that asks humans."""

    def samples() -> Iterable[Sample]:
        if accounting.decisions is None:
            return ()
        from ..rules.gate_samples import gate_samples  # noqa: PLC0415 - only where there are rules

        return gate_samples(accounting.decisions)

    return Feature(samples=samples)


def journal_feature_of(journal: Journal | None, wall_ns: Callable[[], int]) -> Feature:
    """Return the step, the check and the samples of a journal."""
    if journal is None:
        said = "MNEMOSCOPE_JOURNAL is not set: writes that a store does not take are lost"
        return not_configured("journal", said)
    from ..journal.feature import journal_feature  # noqa: PLC0415 - only where it is wanted

    return journal_feature(journal, wall_ns)


def vault_feature(vault: Vault | None) -> Feature:
    """Return the check of a vault."""
    if vault is None:
        said = "MNEMOSCOPE_VAULT is not set: originals of pseudonyms are not stored"
        return not_configured("vault", said)
    from ..vault_door import vault_check  # noqa: PLC0415 - only where it is wanted

    return Feature(checks={"vault": lambda: vault_check(vault.file)})


def budgets_feature_of(budgets: Budgets | None) -> Feature:
    """Return the check and the samples of budgets."""
    if budgets is None:
        return not_configured("budgets", "none is set")
    from ..budgets.feature import budgets_feature  # noqa: PLC0415 - only where it is wanted

    return budgets_feature(budgets)
