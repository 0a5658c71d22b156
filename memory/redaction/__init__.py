"""
Redaction: what leaves the process, or enters a store, has been through here.

``redactor`` is what a process holds, ``session`` what one call does: it ``walk``s values, and has
each text searched by the ``engine`` and replaced by the ``operators``. The engine asks ``clues``
first, then only the detectors that these call for (``contacts``, ``addresses``, ``numbers``,
``labels``, ``credentials``, ``persons``, ``known``), and ``presidio`` for national numbers and for
the language ``model``. ``segments`` redacts text that arrives in pieces. It fails
closed: whatever cannot be redacted raises `RedactionError`.
"""
