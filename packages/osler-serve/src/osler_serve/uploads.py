"""Documents that users send into a source of their own: `/api/v1/uploads/SOURCE`."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, UploadFile

from osler.errors import OslerError
from osler_serve import replies, schemas
from osler_serve.api import At, Who
from osler_serve.keys import Caller
from osler_serve.ops.uploads import ENDINGS, incoming_file, list_uploads
from osler_serve.problems import RefusedRequest
from osler_serve.state import ServerState, count_behind

router = APIRouter(prefix="/api/v1/uploads", tags=["uploads"], responses=schemas.PROBLEMS)
Source = Annotated[
    str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="One of serve.uploads.")
]
FileName = Annotated[str, Path(max_length=200, description="Of a file, as the list has it.")]


@router.get("")
async def list_places(site: At, caller: Who) -> replies.UploadPlaces:
    """The sources that take files, and which files."""
    serve = site.settings.serve
    sources = [one for one in serve.uploads if _is_open(site, caller, one)]
    return replies.UploadPlaces(sources=sources, endings=list(ENDINGS), mib=serve.upload_mib)


@router.post("/{source}", status_code=201)
async def send_document(
    source: Source, file: UploadFile, site: At, caller: Who
) -> replies.UploadReport:
    """Send a PDF, Word, XML, HTML or text file; one of the same name is replaced."""
    _require_open(site, caller, source)
    data, name = await file.read(), file.filename or ""
    place = incoming_file(site.settings, data)
    sent = await asyncio.to_thread(place.__enter__)
    try:
        return await _report(site, caller, "store", source, name, str(sent))
    finally:
        await asyncio.to_thread(place.__exit__, None, None, None)


@router.get("/{source}")
async def list_documents(source: Source, site: At, caller: Who) -> replies.UploadList:
    """The files that were sent into the source."""
    _require_open(site, caller, source)
    found = await asyncio.to_thread(list_uploads, site.settings, source)
    uploads = [replies.UploadView.from_value(one) for one in found]
    try:
        behind = await count_behind(site)
    except OslerError:  # there is no knowledge base yet, or nothing in it
        behind = 0
    return replies.UploadList(uploads=uploads, behind=behind)


@router.delete("/{source}/{name}", status_code=204)
async def delete_document(source: Source, name: FileName, site: At, caller: Who) -> None:
    """Delete a file and what was read from it."""
    _require_open(site, caller, source)
    if not await site.uploads.ask(caller, "delete", source, name):
        raise RefusedRequest(404, "unknown_upload", f"there is no file {name!r}")


@router.post("/{source}/{name}/reread")
async def reread_document(
    source: Source, name: FileName, site: At, caller: Who
) -> replies.UploadReport:
    """Read a file again, as this version of Osler does."""
    _require_open(site, caller, source)
    return await _report(site, caller, "reread", source, name)


async def _report(
    site: ServerState, caller: Caller, verb: str, source: str, name: str, *more: str
) -> replies.UploadReport:
    """Raises `RefusedRequest`: 422 for a file that cannot be read, 404 for none."""
    if (done := await site.uploads.ask(caller, verb, source, name, *more)) is None:
        raise RefusedRequest(404, "unknown_upload", f"there is no file {name!r}")
    return replies.UploadReport.model_validate(done)


def _is_open(site: ServerState, caller: Caller, source: str) -> bool:
    access = caller.scope.narrow_settings(site.settings).access
    return source in site.settings.serve.uploads and access.may_search(source)


def _require_open(site: ServerState, caller: Caller, source: str) -> None:
    """Raises `RefusedRequest` (403) for a source that takes no files of this caller."""
    if not _is_open(site, caller, source):
        raise RefusedRequest(
            403, "no_uploads", f"{source} takes no files here", fix="name it in serve.uploads"
        )
