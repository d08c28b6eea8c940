"""One patient's record from a FHIR R4 server (`Patient/ID/$everything`), with a token.

The token is the caller's, or comes from SMART Backend Services: the client signs a short-lived
statement (RFC 7523) with its private key, of which the server has the public half (JWKS). See
https://hl7.org/fhir/smart-app-launch/backend-services.html
"""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx2

from osler.errors import BadConfig, MalformedSource, SourceUnavailable

Bundle = dict[str, Any]
_ALGORITHMS = ("RS384", "ES384")
_STATEMENT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_SCOPE = "system/*.rs"
_LIVES = 300
_SECONDS = 30.0
_MOST_PAGES = 500
_MOST_BYTES = 64 * 1024 * 1024
_ID = re.compile(r"[A-Za-z0-9.-]{1,64}")
KINDS = (
    "Condition",
    "MedicationRequest",
    "AllergyIntolerance",
    "Observation",
    "Procedure",
    "Encounter",
)
"""Kinds of resources of which a record is read where they are asked for one by one."""
_NOT_OFFERED = (400, 403, 404, 405, 501)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class BackendClient:
    """A client that the FHIR server's operator has registered."""

    id: str
    key: str = field(repr=False)
    """The private key, PEM."""
    key_id: str
    """`kid` of its public half in the JWKS that the operator has."""
    algorithm: str = "RS384"
    """RS384 or ES384."""

    def sign_statement(self, audience: str, now: float) -> str:
        """Who asks, for `audience` (the token endpoint), good for five minutes and one use.

        Raises `BadConfig` for a key that does not fit the algorithm.
        """
        import jwt

        if self.algorithm not in _ALGORITHMS:
            raise BadConfig(f"unknown algorithm {self.algorithm!r}", fix="RS384 or ES384")
        stated = {
            "iss": self.id,
            "sub": self.id,
            "aud": audience,
            "exp": int(now) + _LIVES,
            "jti": secrets.token_urlsafe(24),
        }
        try:
            named = {"kid": self.key_id}
            return jwt.encode(stated, self.key, algorithm=self.algorithm, headers=named)
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            problem = f"the key cannot sign with {self.algorithm}: {error}"
            raise BadConfig(problem, fix="give a private key in PEM, and its algorithm") from error

    def make_proof(self, audience: str) -> dict[str, str]:
        """The form fields by which a token endpoint knows the client. Raises `BadConfig`."""
        return {
            "client_assertion_type": _STATEMENT,
            "client_assertion": self.sign_statement(audience, time.time()),
        }


def fetch_token(server: str, client: BackendClient, http: httpx2.Client) -> str:
    """A token of the server's own authorisation server.

    Raises `SourceUnavailable` for one that gives none.
    """
    base = _require_safe(server)
    about = _read_json(http, f"{base}/.well-known/smart-configuration", "SMART configuration")
    endpoint = _require_safe(str(about.get("token_endpoint") or ""))
    form = {
        "grant_type": "client_credentials",
        "scope": _SCOPE,
        **client.make_proof(endpoint),
    }
    try:
        reply = http.post(endpoint, data=form)
        given = reply.json()
    except (httpx2.HTTPError, ValueError, RecursionError) as error:
        raise SourceUnavailable(f"{endpoint} gives no token: {type(error).__name__}") from error
    token = given.get("access_token") if isinstance(given, dict) else None
    if reply.status_code != 200 or not isinstance(token, str) or not token:
        why = given.get("error", "") if isinstance(given, dict) else ""
        raise SourceUnavailable(
            f"{endpoint} gives no token: {reply.status_code} {why}".strip(),
            fix="is the client registered there, with this key id and the scope system/*.rs?",
        )
    return token


def fetch_record(
    server: str, patient: str, token: str, http: httpx2.Client, kinds: Sequence[str] = KINDS
) -> Bundle:
    """All of the patient's resources as one bundle; of a server without `$everything`, those of
    these kinds.

    Raises `SourceUnavailable` where the server refuses or does not answer, `MalformedSource` for
    resources of somebody else, for an address elsewhere, and beyond 500 pages or 64 MiB.
    """
    base = _require_safe(server)
    if not _ID.fullmatch(patient):
        raise BadConfig(f"{patient!r} is not an id of a FHIR resource", fix="as in `Patient/ID`")
    pages = _RecordPages(base, token, http)
    try:
        entries = pages.read(f"Patient/{patient}/$everything?_count=200")
    except _NotOffered:
        entries = [{"resource": pages.read_page(f"{base}/Patient/{patient}")}]
        for kind in kinds:
            entries += pages.read(f"{kind}?patient={patient}&_count=200")
    return _require_patient(entries, patient)


class _NotOffered(SourceUnavailable):
    """The server has no such operation, or lets nobody use it."""


@dataclass
class _RecordPages:
    """Reads the pages of one record, within its bounds."""

    base: str
    token: str = field(repr=False)
    http: httpx2.Client
    size: int = 0

    def read(self, path: str) -> list[Any]:
        """The entries on all pages of a search."""
        entries: list[Any] = []
        url = f"{self.base}/{path}"
        for _ in range(_MOST_PAGES):
            page = self.read_page(url)
            entries += page.get("entry") or []
            following = _next_page(page)
            if not following:
                return entries
            url = urljoin(url, following)
            if _origin(url) != _origin(self.base):  # the token is for this server alone
                raise MalformedSource(f"the next page is elsewhere: {urlsplit(url).hostname}")
        raise MalformedSource(f"the record has more than {_MOST_PAGES} pages")

    def read_page(self, url: str) -> Bundle:
        wanted = "application/fhir+json"
        headers = {"Authorization": f"Bearer {self.token}", "Accept": wanted}
        page = _read_json(self.http, url, "record", headers)
        self.size += len(json.dumps(page))
        if self.size > _MOST_BYTES:
            raise MalformedSource(f"the record is larger than {_MOST_BYTES:,} bytes")
        return page


def _next_page(page: Bundle) -> str:
    links = page.get("link") or []
    return next((str(one.get("url", "")) for one in links if one.get("relation") == "next"), "")


def _require_patient(entries: list[Any], patient: str) -> Bundle:
    held = [one.get("resource") for one in entries if isinstance(one, dict)]
    people = {one.get("id") for one in held if one and one.get("resourceType") == "Patient"}
    if people != {patient}:
        found = ", ".join(sorted(map(str, people))) or "nobody"
        raise MalformedSource(f"the server gave the record of {found}, not of {patient}")
    return {"resourceType": "Bundle", "type": "collection", "entry": entries}


def _read_json(
    http: httpx2.Client, url: str, what: str, headers: dict[str, str] | None = None
) -> Bundle:
    try:
        reply = http.get(url, headers=headers, timeout=_SECONDS)
        given = reply.json() if reply.status_code == 200 else None
    except (httpx2.HTTPError, ValueError, RecursionError) as error:
        where = urlsplit(url).netloc
        raise SourceUnavailable(f"{where} gives no {what}: {type(error).__name__}") from error
    if not isinstance(given, dict):
        fix = "is the token good, and does it reach the patient's record?" if headers else ""
        refused = _NotOffered if reply.status_code in _NOT_OFFERED else SourceUnavailable
        raise refused(f"the FHIR server answers {reply.status_code} for its {what}", fix=fix)
    return given


def _require_safe(address: str) -> str:
    """Tokens and records go over TLS, or stay on this machine."""
    parts = urlsplit(address)
    if parts.scheme != "https" and (parts.scheme, parts.hostname in _LOOPBACK) != ("http", True):
        raise BadConfig(
            f"{address!r} is not an https address", fix="give one that begins with https://"
        )
    return address.rstrip("/")


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc
