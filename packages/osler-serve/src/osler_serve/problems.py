"""Refusals of requests as problem details (RFC 9457), made in one place."""

from __future__ import annotations

import asyncio
import html
import json
import logging
import math
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from osler.build.danger import danger_notice
from osler.errors import (
    BadConfig,
    BadQuestion,
    BadRun,
    OslerError,
    UnknownPassage,
)
from osler.questions import LIMIT
from osler.settings import Settings
from osler.sources.formats.json_lines import items_at, text_at
from osler.text import language_of
from osler.types import DangerNotice, Question

MEDIA = "application/problem+json"
_LOG = logging.getLogger("osler_serve")
# Of a chat that is not valid, its last question and what was said before.
_TEXTS = 6
_TITLES = {
    400: "The request cannot be read",
    401: "A key is needed",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "The request took too long",
    409: "It is of another state",
    412: "Data is missing",
    413: "The request is too large",
    415: "Not JSON",
    421: "This is another server",
    422: "The request is not valid",
    429: "Too many requests",
    500: "Osler failed",
    503: "Not now",
}
_CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    415: "unsupported_media_type",
}


class RefusedRequest(OslerError):
    """A request that is turned down, with the status that says so.

    `retry_after` is in seconds; `None` = trying again does not help.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        fix: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, fix=fix)
        self.danger: DangerNotice | None = None
        """The first words to somebody in danger, whatever else the reply says."""
        self.status = status
        self.code = code
        self.retry_after = retry_after


def refusal_for(error: OslerError) -> RefusedRequest:
    """The same error as a reply words it."""
    match error:
        case RefusedRequest():
            return error
        case UnknownPassage():
            status, code = 404, "unknown_passage"
        case BadRun():
            status, code = 404, "unknown_run"
        case BadQuestion():
            status, code = 422, "bad_question"
        case BadConfig():
            status, code = 422, "bad_choice"
        case _:
            return RefusedRequest(
                503, error_code(type(error).__name__), error.message, fix=error.fix, retry_after=5.0
            )
    return RefusedRequest(status, code, error.message, fix=error.fix)


def problem_document(refused: RefusedRequest, instance: str) -> dict[str, Any]:
    """The document of a refusal."""
    said: dict[str, Any] = {
        "type": f"urn:osler:problem:{refused.code}",
        "title": _TITLES.get(refused.status, "Refused"),
        "status": refused.status,
        "detail": refused.message,
        "instance": instance,
        "code": refused.code,
    }
    if refused.danger is not None:
        said = {"danger": asdict(refused.danger), **said}
    if refused.fix:
        said["fix"] = refused.fix
    if refused.retry_after is not None:
        said["retry_after"] = math.ceil(refused.retry_after)
    return said


def problem_headers(refused: RefusedRequest) -> dict[str, str]:
    headers = {}
    if refused.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(refused.retry_after)))
    if refused.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="osler"'
    return headers


def refusal_response(refused: RefusedRequest, path: str) -> Response:
    """The refusal in the form of the interface that was called."""
    if path.startswith("/v1/"):
        return _json_response(_openai_document(refused), refused, "application/json")
    if path.startswith("/cds-services"):
        return _json_response(_operation_outcome(refused), refused, "application/fhir+json")
    if path.startswith("/launch"):  # a browser reads it
        return Response(_problem_page(refused), refused.status, media_type="text/html")
    return _json_response(problem_document(refused, path), refused, MEDIA)


def _problem_page(refused: RefusedRequest) -> str:
    said = html.escape(str(refused))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Osler</title>'
        f"<main><h1>The patient was not opened</h1><p>{said}.</p></main></html>"
    )


def _json_response(body: dict[str, Any], refused: RefusedRequest, media: str) -> Response:
    # A detail may quote what was sent, also half of a surrogate pair.
    content = json.dumps(body, ensure_ascii=True).encode()
    return Response(content, refused.status, problem_headers(refused), media)


_ISSUES = {401: "login", 403: "forbidden", 404: "not-found", 412: "required", 413: "too-long"}


def _operation_outcome(refused: RefusedRequest) -> dict[str, Any]:
    """In FHIR's form, with a code of its value set IssueType."""
    code = _ISSUES.get(refused.status, "transient" if refused.status >= 429 else "invalid")
    details = {"coding": [{"system": "urn:osler:problem", "code": refused.code}]}
    issue = {"severity": "error", "code": code, "details": details, "diagnostics": str(refused)}
    return {"resourceType": "OperationOutcome", "issue": [issue]}


_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def _openai_document(refused: RefusedRequest) -> dict[str, Any]:
    kind = "server_error" if refused.status >= 500 else "invalid_request_error"
    danger = f"{refused.danger.text}\n\n" if refused.danger else ""
    return {
        "error": {
            "message": f"{danger}{refused}",
            "type": _OPENAI_TYPES.get(refused.status, kind),
            "param": getattr(refused, "param", None),
            "code": refused.code,
        }
    }


class BadParameter(RefusedRequest):
    """A field of a request that is wrong, by its name."""

    def __init__(self, status: int, code: str, message: str, param: str) -> None:
        super().__init__(status, code, message)
        self.param = param


def install_handlers(app: FastAPI) -> None:
    """Every way in which a request can fail ends in `refusal_response`."""

    async def handle_refusal(request: Request, error: Exception) -> Response:
        assert isinstance(error, OslerError)  # noqa: S101  it is registered for these
        return refusal_response(refusal_for(error), request.url.path)

    async def handle_invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101
        refused = _invalid_field(error)
        refused.danger = await asyncio.to_thread(
            danger_asked, request.app.state.site.settings, error.body
        )
        return refusal_response(refused, request.url.path)

    async def handle_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101
        code = _CODES.get(error.status_code, f"http_{error.status_code}")
        told = refusal_response(
            RefusedRequest(error.status_code, code, str(error.detail)), request.url.path
        )
        told.headers.update(error.headers or {})
        return told

    async def handle_crash(request: Request, error: Exception) -> Response:
        _LOG.error("a request failed", exc_info=error)
        return refusal_response(
            RefusedRequest(500, "internal", "something failed inside; it is in the server's log"),
            request.url.path,
        )

    app.add_exception_handler(OslerError, handle_refusal)
    app.add_exception_handler(RequestValidationError, handle_invalid)
    app.add_exception_handler(HTTPException, handle_http)
    app.add_exception_handler(Exception, handle_crash)


def _invalid_field(error: RequestValidationError) -> RefusedRequest:
    """The first thing that is wrong, by its place; never the value, which may be anything."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part != "body"]
    where = ".".join(place)
    if first["type"] in ("json_invalid", "value_error.jsondecode"):
        return RefusedRequest(400, "bad_json", "the body is not JSON")
    if first["type"] in ("too_long", "string_too_long"):
        said = f"{where} is too long: {first['ctx']['max_length']:,} characters or items at most"
        return BadParameter(422, "too_long", said, where)
    message = f"{where}: {first['msg']}" if where else str(first["msg"])
    code = "unknown_field" if first["type"] == "extra_forbidden" else "invalid"
    return BadParameter(422, code, message, where)


def danger_asked(settings: Settings, body: Any) -> DangerNotice | None:
    """The notice for the question, or the chat, of a request that is not valid."""
    said = [text_at(body, "question")]
    for turn in items_at(body, "messages"):
        if text_at(turn, "role") == "user":
            parts = (text_at(one, "text") for one in items_at(turn, "content"))
            said += [text_at(turn, "content"), *parts]
    # Half of a surrogate pair is no text.
    said = [one[-LIMIT:].encode(errors="replace").decode() for one in said if one.strip()]
    if not said:
        return None
    *earlier, last = said[-_TEXTS:]
    return danger_notice(settings, Question("", last, language=language_of(last)), earlier)


def error_code(name: str) -> str:
    """The code of a class of errors: "storage_failed" of `StorageFailed`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")
