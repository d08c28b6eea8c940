"""Which addresses are called, and that it is the checked one that is called."""

from __future__ import annotations

import httpx2
import pytest
from loopback import (
    NamedHostRequest,
    NetworkFactory,
    redirect_reply,
    serve_named_hosts,
    whole_reply,
)

from osler.errors import SourceUnavailable
from osler.sources.online.address_guard import (
    AddressRefused,
    GuardedTransport,
    is_public,
    resolve_host,
)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - an address, not a binding
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::10.0.0.1",
        "2002:7f00:1::",
        "not an address",
    ],
)
def test_ssrf_private_network_addresses_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"]
)
def test_ssrf_internet_addresses_are_public(address: str) -> None:
    assert is_public(address)


async def test_the_system_s_own_names_are_resolved() -> None:
    assert set(await resolve_host("localhost", 80)) <= {"127.0.0.1", "::1"}


async def test_ssrf_name_that_resolves_to_a_private_address_is_refused_unless_allowed(
    lines: NetworkFactory,
) -> None:
    async with serve_named_hosts(lambda asked: whole_reply({"ok": 1})) as server:
        call = server.url_of("searx.test")
        async with httpx2.AsyncClient(transport=GuardedTransport(resolve=_loop)) as client:
            with pytest.raises(AddressRefused, match="private network"):
                await client.get(call)
        assert server.asked == []
        named = GuardedTransport(frozenset({"SEARX.test"}), resolve=_loop)
        async with httpx2.AsyncClient(transport=named) as client:
            assert (await client.get(call)).json() == {"ok": 1}


async def _loop(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


async def test_ssrf_one_private_address_among_public_ones_is_refused() -> None:
    async def both(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "10.0.0.1"]

    async with httpx2.AsyncClient(transport=GuardedTransport(resolve=both)) as client:
        with pytest.raises(AddressRefused):
            await client.get("http://two-faced.example/")


async def test_ssrf_connection_goes_to_the_address_that_was_checked(lines: NetworkFactory) -> None:
    """A name that would resolve elsewhere a moment later is asked for its address only once."""
    asked_for: list[str] = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked_for.append(host)
        return ["127.0.0.1"] if len(asked_for) == 1 else ["169.254.169.254"]

    def answer(asked: NamedHostRequest) -> bytes:
        return whole_reply({"host": asked.headers["host"]})

    async with serve_named_hosts(answer) as server:
        transport = GuardedTransport(frozenset({"rebound.test"}), resolve=rebinding)
        async with httpx2.AsyncClient(transport=transport) as client:
            reply = await client.get(server.url_of("rebound.test"))

    assert reply.json() == {"host": f"rebound.test:{server.port}"}
    assert asked_for == ["rebound.test"]


@pytest.mark.parametrize(
    "url", ["ftp://en.wiki.test/x", "http://user:secret@en.wiki.test/", "http://[::1]:1/"]
)
async def test_ssrf_other_schemes_logins_and_literal_private_addresses_are_refused(
    url: str, lines: NetworkFactory
) -> None:
    from osler.sources.online.client import HttpCall

    with pytest.raises(SourceUnavailable):
        await lines().get(HttpCall(url))


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:1/",
        "http://[::ffff:169.254.169.254]/",
        "http://inner.test/",
        "file:///etc/passwd",
        "gopher://en.wiki.test/",
    ],
)
async def test_ssrf_redirect_target_is_checked(target: str, lines: NetworkFactory) -> None:
    from osler.sources.online.client import HttpCall

    async with serve_named_hosts(lambda asked: redirect_reply(target)) as server:
        with pytest.raises(SourceUnavailable):
            await lines().get(HttpCall(server.url_of("en.wiki.test", "/start")))
    assert [asked.path for asked in server.asked] == ["/start"] * len(server.asked)
