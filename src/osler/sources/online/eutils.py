"""PubMed through NCBI's E-utilities: `esearch` on the history server, then `efetch`.

https://www.ncbi.nlm.nih.gov/books/NBK25499/. Three calls a second without a key, ten with one;
`tool` and `email` are sent with each, as NCBI asks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO

from osler.errors import MalformedSource
from osler.sources.formats.pubmed import PubmedXml
from osler.sources.online.client import (
    HttpCall,
    OnlineClient,
    TokenBucket,
    dated_kind,
    read_json,
    text_at,
    unreadable_reply,
)
from osler.sources.records import Document

_XML = ("text/xml", "application/xml")
# Calls a second without and with a key.
_SLOW, _FAST = 3.0, 10.0
# Seconds for which the history server is trusted to know a search; it promises eight hours.
_HISTORY = 3_600.0
# Records of one `efetch`.
_AT_ONCE = 200


@dataclass(frozen=True)
class PubMedService:
    """`SearchService` over PubMed; a query is in PubMed's own language, plain words included."""

    net: OnlineClient
    email: str = ""
    api_key: str | None = field(default=None, repr=False)
    url: str = "https://eutils.ncbi.nlm.nih.gov/entrez/eutils"
    tool: str = "osler"
    name: str = "pubmed"

    @cached_property
    def _bucket(self) -> TokenBucket:
        return self.net.make_bucket(_FAST if self.api_key else _SLOW)

    async def find(self, query: str, *, k: int) -> list[Document]:
        if not query.strip() or k < 1:
            return []
        params = {"term": query, "retmax": str(k), "retmode": "json", "sort": "relevance"}
        call = self._make_call("esearch", {**params, "usehistory": "y"}, ("application/json",))
        reply = await self.net.get(call, bucket=self._bucket)
        data = read_json(reply, self.name)
        result = data.get("esearchresult")
        if not isinstance(result, dict):
            raise unreadable_reply(self.name, f"no search result: {text_at(data, 'error')[:200]}")
        if error := text_at(result, "ERROR"):
            raise unreadable_reply(self.name, f"an error: {error[:200]}")
        numbers = [str(each) for each in result.get("idlist", ())][:k]
        # The history server saves sending hundreds of PMIDs back.
        history = {"WebEnv": text_at(result, "webenv"), "query_key": text_at(result, "querykey")}
        if not all(history.values()) or self.net.clock() - reply.at > _HISTORY:
            history = {}
        records: dict[str, Document] = {}
        for start in range(0, len(numbers), _AT_ONCE):
            some = numbers[start : start + _AT_ONCE]
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
        reply = await self.net.get(replace(call, known_as=",".join(numbers)), bucket=self._bucket)
        try:
            records = list(PubmedXml().parse(BytesIO(reply.body), self.name))
        except MalformedSource as error:
            raise unreadable_reply(self.name, "broken XML") from error
        return [
            replace(record, kind=dated_kind(record.kind, reply.at))
            for record in records
            if isinstance(record, Document)
        ]

    def _make_call(self, verb: str, params: dict[str, str], types: tuple[str, ...]) -> HttpCall:
        about = {"db": "pubmed", "tool": self.tool, **({"email": self.email} if self.email else {})}
        secret = {"api_key": self.api_key} if self.api_key else {}
        url = f"{self.url.rstrip('/')}/{verb}.fcgi"
        return HttpCall(url, {**about, **params}, secret, types=types)
