"""Search by words, by meaning, and by both: what is found, in which order, and what never is.

The knowledge base holds eight one-passage documents in three sources, patients among them.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from osler.errors import KnowledgeBaseMismatch, ModelMissing, SourceUnavailable
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder, Kind, MiniLMEncoder, VectorMemory
from osler.kb.search.base import EVERYTHING, Floats, PassageFilter
from osler.kb.search.sparse import MOST_TERMS, rarest_terms
from osler.kb.store import access
from osler.kb.store.passages import indexed_text
from osler.retrieve import content_terms, rank_hits, rrf, source_errors
from osler.retrieve.hybrid import Fusion, HybridRetriever, LexicalRetriever, retriever_over
from osler.retrieve.relevance import EncoderRelevance
from osler.text import language_of
from osler.types import Hit, Language
from osler_lab.testing.scripted import HashingEncoder

TEXTS = {
    "book": {
        "anaemia": ("Anaemia", "Iron deficiency is the commonest cause; give oral ferrous salts."),
        "asthma": ("Asthma", "Salbutamol opens the airways within minutes."),
        "gout": ("Gout", "Colchicine or an anti-inflammatory drug for the acute attack."),
    },
    "wiki": {
        "anaemia": ("Anaemia", "A low concentration of haemoglobin, often from iron deficiency."),
        "insulin": ("Insulin", "A hormone of the pancreas that lowers blood glucose."),
        "tangniaobing": ("糖尿病", "糖尿病患者应控制血糖，二甲双胍是首选药物。"),
        "xiaochuan": ("哮喘", "哮喘发作时吸入沙丁胺醇。"),
    },
    "emr": {"patient": ("Patient 7", "Iron deficiency; ferrous salts were given for anaemia.")},
}


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.create(tmp_path / "kb") as made:
        for source, texts in TEXTS.items():
            file = tmp_path / f"{source}.jsonl"
            rows = ({"id": id, "title": t, "content": c} for id, (t, c) in texts.items())
            file.write_text("".join(json.dumps(row) + "\n" for row in rows))
            made.add([file], source=source)
        made.build(HashingEncoder())
        yield made


@dataclass(frozen=True)
class DenseRetriever:
    """The dense ranking alone, which `HybridRetriever` fuses."""

    kb: KnowledgeBase
    encoder: Encoder
    within: PassageFilter = EVERYTHING

    async def search(self, query: str, *, k: int) -> list[Hit]:
        with source_errors(self.kb, self.within.sources):
            if language_of(query) not in self.encoder.languages:
                return []
            vector = self.encoder.encode([query], kind="query")[0]
            scored = self.kb.by_vector(
                vector, encoder=self.encoder.identity, k=k, within=self.within
            )
            return rank_hits(scored, query, "dense")


class EnglishOnly(HashingEncoder):
    languages: frozenset[Language] = frozenset({"en"})


class Other(HashingEncoder):
    identity = "other-64"


def ids(hits: list[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


# Words


async def test_the_passage_with_the_rare_words_comes_first(kb: KnowledgeBase) -> None:
    hits = await LexicalRetriever(kb).search("What opens the airways in asthma?", k=3)
    assert ids(hits)[0] == "book:asthma#0"
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert {hit.source for hit in hits} == {"lexical"}
    assert all(hit.query == "What opens the airways in asthma?" for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


async def test_another_form_of_an_english_word_is_the_same_word(kb: KnowledgeBase) -> None:
    found = ids(await LexicalRetriever(kb).search("deficiencies", k=5))
    assert set(found) == {"book:anaemia#0", "wiki:anaemia#0"}


async def test_the_title_is_searched_with_the_text(kb: KnowledgeBase) -> None:
    assert ids(await LexicalRetriever(kb).search("gout", k=5)) == ["book:gout#0"]


async def test_chinese_is_found_by_its_characters(kb: KnowledgeBase) -> None:
    assert ids(await LexicalRetriever(kb).search("糖尿病首选什么药？", k=1)) == [
        "wiki:tangniaobing#0"
    ]
    assert ids(await LexicalRetriever(kb).search("哮喘怎么办", k=1)) == ["wiki:xiaochuan#0"]


@pytest.mark.parametrize("query", ["", "  ", "what is the", "?!", "什么", '"', "NEAR(", "a AND"])
async def test_a_query_without_content_finds_nothing(kb: KnowledgeBase, query: str) -> None:
    assert await LexicalRetriever(kb).search(query, k=5) == []


@pytest.mark.parametrize(
    "query", ['iron" OR "x', "iron)", "words : iron", "iron*", "-iron", "^iron"]
)
async def test_query_operators_of_the_index_are_plain_words(kb: KnowledgeBase, query: str) -> None:
    assert set(ids(await LexicalRetriever(kb).search(query, k=9))) == {
        "book:anaemia#0",
        "wiki:anaemia#0",
    }


async def test_patients_are_searched_only_by_name(kb: KnowledgeBase) -> None:
    query = "iron deficiency anaemia, ferrous salts"
    assert "emr:patient#0" not in ids(await LexicalRetriever(kb).search(query, k=9))
    assert ids(await LexicalRetriever(kb, PassageFilter(("emr",))).search(query, k=9)) == [
        "emr:patient#0"
    ]
    found = ids(await LexicalRetriever(kb, PassageFilter(("book", "emr"))).search(query, k=9))
    assert set(found) == {"book:anaemia#0", "emr:patient#0"}


async def test_the_name_of_a_source_is_no_word_of_its_passages(kb: KnowledgeBase) -> None:
    assert await LexicalRetriever(kb).search("wiki book", k=9) == []


async def test_no_source_is_nothing_to_search(kb: KnowledgeBase) -> None:
    assert await LexicalRetriever(kb, PassageFilter(())).search("iron", k=9) == []


async def test_passages_of_equal_score_stand_in_order_of_their_ids(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    names = [f"copy{i:02}" for i in range(20)]
    rows = (
        {"id": name, "title": "Copy", "content": f"Scurvy wants oranges, {name}."}
        for name in names[::-1]
    )
    (tmp_path / "copies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    kb.add([tmp_path / "copies.jsonl"], source="wiki")
    hits = await LexicalRetriever(kb).search("scurvy", k=3)
    assert ids(hits) == [f"wiki:{name}#0" for name in names[:3]]


async def test_a_source_that_is_not_there_is_no_empty_source(kb: KnowledgeBase) -> None:
    with pytest.raises(SourceUnavailable, match="no source guideline") as caught:
        await LexicalRetriever(kb, PassageFilter(("book", "guideline"))).search("iron", k=3)
    assert caught.value.fix == "run `osler kb add PATH --source guideline`"


async def test_a_damaged_index_is_no_empty_source(kb: KnowledgeBase) -> None:
    with access.open_for_writing(kb.path) as db:
        db.execute("DROP TABLE lexical")
    with pytest.raises(SourceUnavailable, match="source book cannot be searched"):
        await LexicalRetriever(kb, PassageFilter(("book",))).search("iron", k=3)
    with pytest.raises(SourceUnavailable, match="the knowledge base cannot be searched"):
        await LexicalRetriever(kb).search("iron", k=3)


async def test_many_searches_at_a_time_do_not_disturb_each_other(kb: KnowledgeBase) -> None:
    queries = ["iron", "salbutamol", "colchicine", "insulin"] * 25
    found = await asyncio.gather(*(LexicalRetriever(kb).search(query, k=1) for query in queries))
    assert len({tuple(ids(hits)) for hits in found}) == 4


def test_of_a_very_long_question_the_rarest_words_are_kept(kb: KnowledgeBase) -> None:
    """Salbutamol and 糖尿 stand in one passage each, iron and deficiency in three."""
    absent = [f"absent{i}" for i in range(200)]
    with access.open_for_writing(kb.path) as db:
        kept = rarest_terms(db, [*absent, "iron", "deficiencies", "salbutamol", "糖尿"])
    assert kept == ["salbutamol", "糖尿", "iron", "deficiencies"]


async def test_a_question_of_hundreds_of_words_is_searched(kb: KnowledgeBase) -> None:
    words = " ".join(f"w{i}" for i in range(5000))
    assert ids(await LexicalRetriever(kb).search(f"{words} salbutamol", k=1)) == ["book:asthma#0"]
    assert MOST_TERMS < 5000


def test_words_of_content_are_told_from_the_rest() -> None:
    assert content_terms("What is the treatment of the WHO for CD4 1.5?") == [
        "treatment",
        "who",
        "cd4",
        "1.5",
    ]
    assert content_terms("Iron, iron and IRON") == ["iron"]
    assert content_terms("糖尿病是什么？") == ["糖", "糖尿", "尿", "尿病", "病"]


# Dense


async def test_the_nearest_passage_comes_first_with_its_cosine(kb: KnowledgeBase) -> None:
    text = kb.get("book:asthma#0")
    hits = await DenseRetriever(kb, HashingEncoder()).search(f"{text.heading}\n{text.text}", k=2)
    assert hits[0].passage == text
    assert hits[0].score == pytest.approx(1.0)
    assert hits[0].source == "dense"


async def test_the_ranking_is_that_of_a_plain_computation(kb: KnowledgeBase) -> None:
    encoder = HashingEncoder()
    query = "iron for a low haemoglobin"
    hits = await DenseRetriever(kb, encoder).search(query, k=50)
    vector = encoder.encode([query], kind="query")[0]
    passages = [hit.passage for hit in hits]
    texts = [f"{passage.heading}\n{passage.text}" for passage in passages]
    by_hand = encoder.encode(texts, kind="passage") @ vector
    assert [hit.score for hit in hits] == pytest.approx(list(by_hand))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    best_two = await DenseRetriever(kb, encoder).search(query, k=2)
    assert ids(best_two) == ids(hits)[:2]


async def test_dense_search_keeps_to_its_sources(kb: KnowledgeBase) -> None:
    query = "iron deficiency"
    everywhere = await DenseRetriever(kb, HashingEncoder()).search(query, k=50)
    assert {hit.passage.source for hit in everywhere} == {"book", "wiki"}
    patients = await DenseRetriever(kb, HashingEncoder(), PassageFilter(("emr",))).search(
        query, k=50
    )
    assert ids(patients) == ["emr:patient#0"]


async def test_a_language_that_the_encoder_does_not_know_finds_nothing(kb: KnowledgeBase) -> None:
    assert await DenseRetriever(kb, EnglishOnly()).search("糖尿病", k=5) == []


async def test_a_new_build_is_seen_without_opening_again(kb: KnowledgeBase) -> None:
    dense = DenseRetriever(kb, HashingEncoder())
    assert "book:asthma#0" in ids(await dense.search("salbutamol", k=50))
    with KnowledgeBase.open(kb.path) as writer:
        writer.remove(source="book", document="asthma")
        assert "book:asthma#0" not in ids(await dense.search("salbutamol", k=50))
        writer.build(HashingEncoder())
    hits = await dense.search("salbutamol", k=50)
    assert "book:asthma#0" not in ids(hits)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))


async def test_document_removed_and_added_again_is_found(kb: KnowledgeBase, tmp_path: Path) -> None:
    dense, before = DenseRetriever(kb, HashingEncoder()), kb.snapshot
    hits = await dense.search("iron deficiency", k=5)
    kb.remove(source="book")
    kb.add([tmp_path / "book.jsonl"], source="book")
    kb.build(HashingEncoder())
    assert kb.snapshot == before
    assert await dense.search("iron deficiency", k=5) == hits


async def test_vectors_made_anew_by_another_encoder_are_not_searched(kb: KnowledgeBase) -> None:
    dense = DenseRetriever(kb, HashingEncoder())
    await dense.search("iron", k=3)
    with KnowledgeBase.open(kb.path) as writer:
        writer.build(Other(), rebuild=True)
    with pytest.raises(SourceUnavailable, match=r"built by encoder other-64, not by .*hashing-64"):
        await dense.search("iron", k=3)


async def test_without_vectors_there_is_no_dense_search(kb: KnowledgeBase) -> None:
    kb.build(None, rebuild=True)
    with pytest.raises(SourceUnavailable, match="built by no encoder"):
        await DenseRetriever(kb, HashingEncoder()).search("iron", k=3)


async def test_a_vector_of_another_length_is_no_empty_source(kb: KnowledgeBase) -> None:
    with access.open_for_writing(kb.path) as db:
        db.execute("UPDATE vector SET value = x'00' WHERE passage = 1")
    with pytest.raises(SourceUnavailable, match="1 bytes instead of 256"):
        await DenseRetriever(kb, HashingEncoder()).search("iron", k=3)


async def test_a_disk_that_fails_is_no_empty_source(kb: KnowledgeBase) -> None:
    class Unplugged(HashingEncoder):
        def encode(self, texts: Sequence[str], *, kind: Kind) -> Floats:
            raise OSError("the disk is gone")

    with pytest.raises(SourceUnavailable, match="source book cannot be searched: the disk"):
        await DenseRetriever(kb, Unplugged(), PassageFilter(("book",))).search("iron", k=3)


# Hybrid


async def test_fused_scores_are_those_of_the_formula(kb: KnowledgeBase) -> None:
    encoder = HashingEncoder()
    query = "colchicine for the acute attack of gout"
    hits = await HybridRetriever(kb, encoder).search(query, k=1)
    assert ids(hits) == ["book:gout#0"]
    assert hits[0].score == pytest.approx(1 / 11 + 0.7 / 11), "first in both rankings"
    assert hits[0].source == "dense"
    assert hits[0].rank == 1


def test_meaning_weighs_more_than_words(kb: KnowledgeBase) -> None:
    """Each of two passages is first in one ranking and absent from the other."""
    retriever = HybridRetriever(kb, HashingEncoder())
    fused = retriever._fuse_rankings([(1, 0.9)], [(2, 7.0)], 2)
    assert [number for number, _, _ in fused] == [1, 2]
    assert [score for _, _, score in fused] == pytest.approx([1 / 11, 0.7 / 11])


def test_the_constant_of_fusion_is_ten_unless_it_is_set() -> None:
    assert dict(rrf([["a"]])) == pytest.approx({"a": 1 / 11})
    assert dict(rrf([["a"]], k=60)) == pytest.approx({"a": 1 / 61})
    assert Fusion() == Fusion(dense_weight=1.0, lexical_weight=0.7, constant=10.0, depth=64)


async def test_a_passage_that_only_words_find_says_so(kb: KnowledgeBase) -> None:
    hits = await HybridRetriever(kb, EnglishOnly()).search("哮喘", k=5)
    assert ids(hits) == ["wiki:xiaochuan#0"]
    assert hits[0].source == "lexical"


async def test_passages_that_a_search_found_are_not_encoded_again(kb: KnowledgeBase) -> None:
    asked: list[str] = []

    class Counting(HashingEncoder):
        def encode(self, texts: Sequence[str], *, kind: Kind) -> Floats:
            asked.extend(texts)
            return super().encode(texts, kind=kind)

    query, memory = "colchicine for the acute attack of gout", VectorMemory(Counting())
    hits = await HybridRetriever(kb, memory).search(query, k=3)
    texts = [indexed_text(hit.passage) for hit in hits]
    scores = await EncoderRelevance(memory).relevance(query, texts)
    assert asked == [query]
    assert scores == await EncoderRelevance(HashingEncoder()).relevance(query, texts)


async def test_a_source_that_is_down_on_one_side_is_down(kb: KnowledgeBase) -> None:
    with access.open_for_writing(kb.path) as db:
        db.execute("DROP TABLE lexical")
    with pytest.raises(SourceUnavailable):
        await HybridRetriever(kb, HashingEncoder()).search("iron", k=3)


async def test_the_same_search_gives_the_same_hits(kb: KnowledgeBase) -> None:
    hybrid = retriever_over(kb, HashingEncoder())
    found = await asyncio.gather(*(hybrid.search("iron deficiency", k=5) for _ in range(10)))
    assert all(hits == found[0] for hits in found)


# Sources


async def test_a_retriever_of_one_source_finds_it_alone_and_patients_only_when_named(
    kb: KnowledgeBase,
) -> None:
    for name in ("book", "wiki", "emr"):
        retriever = retriever_over(kb, HashingEncoder(), PassageFilter((name,)))
        hits = await retriever.search("iron deficiency", k=9)
        assert {hit.passage.source for hit in hits} == {name}
    everywhere = await retriever_over(kb, HashingEncoder()).search("iron deficiency", k=9)
    assert {hit.passage.source for hit in everywhere} == {"book", "wiki"}


async def test_without_an_encoder_words_are_searched(kb: KnowledgeBase) -> None:
    hits = await retriever_over(kb, None).search("salbutamol", k=5)
    assert ids(hits) == ["book:asthma#0"]


def test_a_retriever_wants_the_encoder_that_built_the_vectors(kb: KnowledgeBase) -> None:
    with pytest.raises(KnowledgeBaseMismatch):
        retriever_over(kb, Other())


# The real encoder


@pytest.fixture(scope="session")
def minilm() -> MiniLMEncoder:
    try:
        return MiniLMEncoder()
    except ModelMissing as error:
        pytest.skip(f"the weights of MiniLM are not here: {error.message}")


async def test_meaning_finds_what_words_do_not(tmp_path: Path, minilm: MiniLMEncoder) -> None:
    (tmp_path / "a.md").write_text("# Dyspnoea\n\nShortness of breath has cardiac causes.\n")
    (tmp_path / "b.md").write_text("# Fractures\n\nA broken wrist is put in plaster.\n")
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "a.md", tmp_path / "b.md"], source="book")
        kb.build(minilm)
        assert kb.verify() == []
        query = "trouble getting enough air"
        assert await LexicalRetriever(kb).search(query, k=2) == []
        hits = await retriever_over(kb, minilm).search(query, k=1)
    assert hits[0].passage.title == "Dyspnoea"
