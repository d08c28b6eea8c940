"""Opens online searches, as the settings say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from osler.build import graphs
from osler.errors import BadConfig, read_text_file
from osler.retrieve.entity_names import EntityNames, NonproprietaryNames, packaged_names
from osler.settings import Settings
from osler.sources.catalogue import RESEARCH, WEB, WIKI
from osler.types import Passage

if TYPE_CHECKING:
    from osler.retrieve.web import OnlineRetriever
    from osler.sources.online.cache import ReplyCache
    from osler.sources.online.client import OnlineClient, SearchService

# Documents that an engine outside is asked for.
_DOCUMENTS = 5


def online_names(settings: Settings) -> tuple[str, ...]:
    """The sources that are searched outside."""
    chosen = (
        (WIKI, settings.pedia.kind),
        (RESEARCH, settings.pubmed.kind),
        (WEB, settings.web.kind),
    )
    return tuple(source for source, kind in chosen if kind != "none")


def online_retrievers(settings: Settings, wanted: tuple[str, ...]) -> list[OnlineRetriever]:
    """Builds the online retriever of each wanted source that is configured."""
    called = [source for source in online_names(settings) if source in wanted]
    if not called:
        return []
    from osler.retrieve.web import OnlineRetriever

    line = open_network(settings)
    return [
        OnlineRetriever(
            _search_service(settings, line, source),
            line,
            source,
            _DOCUMENTS,
            _entity_tables(settings) if source == WIKI else (),
        )
        for source in called
    ]


def _entity_tables(settings: Settings) -> tuple[EntityNames, ...]:
    """What chooses the entity that is looked up in the encyclopaedia: names of the concept graph
    or its trained recogniser, the packaged table, and how drugs' names are built."""
    if settings.pedia.lookup == "question":
        return ()
    return (*graphs.graph_names(settings), packaged_names(), NonproprietaryNames())


def open_network(settings: Settings) -> OnlineClient:
    """The way out, with its cache in home."""
    from osler.sources.online.client import OnlineClient

    chosen = settings.net
    return OnlineClient(
        open_cache(settings),
        offline=chosen.offline,
        private_hosts=frozenset(chosen.private_hosts),
        days=chosen.days,
    )


def open_cache(settings: Settings) -> ReplyCache:
    from osler.sources.online.cache import ReplyCache

    return ReplyCache(settings.home / "web")


def cached_passage(settings: Settings, id: str) -> Passage | None:
    """A passage that was found outside, as it was then."""
    return open_cache(settings).find_passage(id)


def _search_service(settings: Settings, line: OnlineClient, source: str) -> SearchService:
    if source == WIKI:
        from osler.sources.online.services import MediaWikiService

        return MediaWikiService(line, settings.pedia.url, settings.pedia.whole)
    if source == RESEARCH:
        from osler.sources.online.services import PubMedService

        chosen = settings.pubmed
        email = chosen.email or os.environ.get("NCBI_EMAIL", "")
        return PubMedService(line, email, _read_key(chosen.key_file, "NCBI_API_KEY"), chosen.url)
    from osler.sources.online.services import BingService, SearxngService

    if settings.web.kind == "bing":
        key = _read_key(settings.web.key_file, "") or ""
        return BingService(line, settings.web.url, key, settings.web.pages)
    return SearxngService(line, settings.web.url, settings.web.pages)


def _read_key(file: Path | None, variable: str) -> str | None:
    """Reads a key from its file or the environment; it is stored nowhere."""
    if file is None:
        return os.environ.get(variable) or None
    fix = "name a file that holds the key alone"
    return read_text_file(file, BadConfig, fix, what="the key file ").strip() or None
