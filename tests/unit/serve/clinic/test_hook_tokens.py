"""Signed requests of record systems, on a server that runs and wants keys."""

from __future__ import annotations

import base64
import json
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

jwt = pytest.importorskip("jwt")
pytest.importorskip("cryptography")

from fhir_hospital import make_key  # noqa: E402
from record_system import RecordSystem, public_key, serve_record_system  # noqa: E402
from served import serve_osler  # noqa: E402
from synthetic_patients import SyntheticPatient  # noqa: E402

from osler.audit.checkpoints import LEDGER  # noqa: E402
from osler.errors import BadConfig, SourceUnavailable  # noqa: E402
from osler_serve.clinic import outside  # noqa: E402
from osler_serve.clinic.hook_tokens import read_hook_clients  # noqa: E402
from osler_serve.clinic.records.fhir_server import fetch_record  # noqa: E402
from osler_serve.keys import new_key  # noqa: E402
from osler_serve.ledger import Ledger  # noqa: E402

NORTH, SOUTH = "https://north.example", "https://south.example"
EAST, MOVED = "https://east.example", "https://moved.example"
SERVICE = "/cds-services/interactions-order-sign"


@dataclass
class Signed:
    url: str

    def state(self, issuer: str = NORTH, **changed: Any) -> dict[str, Any]:
        now = int(time.time())
        stated = {"iss": issuer, "aud": self.url + SERVICE, "iat": now, "exp": now + 300}
        return {**stated, "jti": f"{time.perf_counter_ns()}", **changed}

    def call(self, token: str, path: str = SERVICE) -> httpx2.Response:
        asked = SyntheticPatient(taken=("Warfarin",), ordered=("Amiodarone",)).request("order-sign")
        headers = {"Authorization": f"Bearer {token}"}
        if path != SERVICE:
            return httpx2.get(self.url + path, headers=headers)
        return httpx2.post(self.url + path, json=asked, headers=headers)


def sign(stated: dict[str, Any], algorithm: str = "ES384", kid: str = "n1", **more: str) -> str:
    key = make_key(algorithm) if algorithm[0] in "ER" else "x" * 48
    return str(jwt.encode(stated, key, algorithm=algorithm, headers={"kid": kid, **more}))


@pytest.fixture(scope="module")
def system() -> Iterator[RecordSystem]:
    """It has its keys at an address."""
    with serve_record_system(RecordSystem()) as running:
        yield running


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hooks")


@pytest.fixture(scope="module")
def server(home: Path, system: RecordSystem) -> Iterator[Signed]:
    clients = {
        NORTH: {"keys": [public_key("ES384", "n1")], "workspace": "north"},
        SOUTH: {"keys": [public_key("RS384", "s1")], "workspace": "south"},
        EAST: {"jwks": f"{system.url}/jwks", "workspace": "east"},
        MOVED: {"jwks": f"{system.url}/elsewhere"},
    }
    (home / "clients.json").write_text(json.dumps(clients))
    ledger = Ledger(home / "serve")
    new_key(ledger, "somebody")
    ledger.close()
    with serve_osler(home, serve={"hook_clients": str(home / "clients.json")}) as running:
        yield Signed(running.url)


def test_a_signed_request_needs_no_key(server: Signed) -> None:
    reply = server.call(sign(server.state()))
    assert reply.status_code == 200, reply.text
    assert [card["summary"] for card in reply.json()["cards"]] == [
        "Interaction: amiodarone, warfarin"
    ]
    assert server.call(sign(server.state(SOUTH), "RS384", "s1")).status_code == 200


def test_a_statement_is_good_once(server: Signed) -> None:
    token = sign(server.state())
    assert server.call(token).status_code == 200
    again = server.call(token)
    assert again.status_code == 401
    assert "used before" in again.json()["issue"][0]["diagnostics"]


def test_a_statement_is_good_once_at_all_servers_of_a_home_and_after_a_restart(
    server: Signed, home: Path
) -> None:
    with serve_osler(home, serve={"hook_clients": str(home / "clients.json")}) as running:
        second = Signed(running.url)
        first_seen = sign(server.state(aud=[one.url + SERVICE for one in (server, second)]))
        assert server.call(first_seen).status_code == 200
        assert second.call(first_seen).status_code == 401
        token = sign(server.state(aud=[one.url + SERVICE for one in (server, second)]))
        assert second.call(token).status_code == 200
    again = server.call(token)  # the one that took it is gone
    assert again.status_code == 401
    assert "used before" in again.json()["issue"][0]["diagnostics"]


def test_used_statements_are_kept_for_an_hour_beyond_their_time(tmp_path: Path) -> None:
    """So that a clock that is set back by less makes none good again."""
    ledger = Ledger(tmp_path)
    assert ledger.use_statement("a", until=600.0, now=0.0)
    assert ledger.use_statement("b", until=4_300.0, now=3_700.0)
    assert not ledger.use_statement("a", until=600.0, now=500.0)
    assert ledger.use_statement("c", until=4_900.0, now=4_300.0)
    with sqlite3.connect(tmp_path / LEDGER) as db:
        assert db.execute("SELECT count(*) FROM statement").fetchone() == (2,)
    ledger.close()


def test_a_statement_that_cannot_be_kept_is_not_taken(
    server: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill_disk(db: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    token = sign(server.state())
    with monkeypatch.context() as full:
        full.setattr("osler_serve.ledger.write_transaction", fill_disk)
        assert server.call(token).status_code == 503
    assert server.call(token).status_code == 200


DEEP = base64.urlsafe_b64encode(b"[" * 3_000).decode().rstrip("=")


@pytest.mark.parametrize("place", [0, 1])
def test_a_statement_of_deep_json_is_refused(server: Signed, place: int) -> None:
    parts = sign(server.state()).split(".")
    parts[place] = DEEP
    assert server.call(".".join(parts)).status_code == 401


@pytest.mark.parametrize(
    ("changed", "how", "said"),
    [
        ({"iat": 1_700_000_000}, {}, "was signed over 600 seconds ago"),
        ({"aud": "ftp://{host}" + SERVICE}, {}, "for another address"),
        ({"aud": "//{host}" + SERVICE}, {}, "for another address"),
        ({"exp": 1_700_000_000}, {}, "expired"),
        ({"exp": 4_000_000_000}, {}, "is valid for longer than 600 seconds"),
        ({"aud": "https://elsewhere.example" + SERVICE}, {}, "for another address"),
        ({"iss": "https://nobody.example"}, {}, "no key of a trusted client"),
        ({"iss": SOUTH}, {}, "no key of a trusted client"),
        ({"jti": None}, {}, ""),
        ({}, {"kid": "s1"}, "no key of a trusted client"),
        ({}, {"algorithm": "HS256"}, "alg"),
        ({}, {"algorithm": "RS384"}, "alg"),
    ],
)
def test_a_statement_that_is_stale_or_somebody_else_s_is_refused(
    changed: dict[str, Any], how: dict[str, str], said: str, server: Signed
) -> None:
    host = server.url.removeprefix("http://")
    stated = {k: v.format(host=host) if k == "aud" else v for k, v in changed.items()}
    reply = server.call(sign(server.state(**stated), **how))
    assert reply.status_code == 401
    assert said in reply.json()["issue"][0]["diagnostics"]


def test_a_signed_request_opens_nothing_but_hooks(server: Signed) -> None:
    stated = server.state(aud=server.url + "/api/v1/runs")
    assert server.call(sign(stated), "/api/v1/runs").status_code == 401
    listed = server.state(aud=server.url + "/cds-services")
    assert server.call(sign(listed), "/cds-services").status_code == 200


def test_keys_at_the_address_of_the_settings_are_fetched_once(
    server: Signed, system: RecordSystem
) -> None:
    before = system.asked.count("/jwks")
    for jku in ({}, {"jku": f"{system.url}/jwks"}):
        token = sign(server.state(EAST), "RS384", "k1", **jku)
        assert server.call(token).status_code == 200
    assert system.asked.count("/jwks") <= before + 1


@pytest.mark.parametrize(
    ("issuer", "kid", "path"),
    [
        (EAST, "k1", "/r4/other-keys"),
        (NORTH, "k1", "/jwks"),
        ("https://nobody.example", "k1", "/nobody-s-keys"),
    ],
)
def test_no_address_that_a_statement_names_is_asked(
    server: Signed, system: RecordSystem, issuer: str, kid: str, path: str
) -> None:
    before = list(system.asked)
    token = sign(server.state(issuer), "RS384", kid, jku=f"{system.url}{path}")
    assert server.call(token).status_code == 401
    assert system.asked == before


def test_a_redirect_to_keys_is_not_followed(server: Signed, system: RecordSystem) -> None:
    before = system.asked.count("/jwks")
    assert server.call(sign(server.state(MOVED), "RS384", "k1")).status_code == 401
    assert system.asked.count("/elsewhere") == 1
    assert system.asked.count("/jwks") == before


async def test_unknown_names_of_keys_do_not_make_it_fetch_again_and_again(
    system: RecordSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1_000.0]
    keys = outside.RemoteKeySet(f"{system.url}/jwks", clock=lambda: now[0])
    before = system.asked.count("/jwks")
    for kid in ("k1", "k2", "k3", "k1"):
        await keys.refresh(kid)
    assert keys.find_key("k1")
    assert system.asked.count("/jwks") == before + 1
    now[0] += 601  # old: they are fetched anew
    monkeypatch.setattr(system, "keys", [public_key("ES384", "k2")])
    await keys.refresh("k2")
    assert keys.find_key("k2")
    assert keys.find_key("k1") is None  # it was taken back
    now[0] += 3_601  # too old, and nobody fetched
    assert keys.find_key("k2") is None


@pytest.mark.parametrize(
    "keys",
    [
        [{**public_key("RS384", "k1"), "d": "secret"}],
        [{"kty": "oct", "k": "c2VjcmV0", "kid": "k1"}],
        [{**public_key("RS384", "k1"), "use": "enc"}],
        [{"padding": "x" * 70_000}],
        "none",
    ],
)
async def test_what_is_no_set_of_public_keys_is_not_taken(
    system: RecordSystem, monkeypatch: pytest.MonkeyPatch, keys: Any
) -> None:
    monkeypatch.setattr(system, "keys", keys)
    found = outside.RemoteKeySet(f"{system.url}/jwks")
    await found.refresh("k1")
    assert found.find_key("k1") is None


async def test_deep_json_in_place_of_keys_is_no_set_of_keys(
    system: RecordSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "raw", b'{"keys": ' + b"[" * 30_000)
    found = outside.RemoteKeySet(f"{system.url}/jwks")
    await found.refresh("k1")
    assert found.find_key("k1") is None
    with httpx2.Client() as http, pytest.raises(SourceUnavailable, match="gives no"):
        fetch_record(system.base, "p-1", "token", http)
    with pytest.raises(SourceUnavailable, match="gives no JSON"):
        await outside.fetch_json(f"{system.base}/Observation")


@pytest.mark.parametrize(
    "given",
    [
        {"jwks": "http://east.example/jwks"},
        {"jwks": "https://user@east.example/jwks"},
        {"jwks": "file:///etc/passwd"},
        {"jwks": "https://east.example/jwks", "keys": [public_key("ES384", "n1")]},
        {},
    ],
)
def test_a_client_has_keys_or_their_https_address(tmp_path: Path, given: dict[str, Any]) -> None:
    file = tmp_path / "clients.json"
    file.write_text(json.dumps({EAST: given}))
    with pytest.raises(BadConfig):
        read_hook_clients(file, lambda *_: True)


def test_a_file_with_a_private_key_is_refused(tmp_path: Path) -> None:
    kind = jwt.get_algorithm_by_name("ES384")
    secret = {**json.loads(kind.to_jwk(make_key("ES384"))), "kid": "n1"}
    file = tmp_path / "clients.json"
    file.write_text(json.dumps({NORTH: {"keys": [secret]}}))
    with pytest.raises(BadConfig, match="private key"):
        read_hook_clients(file, lambda *_: True)
    file.write_text("{")
    with pytest.raises(BadConfig, match=r"clients\.json"):
        read_hook_clients(file, lambda *_: True)
