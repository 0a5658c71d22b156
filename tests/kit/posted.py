"""A server on the loopback that answers what is posted to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@contextmanager
def answering_posts(answer: Callable[[str, str, bytes], tuple[int, bytes]]) -> Iterator[str]:
    """
    Run a server for as long as the body runs, which is given its address without a last slash.

    Args:
        answer: Returns status and body for a path, a content type and a body.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, said = answer(self.path, self.headers["Content-Type"] or "", body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_given: Any) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
