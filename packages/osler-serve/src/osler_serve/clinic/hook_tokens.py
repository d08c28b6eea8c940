"""Signed statements of CDS Hooks clients (JWT), as section "Trusting CDS Clients" of 2.0.1 asks.

A record system signs each request. Its operator gives its public keys (JWKS) beforehand, or the
one address at which they are; no other is asked, whatever a statement names (`jku`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, RootModel, model_validator

from osler.errors import BadConfig
from osler_serve.clinic.outside import PublicKey, RemoteKeySet, is_safe_address, read_clinic_file
from osler_serve.problems import RefusedRequest

# Never symmetric ones, and never "none".
_ALGORITHMS = ["ES384", "RS384", "ES256", "RS256"]
_REQUIRED = ["iss", "aud", "exp", "iat", "jti"]
_LONGEST_LIFE = 600
_FIX = "sign a new statement for each request: iss, aud (the address called), iat, exp, jti"
PREFIX = "/cds-services"


class TrustedClient(BaseModel):
    """A record system: its public keys, and the workspace in which it works."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: Annotated[list[PublicKey], Field(max_length=20)] = []
    """As in a JWKS, each with its `kid`."""
    jwks: str = ""
    """Address of its JWKS, in place of `keys`."""
    workspace: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "default"

    @model_validator(mode="after")
    def _require_keys(self) -> Self:
        if bool(self.keys) == bool(self.jwks):
            raise ValueError("a client has keys, or the address of its jwks")
        if self.jwks and not is_safe_address(self.jwks):
            raise ValueError(f"{self.jwks!r} is not an https address")
        return self


class _ClientFile(RootModel[dict[str, TrustedClient]]):
    """By issuer (`iss`)."""


@dataclass
class HookTokens:
    """Checks statements. Any thread may call it."""

    clients: dict[str, TrustedClient]
    use_once: Callable[[str, float, float], bool]
    """`Ledger.use_statement`."""
    _remote: dict[str, RemoteKeySet] = field(init=False)

    def __post_init__(self) -> None:
        self._remote = {
            issuer: RemoteKeySet(one.jwks) for issuer, one in self.clients.items() if one.jwks
        }

    async def fetch_keys(self, token: str) -> None:
        """Fetches the keys of the statement's issuer where they are wanted: those of a trusted
        client alone, from the address that its operator gave."""
        import jwt

        with suppress(jwt.PyJWTError, ValueError, RecursionError):
            kid, jku, issuer = _read_unverified(token)
            remote = self._remote.get(issuer)
            if remote is not None and jku in ("", remote.address):
                await remote.refresh(kid)

    def verify(self, token: str, host: str, path: str) -> tuple[str, str]:
        """Issuer and workspace. `host`, `path`: of the address that was called.

        Raises `RefusedRequest` (401) for a statement that is stale, was used before, is for
        another address, or is not signed by a client that is trusted; `StorageFailed` where its
        use cannot be kept.
        """
        import jwt

        try:
            kid, jku, issuer = _read_unverified(token)
            known, key = self.clients.get(issuer), self._find_key(issuer, kid, jku)
            if known is None or key is None:
                raise jwt.InvalidIssuerError("no key of a trusted client")
            options = {"require": _REQUIRED, "verify_aud": False}
            stated = decode_signed(token, key, options=options)
            self._check_audience(stated["aud"], host, path)
            now = time.time()
            _check_times(float(stated["iat"]), float(stated["exp"]), now)
            if not self.use_once(f"{issuer}\n{stated['jti']}", float(stated["exp"]), now):
                raise ValueError("it was used before")
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            problem = f"the signed statement is refused: {error}"
            raise RefusedRequest(401, "wrong_statement", problem, fix=_FIX) from error
        return issuer, known.workspace

    def _find_key(self, issuer: str, kid: str, jku: str) -> PublicKey | None:
        if (remote := self._remote.get(issuer)) is not None:
            return remote.find_key(kid) if jku in ("", remote.address) else None
        known = self.clients.get(issuer)
        return next((one for one in known.keys if one.get("kid") == kid), None) if known else None

    def _check_audience(self, audience: Any, host: str, path: str) -> None:
        named = audience if isinstance(audience, list) else [audience]
        called = [urlsplit(one) for one in named if isinstance(one, str) and is_safe_address(one)]
        if not any((one.netloc, one.path) == (host, path) for one in called):
            raise ValueError("it is for another address")


def _check_times(signed: float, until: float, now: float) -> None:
    if until > now + _LONGEST_LIFE:
        raise ValueError(f"it is valid for longer than {_LONGEST_LIFE} seconds")
    if signed < now - _LONGEST_LIFE:
        raise ValueError(f"it was signed over {_LONGEST_LIFE} seconds ago")


def _read_unverified(token: str) -> tuple[str, str, str]:
    """Name of the key, address of the keys and issuer, as the statement names them.

    Raises `jwt.PyJWTError`, `ValueError`."""
    import jwt

    head = jwt.get_unverified_header(token)
    stated = jwt.decode(token, options={"verify_signature": False})
    return str(head.get("kid", "")), str(head.get("jku", "")), str(stated.get("iss", ""))


def decode_signed(token: str, key: PublicKey, **checks: Any) -> dict[str, Any]:
    """What the token states; `checks`: as of `jwt.decode`. Raises `jwt.PyJWTError`."""
    import jwt

    # A key that names no algorithm serves those of its kind.
    algorithm = key.get("alg") or jwt.get_unverified_header(token).get("alg")
    if algorithm not in _ALGORITHMS:
        raise jwt.InvalidAlgorithmError(f"the alg {algorithm} is not taken")
    used = jwt.PyJWK.from_dict(key, algorithm=algorithm)
    stated: dict[str, Any] = jwt.decode(token, used, algorithms=_ALGORITHMS, **checks)
    return stated


def read_hook_clients(
    path: Path | None, use_once: Callable[[str, float, float], bool]
) -> HookTokens | None:
    """The clients of `serve.hook_clients`; `None` without. Raises `BadConfig`."""
    if path is None:
        return None
    given = read_clinic_file(path, _ClientFile.model_validate_json).root
    if any("d" in key or key.get("kty") == "oct" for one in given.values() for key in one.keys):
        raise BadConfig(f"{path} holds a private key", fix="it takes public keys alone")
    return HookTokens(given, use_once)
