"""A collector and a LangSmith in one, in a process of its own: takes everything, keeps nothing."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Swallows(BaseHTTPRequestHandler):
    """Answers each request with an empty success."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    do_GET = do_POST  # noqa: N815 - the name the server looks for

    def log_message(self, *_args: Any) -> None:
        return


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Swallows)
    print(server.server_address[1], flush=True)  # noqa: T201 - whoever started it reads the port
    server.serve_forever()
