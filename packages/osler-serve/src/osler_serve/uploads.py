"""Documents that users send into a source of their own: `/api/v1/uploads/SOURCE`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Path, UploadFile

from osler.reports import knowledge
from osler_serve import schemas
from osler_serve.api import At, Who
from osler_serve.keys import Caller
from osler_serve.ops.uploads import (
    ENDINGS,
    BadUpload,
    ReadUpload,
    delete_upload,
    list_uploads,
    reread_upload,
    store_upload,
)
from osler_serve.problems import RefusedRequest
from osler_serve.state import ServerState

router = APIRouter(prefix="/api/v1/uploads", tags=["uploads"], responses=schemas.PROBLEMS)
Source = Annotated[
    str, Path(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$", description="One of serve.uploads.")
]
FileName = Annotated[str, Path(max_length=200, description="Of a file, as the list has it.")]


@router.get("")
async def list_places(site: At, caller: Who) -> knowledge.UploadPlaces:
    """The sources that take files, and which files."""
    serve = site.settings.serve
    sources = [one for one in serve.uploads if _is_open(site, caller, one)]
    return knowledge.UploadPlaces(sources=sources, endings=list(ENDINGS), mib=serve.upload_mib)


@router.post("/{source}", status_code=201)
async def send_document(
    source: Source, file: UploadFile, site: At, caller: Who
) -> knowledge.UploadReport:
    """Send a PDF, Word, XML, HTML or text file; one of the same name is replaced."""
    _require_open(site, caller, source)
    data, name = await file.read(), file.filename or ""
    return await _report(lambda: store_upload(site.settings, source, name, data), name)


@router.get("/{source}")
async def list_documents(source: Source, site: At, caller: Who) -> knowledge.UploadList:
    """The files that were sent into the source."""
    _require_open(site, caller, source)
    found = await asyncio.to_thread(list_uploads, site.settings, source)
    return knowledge.UploadList(uploads=[knowledge.UploadView.from_value(one) for one in found])


@router.delete("/{source}/{name}", status_code=204)
async def delete_document(source: Source, name: FileName, site: At, caller: Who) -> None:
    """Delete a file and what was read from it."""
    _require_open(site, caller, source)
    if not await asyncio.to_thread(delete_upload, site.settings, source, name):
        raise RefusedRequest(404, "unknown_upload", f"there is no file {name!r}")


@router.post("/{source}/{name}/reread")
async def reread_document(
    source: Source, name: FileName, site: At, caller: Who
) -> knowledge.UploadReport:
    """Read a file again, as this version of Osler does."""
    _require_open(site, caller, source)
    return await _report(lambda: reread_upload(site.settings, source, name), name)


async def _report(read: Callable[[], ReadUpload | None], name: str) -> knowledge.UploadReport:
    """Raises `RefusedRequest`: 422 for a file that cannot be read, 404 for none."""
    try:
        done = await asyncio.to_thread(read)
    except BadUpload as error:
        raise RefusedRequest(422, "bad_upload", error.message, fix=error.fix) from error
    if done is None:
        raise RefusedRequest(404, "unknown_upload", f"there is no file {name!r}")
    return knowledge.UploadReport.from_value(done)


def _is_open(site: ServerState, caller: Caller, source: str) -> bool:
    access = caller.scope.narrow_settings(site.settings).access
    return source in site.settings.serve.uploads and access.may_search(source)


def _require_open(site: ServerState, caller: Caller, source: str) -> None:
    """Raises `RefusedRequest` (403) for a source that takes no files of this caller."""
    if not _is_open(site, caller, source):
        raise RefusedRequest(
            403, "no_uploads", f"{source} takes no files here", fix="name it in serve.uploads"
        )
