"""Web search: your own SearXNG, or any endpoint with the interface of Bing's Web Search v7.

A result is a title, an address and a snippet. With `pages` the page behind it is fetched and its
text is the document; where that fails, the snippet stays, and the document's kind says so.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from io import BytesIO
from typing import Any

import httpx2

from osler.errors import MalformedSource, SourceUnavailable
from osler.sources.formats.html import Html
from osler.sources.online.client import (
    HttpCall,
    OnlineClient,
    ServiceRefused,
    dated_kind,
    list_at,
    read_json,
    text_at,
    unreadable_reply,
)
from osler.sources.records import Document, Section
from osler.text import clean_text, language_of, make_slug, one_line

PAGE, WORDS = "Web page", "Web search result, page not read"
"""Kinds of documents from the web."""

_PAGES = ("text/html", "application/xhtml+xml")
# Pages fetched at a time.
_AT_ONCE = 4


@dataclass(frozen=True)
class SearxngService:
    """`SearchService` over a SearXNG; JSON must be among its `search.formats`."""

    net: OnlineClient
    url: str
    """Of the instance: "http://localhost:8888"."""
    pages: bool = False
    name: str = "searxng"

    async def find(self, query: str, *, k: int) -> list[Document]:
        if not query.strip() or k < 1:
            return []
        params = {"q": query, "format": "json", "language": language_of(query)}
        try:
            reply = await self.net.get(HttpCall(f"{self.url.rstrip('/')}/search", params))
        except ServiceRefused as error:
            if error.status == httpx2.codes.FORBIDDEN:
                error.fix = "add json to search.formats in the settings.yml of SearXNG"
            raise
        data = read_json(reply, self.name)
        results = list_at(data, "results")
        silent = data.get("unresponsive_engines")
        if not results and isinstance(silent, list) and silent:
            raise unreadable_reply(self.name, f"nothing: engines do not respond: {silent}"[:300])
        documents = _build_documents(
            results, reply.at, title="title", address="url", words="content"
        )
        return await _read_documents(self.net, documents, k, pages=self.pages)


@dataclass(frozen=True)
class BingService:
    """`SearchService` over the interface of Bing Web Search v7, which others still offer."""

    net: OnlineClient
    url: str
    """Of the search itself: "https://HOST/v7.0/search"."""
    api_key: str = field(repr=False)
    pages: bool = False
    name: str = "bing"

    async def find(self, query: str, *, k: int) -> list[Document]:
        if not query.strip() or k < 1:
            return []
        market = "zh-CN" if language_of(query) == "zh" else "en-US"
        params = {
            "q": query[:1400],
            "count": str(min(k, 50)),
            "mkt": market,
            "responseFilter": "Webpages",
            "textFormat": "Raw",
        }
        call = HttpCall(
            self.url, params, secret_headers={"Ocp-Apim-Subscription-Key": self.api_key}
        )
        reply = await self.net.get(call)
        data = read_json(reply, self.name)
        if data.get("_type") == "ErrorResponse":
            errors = list_at(data, "errors")
            raise unreadable_reply(
                self.name, f"an error: {text_at(errors[0], 'message')}" if errors else "?"
            )
        pages = list_at(data, "webPages", "value")
        documents = _build_documents(pages, reply.at, title="name", address="url", words="snippet")
        return await _read_documents(self.net, documents, k, pages=self.pages)


def _build_documents(
    results: list[dict[str, Any]], at: float, *, title: str, address: str, words: str
) -> Iterator[Document]:
    """One document for each result with an address and a snippet; an address counts once."""
    seen = set()
    for result in results:
        url, text = text_at(result, address), clean_text(text_at(result, words))
        name = one_line(text_at(result, title)) or url
        if url in seen or not text or not url.startswith(("http://", "https://")):
            continue
        seen.add(url)
        yield Document(
            id=_address_id(url),
            title=name[:300],
            sections=(Section(text),),
            language=language_of(text),
            url=url,
            kind=dated_kind(WORDS, at),
        )


def _address_id(url: str) -> str:
    """An identifier that begins with the host and is different for each address."""
    host = httpx2.URL(url).host if len(url) < 2_000 else "page"
    return f"{make_slug(host)}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"


async def _read_documents(
    net: OnlineClient, documents: Iterator[Document], k: int, *, pages: bool
) -> list[Document]:
    chosen = [document for document, _ in zip(documents, range(k), strict=False)]
    if not pages:
        return chosen
    gate = asyncio.Semaphore(_AT_ONCE)

    async def read_one(document: Document) -> Document:
        async with gate:
            return await _read_page(net, document)

    return list(await asyncio.gather(*map(read_one, chosen)))


async def _read_page(net: OnlineClient, document: Document) -> Document:
    """The document with the page's text, or unchanged when that cannot be fetched or is empty."""
    try:
        reply = await net.get(HttpCall(document.url, types=_PAGES))
        pages = await asyncio.to_thread(
            lambda: list(Html().parse(BytesIO(reply.body), f"{document.id}.html"))
        )
    except (SourceUnavailable, MalformedSource):
        return document  # its kind says that the page was not read
    page = next((page for page in pages if isinstance(page, Document)), None)
    if page is None:
        return document
    kind = dated_kind(PAGE, reply.at)
    return replace(
        page, id=document.id, title=page.title or document.title, url=document.url, kind=kind
    )
