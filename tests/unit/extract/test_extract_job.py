"""Runs: estimated before, resumed after, cheap the second time, in step with the texts."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from osler.errors import ModelUnreachable, UnknownPassage
from osler.extract import ExtractionCost, ExtractionOutcome, job, publish, store
from osler.extract.derived import EXTRACTED_FACTS, Extractions
from osler.extract.dictionary import DictionaryExtractor
from osler.extract.model import ModelExtractor
from osler.graph.items import Name
from osler.graph.store import Graph
from osler.kb.base import KnowledgeBase
from osler.llm.core.base import Completion, Message, Sampling
from osler.types import Passage, Usage

Put = Callable[[dict[str, str]], None]


@dataclass
class Namer:
    """Names the first word of each text, in the form that it is asked for; fails when told."""

    name: str = "namer"
    fails_at: int = -1
    dies_at: int = -1
    asked: int = 0
    at_once: int = 0
    most: int = 0

    async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
        number, self.asked = self.asked, self.asked + 1
        if number == self.dies_at:
            raise ModelUnreachable("the server went away")
        text = messages[0].content.rpartition("\n")[2]
        word = text.split()[0] if text.isascii() else text[:2]
        entity = {"name": word, "type": "Disease", "domain": "", "explain": "", "standard": ""}
        reply = json.dumps({"entities": [{**entity, "synonyms": []}]})
        usage = Usage(1, prompt_tokens=100, completion_tokens=10, seconds=2.0)
        return Completion("nonsense" if number == self.fails_at else reply, usage=usage)


def extractor(model: Namer) -> ModelExtractor:
    return ModelExtractor(model, wanted=("entities",))


def run(kb: KnowledgeBase, model: Namer, **how: int) -> job.ExtractionReport:
    limit = how.get("limit")
    return asyncio.run(
        job.run_extraction(kb.path, extractor(model), limit=limit, at_once=how.get("at_once", 1))
    )


def problems(kb: KnowledgeBase) -> list[str]:
    return [problem for problem in kb.verify() if "is not built" not in problem]


def dictionary(kb: KnowledgeBase) -> publish.PublishReport:
    with DictionaryExtractor() as chosen:
        asyncio.run(job.run_extraction(kb.path, chosen))
    return publish.publish_items(kb.path)


def test_the_plan_says_what_a_run_would_ask_and_writes_nothing(kb: KnowledgeBase) -> None:
    planned = job.plan_extraction(kb.path, extractor(Namer()))
    assert (planned.chunks, planned.done, planned.asked) == (4, 0, 4)
    assert planned.cost.calls == 4
    assert planned.cost.prompt_tokens > 4 * 300  # the prompt with its 24 types, four times
    assert (planned.measured, planned.seconds) == (0, None)
    with kb.readers.borrow() as db:
        assert store.extractor_accounts(db) == []


def test_what_was_done_makes_the_estimate_and_is_not_done_again(kb: KnowledgeBase) -> None:
    model = Namer()
    report = run(kb, model, limit=1)
    assert (report.chunks, report.left, model.asked) == (1, 3, 1)
    planned = job.plan_extraction(kb.path, extractor(model))
    assert (planned.done, planned.asked, planned.measured) == (1, 3, 1)
    assert (planned.cost, planned.seconds) == (ExtractionCost(3, 300, 30), 6.0)
    assert run(kb, model).chunks == 3
    assert run(kb, model).chunks == 0
    assert model.asked == 4
    with kb.readers.borrow() as db:
        (account,) = store.extractor_accounts(db)
    assert (account.chunks, account.usage.calls, account.kinds) == (4, 4, (("entity", 4),))


def test_every_item_opens_its_chunk(kb: KnowledgeBase) -> None:
    run(kb, Namer())
    (found,) = Extractions.of(kb).items_of("book:copd#0")
    text = kb.get(found.passage).text
    assert text[found.item.start : found.item.end] == "Chronic"
    with pytest.raises(UnknownPassage):
        Extractions.of(kb).items_of("book:none#0")


def test_a_run_that_died_goes_on_where_it_stopped(kb: KnowledgeBase) -> None:
    with pytest.raises(ModelUnreachable):
        run(kb, Namer(dies_at=2))
    again = Namer()
    assert run(kb, again).chunks == 2
    assert again.asked == 2
    assert problems(kb) == []


def test_a_chunk_whose_replies_cannot_be_read_fails_alone_and_is_tried_again(
    kb: KnowledgeBase,
) -> None:
    report = run(kb, Namer())
    assert report.failed == 0
    model = Namer(name="other", fails_at=0)
    # A reply that does not parse is asked for again by the extractor itself.
    assert run(kb, model).failed == 0
    assert model.asked == 5


def test_chunks_are_asked_about_at_once_but_no_more_than_so_many(kb: KnowledgeBase) -> None:
    met = asyncio.Barrier(2)

    @dataclass
    class Pair(Namer):
        async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            await asyncio.wait_for(met.wait(), 30)  # nobody goes on alone
            self.at_once -= 1
            return await super().complete(messages, sampling)

    model = Pair()
    assert run(kb, model, at_once=2).chunks == 4
    assert model.most == 2


def test_the_same_words_cost_nothing_when_they_come_back(
    kb: KnowledgeBase, put: Put, tmp_path: Path
) -> None:
    model = Namer()
    run(kb, model)
    kb.remove(source="book", document="copd")
    with pytest.raises(UnknownPassage):
        Extractions.of(kb).items_of("book:copd#0")
    kb.remove(source="book")
    kb.add([tmp_path / "texts.jsonl"], source="book")
    planned = job.plan_extraction(kb.path, extractor(model))
    assert (planned.asked, planned.known) == (0, 4)
    report = run(kb, model)
    assert (report.chunks, report.known, model.asked) == (4, 4, 4)
    kb.remove(source="book", document="copd")
    run(kb, model)  # a complete run forgets what no chunk uses
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db:
        assert db.execute("SELECT count(*) FROM extracted_kept").fetchone() == (3,)


def test_a_chunk_that_goes_while_it_is_read_is_not_stored(kb: KnowledgeBase) -> None:
    @dataclass
    class Remover(Namer):
        async def complete(self, messages: Sequence[Message], sampling: Sampling) -> Completion:
            if self.asked == 0:
                await asyncio.to_thread(kb.remove, source="book", document="copd")
            return await super().complete(messages, sampling)

    report = run(kb, Remover())
    assert report.gone == 1
    assert problems(kb) == []


def test_a_changed_document_is_done_anew_and_the_others_are_not(
    kb: KnowledgeBase, put: Put
) -> None:
    model = Namer()
    run(kb, model)
    texts = {
        p.id.split(":")[1].removesuffix("#0"): p.text for d in kb.read_documents("book") for p in d
    }
    put({**texts, "copd": "Emphysema is another word."})
    kb.update()
    assert run(kb, model).chunks == 1
    (found,) = Extractions.of(kb).items_of("book:copd#0")
    assert found.item.kind == "entity"
    assert found.item.name == "Emphysema"


def test_a_snapshot_brings_items_back(kb: KnowledgeBase) -> None:
    dictionary(kb)
    kb.take_snapshot("before")
    before = Extractions.of(kb).items_of("book:copd#0")
    kb.remove(source="book", document="copd")
    assert problems(kb) == []
    KnowledgeBase.restore(kb.path, "before", derived=EXTRACTED_FACTS)
    assert Extractions.of(kb).items_of("book:copd#0") == before
    assert dictionary(kb).passages == 1  # it is in the graph again
    assert problems(kb) == []


# The concept graph


def test_names_and_relations_of_texts_stand_in_the_graph_with_their_passage(
    kb: KnowledgeBase,
) -> None:
    published = dictionary(kb)
    assert published.passages == 4
    with Graph.open(kb.path) as graph:
        (copd,) = graph.find_exact("copd")
        concept = graph.get_concept(copd.concept)
        assert concept is not None
        assert set(concept.names) >= {"COPD", "Chronic obstructive pulmonary disease"}
        (metformin,) = graph.find_exact("二甲双胍")
        (edge,) = graph.find_neighbours([metformin.concept])
        assert edge.triple == ("二甲双胍", "一同提及", "糖尿病")
        assert edge.source == "text/dictionary"
        with graph.open_reader() as db:
            notes = [text for (text,) in db.execute("SELECT text FROM note")]
    assert "book:糖尿病#0" in [kb.get(note).id for note in notes]
    assert dictionary(kb) == publish.PublishReport()  # twice changes nothing


def test_what_rests_on_no_text_any_more_leaves_the_graph_at_once(kb: KnowledgeBase) -> None:
    with Graph.create(kb.path) as graph:
        graph.add([Name("OURS:1", "smoking")])
    dictionary(kb)
    kb.remove(source="book", document="copd")
    with Graph.open(kb.path) as graph:
        assert graph.find_exact("copd") == []
        assert graph.find_exact("smoking") != []  # a vocabulary's name stays
        assert graph.find_exact("二甲双胍") != []
    assert problems(kb) == []
    kb.remove(source="book")
    with Graph.open(kb.path) as graph:
        info = graph.get_info()
    assert (info.concepts, info.names, info.relations) == (1, 1, 0)


def test_a_vocabulary_s_concept_keeps_its_own_names(kb: KnowledgeBase) -> None:
    with Graph.create(kb.path) as graph:
        graph.add([Name("OURS:1", "Chronic obstructive pulmonary disease")])
        with DictionaryExtractor(graph) as chosen:
            asyncio.run(job.run_extraction(kb.path, chosen))
        publish.publish_items(kb.path)
        assert [match.concept for match in graph.find_exact("COPD")] == ["OURS:1"]
        kb.remove(source="book")
        assert graph.find_exact("COPD") == []
        concept = graph.get_concept("OURS:1")
        assert concept is not None
        assert concept.names == ("Chronic obstructive pulmonary disease",)


def test_a_graph_that_is_behind_is_told_by_verify_and_mended_by_the_next_run(
    kb: KnowledgeBase,
) -> None:
    dictionary(kb)
    with closing(sqlite3.connect(kb.path / "kb.sqlite")) as db, db:  # as after a kill
        db.execute("PRAGMA foreign_keys=ON")
        db.execute("DELETE FROM extracted WHERE passage = 1")
    assert any("the graph holds" in problem for problem in kb.verify())
    assert publish.publish_items(kb.path).withdrawn == 1
    assert problems(kb) == []


def test_an_extractor_that_fails_leaves_word_of_it(kb: KnowledgeBase) -> None:
    class Failing:
        name, batch = "failing", 2

        def result_key(self, passage: Passage) -> str:
            return passage.id

        def estimate_cost(self, passage: Passage) -> ExtractionCost:
            return ExtractionCost()

        async def extract(self, passages: Sequence[Passage]) -> list[ExtractionOutcome]:
            return [ExtractionOutcome(failed="it is beyond me") for _ in passages]

    first = asyncio.run(job.run_extraction(kb.path, Failing()))
    assert (first.failed, first.failures[0]) == (4, "it is beyond me")
    assert asyncio.run(job.run_extraction(kb.path, Failing())).chunks == 4
