"""What lies outside the knowledge base, and the patients in it, as the settings say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from osler.app.config import Settings
from osler.errors import BadConfig
from osler.retrieve.patients import Patients
from osler.sources.online.cache import Cache
from osler.sources.patients.codes import System
from osler.sources.patients.crosswalk import Crosswalk
from osler.types import RESEARCH, WEB, WIKI, Passage

if TYPE_CHECKING:
    from osler.kb.base import KnowledgeBase
    from osler.retrieve.web import Online
    from osler.sources.online.base import Engine
    from osler.sources.online.client import Net

_DOCUMENTS = 5
"""Documents that an engine outside is asked for."""


def patients(settings: Settings, kb: KnowledgeBase) -> Patients:
    """The patients of the knowledge base, compared in the vocabulary that is set.

    Raises `MalformedSource` for a map of codes that is none.
    """
    maps = settings.emr.maps
    walk = Crosswalk.read(maps) if maps else None
    return Patients(kb, walk, System(settings.emr.target))


def sources(settings: Settings) -> tuple[str, ...]:
    """The sources that are searched outside."""
    chosen = (
        (WIKI, settings.pedia.kind),
        (RESEARCH, settings.pubmed.kind),
        (WEB, settings.web.kind),
    )
    return tuple(source for source, kind in chosen if kind != "none")


def online(settings: Settings, wanted: tuple[str, ...]) -> list[Online]:
    """What searches outside for each of these sources that is set."""
    called = [source for source in sources(settings) if source in wanted]
    if not called:
        return []
    from osler.retrieve.web import Online

    line = net(settings)
    return [Online(_engine(settings, line, source), line, source, _DOCUMENTS) for source in called]


def net(settings: Settings) -> Net:
    """The way out, with its cache in home."""
    from osler.sources.online.client import Bounds, Net

    chosen = settings.net
    return Net(
        cache(settings),
        offline=chosen.offline,
        private_hosts=frozenset(chosen.private_hosts),
        days=chosen.days,
        bounds=Bounds(seconds=chosen.timeout_s),
    )


def cache(settings: Settings) -> Cache:
    return Cache(settings.home / "web", settings.net.cache_mib * 2**20)


def kept(settings: Settings, id: str) -> Passage | None:
    """A passage that was found outside, as it was then."""
    return cache(settings).passage(id)


def _engine(settings: Settings, line: Net, source: str) -> Engine:
    if source == WIKI:
        from osler.sources.online.mediawiki import MediaWiki

        return MediaWiki(line, settings.pedia.url, settings.pedia.whole)
    if source == RESEARCH:
        from osler.sources.online.eutils import EUtils

        chosen = settings.pubmed
        email = chosen.email or os.environ.get("NCBI_EMAIL", "")
        return EUtils(line, email, _key(chosen.key_file, "NCBI_API_KEY"), chosen.url)
    from osler.sources.online.web_search import Bing, SearXNG

    if settings.web.kind == "bing":
        key = _key(settings.web.key_file, "") or ""
        return Bing(line, settings.web.url, key, settings.web.pages)
    return SearXNG(line, settings.web.url, settings.web.pages)


def _key(file: Path | None, variable: str) -> str | None:
    """It is read here and stored nowhere."""
    if file is None:
        return os.environ.get(variable) or None
    try:
        return file.read_text(encoding="utf-8").strip() or None
    except (OSError, UnicodeDecodeError) as error:
        fix = "name a file that holds the key alone"
        raise BadConfig(f"the key file {file} cannot be read: {error}", fix=fix) from error
