"""Signed statements of CDS Hooks clients (JWT), as section "Trusting CDS Clients" of 2.0.1 asks.

A record system signs each request. Its operator gives its public keys (JWKS) beforehand; no key is
fetched, whatever address a statement names.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from osler.errors import BadConfig
from osler.serve.problems import RefusedRequest

# Never symmetric ones, and never "none".
_ALGORITHMS = ["ES384", "RS384", "ES256", "RS256"]
_REQUIRED = ["iss", "aud", "exp", "iat", "jti"]
_LONGEST_LIFE = 600
_MOST_STATEMENTS = 65_536
_FIX = "sign a new statement for each request: iss, aud (the address called), iat, exp, jti"
PREFIX = "/cds-services"


class TrustedClient(BaseModel):
    """A record system: its public keys, and the workspace in which it works."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    keys: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=20)]
    """As in a JWKS, each with its `kid`."""
    workspace: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")] = "default"


class _ClientFile(RootModel[dict[str, TrustedClient]]):
    """By issuer (`iss`)."""


@dataclass
class HookTokens:
    """Checks statements. Any thread may call it."""

    clients: dict[str, TrustedClient]
    _used: dict[tuple[str, str], float] = field(default_factory=dict)
    """When each statement's time is over, by issuer and `jti`."""
    _lock: Lock = field(default_factory=Lock)

    def verify(self, token: str, host: str, path: str) -> tuple[str, str]:
        """Issuer and workspace. `host`, `path`: of the address that was called.

        Raises `RefusedRequest` (401) for a statement that is stale, was used before, is for
        another address, or is not signed by a client that is trusted.
        """
        import jwt

        try:
            kid = str(jwt.get_unverified_header(token).get("kid", ""))
            issuer = str(jwt.decode(token, options={"verify_signature": False}).get("iss", ""))
            known = self.clients.get(issuer)
            keys = [one for one in known.keys if one.get("kid") == kid] if known else []
            if known is None or not keys:
                raise jwt.InvalidIssuerError("no key of a trusted client")
            stated = jwt.decode(
                token,
                jwt.PyJWK.from_dict(keys[0]),
                algorithms=_ALGORITHMS,
                options={"require": _REQUIRED, "verify_aud": False},
            )
            self._check_audience(stated["aud"], host, path)
            self._use_once(issuer, str(stated["jti"]), float(stated["exp"]))
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            problem = f"the signed statement is refused: {error}"
            raise RefusedRequest(401, "wrong_statement", problem, fix=_FIX) from error
        return issuer, known.workspace

    def _check_audience(self, audience: Any, host: str, path: str) -> None:
        named = audience if isinstance(audience, list) else [audience]
        called = [urlsplit(one) for one in named if isinstance(one, str)]
        if not any((one.netloc, one.path) == (host, path) for one in called):
            raise ValueError("it is for another address")

    def _use_once(self, issuer: str, id: str, until: float) -> None:
        now = time.time()
        if until > now + _LONGEST_LIFE:
            raise ValueError(f"it lives longer than {_LONGEST_LIFE} seconds")
        with self._lock:
            if (issuer, id) in self._used:
                raise ValueError("it was used before")
            if len(self._used) >= _MOST_STATEMENTS:
                self._used = {one: end for one, end in self._used.items() if end > now}
            if len(self._used) >= _MOST_STATEMENTS:
                raise ValueError("too many statements at once")
            self._used[issuer, id] = until


def read_hook_clients(path: Path | None) -> HookTokens | None:
    """The clients of `serve.hook_clients`; `None` without. Raises `BadConfig`."""
    if path is None:
        return None
    try:
        given = _ClientFile.model_validate_json(path.read_text(encoding="utf-8")).root
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise BadConfig(f"{path}: {problem}", fix="see docs/guide/clinic.md") from error
    if any("d" in key or key.get("kty") == "oct" for one in given.values() for key in one.keys):
        raise BadConfig(f"{path} holds a private key", fix="it takes public keys alone")
    return HookTokens(given)
