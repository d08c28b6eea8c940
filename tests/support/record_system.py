"""A record system on loopback, as SMART App Launch 2.2 describes it: FHIR server, authorisation
server that asks for PKCE and takes each code once, and its public keys."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from fhir_hospital import make_key
from synthetic_patients import SyntheticPatient

CLIENT, SECRET = "osler", "s3cret of the client"


def public_key(algorithm: str, kid: str) -> dict[str, Any]:
    kind = jwt.get_algorithm_by_name(algorithm)
    given: dict[str, Any] = json.loads(kind.to_jwk(make_key(algorithm).public_key()))
    return {**given, "kid": kid, "alg": algorithm}


@dataclass
class RecordSystem:
    """`changed_*` make it misbehave."""

    url: str = ""
    person: SyntheticPatient = field(
        default_factory=lambda: SyntheticPatient(
            id="p-1",
            taken=("Warfarin 3 mg oral tablet",),
            allergies=("Penicillin",),
            weight=(60.0, "kg"),
        )
    )
    user: str = "dr-7"
    keys: list[dict[str, Any]] = field(default_factory=lambda: [public_key("RS384", "k1")])
    changed_configuration: dict[str, Any] = field(default_factory=dict)
    changed_token: dict[str, Any] = field(default_factory=dict)
    changed_statement: dict[str, Any] = field(default_factory=dict)
    raw: bytes = b""
    """The body of every reply, where there is one."""
    everything: bool = True
    confidential: bool = False
    asked: list[str] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return f"{self.url}/r4"

    def answer(self, path: str, form: dict[str, str], headers: dict[str, str]) -> tuple[int, Any]:
        """Status and JSON; of 302 the address."""
        self.asked.append(path)
        parts = urlsplit(path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        match parts.path:
            case "/jwks":
                return 200, {"keys": self.keys}
            case "/elsewhere":
                return 302, f"{self.url}/jwks"
            case "/r4/.well-known/smart-configuration":
                return 200, self.configuration() | self.changed_configuration
            case "/authorize":
                return 302, self.authorize(query)
            case "/token":
                return self.give_token(form, headers)
        if headers.get("authorization", "")[7:] not in self.tokens:
            return 401, {"resourceType": "OperationOutcome"}
        return self.read_fhir(parts.path, query)

    def configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/jwks",
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "capabilities": ["launch-ehr", "launch-standalone", "sso-openid-connect"],
            "code_challenge_methods_supported": ["S256"],
        }

    def authorize(self, asked: dict[str, str]) -> str:
        """The user agrees."""
        assert (asked["response_type"], asked["client_id"]) == ("code", CLIENT)
        assert (asked["aud"], asked["code_challenge_method"]) == (self.base, "S256")
        code = secrets.token_urlsafe(12)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def give_token(self, form: dict[str, str], headers: dict[str, str]) -> tuple[int, Any]:
        asked = self.codes.pop(form.get("code", ""), None)
        basic = base64.b64encode(f"{CLIENT}:{SECRET}".replace(" ", "+").encode()).decode()
        proof = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(proof).decode().rstrip("=")
        if (
            asked is None
            or form["redirect_uri"] != asked["redirect_uri"]
            or challenge != asked["code_challenge"]
            or headers.get("authorization") != (f"Basic {basic}" if self.confidential else None)
        ):
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        stated = {"iss": self.url, "aud": CLIENT, "sub": self.user, "nonce": asked["nonce"]}
        stated |= {"iat": now, "exp": now + 300} | self.changed_statement
        token = secrets.token_urlsafe(24)
        self.tokens.append(token)
        given = {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": 300,
            "scope": asked["scope"],
            "patient": self.person.id,
            "id_token": jwt.encode(
                stated, make_key("RS384"), algorithm="RS384", headers={"kid": "k1"}
            ),
        }
        return 200, given | self.changed_token

    def read_fhir(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        held = [{"resource": one} for one in self.person.resources()]
        where = f"/r4/Patient/{self.person.id}"
        if path == f"{where}/$everything" and self.everything:
            return 200, {"resourceType": "Bundle", "entry": held}
        if path == where:
            return 200, held[0]["resource"]
        kind = path.removeprefix("/r4/")
        if query.get("patient") == self.person.id:
            found = [one for one in held if one["resource"]["resourceType"] == kind]
            return 200, {"resourceType": "Bundle", "entry": found}
        return 404, {"resourceType": "OperationOutcome"}


@contextmanager
def serve_record_system(system: RecordSystem) -> Iterator[RecordSystem]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            sent = parse_qs(self.rfile.read(size).decode(), keep_blank_values=True)
            form = {name: values[0] for name, values in sent.items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, said = system.answer(self.path, form, headers)
            if system.raw:
                status = 200
            body = b"" if status == 302 else system.raw or json.dumps(said).encode()
            self.send_response(status)
            if status == 302:
                self.send_header("Location", said)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        system.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield system
        server.shutdown()
        thread.join(10)
