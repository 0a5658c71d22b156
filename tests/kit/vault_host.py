"""A scope with a vault, for the tests of the vault."""

from __future__ import annotations

from mnemoscope.memory import Mnemoscope, context, load_settings
from mnemoscope.memory.api import Method, Operation, OperationClass, Subject
from mnemoscope.memory.testing import CapturingSink
from mnemoscope.telemetry.event.subject import SubjectKeys

KEY = "00112233445566778899aabbccddeeff"
NAME, MAIL, SECRET = "Jennifer Smith", "jennifer.smith@example.com", "hunter2!xyz"
TEXT = f"My name is {NAME}, mail {MAIL}, password: {SECRET}"
WRITE = Method(
    name="write",
    operation="create_memory",
    op_class=OperationClass.REMEMBER,
    redact=lambda given, redaction: {"text": redaction.text(given["text"])},
    unconfined="it keeps one text",
)


class Host:
    """
    A scope with a vault, and a store that remembers what it was given.

    Attributes:
        scope: The scope.
        sink: Its sink.
        path: Its vault.
    """

    def __init__(self, path, **settings):
        self.path = path
        self.sink = CapturingSink()
        given = {
            "audit_pseudonym_key": KEY,
            "pii_model": "none",
            "pii_operators": "*=pseudonym",
            "vault": path,
            "deadline_recall_s": 30,
        }
        self._keys = SubjectKeys(bytes.fromhex((given | settings)["audit_pseudonym_key"]))
        self.scope = Mnemoscope(load_settings(**(given | settings)), only_sinks=[self.sink])
        self.parts = self.scope._parts
        self._guard = self.parts.guards.guard("store")

    def write(self, text=TEXT, *, customer="c-1", tenant="acme"):
        """Return *text* as the store was given it."""
        with context(customer=customer, tenant=tenant):
            return self._guard.call(Operation(WRITE, {"text": text}), lambda given: given["text"])

    def reveal(self, text, *, customer="c-1", tenant="acme"):
        """Return *text* as it is shown to *customer*."""
        return self.scope.reveal(text, customer=customer, tenant=tenant)

    def bytes_at_rest(self):
        """Return all that is in the vault's folder."""
        files = [each for each in self.path.parent.rglob("*") if each.is_file()]
        return b"".join(each.read_bytes() for each in files)

    def subject(self, customer, tenant):
        """Return what *customer* is known as in the vault."""
        return Subject(customer, tenant=tenant, keys=self._keys).hashed("vault/subject")
