"""What is private stays here: which machines would read it, which patients are found,
and what the key in access.key_file may see on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from osler.build import online_sources
from osler.errors import BadConfig
from osler.kb.store.passages import Scope
from osler.settings import KagThinkerSettings, Role, Settings
from osler.settings.sections import is_loopback
from osler.sources.catalogue import ALL_SOURCES, EMR, GRAPH, RESEARCH, WEB, WIKI, is_patients
from osler.text import load_plugins
from osler.types import Caution, Hit, Language, Passage, Retriever

_KEY_READERS = "osler.access"
"""Entry points: keys are the server's, whose package brings what reads them."""


def unknown_sources(settings: Settings, present: Iterable[str]) -> tuple[str, ...]:
    """Names in the settings of access that no source bears, of those that are `present` and the
    built-in ones: misspelt, or not added yet."""
    access, known = settings.access, {*present, *ALL_SOURCES}
    named = (*access.private, *access.deidentify, *access.held, *settings.serve.uploads)
    return tuple(name for name in dict.fromkeys(named) if name not in known)


def remote_hosts(settings: Settings, sources: Iterable[str], roles: Iterable[Role]) -> set[str]:
    """The other machines that would read what is found in `sources`, or queries made of it."""
    searched = set(sources)
    urls = [
        *(chosen.url for chosen in (settings.reranker,) if chosen.kind == "openai"),
        *(url for source, url in _online_urls(settings) if source in searched),
    ]
    if isinstance(settings.strategy, KagThinkerSettings):
        urls.append(settings.strategy.search_url)
    return _remote_among(urls) | index_hosts(settings) | model_hosts(settings, roles)


def index_hosts(settings: Settings) -> set[str]:
    """The other machines that would read every text that is indexed."""
    chosen = settings.embedder
    return _remote_among([chosen.url if chosen.kind == "openai" else "", settings.kb.url])


def model_hosts(settings: Settings, roles: Iterable[Role]) -> set[str]:
    """The other machines on which the models of these roles run."""
    models = map(settings.model_for, roles)
    return _remote_among(chosen.url for chosen in models if chosen.kind == "openai")


def _remote_among(urls: Iterable[str | None]) -> set[str]:
    hosts = {urlsplit(url).hostname or url for url in urls if url}
    return {host for host in hosts if not is_loopback(host)}


def _online_urls(settings: Settings) -> Sequence[tuple[str, str]]:
    urls = {WIKI: settings.pedia.url, RESEARCH: settings.pubmed.url, WEB: settings.web.url}
    return [(source, urls[source]) for source in online_sources.online_names(settings)]


def require_trusted_hosts(
    settings: Settings, sources: Sequence[str], *, roles: Iterable[Role]
) -> None:
    """Raises `BadConfig` where another machine would read a private source unasked."""
    require_trusted(settings, sources, remote_hosts(settings, sources, roles))


def require_trusted(settings: Settings, sources: Sequence[str], hosts: set[str]) -> None:
    """Raises `BadConfig` where one of the hosts may not read a private source among these."""
    private = settings.access.private_among(sources)
    if private and (strangers := hosts - {*settings.access.remote}):
        named = ", ".join(sorted(strangers))
        raise BadConfig(
            f"{', '.join(private)} is private, and {named} would read it",
            fix=f"use a model on this machine, or allow it: access.remote = {named}",
        )


def extraction_scope(
    settings: Settings, present: Sequence[str], named: Sequence[str], roles: Iterable[Role]
) -> Scope:
    """The sources whose texts are taken into the concept graph, which whoever may search `graph`
    reads: those `named`, else all that are not private.

    Raises `BadConfig` where a private one is named and the graph is open, or another machine
    would read it.
    """
    access = settings.access
    if named:
        private = access.private_among(named)
        if private and not access.is_private(GRAPH):
            raise BadConfig(
                f"{', '.join(private)} is private, and whoever may search {GRAPH} would read it",
                fix=f"make the graph private too: access.private = {','.join((*private, GRAPH))}",
            )
        require_trusted(settings, named, model_hosts(settings, roles))
        return tuple(named)
    if access.private_among(one for one in present if one != EMR):
        return tuple(one for one in present if not access.is_private(one))
    return None  # all but emr


_SHARED = {
    "en": "Texts of {sources}, which are private, were open to {hosts}, as the settings allow.",
    "zh": "按设置，{hosts} 可以读到私有来源 {sources} 的文本。",
}


def shared_cautions(
    settings: Settings, sources: Sequence[str], roles: Iterable[Role], language: Language
) -> tuple[Caution, ...]:
    """The caution that other machines read private texts; empty where none did."""
    private = settings.access.private_among(sources)
    hosts = sorted(remote_hosts(settings, sources, roles)) if private else []
    if not hosts:
        return ()
    words = _SHARED[language].format(sources=", ".join(private), hosts=", ".join(hosts))
    return (Caution("shared", words, ()),)


@dataclass(frozen=True)
class PatientBoundRetriever:
    """A search that finds these records of patients and no other, wherever they lie."""

    inner: Retriever
    patients: frozenset[str] | None
    """Documents; `None` = all."""
    most: int = 4_096
    """Passages that are looked through at most."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        wanted = k
        while True:
            hits = await self.inner.search(query, k=wanted)
            kept = [hit for hit in hits if self._is_open(hit.passage)]
            if len(kept) >= k or len(hits) < wanted or wanted >= self.most:
                return [replace(hit, rank=rank) for rank, hit in enumerate(kept[:k], 1)]
            wanted *= 4

    def _is_open(self, passage: Passage) -> bool:
        if self.patients is None or not is_patients(passage.source, passage.locator.kind):
            return True
        return passage.id.partition("#")[0] in self.patients


def within_patients(settings: Settings, search: Retriever, sources: Sequence[str]) -> Retriever:
    """The search bound to the patients of the settings, and to none where `emr` is not searched: a
    record that an older knowledge base has under another source is not found there."""
    named = settings.access.patients if EMR in sources else ("",)
    return PatientBoundRetriever(search, frozenset(named) if named else None)


def narrow_by_key(settings: Settings) -> Settings:
    """The settings within the scope of the key; as they are where none is named.

    Raises `BadConfig` for a key that is not one, or may not run the strategy of the settings.
    """
    if settings.access.key_file is None:
        return settings
    narrowed: Settings = _load_reader("narrow_by_key")(settings)
    return narrowed


def open_runs(settings: Settings) -> Callable[[Path], bool]:
    """Whether a run's folder may be shown: all may, unless access.key_file names a key."""
    if settings.access.key_file is None:
        return lambda _: True
    return partial(_load_reader("is_run_open"), settings)


def _load_reader(name: str) -> Any:
    found = load_plugins(_KEY_READERS)
    if name not in found:
        raise BadConfig(
            "access.key_file is set, and no server that could know the key is installed",
            fix='pip install "osler[serve]"',
        )
    return found[name]
