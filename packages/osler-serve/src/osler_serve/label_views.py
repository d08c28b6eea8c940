"""`GET /api/v1/labels`: labels of drugs side by side, word for word and without a verdict."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Query

from osler.reports import LabelsSideBySide
from osler.retrieve.labels import find_labels, shared_headings
from osler_serve import schemas
from osler_serve.api import At, Who

router = APIRouter(prefix="/api/v1", responses=schemas.PROBLEMS)
Name = Annotated[str, Query(min_length=1, max_length=200)]


@router.get("/labels", tags=["knowledge"])
async def compare_labels(
    site: At,
    caller: Who,
    drug: Annotated[
        list[Name],
        Query(max_length=4, description="Brand, ingredient, another name or set id; repeatable."),
    ],
    section: Annotated[
        list[Name] | None,
        Query(max_length=20, description="Only headings with this word; repeatable."),
    ] = None,
) -> LabelsSideBySide:
    """The latest label of each drug, section by section. 404 for a drug that no label names."""
    kb = (await site.shelf.open_knowledge()).kb
    access = caller.scope.narrow_settings(site.settings).access

    def read_labels() -> LabelsSideBySide:
        found = [find_labels(kb, one, access.may_open) for one in drug]
        return LabelsSideBySide.of(found, shared_headings(found, section or ()))

    async with site.searches.pass_through():  # a label may be long, and kinds are looked through
        return await asyncio.to_thread(read_labels)
