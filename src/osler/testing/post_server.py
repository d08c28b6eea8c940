"""A server of one's own on loopback, for clients to be tried on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class PostRequest:
    path: str
    key: str
    """The header's, "" where there was none."""
    body: Any


@dataclass(frozen=True)
class PostReply:
    """A reply; `body` is JSON unless it is bytes, which are sent as they are."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class PostServer:
    url: str
    """Ends in `/v1`."""
    asked: list[PostRequest] = field(default_factory=list)


@contextmanager
def serve_posts(answer: Callable[[PostRequest], PostReply | None]) -> Iterator[PostServer]:
    """Answers POSTs as `answer` says; `None` hangs up without a word."""
    place = PostServer("")

    class PostHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = PostRequest(self.path, self.headers.get("Authorization", ""), json.loads(body))
            place.asked.append(asked)
            said = answer(asked)
            if said is None:
                self.close_connection = True
                return
            self.send_response(said.status)
            for name, value in {"Content-Type": "application/json", **said.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(said.content)))
            self.end_headers()
            self.wfile.write(said.content)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), PostHandler)
    server.daemon_threads = True
    place.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield place
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
