"""What Inferno's SMART App Launch 2.2 client suite verifies, told again and numbered as there.

The suite (inferno-framework/smart-app-launch-test-kit, Apache-2.0) simulates a server and looks at
what a client asks of it. Its server cannot be had here; its checks can. Numbers are the tests' ids,
with a letter for each check within one.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest

pytest.importorskip("jwt")
pytest.importorskip("cryptography")

import jwt
from cryptography.hazmat.primitives import serialization as pem
from fhir_hospital import make_key
from record_system import CLIENT, SECRET, RecordSystem, serve_record_system
from served import serve_osler

BACK = "http://localhost:8642/launch/callback"
BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
AUTHORIZATION = "smart_client_authorization_request_verification"
TOKEN = {
    "public": "smart_client_token_request_alp_verification",
    "symmetric": "smart_client_token_request_alcs_verification",
    "asymmetric": "smart_client_token_request_alca_verification",
}


@dataclass
class Watched(RecordSystem):
    """Remembers what the token endpoint and the FHIR server were sent."""

    kind: str = "public"
    forms: list[dict[str, str]] = field(default_factory=list)
    sent: list[dict[str, str]] = field(default_factory=list)
    used: list[str] = field(default_factory=list)

    def answer(self, path: str, form: dict[str, str], headers: dict[str, str]) -> tuple[int, Any]:
        status, said = super().answer(path, form, headers)
        if path == "/token":
            self.forms.append(form)
            self.sent.append(headers)
        elif path.startswith("/r4/") and status == 200:
            self.used.append(headers.get("authorization", ""))
        return status, said

    def launches(self) -> list[dict[str, str]]:
        asked = [urlsplit(one).query for one in self.asked if one.startswith("/authorize?")]
        return [{name: values[0] for name, values in parse_qs(one).items()} for one in asked]


def settings_of(system: Watched, folder: Path) -> dict[str, str]:
    plain = {"client_id": CLIENT, "redirect_uri": BACK, "workspace": "w"}
    if system.kind == "symmetric":
        (folder / "secret").write_text(SECRET)
        return {**plain, "secret_file": str(folder / "secret")}
    if system.kind == "asymmetric":
        written = (pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
        (folder / "key.pem").write_bytes(make_key("ES384").private_bytes(*written))
        return {
            **plain,
            "key_file": str(folder / "key.pem"),
            "key_id": "own",
            "algorithm": "ES384",
        }
    return plain


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Watched]]:
    """Each kind of client was launched twice: from the record system, and by itself."""
    home = tmp_path_factory.mktemp("suite")
    public, secret, signed = (
        Watched(kind=kind, confidential=kind == "symmetric") for kind in TOKEN
    )
    with serve_record_system(public), serve_record_system(secret), serve_record_system(signed):
        watched = {one.kind: one for one in (public, secret, signed) if isinstance(one, Watched)}
        servers = {one.base: settings_of(one, home) for one in watched.values()}
        (home / "servers.json").write_text(json.dumps(servers))
        with serve_osler(home, serve={"launch_servers": str(home / "servers.json")}) as osler:
            for system in watched.values():
                for launch in ({"launch": "key-of-the-launch"}, {}):
                    open_patient(osler.url, {"iss": system.base, **launch})
            yield watched


def open_patient(osler: str, asked: dict[str, str]) -> None:
    with httpx2.Client(base_url=osler, timeout=20) as browser:
        sent = browser.get("/launch", params=asked)
        back = urlsplit(httpx2.get(sent.headers["location"]).headers["location"])
        assert browser.get(f"{back.path}?{back.query}").status_code == 303


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


def read_statement(system: Watched, form: dict[str, str]) -> dict[str, Any]:
    """Raises where the signature or the audience is wrong."""
    key = make_key("ES384").public_key()
    token, endpoint = form["client_assertion"], f"{system.url}/token"
    claims: dict[str, Any] = jwt.decode(token, key, algorithms=["ES384"], audience=endpoint)
    return claims


EACH_LAUNCH: dict[str, Callable[[Watched, dict[str, str]], bool]] = {
    "a response_type": lambda system, asked: asked["response_type"] == "code",
    "b client_id": lambda system, asked: asked["client_id"] == CLIENT,
    "c redirect_uri": lambda system, asked: asked["redirect_uri"] == BACK,
    "d launch": lambda system, asked: asked.get("launch", "") in ("", "key-of-the-launch"),
    "e state": lambda system, asked: len(asked["state"]) >= 22,
    "f aud": lambda system, asked: asked["aud"] == system.base,
    "g code_challenge": lambda system, asked: len(asked["code_challenge"]) == 43,
    "h code_challenge_method": lambda system, asked: asked["code_challenge_method"] == "S256",
    "i scope": lambda system, asked: "patient/" in asked["scope"],
}
EACH_TOKEN: dict[str, Callable[[Watched, dict[str, str], dict[str, str]], bool]] = {
    "a grant_type": lambda system, form, asked: form["grant_type"] == "authorization_code",
    "b redirect_uri": lambda system, form, asked: form["redirect_uri"] == asked["redirect_uri"],
    "c code_verifier": lambda system, form, asked: (
        challenge_of(form["code_verifier"]) == asked["code_challenge"]
    ),
}


@pytest.mark.parametrize("kind", TOKEN)
def test_authorization_requests(systems: dict[str, Watched], kind: str) -> None:
    system = systems[kind]
    launches = system.launches()
    assert len(launches) == 2
    failed = [
        f"{AUTHORIZATION} {number}"
        for number, sees in EACH_LAUNCH.items()
        if not all(sees(system, asked) for asked in launches)
    ]
    assert failed == []
    assert [one.get("launch") for one in launches] == ["key-of-the-launch", None]
    assert len({one["state"] for one in launches}) == 2


@pytest.mark.parametrize("kind", TOKEN)
def test_token_requests(systems: dict[str, Watched], kind: str) -> None:
    system = systems[kind]
    pairs = list(zip(system.forms, system.launches(), strict=True))
    failed = [
        f"{TOKEN[kind]} {number}"
        for number, sees in EACH_TOKEN.items()
        if not all(sees(system, form, asked) for form, asked in pairs)
    ]
    assert failed == []


def test_a_public_client_says_its_name(systems: dict[str, Watched]) -> None:
    """…_alp_verification d."""
    system = systems["public"]
    assert {form["client_id"] for form in system.forms} == {CLIENT}
    assert not any("authorization" in headers for headers in system.sent)


def test_a_client_with_a_secret_says_it_in_the_header(systems: dict[str, Watched]) -> None:
    """…_alcs_verification d."""
    system = systems["symmetric"]
    basic = base64.b64encode(f"{CLIENT}:{SECRET}".replace(" ", "+").encode()).decode()
    assert {headers["authorization"] for headers in system.sent} == {f"Basic {basic}"}
    assert not any("client_secret" in form for form in system.forms)


def test_a_client_with_a_key_signs_a_statement_for_each_request(
    systems: dict[str, Watched],
) -> None:
    """…_alca_verification d to k: type, `typ`, `iss`, `sub`, `aud`, `exp`, `jti`, signature."""
    system = systems["asymmetric"]
    assert {form["client_assertion_type"] for form in system.forms} == {BEARER}
    for form in system.forms:
        head = jwt.get_unverified_header(form["client_assertion"])
        assert (head["typ"], head["kid"], head["alg"]) == ("JWT", "own", "ES384")
    stated = [read_statement(system, form) for form in system.forms]
    assert {(one["iss"], one["sub"]) for one in stated} == {(CLIENT, CLIENT)}
    assert all(one["exp"] > time.time() for one in stated)
    assert len({one["jti"] for one in stated}) == len(stated) == 2


@pytest.mark.parametrize("kind", TOKEN)
def test_tokens_are_used(systems: dict[str, Watched], kind: str) -> None:
    """smart_client_token_use_verification."""
    system = systems[kind]
    assert {one.removeprefix("Bearer ") for one in system.used if one} == set(system.tokens)
