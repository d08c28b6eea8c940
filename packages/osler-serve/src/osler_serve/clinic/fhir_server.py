"""What a request did not bring, read from its own FHIR server with its own token."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from osler_serve.clinic.hook_wire import HookRequest
from osler_serve.problems import RefusedRequest

_SECONDS = 3.0
_MOST_BYTES = 4 * 1024 * 1024
# Of SMART App Launch 1 ("patient/Observation.read") and 2 ("patient/Observation.rs?status=final").
_SCOPE = re.compile(r"(?:patient|user|system)/(\*|[A-Za-z]+)\.(\*|read|write|c?r?u?d?s?)(?:\?.*)?")


def allows_reading(scopes: str, resource: str, *, search: bool) -> bool:
    """Whether SMART scopes, in the spelling of either version, allow a read or a search."""
    for scope in scopes.split():
        found = _SCOPE.fullmatch(scope)
        if found is None or found[1] not in ("*", resource):
            continue
        if found[2] in ("*", "read") or (
            found[2] != "write" and ("s" if search else "r") in found[2]
        ):
            return True
    return False


async def read_missing(
    asked: HookRequest, templates: Mapping[str, str], trusted: Collection[str]
) -> dict[str, dict[str, Any]]:
    """What the templates name. Raises `RefusedRequest` (412) where it cannot be had."""
    if not templates:
        return {}
    server, pass_ = (asked.fhirServer or "").rstrip("/"), asked.fhirAuthorization
    names = ", ".join(templates)
    if pass_ is None or server not in {one.rstrip("/") for one in trusted}:
        problem = f"the request lacks the prefetch of {names}"
        raise _cannot_check(problem, "send it; or name the FHIR server in serve.fhir_servers")
    headers = {"Authorization": f"Bearer {pass_.access_token}", "Accept": "application/fhir+json"}
    read = {}
    async with httpx2.AsyncClient(timeout=_SECONDS, headers=headers) as client:
        for name, template in templates.items():
            path = template.replace("{{context.patientId}}", asked.context.patientId)
            resource, is_search = urlsplit(path).path.split("/")[0], "?" in path
            if not allows_reading(pass_.scope, resource, search=is_search):
                problem = (
                    f"the prefetch of {name} is absent, and the token does not reach {resource}"
                )
                raise _cannot_check(problem, "send it, or widen the scope")
            read[name] = await _get_resource(client, f"{server}/{path}", name)
    return read


async def _get_resource(client: httpx2.AsyncClient, url: str, name: str) -> dict[str, Any]:
    body = b""
    try:
        async with client.stream("GET", url) as reply:
            if reply.status_code != 200:
                problem = f"the FHIR server answers {reply.status_code} for {name}"
                raise _cannot_check(problem, "send it as prefetch, or renew the token")
            async for piece in reply.aiter_bytes():
                body += piece
                if len(body) > _MOST_BYTES:
                    raise _cannot_check(f"{name} is larger than {_MOST_BYTES:,} bytes", "narrow it")
        found = json.loads(body)
    except (httpx2.HTTPError, ValueError, RecursionError) as error:
        problem = f"the FHIR server gave no {name}: {type(error).__name__}"
        raise _cannot_check(problem, "send it as prefetch") from error
    if not isinstance(found, dict):
        raise _cannot_check(f"the FHIR server gave no resource for {name}", "send it as prefetch")
    return found


def _cannot_check(said: str, fix: str) -> RefusedRequest:
    return RefusedRequest(412, "missing_prefetch", said, fix=fix)
