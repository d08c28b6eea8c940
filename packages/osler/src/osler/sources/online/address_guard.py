"""Guard against requests into private networks: resolves names, checks and pins the address.

A web page can redirect a client anywhere, to the machine's own services too. So only http and
https are allowed, and the connection goes to the very address that was checked: a name that
resolves to another address a moment later (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import httpx2

from osler.errors import SourceUnavailable

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Resolves a host and port to addresses. Raises `OSError`."""

# RFC 6052: the last 32 bits of such an address are an IPv4 address.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class AddressRefused(SourceUnavailable):
    """An address that must not be called."""


async def resolve_host(host: str, port: int) -> list[str]:
    """The addresses of a name by the system's resolver."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in infos))


def is_public(address: str) -> bool:
    """Whether an address is public: not private, loopback, link-local, multicast or reserved.

    An IPv6 address that embeds IPv4 addresses is as public as these.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inside: list[ipaddress.IPv4Address] = [
            each for each in (ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())) if each
        ]
        if ip in _NAT64:
            inside.append(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF))
        if inside:
            return all(is_public(str(each)) for each in inside)
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def refuse_private(request: httpx2.Request, own_host: str) -> list[str]:
    """The addresses that the request may go to, of a host that is not `own_host`, the one that the
    user named; none of a name that only a proxy may know. Blocks.

    Raises `AddressRefused` for a request, as of a redirect, that leads into a private network.
    """
    host = request.url.host
    if host == own_host:
        return []
    try:
        infos = socket.getaddrinfo(host, request.url.port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    addresses = list(dict.fromkeys(str(each[4][0]) for each in infos))
    if request.url.scheme not in {"http", "https"} or not all(map(is_public, addresses)):
        raise AddressRefused(
            f"{host} leads into a private network and is not called",
            fix="name it with --mirror if it is yours",
        )
    return addresses


class PinnedTransport(httpx2.BaseTransport):
    """Connects to the very addresses that `refuse_private` has checked, one after the other."""

    def __init__(self, own_host: str) -> None:
        self._own_host = own_host
        self._inner = httpx2.HTTPTransport(trust_env=False, retries=0)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        addresses = refuse_private(request, self._own_host)
        for address in addresses[:-1]:
            with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                return self._inner.handle_request(_pin_request(request, address))
        last = [_pin_request(request, address) for address in addresses[-1:]]
        return self._inner.handle_request(last[0] if last else request)

    def close(self) -> None:
        self._inner.close()


def _pin_request(request: httpx2.Request, address: str) -> httpx2.Request:
    """The request to this address; its `Host` and its certificate stay the name's."""
    extensions: dict[str, Any] = dict(request.extensions)
    if request.url.scheme == "https":
        extensions["sni_hostname"] = request.url.host
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions=extensions,
    )


class GuardedTransport(httpx2.AsyncBaseTransport):
    """A transport that calls public addresses only. Raises `AddressRefused` for others."""

    def __init__(
        self,
        private_hosts: frozenset[str] = frozenset(),
        *,
        resolve: Resolve = resolve_host,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._private = frozenset(host.lower() for host in private_hosts)
        """Hosts of the user's own network that the settings allow."""
        self._resolve = resolve
        self._inner = httpx2.AsyncHTTPTransport(
            verify=tls or httpx2.create_ssl_context(), trust_env=False, retries=0
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        host = url.host
        if url.scheme not in {"http", "https"} or not host or url.userinfo:
            raise AddressRefused(
                f"{url.scheme or 'no'} address refused: only plain http(s) is called"
            )
        address = await self._check_host(host, url.port or (443 if url.scheme == "https" else 80))
        return await self._inner.handle_async_request(_pin_request(request, address))

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _check_host(self, host: str, port: int) -> str:
        try:
            addresses = await self._resolve(host, port)
        except OSError as error:
            raise httpx2.ConnectError(f"no such host: {host}") from error
        if not addresses:
            raise httpx2.ConnectError(f"no address of {host}")
        if host.lower() not in self._private and not all(map(is_public, addresses)):
            raise AddressRefused(
                f"{host} leads into a private network and is not called",
                fix="name the host in net.private_hosts if it is yours",
            )
        return addresses[0]
