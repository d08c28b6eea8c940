"""The graph of names and chunks: linking, walking, canonical names, in step with the texts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

import pytest

from osler.extract import ExtractionCost, ExtractionOutcome, job
from osler.extract.derived import Extractions
from osler.extract.indexes.entity_graph import EntityGraphs
from osler.extract.items import Entity, ExtractedItems
from osler.graph.items import Name, Relation
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler.kb.search.base import EVERYTHING, PassageFilter, Ranking
from osler.types import Passage


def webs_of(kb: KnowledgeBase) -> EntityGraphs:
    return Extractions.of(kb).webs


class Knowing:
    """An extractor that stands for a model: it knows other names of what chunks name."""

    name = "model knowing"
    batch = 8

    def __init__(self, *known: Entity) -> None:
        self.known = known

    def result_key(self, passage: Passage) -> str:
        return passage.id

    def estimate_cost(self, passage: Passage) -> ExtractionCost:
        return ExtractionCost()

    async def extract(self, passages: Sequence[Passage]) -> list[ExtractionOutcome]:
        return [
            ExtractionOutcome(
                ExtractedItems(tuple(entity for entity in self.known if entity.name in p.text))
            )
            for p in passages
        ]


def titles(kb: KnowledgeBase, ranking: Iterable[tuple[int, float]]) -> list[str]:
    found = list(ranking)
    passages = kb.get_passages(number for number, _ in found)
    return [passages[number].title for number, _ in found]


def walked(kb: KnowledgeBase, text: str) -> Ranking:
    return (
        Extractions.of(kb)
        .webs.load_current()
        .rank_by_walk(dict.fromkeys(webs_of(kb).link_entities(text), 1.0), 0.15)
    )


def test_a_walk_comes_to_chunks_that_do_not_have_the_name(kb: KnowledgeBase) -> None:
    """Smoking leads to emphysema, emphysema presents with dyspnoea: oxygen is three hops off."""
    found = walked(kb, "What may help with smoking?")
    assert titles(kb, found)[0] == "Smoking"
    assert "Dyspnoea" in titles(kb, found)
    assert "Gout" not in titles(kb, found)
    assert 0 < sum(share for _, share in found) < 1
    assert titles(
        kb, webs_of(kb).load_current().rank_by_names(webs_of(kb).link_entities("smoking"))
    ) == ["Smoking"]


def test_chinese_names_are_found_without_blanks(kb: KnowledgeBase) -> None:
    assert titles(kb, walked(kb, "糖尿病怎么治疗？"))[0] == "糖尿病"
    assert "二甲双胍" in titles(kb, walked(kb, "糖尿病怎么治疗？"))


def test_a_question_without_a_name_finds_nothing(kb: KnowledgeBase) -> None:
    assert webs_of(kb).link_entities("Does it snow?") == []
    assert webs_of(kb).load_current().rank_by_walk({}, 0.5) == []
    assert webs_of(kb).load_current().rank_by_names([]) == []


def test_the_longest_name_counts_and_a_word_of_grammar_does_not(kb: KnowledgeBase) -> None:
    known = Knowing(
        Entity("joint disease", "Disease", 10, 23), Entity("joint", "HumanOrgan", 10, 15)
    )
    asyncio.run(job.run_extraction(kb.path, known))
    named = webs_of(kb).load_current().named_entities("a joint disease")
    assert list(named.values()) == ["joint disease"]
    assert webs_of(kb).link_entities("joint", frozenset({"joint"})) == []


def test_a_synonym_and_a_standard_name_lead_to_the_chunk(kb: KnowledgeBase) -> None:
    assert webs_of(kb).link_entities("What is podagra, what is urate arthropathy?") == []
    gout = Entity("Gout", "Disease", 0, 4, standard="urate arthropathy", synonyms=("podagra",))
    asyncio.run(job.run_extraction(kb.path, Knowing(gout)))
    for question in ("Has she podagra?", "Is it urate arthropathy?"):
        assert titles(
            kb, webs_of(kb).load_current().rank_by_names(webs_of(kb).link_entities(question))
        ) == ["Gout"]


def test_names_and_relations_of_a_vocabulary_take_part(kb: KnowledgeBase) -> None:
    """No text says colchicine's trade name, nor that oxygen has to do with gout."""
    asyncio.run(job.run_extraction(kb.path, Knowing(Entity("colchicine", "Drug", 37, 47))))
    assert "Smoking" not in titles(kb, walked(kb, "colchicine"))
    with Graph.open(kb.path) as graph:
        (match,) = graph.find_exact("smoking")
        facts = [Name("V:1", "Colcrys"), Name("V:1", "colchicine")]
        graph.add([*facts, Relation("V:1", "unlike", match.concept, "V")])
    assert titles(kb, walked(kb, "Colcrys"))[0] == "Gout"
    assert "Smoking" in titles(kb, walked(kb, "Colcrys"))


def test_the_graph_follows_the_texts(
    kb: KnowledgeBase, put: Callable[[dict[str, str]], None], extract: Callable[..., None]
) -> None:
    assert titles(
        kb, webs_of(kb).load_current().rank_by_names(webs_of(kb).link_entities("emphysema"))
    ) == [
        "Smoking",
        "Emphysema",
    ]
    put({"smoking": "Smoking is a habit."})
    kb.update()
    assert titles(
        kb, webs_of(kb).load_current().rank_by_names(webs_of(kb).link_entities("emphysema"))
    ) == ["Emphysema"]
    assert webs_of(kb).link_entities("smoking") == []
    extract(kb)
    assert titles(
        kb, webs_of(kb).load_current().rank_by_names(webs_of(kb).link_entities("smoking"))
    ) == ["Smoking"]
    kb.remove(source="book")
    assert webs_of(kb).load_current().entities.count == 0


@pytest.mark.parametrize(
    ("within", "found"),
    [
        (EVERYTHING, True),
        (PassageFilter(("wiki",)), False),
        (PassageFilter(("book",)), True),
        (PassageFilter(languages=("zh",)), False),
        (PassageFilter(trust=5), False),
    ],
)
def test_a_filter_holds_in_the_graph(kb: KnowledgeBase, within: PassageFilter, found: bool) -> None:
    ranking = walked(kb, "smoking")
    assert bool(webs_of(kb).filter_ranking(ranking, k=3, within=within)) == found
    assert len(webs_of(kb).filter_ranking(ranking, k=1, within=within)) == found


def test_seeds_of_more_weight_and_seeds_that_are_chunks_are_begun_at_more_often(
    kb: KnowledgeBase,
) -> None:
    web = webs_of(kb).load_current()
    (gout,), (smoking,) = (
        webs_of(kb).link_entities("gout"),
        webs_of(kb).link_entities("smoking"),
    )
    assert titles(kb, web.rank_by_walk({gout: 3.0, smoking: 1.0}, 0.5))[0] == "Gout"
    assert titles(kb, web.rank_by_walk({gout: 1.0, smoking: 3.0}, 0.5))[0] == "Smoking"
    (number, _) = web.rank_by_names([smoking])[0]
    assert titles(kb, web.rank_by_walk({gout: 1.0}, 0.5, {number: 9.0}))[0] == "Smoking"
