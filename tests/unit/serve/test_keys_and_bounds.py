"""Who is let in, and what happens when there are too many."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from served import (
    FixedModel,
    fill_knowledge_base,
    no_page,
    read_stream,
    serve_osler,
    serving_settings,
    start_run,
)
from waiting import AwaitableEvent

from osler.audit.checkpoints import LEDGER
from osler.errors import BadArgument, BadConfig
from osler.settings.sections import is_loopback
from osler_serve.app import build_state
from osler_serve.keys import new_key
from osler_serve.ledger import Ledger
from osler_serve.problems import RefusedRequest

PROBLEM = "application/problem+json"
OTHERS = ["0.0.0.0", "192.0.2.7", "::", "osler.example"]  # noqa: S104  where others reach it


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx2.Client, str]]:
    """A server that wanted a key from its first request on, and one."""
    folder = tmp_path_factory.mktemp("keyed")
    ledger = Ledger(folder / "serve")
    key = new_key(ledger, "one")
    ledger.close()
    with serve_osler(folder) as place, httpx2.Client(base_url=place.url) as client:
        yield client, key


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A server without a key, on a machine whose users may read patients' records."""
    folder = tmp_path_factory.mktemp("records")

    def fill(home: Path) -> None:
        fill_knowledge_base(home, {"emr": "# Patient\n\nAdrenaline was given to this patient.\n"})

    with (
        serve_osler(folder, fill=fill, serve={"patients": True}) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        yield client


def bearing(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


@pytest.mark.parametrize("more", [{}, {"patients": True}, {"launch_servers": "clinics.json"}])
def test_names_under_which_others_call_are_refused_without_an_api_key(
    home: Path, more: dict[str, Any]
) -> None:
    """A proxy on this machine hands on the requests of strangers."""
    (home / "clinics.json").write_text("{}")
    files = {name: str(home / one) for name, one in more.items() if isinstance(one, str)}
    serve = {"hosts": ["osler.hospital.example"], **more, **files}
    with pytest.raises(BadConfig, match=r"osler.hospital.example can be reached by others"):
        build_state(serving_settings(home, serve=serve), no_page)
    ledger = Ledger(home / "serve")
    new_key(ledger, "one")
    ledger.close()
    made = build_state(serving_settings(home, serve=serve), no_page)
    made.ledger.drop_key("one")
    made.gate._looked = float("-inf")  # as a second later
    with pytest.raises(RefusedRequest, match="API key is required"):
        made.gate.authenticate_request(None)
    made.ledger.close()


PROXIED = [
    {"Forwarded": "for=198.51.100.7"},
    {"X-Forwarded-For": "198.51.100.7"},
    {"X-Forwarded-Host": "osler.hospital.example"},
    {"X-Forwarded-Proto": "https"},
    {"X-Real-IP": "198.51.100.7"},
    {"Via": "1.1 proxy"},
]


@pytest.mark.parametrize("headers", PROXIED)
@pytest.mark.parametrize("given", [{}, {"Authorization": "Bearer none"}])
def test_strangers_behind_a_proxy_on_this_machine_are_strangers(
    records: httpx2.Client, headers: dict[str, str], given: dict[str, str]
) -> None:
    """They were "this machine", and with serve.patients read patients' records."""
    asked = {"query": "adrenaline", "sources": ["emr"]}
    assert "to this patient" in records.post("/api/v1/search", json=asked).text
    for method, path in [("POST", "/api/v1/search"), ("POST", "/mcp"), ("GET", "/api/v1/runs")]:
        reply = records.request(method, path, json=asked, headers={**headers, **given})
        assert reply.status_code == 401, (path, reply.text)
    assert records.get("/healthz", headers=headers).status_code == 200


def test_request_of_http_1_0_as_proxies_make_it_is_a_strangers(records: httpx2.Client) -> None:
    """nginx forwards so where nothing is set, with no header of its own."""
    with socket.create_connection(("127.0.0.1", records.base_url.port or 0)) as line:
        line.sendall(b"GET /api/v1/runs HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        assert b" 401 " in line.makefile("rb").readline()


@pytest.mark.parametrize("host", OTHERS)
def test_public_address_without_an_api_key_is_refused(home: Path, host: str) -> None:
    fill_knowledge_base(home)
    with pytest.raises(BadConfig, match="there is no key") as refused:
        build_state(serving_settings(home, serve={"host": host}), no_page)
    assert "osler serve key add" in refused.value.fix


@pytest.mark.parametrize("host", OTHERS)
def test_public_address_with_an_api_key_serves_its_bearer_alone(home: Path, host: str) -> None:
    ledger = Ledger(home / "serve")
    key = new_key(ledger, "one")
    ledger.close()
    made = build_state(serving_settings(home, serve={"host": host}), no_page)
    assert made.settings.serve.host == host
    assert made.gate.authenticate_request(f"Bearer {key}").workspace == "default"
    for unknown in (None, f"Bearer {key}x"):
        with pytest.raises(RefusedRequest) as refused:
            made.gate.authenticate_request(unknown)
        assert refused.value.status == 401
    made.ledger.drop_key("one")
    made.gate._looked = float("-inf")  # as a second later
    with pytest.raises(
        RefusedRequest, match="API key is required"
    ):  # taking the last key away opens nothing
        made.gate.authenticate_request(None)
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
def test_loopback_address_is_told_from_look_alikes(host: str, own: bool) -> None:
    assert is_loopback(host) is own


def test_api_key_is_stored_as_a_hash_in_an_owner_only_file(home: Path) -> None:
    ledger = Ledger(home / "serve")
    key = new_key(ledger, "one")
    ledger.close()
    data = b"".join(path.read_bytes() for path in (home / "serve").iterdir())
    assert key.encode() not in data
    assert key.split("_", 2)[2].encode() not in data
    assert (home / "serve" / LEDGER).stat().st_mode & 0o077 == 0


def test_api_key_names_are_unique_and_plain(home: Path) -> None:
    ledger = Ledger(home / "serve")
    new_key(ledger, "one")
    with pytest.raises(BadArgument, match="already"):
        new_key(ledger, "one")
    for name in ("", "a b", "../x", "x" * 65):
        with pytest.raises(BadArgument, match="not a valid name"):
            new_key(ledger, name)
    ledger.close()


def test_every_route_but_the_probes_needs_an_api_key_once_one_exists(
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
def test_altered_api_key_is_401(
    keyed: tuple[httpx2.Client, str], changed: Callable[[str], str]
) -> None:
    client, key = keyed
    assert client.get("/api/v1/kb", headers=bearing(key)).status_code == 200
    header = f"Bearer {changed(key)}".encode("latin-1")
    reply = client.get("/api/v1/kb", headers={b"Authorization": header})
    assert reply.status_code == 401


def test_revoked_api_key_is_refused_at_once(home: Path) -> None:
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        one, two = (new_key(place.site.ledger, name) for name in ("one", "two"))
        for key in (one, two):
            assert client.get("/api/v1/kb", headers=bearing(key)).status_code == 200
        place.site.ledger.drop_key("one")
        assert client.get("/api/v1/kb", headers=bearing(one)).status_code == 401
        assert client.get("/api/v1/kb", headers=bearing(two)).status_code == 200


def test_run_of_another_workspace_is_404_at_every_route(home: Path) -> None:
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        mine = bearing(new_key(place.site.ledger, "a", workspace="clinic-a"))
        theirs = bearing(new_key(place.site.ledger, "b", workspace="clinic-b"))
        beside = bearing(new_key(place.site.ledger, "c", workspace="clinic-a"))
        client.headers.update(mine)
        run = start_run(client)
        read_stream(client, run)
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
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        assert client.get(paths[0], headers=mine).status_code == 200
        assert client.get(paths[0], headers=theirs).status_code == 404


def test_run_limit_of_an_api_key_holds_for_it_alone(home: Path) -> None:
    gate = AwaitableEvent()
    with (
        serve_osler(home, model=FixedModel(gate=gate)) as place,
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


def test_rate_limit_answers_429_with_retry_after(home: Path) -> None:
    with (
        serve_osler(home, serve={"caller_minute": 3}) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        replies = [client.get("/api/v1/kb") for _ in range(5)]
        assert [r.status_code for r in replies] == [200, 200, 200, 429, 429]
        assert 0 < int(replies[-1].headers["retry-after"]) <= 60
        assert replies[-1].headers["content-type"] == PROBLEM
        assert client.get("/healthz").status_code == 200


async def test_run_overload_is_refused_with_503_and_recovers(home: Path) -> None:
    limits = {"runs": 4, "waiting": 4}

    async def one(client: httpx2.AsyncClient) -> httpx2.Response:
        return await client.post("/api/v1/runs", json={"question": "What is given first?"})

    gate = AwaitableEvent()
    with serve_osler(home, model=FixedModel(gate=gate), serve=limits) as place:
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
            await asyncio.to_thread(place.wait_for_runs)
            again = await one(client)
            assert again.status_code == 202, "it does not recover"
            assert again.json()["run_id"]


async def test_search_overload_is_refused_with_503_and_none_fails(home: Path) -> None:
    with serve_osler(home, serve={"searches": 1, "searches_waiting": 1}) as place:
        async with httpx2.AsyncClient(base_url=place.url, timeout=30) as client:
            post: Any = client.post
            replies = await asyncio.gather(
                *(post("/api/v1/search", json={"query": "adrenaline"}) for _ in range(40))
            )
    codes = {reply.status_code for reply in replies}
    assert codes <= {200, 503}
    assert 200 in codes


def test_stopping_server_refuses_new_runs_and_finishes_running_ones(home: Path) -> None:
    gate = AwaitableEvent()
    with (
        serve_osler(home, model=FixedModel(gate=gate)) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        run = start_run(client)
        assert place.model.called.wait(20)
        drains = threading.Event()
        drain = place.site.desk.drain

        async def told(seconds: float) -> None:
            drains.set()
            await drain(seconds)

        place.site.desk.drain = told  # type: ignore[method-assign]
        stopping = threading.Thread(target=place.stop_server)
        stopping.start()
        assert drains.wait(20)
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
        refused = client.post("/api/v1/runs", json={"question": "And now?"})
        assert (refused.status_code, refused.json()["code"]) == (503, "stopping")
        gate.set()
        assert read_stream(client, run)[-1][1] == "run.finished"
        client.close()
        stopping.join(20)
    assert (place.site.settings.runs.path / run / "run.json").is_file()


def test_run_that_outlasts_the_drain_time_is_cancelled_at_shutdown(home: Path) -> None:
    model = FixedModel(gate=AwaitableEvent())
    with (
        serve_osler(home, model=model, serve={"drain_seconds": 0.1}) as place,
        httpx2.Client(base_url=place.url) as client,
    ):
        run = start_run(client)
        assert model.called.wait(20)
        client.close()
        place.stop_server()
    assert model.stopped == 1
    with serve_osler(home) as place, httpx2.Client(base_url=place.url) as client:
        assert client.get(f"/api/v1/runs/{run}").json()["status"] == "cancelled"
