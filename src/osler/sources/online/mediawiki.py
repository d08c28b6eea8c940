"""Wikipedia, or any MediaWiki with the extension TextExtracts: full-text search with texts.

One query does both: `generator=search` finds the pages and `prop=extracts` gives their text
(https://www.mediawiki.org/wiki/API:Query, Extension:TextExtracts). Introductions come twenty at a
time, whole pages one at a time; the rest is requested with the `continue` of the reply.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from osler.sources.formats.wikis import Wikiextractor
from osler.sources.online.client import (
    HttpCall,
    OnlineClient,
    TokenBucket,
    dated_kind,
    list_at,
    read_json,
    text_at,
    unreadable_reply,
)
from osler.sources.records import Document
from osler.text import language_of

# Extracts of one reply, at most (`exlimit`).
_MOST = 20


@dataclass(frozen=True)
class MediaWikiService:
    """`SearchService` over the wiki of the query's language."""

    net: OnlineClient
    url: str = "https://{language}.wikipedia.org/w/api.php"
    """`{language}` is en or zh, whichever the query is written in."""
    whole: bool = False
    """Whole pages instead of introductions; one call a page."""
    licence: str = "CC BY-SA 4.0"
    name: str = "wikipedia"

    @cached_property
    def _bucket(self) -> TokenBucket:
        # The API asks for calls one after another, not for a rate; five a second is modest.
        return self.net.make_bucket(5.0)

    async def find(self, query: str, *, k: int) -> list[Document]:
        language = language_of(query)
        if not query.strip() or k < 1:
            return []
        pages, at = await self._find_pages(query, language, min(k, _MOST))
        documents = (self._build_document(page, language, at) for page in pages)
        return [document for document in documents if document is not None][:k]

    async def _find_pages(
        self, query: str, language: str, k: int
    ) -> tuple[list[dict[str, Any]], float]:
        """Pages with their texts, in the order of the search, and the time of fetching."""
        pages: dict[str, dict[str, Any]] = {}
        going_on: dict[str, str] = {}
        for _ in range(k + 2):
            reply, at = await self._call_api(
                {**self._search_params(query, language, k), **going_on}, language
            )
            for page in list_at(reply, "query", "pages"):
                known = pages.setdefault(text_at(page, "pageid"), {})
                known.update({key: value for key, value in page.items() if value not in ("", None)})
            onward = reply.get("continue")
            # What goes on with the search alone is more pages than were asked for.
            if not isinstance(onward, dict) or "excontinue" not in onward:
                break
            going_on = {key: str(value) for key, value in onward.items()}
        ranked = sorted(pages.values(), key=lambda page: int(text_at(page, "index") or 10**6))
        return ranked, at

    def _search_params(self, query: str, language: str, k: int) -> dict[str, str]:
        params = {
            "action": "query",
            "format": "json",
            "formatversion": "2",
            "maxlag": "5",
            "redirects": "1",
            "generator": "search",
            "gsrsearch": query[:300],
            "gsrlimit": str(k),
            "gsrnamespace": "0",
            "prop": "extracts|info|pageprops",
            "ppprop": "disambiguation",
            "inprop": "url",
            "explaintext": "1",
            "exsectionformat": "wiki",
            "exlimit": "1" if self.whole else "max",
        }
        if not self.whole:
            params["exintro"] = "1"
        if language == "zh":
            params["converttitles"] = "1"
            params["variant"] = "zh-cn"
        return params

    async def _call_api(
        self, params: dict[str, str], language: str
    ) -> tuple[dict[str, Any], float]:
        call = HttpCall(self.url.format(language=language), params)
        reply = await self.net.get(call, bucket=self._bucket)
        data = read_json(reply, self.name)
        if "error" in data:
            code, words = text_at(data, "error", "code"), text_at(data, "error", "info")
            raise unreadable_reply(self.name, f"an error: {code}: {words[:200]}")
        return data, reply.at

    def _build_document(self, page: dict[str, Any], language: str, at: float) -> Document | None:
        """The document of a page; `None` without text, and for a disambiguation page."""
        text, number = text_at(page, "extract"), text_at(page, "pageid")
        is_list = "disambiguation" in (page.get("pageprops") or {})
        if not (text.strip() and number) or is_list or "missing" in page:
            return None
        fields = {
            "id": f"{self.name}-{language}-{number}",
            "title": text_at(page, "title"),
            "url": text_at(page, "canonicalurl") or text_at(page, "fullurl"),
            "text": text,
        }
        record = Wikiextractor().read_record(fields, self.name)
        if not isinstance(record, Document):
            return None
        return replace(record, kind=dated_kind("Encyclopaedia article", at), licence=self.licence)
