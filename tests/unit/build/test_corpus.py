"""HippoRAG 2 and PIKE-RAG over real knowledge bases: one indexed before, one not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from osler.build import Parts
from osler.build.live import record_parts, replay_parts, with_knowledge
from osler.build.models import LoadedModel
from osler.build.strategies import build_solver
from osler.errors import KnowledgeBaseUnbuilt, SourceUnavailable
from osler.extract import ExtractionCost, ExtractionOutcome, job, publish
from osler.extract.derived import EXTRACTED_FACTS, Extractions
from osler.extract.indexes import store as indexing
from osler.extract.items import Entity, EntityRelation, ExtractedItems, KnowledgePoint
from osler.kb.base import KnowledgeBase
from osler.kb.search.base import EVERYTHING
from osler.llm.recording.tape import Tape
from osler.retrieve import content_terms
from osler.settings import KbSettings, ModelSettings, Settings
from osler.trace import Noted, Run, Solver
from osler.types import Passage, Question, Solution
from osler_lab.baselines.corpus import (
    ATOMS,
    HYBRID,
    TRIPLES,
    WALK,
    AtomicQuestions,
    GraphWalk,
    TripleSearch,
)
from osler_lab.baselines.indexing import HippoRag
from osler_lab.testing.scripted import HashingEncoder, ScriptedModel

TEXTS = {
    "Alhandra": "Alhandra was born in Vila Franca.",
    "Vila Franca": "Vila Franca lies in the District of Lisbon.",
    "Rivers": "In which district was a river born? Rivers are old.",
    "Districts": "A district was in which town? Born districts are many.",
    "Towns": "Which district was it in? Towns were born.",
}
TRIPLES_OF = {
    "Alhandra": ("Alhandra", "born in", "Vila Franca"),
    "Vila Franca": ("Vila Franca", "lies in", "District of Lisbon"),
}
ASKED = "Where does Vila Franca lie?"
QUESTION = Question("alhandra", "In which district was Alhandra born?")


class Stating:
    """Stands for a model that extracts: the names, triple and atomic question of each chunk."""

    name = "model stating"
    batch = 8

    def result_key(self, passage: Passage) -> str:
        return passage.id

    def estimate_cost(self, passage: Passage) -> ExtractionCost:
        return ExtractionCost()

    async def extract(self, passages: Sequence[Passage]) -> list[ExtractionOutcome]:
        return [ExtractionOutcome(self._read(passage)) for passage in passages]

    def _read(self, passage: Passage) -> ExtractedItems:
        stated = TRIPLES_OF.get(passage.title)
        if stated is None or not passage.text.startswith(passage.title):
            return ExtractedItems()
        subject, predicate, object_ = stated
        starts = passage.text.index(subject), passage.text.index(object_)
        ends = [
            Entity(name, "Place", start, start + len(name))
            for name, start in zip((subject, object_), starts, strict=True)
        ]
        asked = (ASKED,) if subject == "Vila Franca" else ()
        point = KnowledgePoint(
            subject, "Factual", "a place", *(0, len(subject)), entities=(subject,), questions=asked
        )
        relation = EntityRelation(subject, predicate, object_, 0, len(passage.text) - 1)
        return ExtractedItems((*ends, relation, point))


def make_base(folder: Path, *, indexed: bool) -> KnowledgeBase:
    path = folder / "texts.jsonl"
    lines = [
        json.dumps({"id": f"t{n}", "title": title, "content": text})
        for n, (title, text) in enumerate(TEXTS.items())
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    made = KnowledgeBase.create(folder / "kb", derived=EXTRACTED_FACTS)
    made.add([path], source="book")
    if indexed:
        asyncio.run(job.run_extraction(made.path, Stating()))
        publish.publish_items(made.path)
        indexing.make_indexes(made.path, ("atomic_query",), HashingEncoder())
    made.build(HashingEncoder())
    return made


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with make_base(tmp_path, indexed=True) as made:
        yield made


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[KnowledgeBase]:
    with make_base(tmp_path, indexed=False) as made:
        yield made


def make_settings(kb: KnowledgeBase, strategy: dict[str, object]) -> Settings:
    return Settings.model_validate(
        {
            "home": kb.path.parent,
            "strategy": strategy,
            "kb": KbSettings(path=kb.path).model_dump(),
            "model": ModelSettings(writes="yes").model_dump(),
        }
    )


def make_parts(kb: KnowledgeBase, model: ScriptedModel, strategy: dict[str, object]) -> Parts:
    settings, encoder = make_settings(kb, strategy), HashingEncoder()
    return with_knowledge(settings, {"reader": LoadedModel(model)}, kb, encoder, None)


async def solve(
    kb: KnowledgeBase, model: ScriptedModel, strategy: dict[str, object], carriers: tuple[str, ...]
) -> tuple[Solution, Run]:
    """Solves, and solves again from the tape: the same, event by event."""
    settings, parts = make_settings(kb, strategy), make_parts(kb, model, strategy)
    assert tuple(one for one in parts.carriers if one in (ATOMS, HYBRID, TRIPLES, WALK)) == carriers
    tape, run = Tape(), Run()
    solution = await _shallow(settings, record_parts(parts, tape)).solve(QUESTION, run)
    model.finish()
    again = Run()
    stored = kb.path.parent / "tape.jsonl"
    stored.write_text("".join(f"{line}\n" for line in tape.to_lines()), encoding="utf-8")
    kept = replay_parts(
        Tape.read(stored), {"reader": model.name}, parts.sources, "", parts.carriers
    )
    assert await _shallow(settings, kept).solve(QUESTION, again) == solution
    assert again.events == run.events
    return solution, run


def _shallow(settings: Settings, parts: Parts) -> Solver:
    """The strategy; HippoRAG with a first search of one passage."""
    solver = build_solver(settings, parts)
    return replace(solver, depth=1) if isinstance(solver, HippoRag) else solver


async def test_hipporag_walks_the_graph_of_the_whole_corpus(kb: KnowledgeBase) -> None:
    """The first search finds the three chunks of the question's words, and reads one."""
    known = json.dumps([TRIPLES_OF["Alhandra"], TRIPLES_OF["Vila Franca"]])
    model = ScriptedModel([known, "Vila Franca lies in the District of Lisbon. [2]"])
    solution, run = await solve(kb, model, {"kind": "hipporag", "k": 2}, (TRIPLES, WALK))
    assert "2 of 2 triples recognised" in [e.text for e in run.events if isinstance(e, Noted)]
    read = model.seen[1][0].content
    assert TEXTS["Alhandra"] in read
    assert TEXTS["Vila Franca"] in read, "a chunk that shares no word with the question"
    assert {each.passage.title for each in solution.answer.evidence} == {"Vila Franca"}


async def test_without_an_extracted_corpus_hipporag_says_what_it_does(plain: KnowledgeBase) -> None:
    model = ScriptedModel(['["Alhandra"]', json.dumps([TRIPLES_OF["Alhandra"]]), "[]", "Unknown."])
    _, run = await solve(plain, model, {"kind": "hipporag", "k": 1}, ())
    notes = [e.text for e in run.events if isinstance(e, Noted)]
    assert notes[0].startswith("no graph of the corpus (`osler kb extract` makes one)")


async def test_pike_rag_finds_a_chunk_by_its_atomic_question(kb: KnowledgeBase) -> None:
    model = ScriptedModel(
        [json.dumps([ASKED]), "1", "[]", "Vila Franca lies in the District of Lisbon. [1]"]
    )
    solution, run = await solve(kb, model, {"kind": "pike-rag"}, (ATOMS,))
    assert "Vila Franca" in {each.passage.title for each in solution.answer.evidence}
    assert f"selected: {ASKED}" in [e.text for e in run.events if isinstance(e, Noted)]
    assert len(model.seen) == 4, "no chunk is tagged while a question is asked"


async def test_without_the_index_pike_rag_says_that_it_tags(plain: KnowledgeBase) -> None:
    model = ScriptedModel(["[]"])
    _, run = await solve(plain, model, {"kind": "pike-rag"}, ())
    notes = [e.text for e in run.events if isinstance(e, Noted)]
    assert notes[0].startswith("no index of atomic questions (`osler kb index atomic_query`")


async def test_kag_s_static_pipeline_looks_up_forms_and_the_hybrid(kb: KnowledgeBase) -> None:
    """The published triples are the concept graph; the hybrid has the names of the chunks."""
    plan = {
        "1": {
            "executor": "Retriever",
            "query": "What does Alhandra's place of birth belong to?",
            "logical_form": "Retrieval(s=s1:place['Vila Franca'], p=p1:lies in, o=o1:district)",
        },
        "2": {"executor": "Deduce", "query": "Which district?", "dependent_task_ids": ["1"]},
    }
    model = ScriptedModel(
        [
            json.dumps(plan),
            "District of Lisbon",
            r"<answer>\boxed{District of Lisbon}</answer>",
            "Vila Franca lies in the District of Lisbon. [1]",
        ]
    )
    solution, run = await solve(kb, model, {"kind": "kag-static", "k": 2}, (HYBRID,))
    step = model.seen[1][0].content
    assert "[1] Vila Franca" in step, "what the graph states of the form comes first"
    assert TEXTS["Vila Franca"] in step, "a chunk that is named, though no word of it is asked"
    assert "#2 Which district? District of Lisbon" in model.seen[3][0].content
    assert not any(
        e.text.startswith("no concept graph") for e in run.events if isinstance(e, Noted)
    )
    assert solution.answer.citations


@pytest.mark.parametrize("rankings", ["rrf-2", "rrf-4"])
async def test_medrag_fuses_two_rankings_or_four_that_count_alike(
    kb: KnowledgeBase, rankings: str
) -> None:
    """RRF with k = 100, summed by hand over the rankings of each index."""
    indexing.make_indexes(kb.path, ("knowledge_unit",), HashingEncoder())
    question = "In which District does Vila Franca lie?"
    words, here = content_terms(question), Extractions.of(kb).entries
    (vector,) = HashingEncoder().encode([question], kind="query")
    lists = [*kb.rank_by_both(words, vector, encoder="hashing-64", k=100)]
    if rankings == "rrf-4":
        lists.append(here.by_vector("knowledge_unit", vector, k=100, within=EVERYTHING))
        lists.append(here.by_words("knowledge_unit", words, k=100, within=EVERYTHING))
        assert lists[2]
        assert lists[3]
    by_hand: dict[int, float] = {}
    for ranking in lists:
        for rank, (number, _) in enumerate(ranking, 1):
            by_hand[number] = by_hand.get(number, 0.0) + 1 / (100 + rank)
    titles = {passage.id: n for n, passage in kb.get_passages(by_hand).items()}
    parts = make_parts(kb, ScriptedModel([]), {"kind": "medrag", "rankings": rankings})
    hits = await parts.retriever("medrag", ("book",)).search(question, k=9)
    assert {titles[hit.passage.id]: pytest.approx(hit.score) for hit in hits} == by_hand


def test_four_rankings_without_their_index_are_refused_before_a_question(
    plain: KnowledgeBase,
) -> None:
    parts = make_parts(plain, ScriptedModel([]), {"kind": "i-medrag", "rankings": "rrf-4"})
    with pytest.raises(KnowledgeBaseUnbuilt, match="knowledge_unit") as caught:
        parts.retriever("i-medrag", ("book",))
    assert "osler kb index knowledge_unit" in caught.value.fix


async def test_triples_and_questions_come_with_their_chunks(kb: KnowledgeBase) -> None:
    triples = await TripleSearch(kb).search("Where was Alhandra born?", k=10)
    assert (triples[0].passage.title, json.loads(triples[0].query)) == (
        "Alhandra",
        list(TRIPLES_OF["Alhandra"]),
    )
    (atom,) = await AtomicQuestions(kb, HashingEncoder()).search(ASKED, k=1)
    assert (atom.query, atom.passage.title) == (ASKED, "Vila Franca")


async def test_a_walk_goes_on_to_what_its_seeds_lead_to(kb: KnowledgeBase) -> None:
    seeds = json.dumps({"phrases": {"alhandra": 1.0}, "passages": {}})
    near = await GraphWalk(kb).search(seeds, k=5)
    assert [hit.passage.title for hit in near] == ["Alhandra", "Vila Franca"]
    assert near[0].score > near[1].score
    # The less it goes on, the less it has of what is far.
    (_, far), (_, farther) = (await GraphWalk(kb, 0.2).search(seeds, k=5)), near
    assert far.score < farther.score


@pytest.mark.parametrize("query", ["", "alhandra", '{"phrases": 1, "passages": {}}', "[]"])
async def test_a_walk_without_seeds_is_refused(kb: KnowledgeBase, query: str) -> None:
    with pytest.raises(SourceUnavailable, match="no seeds"):
        await GraphWalk(kb).search(query, k=3)


async def test_what_was_not_made_is_told_with_the_command_that_makes_it(
    plain: KnowledgeBase,
) -> None:
    for search in (TripleSearch(plain), GraphWalk(plain)):
        with pytest.raises(SourceUnavailable) as caught:
            await search.search('{"phrases": {}, "passages": {}}', k=3)
        assert "osler kb extract" in caught.value.fix
    with pytest.raises(SourceUnavailable) as caught:
        await AtomicQuestions(plain, HashingEncoder()).search("x", k=3)
    assert "osler kb index atomic_query" in caught.value.fix
