"""uvicorn, with the patience of a server that others reach: slow clients, floods, the end.

uvicorn reads a request, however long its headers, for as long as it takes, and waits for readers
for ever. Here all three have a bound, as has the number of connections; and a SIGTERM first lets
runs end, while what is there already is still answered.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, ClassVar

from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from osler.settings import ServeSettings
from osler_serve.state import ServerState

_HEADER_BYTES = 32 * 1024
_FULL_BODY = (
    b'{"type":"urn:osler:problem:full","title":"Not now","status":503,"code":"full",'
    b'"detail":"too many connections","instance":"/","retry_after":1}'
)
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: application/problem+json\r\nContent-Length: "
    + str(len(_FULL_BODY)).encode()
    + b"\r\n\r\n"
    + _FULL_BODY
)
_END_SECONDS = 5


class BoundedProtocol(HttpToolsProtocol):
    """Bounds the time for a request and for a reader, and the headers and connections."""

    bounds: ClassVar[ServeSettings]
    _deadline: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    # Bytes of the address and the headers that were read whole.
    _head = 0
    # Whether a request has begun whose headers are not all there.
    _coming = False
    # Bytes that came while one was coming.
    _waiting = 0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > self.bounds.connections:
            transport.write(_FULL)
            transport.close()
            return
        self._wait_for_request()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._is_idle:
            self._wait_for_request()
        super().data_received(data)
        if not self._is_idle:
            self._cancel_timer()
        # Only of headers: the rest of a body whose request is answered already is passed over.
        elif self._coming and not self.transport.is_closing():
            self._waiting += len(data)
            if self._waiting > _HEADER_BYTES:
                self.send_400_response("Headers too long.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head, self._coming = 0, True

    def on_url(self, url: bytes) -> None:
        self._count_bytes(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_bytes(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._waiting, self._coming = 0, False
        super().on_headers_complete()

    def _count_bytes(self, more: int) -> None:
        """Raises `ValueError`, which the parser makes a 400 of."""
        self._head += more
        if self._head > _HEADER_BYTES:
            raise ValueError("headers too long")

    @property
    def _is_idle(self) -> bool:
        """Whether no request is being answered. From its first byte on, a request has
        so long to bring its headers; its body is timed by the guard."""
        return self.cycle is None or self.cycle.response_complete

    def _wait_for_request(self) -> None:
        if self._deadline is None:
            wait = self.bounds.client_seconds
            self._deadline = self.loop.call_later(wait, self.transport.abort)

    def _cancel_timer(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def pause_writing(self) -> None:
        super().pause_writing()
        wait = self.bounds.client_seconds
        self._unread = self.loop.call_later(wait, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        if self._unread is not None:
            self._unread.cancel()
        super().connection_lost(exc)


def protocol_with(limits: ServeSettings) -> type[HttpToolsProtocol]:
    """The protocol with these bounds: a class, of which uvicorn makes one for each connection."""

    class LimitedProtocol(BoundedProtocol):
        bounds = limits

    return LimitedProtocol


class DrainingServer(Server):
    """Lets what runs come to its end before it closes."""

    def __init__(self, config: Config, site: ServerState) -> None:
        super().__init__(config)
        self._site = site

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._site.desk.drain(self._site.settings.serve.drain_seconds)
        await super().shutdown(sockets)


def build_server(app: Any, site: ServerState) -> DrainingServer:
    """Ready to `serve` the app on sockets of the caller's."""
    limits = site.settings.serve
    config = Config(
        app,
        http=protocol_with(limits),
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        timeout_keep_alive=int(max(1, limits.client_seconds)),
        timeout_graceful_shutdown=_END_SECONDS,
        lifespan="on",
        proxy_headers=False,
    )
    return DrainingServer(config, site)


def open_sockets(host: str, port: int) -> socket.socket:
    """Raises `OSError` where the address cannot be taken."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(kind, socket.SOCK_STREAM)
    # A restarted server takes its port back while old connections are in TIME_WAIT.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host.strip("[]"), port))
        sock.listen(2048)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock
