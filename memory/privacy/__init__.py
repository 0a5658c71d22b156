"""
Redaction: replaces personal data before it leaves the process or enters a store.

* ``engine``: `Redactor` (one a process), `Redaction` (one a call), the detection engine, operators.
* ``detectors``: our own patterns, one file a family of entities, and their word lists.
* ``models``: the language models for names, the user's recognizers.
* ``vault``: what pseudonyms stand for, encrypted.

It fails closed: what cannot be redacted raises `RedactionError`.
"""
