"""What is private stays here: which machines would read it, and which patients are found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from osler.app.config import KagThinkerSettings, Role, Settings
from osler.app.config.access import is_loopback
from osler.app.wiring import online_sources
from osler.errors import BadConfig
from osler.sources.catalogue import EMR, RESEARCH, WEB, WIKI
from osler.types import Caution, Hit, Language, Retriever


def remote_hosts(settings: Settings, sources: Iterable[str], roles: Iterable[Role]) -> set[str]:
    """The other machines that would read what is found in `sources`, or queries made of it."""
    searched = set(sources)
    urls = [
        *(chosen.url for chosen in map(settings.model_for, roles) if chosen.kind == "openai"),
        *(
            chosen.url
            for chosen in (settings.embedder, settings.reranker)
            if chosen.kind == "openai"
        ),
        settings.kb.url,
        *(url for source, url in _online_urls(settings) if source in searched),
    ]
    if isinstance(settings.strategy, KagThinkerSettings):
        urls.append(settings.strategy.search_url)
    hosts = {urlsplit(url).hostname or url for url in urls if url}
    return {host for host in hosts if not is_loopback(host)}


def _online_urls(settings: Settings) -> Sequence[tuple[str, str]]:
    urls = {WIKI: settings.pedia.url, RESEARCH: settings.pubmed.url, WEB: settings.web.url}
    return [(source, urls[source]) for source in online_sources.online_names(settings)]


def require_trusted_hosts(
    settings: Settings, sources: Sequence[str], *, roles: Iterable[Role]
) -> None:
    """Raises `BadConfig` where another machine would read a private source unasked."""
    private = settings.access.private_among(sources)
    if not private:
        return
    if strangers := remote_hosts(settings, sources, roles) - {*settings.access.remote}:
        named = ", ".join(sorted(strangers))
        raise BadConfig(
            f"{', '.join(private)} is private, and {named} would read it",
            fix=f"use a model on this machine, or allow it: access.remote = {named}",
        )


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
    """A search that finds these records of `emr` and no other."""

    inner: Retriever
    patients: frozenset[str]
    most: int = 4_096
    """Passages that are looked through at most."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        wanted = k
        while True:
            hits = await self.inner.search(query, k=wanted)
            kept = [hit for hit in hits if self._is_open(hit)]
            if len(kept) >= k or len(hits) < wanted or wanted >= self.most:
                return [replace(hit, rank=rank) for rank, hit in enumerate(kept[:k], 1)]
            wanted *= 4

    def _is_open(self, hit: Hit) -> bool:
        document = hit.passage.id.partition("#")[0]
        return hit.passage.source != EMR or document in self.patients


def within_patients(settings: Settings, search: Retriever, sources: Sequence[str]) -> Retriever:
    """The search bound to the patients of the settings, where they name any."""
    named = settings.access.patients
    if not named or EMR not in sources:
        return search
    return PatientBoundRetriever(search, frozenset(named))
