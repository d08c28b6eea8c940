"""What a sample's searches found: gold by number, title or address, and the seconds they took."""

import asyncio
from pathlib import Path

import pytest

from osler.build import Parts, no_retriever
from osler.build.models import LoadedModel
from osler.llm.core.base import LanguageModel
from osler.retrieve import look_up
from osler.retrieve.relevance import OverlapRelevance
from osler.settings import Role
from osler.trace import Run
from osler.types import Answer, Halt, Hit, Locator, Passage, Question, Solution, Usage
from osler_lab.evaluate.log import read_records
from osler_lab.evaluate.measures import BY_NAME, measure_value
from osler_lab.evaluate.record import Gold, RecordedOutcome, Sample, SampleRecord
from osler_lab.evaluate.runner import EvaluationRunner, ReadyStrategy, RunnerCell
from osler_lab.evaluate.searches import (
    RecordedDocument,
    SearchNotes,
    WatchedRetriever,
    note_searches,
)
from osler_lab.studies.evaluation import count_accelerators
from osler_lab.testing.scripted import ScriptedModel

ROLES: tuple[Role, ...] = ("planner", "reader")
PAGES = (
    Passage("wiki:p1#0", "Text.", "wiki", "The Arthur's Magazine"),
    Passage("wiki:p2#3", "Text.", "wiki", "First for Women"),
    Passage(
        "site:p3#0", "Text.", "site", "Zoloft", Locator(url="https://www.drugs.com/zoloft/#s2")
    ),
)


class Shelf:
    """Finds its pages in their order, whatever is asked."""

    def __init__(self, *pages: Passage) -> None:
        self.pages = pages

    async def search(self, query: str, *, k: int) -> list[Hit]:
        found = self.pages[:k]
        return [Hit(page, 1.0, rank, query, "wiki") for rank, page in enumerate(found, 1)]


class Searching:
    """Searches once and says a letter."""

    def __init__(self, *pages: Passage) -> None:
        self.retriever = WatchedRetriever(Shelf(*pages))

    async def solve(self, question: Question, run: Run) -> Solution:
        await look_up(self.retriever, question.text, run, k=10)
        return Solution(Answer(option="A"), Halt.CONVERGED, "said so", run.usage)


async def records(folder: Path, support: tuple[str, ...], *pages: Passage) -> list[SampleRecord]:
    made = [
        Sample("made", "short", Question(f"q{n}", "Which?"), Gold((), ("it",), support))
        for n in range(3)
    ]

    async def prepare(label: str) -> ReadyStrategy:
        return ReadyStrategy(Searching(*pages))

    await EvaluationRunner(folder, prepare, 2).run([RunnerCell("rag", "made", made)])
    return list(read_records(folder))


def figures(record: SampleRecord) -> tuple[float | None, float | None]:
    return measure_value(BY_NAME["recall_10"], record), measure_value(BY_NAME["mrr"], record)


@pytest.mark.parametrize(
    ("support", "wanted"),
    [
        (("Arthur's Magazine", "First for Women"), (1.0, 1.0)),
        (("First for Women",), (1.0, 0.5)),
        (("First for Women", "Vogue"), (0.5, 0.5)),
        (("http://drugs.com/zoloft",), (1.0, 1 / 3)),
        (("Vogue",), (0.0, 0.0)),
    ],
)
async def test_gold_by_title_or_address_is_found_among_what_was_searched(
    tmp_path: Path, support: tuple[str, ...], wanted: tuple[float, float]
) -> None:
    for record in await records(tmp_path, support, *PAGES):
        assert record.status == "done"
        assert figures(record) == pytest.approx(wanted)


async def test_gold_by_address_has_no_figure_where_nothing_found_has_an_address(
    tmp_path: Path,
) -> None:
    (record, *_) = await records(tmp_path, ("https://medlineplus.gov/ency/1.htm",), *PAGES[:2])
    assert figures(record) == (None, None)


def test_a_log_without_titles_has_no_figure_for_gold_by_title() -> None:
    outcome = RecordedOutcome(retrieved=("wiki:p1#0",), usage=Usage(searches=1))
    question = Question("q", "Which?")
    by_title = Sample("made", "short", question, Gold((), ("it",), ("Arthur's Magazine",)))
    by_number = Sample("made", "short", question, Gold((), ("it",), ("PMID:1",)))
    for sample, wanted in ((by_title, (None, None)), (by_number, (0.0, 0.0))):
        assert figures(SampleRecord("rag", sample, "done", "", 1.0, 0, outcome)) == wanted


async def test_seconds_of_searches_are_told_where_there_were_any(tmp_path: Path) -> None:
    (record, *_) = await records(tmp_path, (), *PAGES)
    seconds = measure_value(BY_NAME["search_s"], record)
    assert seconds is not None
    assert 0 <= seconds <= record.seconds
    alone = SampleRecord("direct", record.sample, "done", "", 1.0, 0, RecordedOutcome())
    assert measure_value(BY_NAME["search_s"], alone) is None


def test_searches_at_the_same_time_count_once() -> None:
    times = iter((0.0, 5.0, 7.0, 8.0))
    notes = SearchNotes(clock=lambda: next(times))
    with notes.time_search(), notes.time_search():
        pass
    with notes.time_search():
        pass
    assert notes.seconds == 5.0 + 1.0


async def test_samples_at_the_same_time_do_not_mix_their_notes() -> None:
    async def one(page: Passage) -> dict[str, RecordedDocument]:
        with note_searches() as notes:
            await asyncio.gather(
                *(WatchedRetriever(Shelf(page)).search("q", k=1) for _ in range(2))
            )
            return notes.documents

    found = await asyncio.gather(*(one(page) for page in PAGES))
    assert [list(notes) for notes in found] == [[page.id] for page in PAGES]


@pytest.mark.parametrize(("number", "seconds"), [(0, None), (1, 0.5), (4, 2.0)])
def test_seconds_of_accelerators_are_those_of_the_model_times_their_number(
    number: int, seconds: float | None
) -> None:
    outcome = RecordedOutcome(usage=Usage(calls=1, seconds=0.5), accelerators=number)
    sample = Sample("made", "short", Question("q", "Which?"), Gold((), ("it",)))
    record = SampleRecord("rag", sample, "done", "", 1.0, 0, outcome)
    assert measure_value(BY_NAME["accelerator_s"], record) == seconds


def test_tokens_that_were_read_and_those_that_were_written_are_told_apart() -> None:
    used = Usage(calls=1, prompt_tokens=900, completion_tokens=40)
    sample = Sample("made", "short", Question("q", "Which?"), Gold((), ("it",)))
    record = SampleRecord("rag", sample, "done", "", 1.0, 0, RecordedOutcome(usage=used))
    told = [measure_value(BY_NAME[f"{name}_tokens"], record) for name in ("prompt", "completion")]
    assert told == [900, 40]


def test_accelerators_count_only_where_every_model_says_that_it_has_one() -> None:
    class Placed(ScriptedModel):
        accelerators = 1

    def parts_of(*models: LanguageModel) -> Parts:
        ready = dict(zip(ROLES, map(LoadedModel, models), strict=False))
        return Parts(ready, no_retriever, OverlapRelevance(), OverlapRelevance(), ())

    assert count_accelerators(parts_of(Placed([]), Placed([]))) == 1
    assert count_accelerators(parts_of(Placed([]), ScriptedModel([]))) == 0
    assert count_accelerators(parts_of()) == 0
