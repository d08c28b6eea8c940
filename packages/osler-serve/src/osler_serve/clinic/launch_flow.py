"""SMART App Launch 2.2: a record system's user opens Osler with a patient in view.

The authorisation server is asked for a code, with PKCE; the code for a token; the token for the
record, once. The token is then dropped: it is stored nowhere. See
https://hl7.org/fhir/smart-app-launch/app-launch.html
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx2
from pydantic import BaseModel, ConfigDict, Field, RootModel, model_validator

from osler.errors import BadConfig, OslerError, SourceUnavailable, read_text_file
from osler_serve.clinic.hook_tokens import decode_signed
from osler_serve.clinic.outside import (
    RemoteKeySet,
    allows_reading,
    fetch_json,
    is_safe_address,
    read_clinic_file,
)
from osler_serve.clinic.records.fhir_server import KINDS, BackendClient, Bundle, fetch_record
from osler_serve.problems import RefusedRequest

BACK = "/launch/callback"
_MINUTES_TO_AGREE = 10
_FRESH = 600.0
_LONGEST = 3_600
"""Seconds: a session ends with the token, and after an hour at most."""
_ID = re.compile(r"[A-Za-z0-9.-]{1,64}")
_AGAIN = "open Osler from the record system again"


class LaunchServer(BaseModel):
    """A record system from which Osler may be opened."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    client_id: Annotated[str, Field(min_length=1, max_length=255)]
    redirect_uri: str
    """This server's address, as it is registered there: `https://…/launch/callback`."""
    hosts: Annotated[list[str], Field(max_length=10)] = []
    """Other hosts of its authorisation server."""
    secret_file: Path | None = None
    """Of a confidential client: a file with its secret alone."""
    key_file: Path | None = None
    """Of one that signs: its private key, PEM."""
    key_id: str = ""
    algorithm: Literal["RS384", "ES384"] = "RS384"
    workspace: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "default"

    @model_validator(mode="after")
    def _check_redirect(self) -> Self:
        if not is_safe_address(self.redirect_uri) or urlsplit(self.redirect_uri).path != BACK:
            raise ValueError(f"redirect_uri is an https address that ends in {BACK}")
        return self


class _ServerFile(RootModel[dict[str, LaunchServer]]):
    """By the address of the FHIR server (`iss`)."""


@dataclass(frozen=True, slots=True)
class LaunchedRecord:
    """What a launch opened."""

    system: str
    """Address of the FHIR server."""
    workspace: str
    user: str
    """`sub` of the verified identity token."""
    patient: str
    bundle: Bundle = field(repr=False)
    unread: tuple[str, ...]
    """Kinds of resources that the user did not let Osler read."""
    seconds: int
    """For which the token is good."""


@dataclass
class _Discovered:
    """The configuration that a record system publishes, and its public keys."""

    about: dict[str, Any]
    keys: RemoteKeySet
    until: float


@dataclass
class Launcher:
    """Leads a browser through a launch. For one event loop."""

    servers: dict[str, LaunchServer]
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _known: dict[str, _Discovered] = field(default_factory=dict)
    _used: dict[str, float] = field(default_factory=dict)
    """When each state that came back is over."""

    async def begin(self, iss: str, launch: str) -> tuple[str, str]:
        """Where to send the browser, and the state that it must bring back.

        Raises `RefusedRequest` for a record system that the settings do not name.
        """
        system, server = self.find_server(iss)
        found = (await self._discover(system)).about
        until = int(time.monotonic()) + 60 * _MINUTES_TO_AGREE
        stated = json.dumps([system, until, secrets.token_urlsafe(16)]).encode()
        state = f"{_encode(stated)}.{self._derive('state', _encode(stated))}"
        kinds = "rs" if "permission-v2" in found.get("capabilities", []) else "read"
        asked = {
            "response_type": "code",
            "client_id": server.client_id,
            "redirect_uri": server.redirect_uri,
            "scope": f"{'' if launch else 'launch/patient '}openid fhirUser patient/*.{kinds}",
            "state": state,
            "aud": system,
            "nonce": self._derive("nonce", state),
            "code_challenge": _encode(
                hashlib.sha256(self._derive("verifier", state).encode()).digest()
            ),
            "code_challenge_method": "S256",
        }
        if launch:
            asked |= {"launch": launch, "scope": f"launch {asked['scope']}"}
        where = str(found["authorization_endpoint"])
        return f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}", state

    async def finish(self, state: str, cookie: str, code: str, iss: str = "") -> LaunchedRecord:
        """The record of the patient in view.

        Raises `RefusedRequest` for a state that this browser did not get, that is stale or was
        used, and for a token, an identity or a record that is not the one asked for.
        """
        system, server = self._take_state(state, cookie)
        found = await self._discover(system)
        if iss and iss != found.about.get("issuer"):
            raise _refuse("the reply is of another authorisation server")
        token = await self._exchange_code(server, found, state, code)
        user = await self._verify_user(server, found, state, str(token.get("id_token") or ""))
        patient, scope = token.get("patient"), str(token.get("scope") or "")
        if not isinstance(patient, str) or not _ID.fullmatch(patient):
            raise _refuse("the record system names no patient")
        if not allows_reading(scope, "Patient", search=False):
            raise _refuse("the user did not let Osler read the patient")
        kinds = tuple(one for one in KINDS if allows_reading(scope, one, search=True))
        access, lives = str(token["access_token"]), token.get("expires_in")
        bundle = await asyncio.to_thread(_read_record, system, patient, access, kinds)
        seconds = min(lives, _LONGEST) if isinstance(lives, int) and lives > 0 else _LONGEST
        unread = tuple(one for one in KINDS if one not in kinds)
        return LaunchedRecord(system, server.workspace, user, patient, bundle, unread, seconds)

    def find_server(self, iss: str) -> tuple[str, LaunchServer]:
        """Its address and settings. Raises `RefusedRequest` for one that is not named."""
        system = iss.rstrip("/")
        server = self.servers.get(system)
        if server is None:
            problem = "Osler is not opened from this record system"
            raise RefusedRequest(
                403, "unknown_record_system", problem, fix="name it in serve.launch_servers"
            )
        return system, server

    def _take_state(self, state: str, cookie: str) -> tuple[str, LaunchServer]:
        stated, _, signed = state.partition(".")
        is_ours = hmac.compare_digest(self._derive("state", stated).encode(), signed.encode())
        if not is_ours or not hmac.compare_digest(state.encode(), cookie.encode()):
            raise _refuse("this browser did not start the launch")
        system, until, _ = json.loads(base64.urlsafe_b64decode(stated + "=" * (-len(stated) % 4)))
        now = time.monotonic()  # states are this process's own: a clock that is set moves none
        self._used = {one: end for one, end in self._used.items() if end > now}
        if until <= now or state in self._used:
            raise _refuse("it took too long, or was finished before")
        self._used[state] = until
        return self.find_server(system)

    async def _discover(self, system: str) -> _Discovered:
        """Raises `RefusedRequest` for an address that the settings do not allow."""
        known = self._known.get(system)
        if known is not None and known.until > time.monotonic():
            return known
        try:
            found = await fetch_json(f"{system}/.well-known/smart-configuration")
        except SourceUnavailable as error:
            raise _refuse(
                f"the record system's metadata cannot be read: {error.message}"
            ) from error
        allowed = {urlsplit(system).netloc, *self.servers[system].hosts}
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            address = str(found.get(name) or "")
            if not is_safe_address(address) or urlsplit(address).netloc not in allowed:
                raise _refuse(f"its {name} is on a host that serve.launch_servers does not name")
        keys = known.keys if known else RemoteKeySet(str(found["jwks_uri"]))
        if keys.address != found["jwks_uri"]:
            keys = RemoteKeySet(str(found["jwks_uri"]))
        made = _Discovered(found, keys, time.monotonic() + _FRESH)
        self._known[system] = made
        return made

    async def _exchange_code(
        self, server: LaunchServer, found: _Discovered, state: str, code: str
    ) -> dict[str, Any]:
        where = str(found.about["token_endpoint"])
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": server.redirect_uri,
            "code_verifier": self._derive("verifier", state),
        }
        proof, headers = await asyncio.to_thread(_prove_client, server, where)
        try:
            token = await fetch_json(where, form=form | proof, headers=headers)
        except SourceUnavailable as error:
            raise _refuse(f"the record system gives no token: {error.message}") from error
        if str(token.get("token_type")).lower() != "bearer" or not token.get("access_token"):
            raise _refuse("the record system gives no bearer token")
        return token

    async def _verify_user(
        self, server: LaunchServer, found: _Discovered, state: str, statement: str
    ) -> str:
        """The user whom the identity token names."""
        import jwt

        try:
            kid = str(jwt.get_unverified_header(statement).get("kid", ""))
            await found.keys.refresh(kid)
            if (key := found.keys.find_key(kid)) is None:
                raise jwt.InvalidKeyError("signed by a key that the record system does not publish")
            stated = decode_signed(
                statement,
                key,
                audience=server.client_id,
                issuer=str(found.about.get("issuer") or ""),
                options={"require": ["iss", "aud", "sub", "exp", "iat", "nonce"]},
            )
            nonce = self._derive("nonce", state).encode()
            if not hmac.compare_digest(str(stated["nonce"]).encode(), nonce):
                raise jwt.InvalidTokenError("it is of another launch")
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise _refuse(f"the user's identity could not be verified: {error}") from error
        return str(stated["sub"])[:255]

    def _derive(self, what: str, state: str) -> str:
        """43 characters that only this process makes."""
        return _encode(hmac.digest(self._secret, f"{what} {state}".encode(), "sha256"))


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _prove_client(server: LaunchServer, where: str) -> tuple[dict[str, str], dict[str, str]]:
    """Form fields and headers by which the client is known. Blocks. Raises `BadConfig`."""
    fix = "name a file that holds it alone in serve.launch_servers"
    if server.secret_file:
        secret = read_text_file(server.secret_file, BadConfig, fix, what="the secret ").strip()
        pair = f"{quote_plus(server.client_id)}:{quote_plus(secret)}".encode()
        return {}, {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    if server.key_file:
        key = read_text_file(server.key_file, BadConfig, fix, what="the key ")
        signer = BackendClient(server.client_id, key, server.key_id, server.algorithm)
        return signer.make_proof(where), {}
    return {"client_id": server.client_id}, {}


def _read_record(system: str, patient: str, token: str, kinds: tuple[str, ...]) -> Bundle:
    """Blocks. Raises `RefusedRequest`."""
    try:
        with httpx2.Client(follow_redirects=False) as http:
            return fetch_record(system, patient, token, http, kinds)
    except OslerError as error:
        raise _refuse(error.message) from error


def _refuse(problem: str) -> RefusedRequest:
    return RefusedRequest(403, "launch_failed", problem, fix=_AGAIN)


def read_launch_servers(path: Path | None) -> Launcher | None:
    """The record systems of `serve.launch_servers`; `None` without. Raises `BadConfig`."""
    if path is None:
        return None
    given = read_clinic_file(path, _ServerFile.model_validate_json).root
    if unsafe := [one for one in given if not is_safe_address(one)]:
        raise BadConfig(f"{path}: {unsafe[0]!r} is not an https address", fix="as in https://…/r4")
    return Launcher({one.rstrip("/"): server for one, server in given.items()})
