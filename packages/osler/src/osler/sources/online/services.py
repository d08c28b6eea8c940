"""The services: MediaWiki, PubMed, and web search by SearXNG or the interface of Bing's v7.

PubMed by NCBI's E-utilities, https://www.ncbi.nlm.nih.gov/books/NBK25499/: three calls a second
without a key, ten with one; `tool` and `email` are sent with each, as NCBI asks. A result of a web
search is a title, an address and a snippet; with `pages` the page behind it is fetched and its
text is the document; where that fails, the snippet stays, and the document's kind says so.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from itertools import islice
from typing import Any

import httpx2

from osler.errors import MalformedSource, SourceUnavailable
from osler.sources.formats.html import Html
from osler.sources.formats.pubmed import PubmedXml
from osler.sources.formats.wikis import Wikiextractor
from osler.sources.online.cache import CachedReply
from osler.sources.online.client import (
    HttpCall,
    OnlineClient,
    ServiceRefused,
    TokenBucket,
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
            call = HttpCall(f"{self.url.rstrip('/')}/search", params)
            async with self.net.read(call) as reply:
                results = self._read_results(reply)
        except ServiceRefused as error:
            if error.status == httpx2.codes.FORBIDDEN:
                error.fix = "add json to search.formats in the settings.yml of SearXNG"
            raise
        documents = islice(_build_documents(results, reply.at, "title", "content"), k)
        return await _read_documents(self.net, documents) if self.pages else [*documents]

    def _read_results(self, reply: CachedReply) -> list[dict[str, Any]]:
        data = read_json(reply, self.name)
        results = list_at(data, "results")
        silent = data.get("unresponsive_engines")
        if not results and isinstance(silent, list) and silent:
            raise unreadable_reply(self.name, f"nothing: engines do not respond: {silent}"[:300])
        return results


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
        async with self.net.read(call) as reply:
            data = read_json(reply, self.name)
            if data.get("_type") == "ErrorResponse":
                errors = list_at(data, "errors")
                why = f"an error: {text_at(errors[0], 'message')}" if errors else "?"
                raise unreadable_reply(self.name, why)
        results = list_at(data, "webPages", "value")
        documents = islice(_build_documents(results, reply.at, "name", "snippet"), k)
        return await _read_documents(self.net, documents) if self.pages else [*documents]


def _build_documents(
    results: list[dict[str, Any]], at: float, title: str, words: str
) -> Iterator[Document]:
    """One document for each result with an address and a snippet; an address counts once."""
    seen = set()
    for result in results:
        url, text = text_at(result, "url"), clean_text(text_at(result, words))
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
    try:
        host = httpx2.URL(url).host if len(url) < 2_000 else "page"
    except httpx2.InvalidURL:
        host = "page"
    return f"{make_slug(host)}-{hashlib.sha256(url.encode()).hexdigest()[:12]}"


async def _read_documents(net: OnlineClient, documents: Iterable[Document]) -> list[Document]:
    gate = asyncio.Semaphore(_AT_ONCE)

    async def read_one(document: Document) -> Document:
        async with gate:
            return await _read_page(net, document)

    return list(await asyncio.gather(*map(read_one, documents)))


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
        async with self.net.read(call, bucket=self._bucket) as reply:
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


_ERROR = re.compile(rb"<ERROR>([^<]*)")
"""What stands in place of the records of a search that the server has lost."""
_XML = ("text/xml", "application/xml")
# Calls a second without and with a key.
_SLOW, _FAST = 3.0, 10.0
# Seconds for which the history server is trusted to know a search; it promises eight hours.
_HISTORY = 3_600.0
# Records of one `efetch`.
_IDS_AT_ONCE = 200


@dataclass(frozen=True)
class PubMedService:
    """`SearchService` over PubMed; a query is in PubMed's own language, plain words included."""

    net: OnlineClient
    email: str = ""
    api_key: str | None = field(default=None, repr=False)
    url: str = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
    name: str = "pubmed"

    @cached_property
    def _bucket(self) -> TokenBucket:
        return self.net.make_bucket(_FAST if self.api_key else _SLOW)

    async def find(self, query: str, *, k: int) -> list[Document]:
        if not query.strip() or k < 1:
            return []
        params = {"term": query, "retmax": str(k), "retmode": "json", "sort": "relevance"}
        call = self._make_call("esearch", {**params, "usehistory": "y"}, ("application/json",))
        async with self.net.read(call, bucket=self._bucket) as reply:
            data = read_json(reply, self.name)
            result = data.get("esearchresult")
            if not isinstance(result, dict):
                why = text_at(data, "error")[:200]
                raise unreadable_reply(self.name, f"no search result: {why}")
            if error := text_at(result, "ERROR"):
                raise unreadable_reply(self.name, f"an error: {error[:200]}")
        numbers = [str(each) for each in result.get("idlist", ())][:k]
        # The history server saves sending hundreds of PMIDs back.
        history = {"WebEnv": text_at(result, "webenv"), "query_key": text_at(result, "querykey")}
        if not all(history.values()) or self.net.clock() - reply.at > _HISTORY:
            history = {}
        records: dict[str, Document] = {}
        for start in range(0, len(numbers), _IDS_AT_ONCE):
            some = numbers[start : start + _IDS_AT_ONCE]
            for document in await self._fetch_records(some, start, history):
                records.setdefault(document.code.removeprefix("PMID:"), document)
        return [records[number] for number in numbers if number in records]

    async def _fetch_records(
        self, numbers: list[str], start: int, history: dict[str, str]
    ) -> list[Document]:
        """The records of these PMIDs, which stand in the search's history from `start` on."""
        place = {**history, "retstart": str(start), "retmax": str(len(numbers))}
        wanted = place if history else {"id": ",".join(numbers)}
        call = self._make_call("efetch", {**wanted, "retmode": "xml", "rettype": "abstract"}, _XML)
        # The history is gone after some hours, the records are not: they name the reply.
        call = replace(call, known_as=",".join(numbers))
        async with self.net.read(call, bucket=self._bucket) as reply:
            try:
                records = list(PubmedXml().parse(BytesIO(reply.body), self.name))
            except MalformedSource as error:
                raise unreadable_reply(self.name, "broken XML") from error
            if not records and (told := _ERROR.search(reply.body)):
                why = told[1].decode(errors="replace")[:200]
                raise unreadable_reply(self.name, f"an error: {why}")
        return [
            replace(record, kind=dated_kind(record.kind, reply.at))
            for record in records
            if isinstance(record, Document)
        ]

    def _make_call(self, verb: str, params: dict[str, str], types: tuple[str, ...]) -> HttpCall:
        about = {"db": "pubmed", "tool": "osler", **({"email": self.email} if self.email else {})}
        secret = {"api_key": self.api_key} if self.api_key else {}
        url = f"{self.url.rstrip('/')}/{verb}.fcgi"
        return HttpCall(url, {**about, **params}, secret, types=types)
