"""A FHIR server whose authorisation server checks SMART Backend Services as the standard asks."""

from __future__ import annotations

import time
from functools import cache
from typing import Any
from urllib.parse import parse_qs

import httpx2
import jwt
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from synthetic_patients import SyntheticPatient

from osler_serve.clinic.records.fhir_server import BackendClient

BASE = "https://fhir.example/r4"
ENDPOINT = "https://auth.example/token"


@cache
def make_key(algorithm: str) -> Any:
    if algorithm == "ES384":
        return ec.generate_private_key(ec.SECP384R1())
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


def make_client(algorithm: str = "RS384", **changed: Any) -> BackendClient:
    written = make_key(algorithm).private_bytes(
        pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption()
    )
    given = {"id": "osler", "key": written.decode(), "key_id": "k1", "algorithm": algorithm}
    return BackendClient(**{**given, **changed})


class Hospital:
    """A FHIR server with its authorisation server: one patient on two pages."""

    def __init__(self, algorithm: str = "RS384") -> None:
        self.algorithm = algorithm
        self.seen: set[str] = set()
        self.tokens: set[str] = set()
        self.person = SyntheticPatient(id="p-1", taken=("Warfarin 3 mg",), weight=(60.0, "kg"))
        self.next = f"{BASE}/more?page=2"
        self.second: list[dict[str, Any]] = []

    def http(self) -> httpx2.Client:
        return httpx2.Client(transport=httpx2.MockTransport(self.answer))

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        address = str(request.url)
        if address == f"{BASE}/.well-known/smart-configuration":
            return httpx2.Response(200, json={"token_endpoint": ENDPOINT})
        if address == ENDPOINT:
            return self.give_token(request)
        if request.headers.get("Authorization", "")[7:] not in self.tokens:
            return httpx2.Response(401, json={"resourceType": "OperationOutcome"})
        held = [{"resource": one} for one in self.person.resources()]
        if address == f"{BASE}/Patient/p-1/$everything?_count=200":
            link = [{"relation": "next", "url": self.next}]
            return httpx2.Response(200, json={"entry": held[:1], "link": link})
        if address == self.next:
            return httpx2.Response(200, json={"entry": held[1:] + self.second})
        return httpx2.Response(404, json={})

    def give_token(self, request: httpx2.Request) -> httpx2.Response:
        form = {name: values[0] for name, values in parse_qs(request.content.decode()).items()}
        given = form["client_assertion"]
        try:
            stated = jwt.decode(
                given,
                make_key(self.algorithm).public_key(),
                algorithms=[self.algorithm],
                audience=ENDPOINT,
                issuer="osler",
                options={"require": ["iss", "sub", "aud", "exp", "jti"]},
            )
        except jwt.PyJWTError:
            return httpx2.Response(400, json={"error": "invalid_client"})
        assert jwt.get_unverified_header(given)["kid"] == "k1"
        assert stated["sub"] == "osler"
        assert stated["exp"] <= time.time() + 300
        assert stated["jti"] not in self.seen
        assert form["grant_type"] == "client_credentials"
        assert form["client_assertion_type"].endswith(":jwt-bearer")
        self.seen.add(stated["jti"])
        self.tokens.add(f"token-{len(self.seen)}")
        token = {"access_token": f"token-{len(self.seen)}", "token_type": "bearer"}
        return httpx2.Response(200, json={**token, "expires_in": 300, "scope": form["scope"]})
