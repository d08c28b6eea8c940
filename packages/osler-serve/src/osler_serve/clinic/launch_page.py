"""`/launch`: how a browser gets in from a record system, and what it has open then."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from osler.reports import ResponseModel
from osler_serve import schemas
from osler_serve.api import At, Who
from osler_serve.clinic.launch_flow import BACK, Launcher
from osler_serve.clinic.launch_sessions import COOKIE, make_session, read_cookie
from osler_serve.problems import RefusedRequest
from osler_serve.state import ServerState

_STATE = "osler_launch_state"
_MINUTES = 10
Text = Annotated[str, Query(max_length=4_000)]

pages = APIRouter(include_in_schema=False)
router = APIRouter(prefix="/api/v1/launch", tags=["clinic"], responses=schemas.PROBLEMS)


class RecordPart(ResponseModel):
    heading: str
    text: str


class OpenRecordView(ResponseModel):
    """The patient that a record system opened, without what identifies them."""

    record: str
    """Id of the document; `GET /passages/{id}` opens its passages."""
    title: str
    system: str
    """Address of the FHIR server."""
    parts: list[RecordPart]
    unread: list[str]
    """Kinds of resources that the user did not let Osler read."""
    ends: str
    """ISO 8601, UTC; the record is forgotten then."""


class LaunchView(ResponseModel):
    patient: OpenRecordView | None
    """`null` where the caller came another way."""


@pages.get("/launch")
async def launch(request: Request, site: At, iss: Text, launch: Text = "") -> Response:
    """Where a record system sends its user: by its own menu (`launch`), or by hand without."""
    launcher = _require_launcher(site)
    where, state = await launcher.begin(iss, launch)
    reply = RedirectResponse(where, 302)
    _set_cookie(reply, launcher, _STATE, state, 60 * _MINUTES, iss, path="/launch", same="lax")
    return reply


@pages.get(BACK)
async def come_back(
    request: Request,
    site: At,
    state: Text = "",
    code: Text = "",
    error: Text = "",
    iss: Text = "",
) -> Response:
    """Where the authorisation server sends the browser back to."""
    launcher, cookies = _require_launcher(site), request.headers.get("cookie")
    request.scope["query_string"] = b""  # for the audit log: what came holds the code
    if error:
        problem = f"the record system refuses: {error[:100]}"
        raise RefusedRequest(403, "launch_refused", problem, fix="open Osler from it again")
    with site.gate.count_failed(request.client.host if request.client else ""):
        found = await launcher.finish(state, read_cookie(cookies, _STATE), code, iss)
    sessions = site.gate.sessions
    session = await asyncio.to_thread(make_session, found, site.settings.kb.path, sessions.clock())
    secret = sessions.open(session)
    request.scope["osler.caller"] = site.gate.launched_caller(session)
    request.scope["query_string"] = f"opened={session.record}".encode()
    reply = RedirectResponse("/", 303)
    reply.delete_cookie(_STATE, path="/launch")
    _set_cookie(reply, launcher, COOKIE, secret, found.seconds, found.system)
    asyncio.get_running_loop().call_later(found.seconds + 1, sessions.end_stale)
    return reply


@router.get("")
async def get_launch(request: Request, site: At, caller: Who) -> LaunchView:
    """The patient that the caller has open."""
    session = site.gate.sessions.find(request.headers.get("cookie"))
    if session is None:
        return LaunchView(patient=None)
    parts = [RecordPart(heading=one.locator.section, text=one.text) for one in session.passages]
    return LaunchView(
        patient=OpenRecordView(
            record=session.record,
            title=session.passages[0].title,
            system=session.system,
            parts=parts,
            unread=list(session.unread),
            ends=session.ends.isoformat(timespec="seconds"),
        )
    )


@router.delete("", status_code=204)
async def end_launch(request: Request, response: Response, site: At, caller: Who) -> None:
    """Close the patient's record: it is forgotten at once."""
    site.gate.sessions.close(request.headers.get("cookie"))
    response.delete_cookie(COOKIE)


def _require_launcher(site: ServerState) -> Launcher:
    """Raises `RefusedRequest` (404) where no record system is named."""
    if site.gate.launcher is None:
        fix = "name a record system in serve.launch_servers"
        raise RefusedRequest(404, "no_launch", "Osler is not opened from record systems", fix=fix)
    return site.gate.launcher


def _set_cookie(
    reply: Response,
    launcher: Launcher,
    name: str,
    value: str,
    seconds: int,
    system: str,
    *,
    path: str = "/",
    same: str = "strict",
) -> None:
    """A cookie that no script reads; over plain HTTP only where the browser is on this machine."""
    _, server = launcher.find_server(system)
    is_secure = server.redirect_uri.startswith("https:")
    reply.set_cookie(
        name,
        value,
        max_age=seconds,
        path=path,
        secure=is_secure,
        httponly=True,
        samesite="lax" if same == "lax" else "strict",
    )
