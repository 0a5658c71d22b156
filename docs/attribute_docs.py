"""
The extension of the docs' build that shows each attribute with its own sentence and default.

Docstrings describe attributes in their class's list, which has no defaults and is no heading.
"""

from __future__ import annotations

from typing import Any

from griffe import Class, Docstring, DocstringSectionAttributes, Extension

SETTINGS = "mnemoscope.memory.settings.Settings"


class AttributeDocs(Extension):
    """Moves the sentences of a class's list of attributes to the attributes."""

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Move those of *cls*; a setting has its environment variable in front."""
        if cls.docstring is None:
            return
        for section in cls.docstring.parse("google"):
            if not isinstance(section, DocstringSectionAttributes):
                continue
            for each in section.value:
                member = cls.members.get(each.name)
                if member is not None and member.docstring is None:
                    text = each.description
                    if cls.path == SETTINGS:
                        text = f"`MNEMOSCOPE_{each.name.upper().rstrip('_')}`: {text}"
                    member.docstring = Docstring(text, parent=member)
