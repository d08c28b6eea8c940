"""The knowledge base that the settings name, and what searches it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from importlib.resources import as_file, files
from itertools import islice
from typing import TYPE_CHECKING, Literal

from osler.build import graphs, online_sources
from osler.build.hub import open_reranker, read_server_key, with_reranker
from osler.build.models import encoder_relevance, load_encoder
from osler.build.privacy import require_trusted_hosts, within_patients
from osler.errors import BadConfig, BadFilter, KnowledgeBaseMissing
from osler.extract.derived import EXTRACTED_FACTS, Extractions
from osler.kb.base import BuildResult, KnowledgeBase, Progress
from osler.kb.search.base import KIND_NAMES, BackendChoice, PassageFilter, fold_kind
from osler.kb.search.exact import has_allowed, list_kinds
from osler.methods.omni.planners import SourceDescription
from osler.retrieve.hybrid import Fusion, retriever_over
from osler.retrieve.open_records import OPEN_RECORDS, OpenRecordRetriever
from osler.retrieve.pooled import FusedRelevance, PooledOrder
from osler.retrieve.relevance import OverlapRelevance, TermRarity, WordRelevance
from osler.settings import Settings
from osler.settings.sections import AccessSettings
from osler.sources.catalogue import ALL_SOURCES, EMR, GRAPH
from osler.sources.patients import import_clinic
from osler.types import Hit, Relevance, Retriever

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder
    from osler.kb.ingest.bulk import ProcessWorkerPool, RayWorkerPool
    from osler.retrieve.indexed import NameRankings

_SAMPLE_LICENCE = "Apache-2.0"
# Kinds of text that an error names.
_KINDS = 30
# Documents whose titles describe a source of the user's own.
_TITLES = 3


def open_knowledge_base(settings: Settings) -> KnowledgeBase:
    """The configured knowledge base. Raises `KnowledgeBaseError`."""
    kb = KnowledgeBase.open(settings.kb.path, search_backend(settings), EXTRACTED_FACTS)
    kb.deidentified = settings.access.deidentify
    return kb


def search_backend(settings: Settings) -> BackendChoice:
    """Builds the choice of a search backend. Raises `BadConfig` for an unreadable key file."""
    chosen = settings.kb
    key = read_server_key(chosen.key_file, "kb", "QDRANT_API_KEY") if chosen.url else None
    return BackendChoice(chosen.engine, chosen.url, key, chosen.collection)


def search_filter(settings: Settings, sources: tuple[str, ...]) -> PassageFilter:
    """Builds the filter of a search from the settings."""
    chosen = settings.retrieve
    return PassageFilter(
        sources,
        chosen.years,
        chosen.days,
        chosen.languages,
        chosen.kinds,
        chosen.retracted,
        chosen.trust,
        chosen.known_day,
    )


def require_passing(settings: Settings, kb: KnowledgeBase, sources: tuple[str, ...]) -> None:
    """Raises `BadFilter` for a kind of text that is none, and where the filter by date and kind
    lets nothing through."""
    chosen = settings.retrieve
    if chosen.kinds:
        with kb.readers.borrow() as db:
            known = [*KIND_NAMES, *list_kinds(db, settings.access.may_open)]
        if unknown := [kind for kind in chosen.kinds if fold_kind(kind) not in known]:
            there = ", ".join(list(dict.fromkeys(known))[:_KINDS])
            raise BadFilter(f"no text is of the kind {unknown[0]!r}", fix=f"choose from {there}")
    outside = any(source in sources for source in online_sources.online_names(settings))
    held = tuple(source for source in sources if source in kb.sources)
    with kb.readers.borrow() as db:
        is_empty = not has_allowed(db, search_filter(settings, held))
    if is_empty and not outside:
        raise BadFilter(
            f"no text passes the filter: {chosen.describe_filter()}",
            fix="widen it; `osler kb info` shows what there is",
        )


def bulk_runner(
    on: Literal["processes", "ray"], workers: int | None
) -> ProcessWorkerPool | RayWorkerPool:
    """Builds the runner of bulk work, of `workers` or one a core. RAY_ADDRESS names a cluster."""
    from osler.kb.ingest.bulk import ProcessWorkerPool, RayWorkerPool

    count = workers or os.cpu_count() or 1
    return (
        ProcessWorkerPool(count)
        if on == "processes"
        else RayWorkerPool(count, os.environ.get("RAY_ADDRESS"))
    )


def open_or_create(settings: Settings) -> KnowledgeBase:
    try:
        return open_knowledge_base(settings)
    except KnowledgeBaseMissing:
        kb = KnowledgeBase.create(settings.kb.path, search_backend(settings), EXTRACTED_FACTS)
        kb.deidentified = settings.access.deidentify
        return kb


def build_sample(settings: Settings, progress: Progress | None = None) -> BuildResult:
    """Puts the packaged sample texts into the configured knowledge base and builds it."""
    with open_or_create(settings) as kb:
        with as_file(files("osler.sample")) as folder:
            for source in (one for one in ALL_SOURCES if (folder / one).is_dir()):
                kb.add(
                    [folder / source],
                    source=source,
                    licence=_SAMPLE_LICENCE,
                    illustrative=True,
                    progress=progress,
                )
        return kb.build(load_encoder(settings), progress=progress)


def searched_sources(settings: Settings, kb: KnowledgeBase) -> tuple[str, ...]:
    """The sources to search: those allowed that are there, or outside; private ones only when
    named.

    Raises `BadConfig` for a source that is asked for and not there.
    """
    present, wanted = {*kb.sources, *online_sources.online_names(settings)}, settings.kb.sources
    if graphs.has_graph(settings):
        present.add(GRAPH)
    access, opened = settings.access, open_record_source(settings.access)
    # What may not be searched is not there: both get the same words.
    present = set(filter(access.may_search, present | opened))
    if not wanted:
        wanted = tuple(present - {*access.private_among(present)} | present & opened)
    if absent := set(wanted) - present:
        raise BadConfig(
            f"the knowledge base has no source {', '.join(sorted(absent))}",
            fix=f"choose from {', '.join(_order_sources(present))}, or `osler kb add` it",
        )
    found = _order_sources(wanted)
    if settings.retrieve.is_filtered:
        require_passing(settings, kb, found)
    return found


def open_record_source(access: AccessSettings) -> set[str]:
    """The source of patients where a record was opened for the caller: it is searched unasked."""
    return {EMR} if OPEN_RECORDS.list_passages(access.patients) else set()


def describe_sources(kb: KnowledgeBase, sources: tuple[str, ...]) -> tuple[SourceDescription, ...]:
    """The sources as a planner sees them; one of the user's own by some of its titles."""

    def first_titles(source: str) -> tuple[str, ...]:
        if source in ALL_SOURCES or source not in kb.sources:
            return ()
        first = islice(kb.read_documents(source), _TITLES)
        return tuple(passages[0].title for passages in first if passages[0].title)

    return tuple(SourceDescription(source, first_titles(source)) for source in sources)


def make_retriever(
    settings: Settings,
    kb: KnowledgeBase,
    encoder: Encoder,
    sources: tuple[str, ...],
    second: Relevance | None = None,
) -> Retriever:
    """Builds the retriever over these sources: the index, the graph, online services, or all;
    patients by likeness. `second` weighs the relations of the graph, where it is given."""
    held = tuple(source for source in sources if source in kb.sources)
    several: list[Retriever] = []
    if held or not sources:
        several.append(_index_retriever(settings, kb, encoder, held))
    if sources == (EMR,) and held:
        patients = import_clinic("records.search")
        several = [patients.SimilarPatients(patients.open_patients(settings, kb), several[0])]
    if EMR in sources and open_record_source(settings.access):
        several.append(OpenRecordRetriever(settings.access.patients))
    if GRAPH in sources and (graph := graphs.open_graph(settings)) is not None:
        from osler.retrieve.graph import GraphRetriever
        from osler.retrieve.graph_mentions import open_recogniser

        recogniser = open_recogniser(graph)
        several.append(GraphRetriever(graph, second or OverlapRelevance(), recogniser=recogniser))
    allowed = search_filter(settings, sources)
    if online := online_sources.online_retrievers(settings, sources):
        from osler.retrieve.web import PassingRetriever

        kept = [PassingRetriever(one, allowed) for one in online]
        several += kept if settings.retrieve.is_filtered else online
    if not several:
        return _index_retriever(
            settings, kb, encoder, sources
        )  # it says at the first search what lacks
    if len(several) == 1:
        return several[0]
    from osler.retrieve.web import FusedRetriever

    rarity = partial(kb.term_rarity, as_of=allowed.as_of)
    order = PooledOrder(pool_relevance(settings, rarity, encoder, second))
    return FusedRetriever(tuple(several), order)


def pool_relevance(
    settings: Settings, rarity: TermRarity, encoder: Encoder, second: Relevance | None
) -> Relevance:
    """Builds what scores the passages that several searches found: a reranker alone, or the order
    of one search over all, by meaning and by words."""
    if second is not None:
        return second
    return FusedRelevance(encoder_relevance(encoder), WordRelevance(rarity))


def _index_retriever(
    settings: Settings, kb: KnowledgeBase, encoder: Encoder, sources: tuple[str, ...]
) -> Retriever:
    chosen = settings.retrieve
    fusion = Fusion(chosen.dense_weight, chosen.lexical_weight, float(chosen.rrf_k), chosen.depth)
    allowed, on = search_filter(settings, sources), set(settings.kb.indexes)
    if on == {"chunk"}:
        return retriever_over(kb, encoder, allowed, fusion)
    from osler.extract.indexes import KINDS
    from osler.retrieve.indexed import IndexedRetriever

    kb.require_built(encoder.identity)
    kinds = tuple(kind for kind in KINDS if kind in on)
    extractions = Extractions.of(kb)
    extractions.entries.require_kinds(kinds, encoder.identity)
    named = name_rankings(kb, encoder) if "graph" in on else None
    has_chunks, least = "chunk" in on, chosen.entry_least
    return IndexedRetriever(kb, encoder, kinds, named, has_chunks, allowed, fusion, least=least)


def name_rankings(kb: KnowledgeBase, encoder: Encoder) -> NameRankings:
    """The rankings by the names in a query, linked as they stand, as they are spelt and by
    vectors."""
    from osler.graph.lookup import NameVectors, has_rapidfuzz
    from osler.retrieve.indexed import NameRankings

    webs = Extractions.of(kb).webs
    vectors = NameVectors(webs.graph, encoder) if webs.graph else None
    return NameRankings(webs, fuzzy=has_rapidfuzz(), vectors=vectors)


async def search_passages(
    settings: Settings, query: str, *, k: int, sources: Iterable[str]
) -> list[Hit]:
    """One search of the configured knowledge base; no `sources` = all that are not private."""
    settings = naming_sources(settings, sources)
    with open_knowledge_base(settings) as kb:
        chosen = load_encoder(settings)
        named = searched_sources(settings, kb)
        require_trusted_hosts(settings, named, roles=())
        plain, second = make_retriever(settings, kb, chosen, named), open_reranker(settings)
        search = with_reranker(settings, plain, second, named)
        return await within_patients(settings, search, named).search(query, k=k)


def naming_sources(settings: Settings, sources: Iterable[str]) -> Settings:
    """The settings with these sources, where there are any."""
    if not (named := tuple(sources)):
        return settings
    return settings.model_copy(update={"kb": settings.kb.model_copy(update={"sources": named})})


def _order_sources(sources: Iterable[str]) -> tuple[str, ...]:
    """Osler's own sources in the papers' order, then the user's by name."""
    # Order matters: prompts and plans list the sources in this order.
    given = set(sources)
    own = sorted(given - set(ALL_SOURCES))
    return (*(source for source in ALL_SOURCES if source in given), *own)
