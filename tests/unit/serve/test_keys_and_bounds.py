"""Who is let in, and what happens when there are too many."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from osler.errors import BadConfig
from osler.serve.app import site
from osler.serve.keys import is_loopback, new_key
from osler.serve.ledger import FILE, Ledger
from osler.serve.problems import Refused
from osler.testing.served import Speaks, asked, events, filled, no_page, serving, settings_for
from osler.testing.waiting import Gate

PROBLEM = "application/problem+json"
OTHERS = ["0.0.0.0", "192.0.2.7", "::", "osler.example"]  # noqa: S104  where others reach it


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx2.Client, str]]:
    """A server that wanted a key from its first request on, and one."""
    folder = tmp_path_factory.mktemp("keyed")
    ledger = Ledger(folder / "serve")
    key = new_key(ledger, "one")
    ledger.close()
    with serving(folder) as place, httpx2.Client(base_url=place.url) as client:
        yield client, key


def bearing(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize("host", OTHERS)
def test_an_address_that_others_reach_is_refused_without_a_key(home: Path, host: str) -> None:
    filled(home)
    with pytest.raises(BadConfig, match="there is no key") as refused:
        site(settings_for(home, serve={"host": host}), no_page)
    assert "osler serve key add" in refused.value.fix


@pytest.mark.parametrize("host", OTHERS)
def test_an_address_that_others_reach_is_served_with_a_key_and_to_its_bearer_alone(
    home: Path, host: str
) -> None:
    ledger = Ledger(home / "serve")
    key = new_key(ledger, "one")
    ledger.close()
    made = site(settings_for(home, serve={"host": host}), no_page)
    assert made.settings.serve.host == host
    assert made.gate.caller(f"Bearer {key}").workspace == "default"
    for unknown in (None, f"Bearer {key}x"):
        with pytest.raises(Refused) as refused:
            made.gate.caller(unknown)
        assert refused.value.status == 401
    made.ledger.drop_key("one")
    with pytest.raises(Refused, match="wants a key"):  # taking the last key away opens nothing
        made.gate.caller(None)
    made.ledger.close()


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("localhost.evil.example", False),
        ("10.0.0.1", False),
        ("", False),
        ("2130706433", False),
    ],
)
def test_loopback_is_told_from_what_looks_like_it(host: str, own: bool) -> None:
    assert is_loopback(host) is own


def test_only_the_hash_of_a_key_is_stored_and_the_file_is_the_owner_s_alone(home: Path) -> None:
    ledger = Ledger(home / "serve")
    key = new_key(ledger, "one")
    ledger.close()
    data = b"".join(path.read_bytes() for path in (home / "serve").iterdir())
    assert key.encode() not in data
    assert key.rsplit("_", 1)[1].encode() not in data
    assert (home / "serve" / FILE).stat().st_mode & 0o077 == 0


def test_two_keys_cannot_have_one_name_and_names_are_plain(home: Path) -> None:
    ledger = Ledger(home / "serve")
    new_key(ledger, "one")
    with pytest.raises(BadConfig, match="already"):
        new_key(ledger, "one")
    for name in ("", "a b", "../x", "x" * 65):
        with pytest.raises(BadConfig, match="no name"):
            new_key(ledger, name)
    ledger.close()


def test_every_route_wants_a_key_once_there_is_one_and_probes_want_none(
    keyed: tuple[httpx2.Client, str],
) -> None:
    client, key = keyed
    schema = client.get("/openapi.json", headers=bearing(key)).json()
    routes = [
        (method.upper(), path)
        for path, item in schema["paths"].items()
        for method in item
        if method in ("get", "post")
    ]
    assert len(routes) >= 19
    for method, path in [*routes, ("GET", "/openapi.json"), ("POST", "/mcp")]:
        reply = client.request(method, path.replace("{id}", "x"))
        if path in ("/healthz", "/readyz"):
            assert reply.status_code == 200
            continue
        assert reply.status_code == 401, (method, path)
        assert reply.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "changed",
    [
        lambda key: key[:-1] + ("A" if key[-1] != "A" else "B"),
        lambda key: key.upper(),
        lambda key: key + "x",
        lambda key: "osk_000000000000_" + key.rsplit("_", 1)[1],
        lambda key: "osk_",
        lambda key: "\xff\xfe",
    ],
)
def test_a_key_that_is_nearly_right_is_wrong(
    keyed: tuple[httpx2.Client, str], changed: Callable[[str], str]
) -> None:
    client, key = keyed
    assert client.get("/api/v1/kb", headers=bearing(key)).status_code == 200
    header = f"Bearer {changed(key)}".encode("latin-1")
    reply = client.get("/api/v1/kb", headers={b"Authorization": header})
    assert reply.status_code == 401


def test_a_key_that_is_taken_back_opens_nothing_at_once(home: Path) -> None:
    with serving(home) as place, httpx2.Client(base_url=place.url) as client:
        one, two = (new_key(place.site.ledger, name) for name in ("one", "two"))
        for key in (one, two):
            assert client.get("/api/v1/kb", headers=bearing(key)).status_code == 200
        place.site.ledger.drop_key("one")
        assert client.get("/api/v1/kb", headers=bearing(one)).status_code == 401
        assert client.get("/api/v1/kb", headers=bearing(two)).status_code == 200


def test_another_workspace_s_run_is_not_there_by_any_route(home: Path) -> None:
    with serving(home) as place, httpx2.Client(base_url=place.url) as client:
        mine = bearing(new_key(place.site.ledger, "a", workspace="clinic-a"))
        theirs = bearing(new_key(place.site.ledger, "b", workspace="clinic-b"))
        beside = bearing(new_key(place.site.ledger, "c", workspace="clinic-a"))
        client.headers.update(mine)
        run = asked(client)
        events(client, run)
        paths = (f"/api/v1/runs/{run}", f"/api/v1/runs/{run}/events", f"/runs/{run}/report.html")
        for path in paths:
            assert client.get(path, headers=beside).status_code == 200, path
            assert client.get(path, headers=theirs).status_code == 404, path
        assert client.post(f"/api/v1/runs/{run}/cancel", headers=theirs).status_code == 404
        assert client.get("/api/v1/runs", headers=theirs).json()["runs"] == []
        absent = "20200101-000000-000000000000"
        same = client.get(f"/api/v1/runs/{run}", headers=theirs).json()
        other = client.get(f"/api/v1/runs/{absent}", headers=theirs).json()
        assert {k: str(v).replace(run, absent) for k, v in same.items()} == {
            k: str(v) for k, v in other.items()
        }
    with serving(home) as place, httpx2.Client(base_url=place.url) as client:
        assert client.get(paths[0], headers=mine).status_code == 200
        assert client.get(paths[0], headers=theirs).status_code == 404


def test_a_key_s_own_bounds_hold_for_it_alone(home: Path) -> None:
    gate = Gate()
    with (
        serving(home, model=Speaks(gate=gate)) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        small = bearing(new_key(place.site.ledger, "small", runs=1))
        large = bearing(new_key(place.site.ledger, "large"))
        body = {"question": "What is given first?"}
        first = client.post("/api/v1/runs", json=body, headers=small)
        assert first.status_code == 202
        second = client.post("/api/v1/runs", json=body, headers=small)
        assert second.status_code == 429
        assert int(second.headers["retry-after"]) >= 1
        assert second.json()["code"] == "too_many_runs"
        assert client.post("/api/v1/runs", json=body, headers=large).status_code == 202
        gate.set()


def test_requests_in_a_minute_are_counted_and_refused_with_a_time(home: Path) -> None:
    with (
        serving(home, serve={"caller_minute": 3}) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        replies = [client.get("/api/v1/kb") for _ in range(5)]
        assert [r.status_code for r in replies] == [200, 200, 200, 429, 429]
        assert 0 < int(replies[-1].headers["retry-after"]) <= 60
        assert replies[-1].headers["content-type"] == PROBLEM
        assert client.get("/healthz").status_code == 200


async def test_ten_times_too_many_runs_are_refused_in_words_and_it_recovers(home: Path) -> None:
    limits = {"runs": 4, "waiting": 4}

    async def one(client: httpx2.AsyncClient) -> httpx2.Response:
        return await client.post("/api/v1/runs", json={"question": "What is given first?"})

    gate = Gate()
    with serving(home, model=Speaks(gate=gate), serve=limits) as place:
        async with httpx2.AsyncClient(base_url=place.url, timeout=30) as client:
            replies = await asyncio.gather(*(one(client) for _ in range(80)))
            codes = [reply.status_code for reply in replies]
            assert set(codes) == {202, 503}
            assert codes.count(202) == 8
            for reply in replies:
                if reply.status_code == 503:
                    assert reply.json()["code"] == "full"
                    assert int(reply.headers["retry-after"]) >= 1
            gate.set()
            await asyncio.to_thread(place.settle)
            again = await one(client)
            assert again.status_code == 202, "it does not recover"
            assert again.json()["run_id"]


async def test_too_many_searches_at_once_are_refused_and_none_fails(home: Path) -> None:
    with serving(home, serve={"searches": 1, "searches_waiting": 1}) as place:
        async with httpx2.AsyncClient(base_url=place.url, timeout=30) as client:
            post: Any = client.post
            replies = await asyncio.gather(
                *(post("/api/v1/search", json={"query": "adrenaline"}) for _ in range(40))
            )
    codes = {reply.status_code for reply in replies}
    assert codes <= {200, 503}
    assert 200 in codes


def test_a_stopping_server_takes_nothing_new_and_lets_what_runs_end(home: Path) -> None:
    gate = Gate()
    with (
        serving(home, model=Speaks(gate=gate)) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        run = asked(client)
        assert place.model.called.wait(20)
        drains = threading.Event()
        drain = place.site.desk.drain

        async def told(seconds: float) -> None:
            drains.set()
            await drain(seconds)

        place.site.desk.drain = told  # type: ignore[method-assign]
        stopping = threading.Thread(target=place.stop)
        stopping.start()
        assert drains.wait(20)
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
        refused = client.post("/api/v1/runs", json={"question": "And now?"})
        assert (refused.status_code, refused.json()["code"]) == (503, "stopping")
        gate.set()
        assert events(client, run)[-1][1] == "run.finished"
        client.close()
        stopping.join(20)
    assert (place.site.settings.runs.path / run / "run.json").is_file()


def test_what_does_not_end_in_time_is_cancelled_when_it_stops(home: Path) -> None:
    model = Speaks(gate=Gate())
    with (
        serving(home, model=model, serve={"drain_seconds": 0.1}) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        run = asked(client)
        assert model.called.wait(20)
        client.close()
        place.stop()
    assert model.stopped == 1
    with serving(home) as place, httpx2.Client(base_url=place.url) as client:
        assert client.get(f"/api/v1/runs/{run}").json()["status"] == "cancelled"
