"""A file server on loopback, with ranges or without, that can break off and change its mind."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx2
import pytest

from osler.sources.download.transfer import Fetcher, RetryPolicy


@dataclass
class Shelf:
    """What the server has and how it behaves."""

    files: dict[str, bytes] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    """`Link` headers, by path and query."""
    ranges: bool = True
    cut_at: list[int] = field(default_factory=list)
    """Bytes after which each of the next replies breaks off."""
    busy: list[int] = field(default_factory=list)
    """Statuses of the next replies."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Path with query, and `Range`."""
    logins: list[str] = field(default_factory=list)
    change: Any = None
    """Called before each reply with the number of replies so far."""
    url: str = ""

    redirects: dict[str, str] = field(default_factory=dict)
    """Path → where it leads."""

    @property
    def ranges_asked(self) -> list[str]:
        return [range for _, range in self.asked]


def _handler(shelf: Shelf) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Silence."""

        def do_GET(self) -> None:
            asked = self.headers.get("Range", "")
            shelf.asked.append((self.path, asked))
            shelf.logins.append(self.headers.get("Authorization", ""))
            if shelf.change:
                shelf.change(len(shelf.asked))
            if shelf.busy:
                self._head(shelf.busy.pop(0), b"")
                return
            path = self.path.partition("?")[0]
            if path in shelf.redirects:
                self.send_response(302)
                self.send_header("Location", shelf.redirects[path])
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            body = shelf.files.get(self.path, shelf.files.get(path))
            if body is None:
                self._head(404, b"")
                return
            etag = shelf.etags.get(path, "")
            start = 0
            if asked and shelf.ranges and self.headers.get("If-Range") == etag:
                start = int(asked.removeprefix("bytes=").rstrip("-"))
                if start >= len(body):
                    self._head(416, b"", etag)
                    return
            span = f"bytes {start}-{len(body) - 1}/{len(body)}" if start else ""
            self._head(206 if start else 200, body[start:], etag, span)

        def _head(self, status: int, body: bytes, etag: str = "", span: str = "") -> None:
            self.send_response(status)
            path = self.path.partition("?")[0]
            self.send_header("Content-Type", shelf.types.get(path, "application/octet-stream"))
            self.send_header("Content-Length", str(len(body)))
            for name, value in (
                ("ETag", etag),
                ("Content-Range", span),
                ("Link", shelf.links.get(self.path, "")),
            ):
                if value:
                    self.send_header(name, value)
            self.end_headers()
            cut = shelf.cut_at.pop(0) if shelf.cut_at and body else len(body)
            self.wfile.write(body[:cut])
            if cut < len(body):
                self.close_connection = True

    return Handler


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    made = Shelf()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}/"
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def naps() -> list[float]:
    """Seconds that were waited, without waiting."""
    return []


@pytest.fixture
def fetcher(naps: list[float]) -> Iterator[Fetcher]:
    with httpx2.Client() as client:
        yield Fetcher(client, RetryPolicy(retries=3, seconds=5.0), naps.append)
