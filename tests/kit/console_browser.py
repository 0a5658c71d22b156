"""A browser at a console that is served inside of the test."""

from __future__ import annotations

import re
from typing import Any

from starlette.testclient import TestClient

ORIGIN = "http://127.0.0.1:8765"


class Browser(TestClient):
    """
    A browser at the site: follows redirects, and fills in the session's token.

    Args:
        app: The site's application.
    """

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, ORIGIN, **options)

    def csrf(self) -> str:
        """Return the token that the forms of this session carry."""
        return re.findall('name="csrf" value="([^"]+)"', self.get("/").text)[0]

    def submit(self, path: str, **fields: str) -> Any:
        """Post a form of this session as a browser does."""
        return self.post(path, data={"csrf": self.csrf(), **fields}, headers={"origin": ORIGIN})
