"""Which addresses are called, and that it is the checked one that is called."""

from __future__ import annotations

import httpx2
import pytest

from osler.errors import SourceUnavailable
from osler.sources.online.address_guard import Guarded, Refused, is_public, resolved
from osler.testing.loopback import Asked, Lines, moved, said, serving


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
def test_no_address_of_a_private_network_is_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1::1", "::ffff:93.184.216.34", "64:ff9b::5db8:d822"]
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


async def test_the_system_s_own_names_are_resolved() -> None:
    assert set(await resolved("localhost", 80)) <= {"127.0.0.1", "::1"}


async def test_a_name_in_a_private_network_is_refused_unless_it_is_named(lines: Lines) -> None:
    async with serving(lambda asked: said({"ok": 1})) as server:
        call = server.url("searx.test")
        async with httpx2.AsyncClient(transport=Guarded(resolve=_loop)) as client:
            with pytest.raises(Refused, match="private network"):
                await client.get(call)
        assert server.asked == []
        named = Guarded(frozenset({"SEARX.test"}), resolve=_loop)
        async with httpx2.AsyncClient(transport=named) as client:
            assert (await client.get(call)).json() == {"ok": 1}


async def _loop(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


async def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    async def both(host: str, port: int) -> list[str]:
        return ["93.184.216.34", "10.0.0.1"]

    async with httpx2.AsyncClient(transport=Guarded(resolve=both)) as client:
        with pytest.raises(Refused):
            await client.get("http://two-faced.example/")


async def test_what_is_called_is_the_address_that_was_checked(lines: Lines) -> None:
    """A name that would resolve elsewhere a moment later is asked for its address only once."""
    asked_for: list[str] = []

    async def rebinding(host: str, port: int) -> list[str]:
        asked_for.append(host)
        return ["127.0.0.1"] if len(asked_for) == 1 else ["169.254.169.254"]

    def answer(asked: Asked) -> bytes:
        return said({"host": asked.headers["host"]})

    async with serving(answer) as server:
        transport = Guarded(frozenset({"rebound.test"}), resolve=rebinding)
        async with httpx2.AsyncClient(transport=transport) as client:
            reply = await client.get(server.url("rebound.test"))

    assert reply.json() == {"host": f"rebound.test:{server.port}"}
    assert asked_for == ["rebound.test"]


@pytest.mark.parametrize(
    "url", ["ftp://en.wiki.test/x", "http://user:secret@en.wiki.test/", "http://[::1]:1/"]
)
async def test_other_schemes_logins_and_literal_private_addresses_are_refused(
    url: str, lines: Lines
) -> None:
    from osler.sources.online.client import Call

    with pytest.raises(SourceUnavailable):
        await lines().get(Call(url))


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
async def test_a_redirect_is_checked_like_a_call(target: str, lines: Lines) -> None:
    from osler.sources.online.client import Call

    async with serving(lambda asked: moved(target)) as server:
        with pytest.raises(SourceUnavailable):
            await lines().get(Call(server.url("en.wiki.test", "/start")))
    assert [asked.path for asked in server.asked] == ["/start"] * len(server.asked)
