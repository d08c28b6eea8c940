"""Every index that is on, and the graph of names, fused to chunks that open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conformance import RetrieverKit
from osler.errors import SourceUnavailable
from osler.extract import ExtractionCost, ExtractionOutcome, job, publish
from osler.extract.derived import EXTRACTED_FACTS, Extractions
from osler.extract.dictionary import DictionaryExtractor
from osler.extract.indexes import KINDS, Kind
from osler.extract.indexes import store as indexing
from osler.extract.items import Entity, ExtractedItems, KnowledgePoint
from osler.graph.lookup import NameVectors, has_rapidfuzz
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Kind as TextKind
from osler.kb.search.base import PassageFilter
from osler.retrieve.hybrid import Fusion
from osler.retrieve.indexed import IndexedRetriever, IndexWeights, NameRankings
from osler.types import Passage, Retriever
from osler_lab.testing.scripted import HashingEncoder

if TYPE_CHECKING:
    from osler.kb.encoders.base import Vectors

TEXTS = {
    "emphysema": "Emphysema is a lung disease. Emphysema leads to dyspnoea. It is for life.",
    "dyspnoea": "Dyspnoea is a sign. Dyspnoea is treated with oxygen. It frightens.",
    "oxygen": "Oxygen is a gas. It is given through a mask.",
    "糖尿病": "糖尿病是一种代谢疾病。二甲双胍用于治疗糖尿病。",
    "二甲双胍": "二甲双胍是一种药物。它与食物同服。",
}
QUESTION = "How can breathing be made easier at home?"


class Asking:
    """Stands for a model: it writes down a question that the chunk about oxygen answers."""

    name = "model asking"
    batch = 8

    def result_key(self, passage: Passage) -> str:
        return passage.id

    def estimate_cost(self, passage: Passage) -> ExtractionCost:
        return ExtractionCost()

    async def extract(self, passages: Sequence[Passage]) -> list[ExtractionOutcome]:
        point = KnowledgePoint(
            "masks", "Factual", "a gas", 0, 6, entities=("Oxygen",), questions=(QUESTION,)
        )
        known = ExtractedItems((Entity("Oxygen", "Drug", 0, 6, synonyms=("O2 therapy",)), point))
        return [
            ExtractionOutcome(known if "Oxygen is" in p.text else ExtractedItems())
            for p in passages
        ]


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    path = tmp_path / "texts.jsonl"
    lines = [
        json.dumps({"id": id, "title": id.title(), "content": text}) for id, text in TEXTS.items()
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    with KnowledgeBase.create(tmp_path / "kb", derived=EXTRACTED_FACTS) as made:
        made.add([path], source="book")
        with DictionaryExtractor() as extractor:
            asyncio.run(job.run_extraction(made.path, extractor))
        asyncio.run(job.run_extraction(made.path, Asking()))
        publish.publish_items(made.path)
        indexing.make_indexes(made.path, KINDS, HashingEncoder())
        made.build(HashingEncoder())
        yield made


def indexed(
    kb: KnowledgeBase, *kinds: Kind, graph: bool = False, chunks: bool = True, fuzzy: bool = False
) -> IndexedRetriever:
    named = NameRankings(Extractions.of(kb).webs, fuzzy=fuzzy) if graph else None
    return IndexedRetriever(kb, HashingEncoder(), kinds, named, chunks)


async def titles(retriever: Retriever, query: str, k: int = 3) -> list[str]:
    return [hit.passage.title for hit in await retriever.search(query, k=k)]


@pytest.mark.parametrize("kind", ["knowledge_unit", "outline", "summary"])
async def test_each_index_alone_finds_chunks_that_open(kb: KnowledgeBase, kind: Kind) -> None:
    for query in ("dyspnoea", "糖尿病"):
        hits = await indexed(kb, kind, chunks=False).search(query, k=3)
        assert hits[0].passage.title.casefold() in (query, "emphysema", "二甲双胍")
        assert {hit.source for hit in hits} == {kind}
        for hit in hits:
            assert kb.get(hit.passage.id) == hit.passage


async def test_a_question_that_a_model_foresaw_finds_its_chunk(kb: KnowledgeBase) -> None:
    """The chunk about oxygen has no word of the question."""
    found = await indexed(kb, "atomic_query", chunks=False).search(QUESTION, k=1)
    assert [(hit.passage.title, hit.source) for hit in found] == [("Oxygen", "atomic_query")]


async def test_the_graph_finds_what_the_question_s_names_lead_to(kb: KnowledgeBase) -> None:
    hits = await indexed(kb, graph=True, chunks=False).search("What helps in emphysema?", k=5)
    assert [hit.passage.title for hit in hits][:2] == ["Emphysema", "Dyspnoea"]
    assert {hit.source for hit in hits} <= {"exact", "walk"}
    other = await titles(indexed(kb, graph=True, chunks=False), "O2 therapy?")
    assert set(other[:2]) == {"Dyspnoea", "Oxygen"}  # which name it otherwise
    assert (await titles(indexed(kb, graph=True, chunks=False), "糖尿病？"))[0] == "糖尿病"
    assert await titles(indexed(kb, graph=True, chunks=False), "Does it snow?") == []


@pytest.mark.skipif(not has_rapidfuzz(), reason="the extra graph is not installed")
async def test_a_misspelt_name_is_found_as_the_likest(kb: KnowledgeBase) -> None:
    question = 'What is "emphisema"?'
    assert await titles(indexed(kb, graph=True, chunks=False), question) == []
    hits = await indexed(kb, graph=True, chunks=False, fuzzy=True).search(question, k=1)
    assert [(hit.passage.title, hit.source) for hit in hits] == [("Emphysema", "fuzzy")]


async def test_a_name_in_other_words_is_linked_by_its_vector(kb: KnowledgeBase) -> None:
    class Meaning(HashingEncoder):
        def encode(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
            plain = [text.replace("ballooning of airways", "Emphysema") for text in texts]
            return super().encode(plain, kind=kind)

    webs = Extractions.of(kb).webs
    assert webs.graph is not None
    question = 'What helps in "ballooning of airways"?'
    spelt = NameRankings(webs, fuzzy=False)
    near = NameRankings(webs, fuzzy=False, vectors=NameVectors(webs.graph, Meaning()))
    found = [
        await titles(IndexedRetriever(kb, None, (), named, chunks=False), question)
        for named in (spelt, near)
    ]
    assert found[0] == []
    assert found[1][:2] == ["Emphysema", "Dyspnoea"]


async def test_an_entry_below_the_least_cosine_counts_for_nothing(kb: KnowledgeBase) -> None:
    """KAG keeps knowledge units and atomic queries above 0.7."""
    near, far = QUESTION, "How can one breathe?"
    vectors = Fusion(lexical_weight=0)
    strict, lax = (
        IndexedRetriever(
            kb, HashingEncoder(), ("atomic_query",), chunks=False, fusion=vectors, least=least
        )
        for least in (0.7, 0.0)
    )
    assert await titles(strict, near, 1) == ["Oxygen"]
    assert await titles(strict, far) == []
    assert await titles(lax, far) != []


async def test_points_and_questions_are_nodes_of_the_graph(kb: KnowledgeBase) -> None:
    """KAG-Thinker App. 14: the question names nothing, and its node leads over the point to the
    chunk and to the entity that the point is about."""
    named = NameRankings(Extractions.of(kb).webs, fuzzy=False)
    hits = await IndexedRetriever(kb, None, (), named, chunks=False).search(QUESTION, k=3)
    assert [(hit.passage.title, hit.source) for hit in hits[:2]] == [
        ("Oxygen", "walk"),
        ("Dyspnoea", "walk"),
    ]
    web = Extractions.of(kb).webs.load_current()
    oxygen = web.entities["oxygen"]
    assert oxygen is not None
    layered, plain = (web.rank_by_walk({oxygen: 1.0}, 0.5, layered=on) for on in (True, False))
    assert dict(layered) != dict(plain)
    assert {number for number, _ in layered} == {number for number, _ in plain}


async def test_what_is_off_is_not_asked(kb: KnowledgeBase) -> None:
    """Without the chunks' own text a word that only stands there finds nothing."""
    assert await titles(indexed(kb), "frightens") != []
    words = Fusion(dense_weight=0)
    off = IndexedRetriever(kb, HashingEncoder(), ("outline",), chunks=False, fusion=words)
    assert await titles(off, "frightens") == []
    mute = IndexedRetriever(
        kb, HashingEncoder(), KINDS, weights=IndexWeights(entries=0), fusion=words
    )
    assert {hit.source for hit in await mute.search("dyspnoea", k=5)} == {"lexical"}


async def test_an_index_that_is_not_made_is_told(kb: KnowledgeBase) -> None:
    indexing.drop_indexes(kb.path, ["outline"])
    with pytest.raises(SourceUnavailable, match="outline does not exist") as told:
        await indexed(kb, "outline").search("gas", k=1)
    assert told.value.fix == "run `osler kb index outline`"


async def test_a_filter_holds_whatever_found_the_chunk(kb: KnowledgeBase) -> None:
    named = NameRankings(Extractions.of(kb).webs, fuzzy=False)
    chinese = IndexedRetriever(
        kb, HashingEncoder(), KINDS, named, within=PassageFilter(languages=("zh",))
    )
    hits = await chinese.search("dyspnoea 糖尿病", k=9)
    assert {hit.passage.language for hit in hits} == {"zh"}


async def test_without_an_encoder_everything_goes_by_words(kb: KnowledgeBase) -> None:
    retriever = IndexedRetriever(kb, None, (), NameRankings(Extractions.of(kb).webs, fuzzy=False))
    hits = await retriever.search("emphysema", k=3)
    assert hits[0].passage.title == "Emphysema"
    assert {hit.source for hit in hits} <= {"lexical", "exact", "walk"}


class TestIndexed(RetrieverKit):
    @pytest.fixture(params=["entries", "graph", "all"])
    def retriever(self, kb: KnowledgeBase, request: pytest.FixtureRequest) -> Retriever:
        if request.param == "all":
            return indexed(kb, *KINDS, graph=True)
        kinds = KINDS if request.param == "entries" else ()
        return indexed(kb, *kinds, graph=request.param == "graph", chunks=False)

    @pytest.fixture
    def query(self) -> str:
        return "Does emphysema lead to dyspnoea?"
