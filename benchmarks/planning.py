"""How well source plans find gold documents: the table that training has to move.

    python benchmarks/planning.py [--data FOLDER] [--questions N] [--work FOLDER] [--store]

Real questions with known gold documents: BioASQ (abstracts that its snippets are from),
PubMedQA (the abstract whose title the question is, without its title), LiveQA (answers of
MedQuAD that were judged at least "incomplete"), MedQuAD (the answer to the very question,
without the question). One knowledge base of research, web, wiki and guideline holds them all;
plans are made by the packaged model (temperature 0). What a plan finds is put in the one order over
all sources, and the first 10 documents are scored: recall@10 (of at most 10 gold documents) and
nDCG@10, with bootstrap intervals.

`one-search` plans nothing: the question is asked of all sources at once. It is what a plan has to
beat.

`oracle` is the plan that a planner would make that knew the gold documents: of all queries
explored for a question, and of the plans, the one with the best nDCG@10.

Each result is a line in the work folder; a second call goes on where it stopped.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gzip
import json
import random
import re
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import log2
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from quality import figure, store

from osler.build.knowledge import (
    make_retriever,
    open_knowledge_base,
    open_or_create,
    pool_relevance,
)
from osler.build.models import load_encoder, load_roles
from osler.kb.base import KnowledgeBase
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Sampling
from osler.methods.omni.planners import SourceDescription, SourcePlanner
from osler.methods.omni.planners.prompting import Prompting, Proposer
from osler.methods.omni.planners.single import OriginalQuestion, Query2Doc, TermExtractor
from osler.methods.omni.retriever import PlannedRetriever, order_results
from osler.retrieve.pooled import PooledOrder
from osler.settings import Settings
from osler.sources.catalogue import GUIDELINE, RESEARCH, WEB, WIKI
from osler.trace import Run
from osler.types import Hit, Question, Retriever
from osler_lab.evaluate.intervals import Estimate, mean

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
SOURCES = (GUIDELINE, RESEARCH, WIKI, WEB)
ONE_SEARCH = "one-search"
PLANNERS = (ONE_SEARCH, "original", "query2doc", "prompting", "oracle")
SETS = ("bioasq", "pubmedqa", "liveqa", "medquad")
CUT = 10
MEDQUAD_PAGES = 300
"""Pages of MedQuAD that are read beside those that are asked about."""
BESIDE = 1_500
"""Documents of the four sets that go in beside the gold ones."""
WITHOUT_GOLD = {
    GUIDELINE: ("B_corpora/guidelines/ngc_guidelines_meditron_schema.jsonl.gz", 15),
    WIKI: ("B_corpora/wikipedia/disease_pages_wikiextractor.jsonl", 30),
}
"""Sources that a plan may waste its queries on: a file, and how many of its documents go in."""
TOKENS = {"query2doc": 48, "prompting": 150}
"""A reply's, at most: the packaged model does not know when to end."""


@dataclass(frozen=True)
class Asked:
    set: str
    question: Question
    gold: frozenset[str]
    """Ids of documents."""


@dataclass(frozen=True)
class Entry:
    """A document as it goes in."""

    source: str
    id: str
    title: str
    text: str


def bioasq(data: Path) -> tuple[list[Asked], list[Entry]]:
    asked: list[Asked] = []
    texts: dict[str, list[str]] = defaultdict(list)
    for file in ("bioasq_yesno_golden", "bioasq_other_golden"):
        document = json.loads((data / f"A_questions/bioasq/{file}.json").read_text("utf-8"))
        for one in document["questions"]:
            gold = set()
            for snippet in one["snippets"]:
                pmid = f"pmid-{snippet['document'].rsplit('/', 1)[-1]}"
                gold.add(pmid)
                if snippet["text"] not in texts[pmid]:
                    texts[pmid].append(snippet["text"])
            if gold:
                asked.append(Asked("bioasq", Question(one["id"], one["body"]), frozenset(gold)))
    entries = [Entry(RESEARCH, id, "", "\n".join(parts)) for id, parts in texts.items()]
    return asked, entries


def pubmedqa(data: Path) -> tuple[list[Asked], list[Entry]]:
    asked, entries = [], []
    for file in ("test_set", "ori_pqal_rest"):
        document = json.loads((data / f"A_questions/pubmedqa/{file}.json").read_text("utf-8"))
        for pmid, record in document.items():
            id = f"pqa-{pmid}"
            entries.append(Entry(RESEARCH, id, "", "\n".join(record["CONTEXTS"])))
            if file == "test_set":
                question = Question(id, record["QUESTION"])
                asked.append(Asked("pubmedqa", question, frozenset({id})))
    return asked, entries


def liveqa(data: Path) -> tuple[list[Asked], list[Entry]]:
    folder = data / "B_corpora/medquad"
    gold: dict[str, set[str]] = defaultdict(set)
    for line in (folder / "qrels_LiveQAMed2017.txt").read_text("utf-8").splitlines():
        number, grade, file = line.split()
        if grade[0] in "34":
            gold[number].add(_answer_id(file))
    entries = []
    with (folder / "judged_answers.csv").open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            text = re.sub(r"^Question:.*?Answer:", "", row["Answer"], flags=re.DOTALL).strip()
            if text:
                entries.append(Entry(WEB, _answer_id(row["AnswerID"]), "", text))
    held = {entry.id for entry in entries}
    path = data / "A_questions/liveqa/TREC-2017-LiveQA-Medical-Test-Questions-w-summaries.xml"
    asked = []
    for node in ElementTree.parse(path).getroot().iter("NLM-QUESTION"):  # noqa: S314  our own data
        number = node.attrib["qid"].removeprefix("TQ")
        words = " ".join((node.findtext("Original-Question/MESSAGE") or "").split())
        words = words or " ".join((node.findtext("Original-Question/SUBJECT") or "").split())
        if words and (found := gold[number] & held):
            asked.append(Asked("liveqa", Question(f"liveqa-{number}", words), frozenset(found)))
    return asked, entries


def _answer_id(file: str) -> str:
    return f"judged-{file.removesuffix('.txt')}"


def medquad(data: Path, chance: random.Random, wanted: int) -> tuple[list[Asked], list[Entry]]:
    """A document is one answer, under the subject of its page; the question is left out."""
    pages = medquad_pages(data)
    chance.shuffle(pages)
    chosen = pages[: wanted + MEDQUAD_PAGES]
    asked = [chance.choice(page)[0] for page in chosen[:wanted]]
    return asked, [entry for page in chosen for _, entry in page]


def medquad_pages(data: Path) -> list[list[tuple[Asked, Entry]]]:
    """Every page with its questions and their answers."""
    pages: list[list[tuple[Asked, Entry]]] = []
    with tarfile.open(data / "B_corpora/medquad/MedQuAD_xml.tar.gz") as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.name.endswith(".xml") else None
            if stream:
                pages.append(list(_pairs(ElementTree.fromstring(stream.read()))))  # noqa: S314
    return [page for page in pages if page]


def _pairs(page: ElementTree.Element) -> Iterator[tuple[Asked, Entry]]:
    focus = " ".join((page.findtext("Focus") or "").split())
    for pair in page.iter("QAPair"):
        question, answer = pair.find("Question"), pair.findtext("Answer")
        if question is None or not question.text or not answer or not answer.strip():
            continue
        # Pages of different sources share their numbers.
        place = (page.attrib.get("source", ""), question.attrib.get("qid", ""))
        id = "-".join(("medquad", *place)).replace("/", "-")
        words = " ".join(question.text.split())
        entry = Entry(WEB, id, focus, answer.strip())
        yield Asked("medquad", Question(id, words), frozenset({id})), entry


def gathered(data: Path, n: int, seed: int) -> tuple[list[Asked], list[Entry]]:
    """`n` questions of each set, and every document of all four."""
    chance = random.Random(seed)
    parts = [bioasq(data), pubmedqa(data), liveqa(data), medquad(data, chance, n)]
    asked = [each for part, _ in parts for each in _sample(part, n, chance)]
    gold = {id for each in asked for id in each.gold}
    every = [entry for _, entries in parts for entry in entries]
    beside = [entry for entry in every if entry.id not in gold]
    chance.shuffle(asked)  # so that a run that was cut short has some of each set
    beside = chance.sample(beside, min(BESIDE, len(beside)))
    return asked, [entry for entry in every if entry.id in gold] + beside


def _sample(asked: list[Asked], n: int, chance: random.Random) -> list[Asked]:
    return chance.sample(asked, min(n, len(asked)))


def build(settings: Settings, entries: Iterable[Entry], data: Path) -> None:
    with open_or_create(settings) as kb, tempfile.TemporaryDirectory() as place:
        lines = {source: list(_head(data, source)) for source in WITHOUT_GOLD}
        for entry in entries:
            lines.setdefault(entry.source, []).append(_line(entry))
        for source, mine in lines.items():
            file = Path(place) / f"{source}.jsonl"
            file.write_text("".join(mine), encoding="utf-8")
            kb.add([file], source=source)
        kb.build(load_encoder(settings))
        for each in kb.info().sources:
            print(f"{each.source}: {each.documents:,} documents, {each.passages:,} passages")


def _head(data: Path, source: str) -> Iterator[str]:
    file, documents = WITHOUT_GOLD[source]
    path = data / file
    with (
        gzip.open(path, "rt", encoding="utf-8")
        if path.suffix == ".gz"
        else path.open(encoding="utf-8") as lines
    ):
        yield from islice(lines, documents)


def _line(entry: Entry) -> str:
    return json.dumps({"id": entry.id, "title": entry.title, "content": entry.text}) + "\n"


def document_of(hit: Hit) -> str:
    return hit.passage.id.partition(":")[2].rpartition("#")[0]


def scores(hits: Sequence[Hit], gold: frozenset[str]) -> tuple[float, float]:
    """Recall and nDCG of the first 10 documents, in [0, 1]."""
    ranked = list(dict.fromkeys(map(document_of, hits)))[:CUT]
    best = min(len(gold), CUT)
    gain = sum(1 / log2(n + 2) for n, id in enumerate(ranked) if id in gold)
    return len(gold & set(ranked)) / best, gain / sum(1 / log2(n + 2) for n in range(best))


@dataclass(frozen=True)
class Searches:
    """What plans are carried out with."""

    found: PlannedRetriever
    whole: Retriever
    """One search over all sources."""
    order: PooledOrder


def searches(settings: Settings, kb: KnowledgeBase) -> Searches:
    encoder = load_encoder(settings)

    def of(*sources: str) -> Retriever:
        return make_retriever(settings, kb, encoder, sources)

    return Searches(
        PlannedRetriever({source: of(source) for source in SOURCES}, CUT),
        of(*SOURCES),
        PooledOrder(pool_relevance(settings, kb.term_rarity, encoder, None)),
    )


async def measured(
    asked: Asked, name: str, planner: SourcePlanner | None, made: Searches
) -> dict[str, Any]:
    """What a planner's plan finds, and what each of its queries finds alone; without a planner,
    what one search over all sources finds for the question itself."""
    run, began, words = Run(), time.perf_counter(), asked.question.text
    named = {"set": asked.set, "id": asked.question.id, "planner": name}
    if planner is None:
        found = scores(await made.whole.search(words, k=CUT), asked.gold)
        return (
            named
            | {"scores": found, "alone": [], "queries": 1, "words": [], "origin": ""}
            | {"seconds": 0.0}
        )
    proposal = await planner.plan(asked.question, run)
    seconds = time.perf_counter() - began
    results = await made.found.gather_results(proposal.plan, run)
    hits = await order_results(words, results, CUT, made.order)
    return named | {
        "scores": scores(hits, asked.gold),
        "alone": [scores(one.hits, asked.gold) for one in results.values()],
        "queries": len(results),
        "words": [len(query.text.split()) for query in results],
        "origin": proposal.origin,
        "seconds": round(seconds, 2),
    }


Result = Mapping[str, Any]


def with_oracle(results: Sequence[Result]) -> list[Result]:
    """The results, and the best that was explored for each question that all planners have."""
    by_question: dict[tuple[str, str], list[Result]] = defaultdict(list)
    for result in results:
        by_question[result["set"], result["id"]].append(result)
    added: list[Result] = list(results)
    for (set_, id), tried in by_question.items():
        if {one["planner"] for one in tried} == set(PLANNERS[:-1]):
            explored = [pair for one in tried for pair in (one["scores"], *one["alone"])]
            best = max(explored, key=lambda pair: (pair[1], pair[0]))
            added.append(
                {"set": set_, "id": id, "planner": "oracle", "scores": best, "queries": 1}
                | {"seconds": sum(one["seconds"] for one in tried)}
            )
    return added


def rows(results: Sequence[Result]) -> Iterator[tuple[str, str, list[Result]]]:
    for name in SETS:
        for planner in PLANNERS:
            of = [r for r in results if (r["set"], r["planner"]) == (name, planner)]
            if of:
                yield name, planner, of


def figures(of: Sequence[Result]) -> tuple[Estimate, Estimate]:
    """Recall and nDCG with their intervals."""
    return mean([one["scores"][0] for one in of]), mean([one["scores"][1] for one in of])


def table(results: Sequence[Result]) -> str:
    lines = ["| set | planner | n | recall@10 | nDCG@10 | queries | s |"]
    lines.append("|---|---|--:|---|---|--:|--:|")
    for name, planner, of in rows(results):
        recall, ndcg = figures(of)
        queries = sum(one["queries"] for one in of) / len(of)
        seconds = sum(one["seconds"] for one in of) / len(of)
        lines.append(
            f"| {name} | {planner} | {len(of)} | {recall} | {ndcg} | {queries:.1f}"
            f" | {seconds:.1f} |"
        )
    return "\n".join(lines)


def part(results: Sequence[Result], given: argparse.Namespace) -> dict[str, Any]:
    """The part of `benchmarks/quality.toml`."""
    found: dict[str, Any] = {
        "script": "benchmarks/planning.py",
        "model": "smollm2-135m-instruct-q8_0",
        "questions": given.questions,
        "seed": given.seed,
    }
    for name, planner, of in rows(results):
        recall, ndcg = map(figure, figures(of))
        found.setdefault(name, {})[planner] = {"recall10": recall, "ndcg10": ndcg}
    return found


async def go(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Question by question; what was done before is not done again."""
    asked, entries = gathered(given.data, given.questions, given.seed)
    given.work.mkdir(parents=True, exist_ok=True)
    model = {"threads": 1, "slots": given.at_once, "context": 2048}
    settings = Settings.model_validate({"home": given.work, "model": model})
    if not (given.work / "built").exists():
        build(settings, entries, given.data)
        (given.work / "built").touch()
    log = given.work / "results.jsonl"
    lines = log.read_text("utf-8").splitlines() if log.exists() else []
    results: list[dict[str, Any]] = [json.loads(line) for line in lines]
    done = {(result["set"], result["id"], result["planner"]) for result in results}
    with open_knowledge_base(settings) as kb:
        made, planners = searches(settings, kb), await _planners(settings)
        gate = asyncio.Semaphore(given.at_once)

        async def one(each: Asked, name: str) -> None:
            async with gate:
                result = await measured(each, name, planners.get(name), made)
            results.append(result)
            with log.open("a", encoding="utf-8") as out:
                out.write(json.dumps(result) + "\n")

        await asyncio.gather(
            *(
                one(each, name)
                for each in asked
                for name in given.planners.split(",")
                if (each.set, each.question.id, name) not in done
            )
        )
    return results


async def _planners(settings: Settings) -> dict[str, SourcePlanner]:
    ready = (await load_roles(settings, ["planner"]))["planner"]
    offers = tuple(map(SourceDescription, SOURCES))

    def speaker(planner: str) -> Speaker:
        sampling = Sampling(temperature=0.0, max_tokens=TOKENS[planner], top=0)
        return Speaker(ready.model, "planner", sampling, ready.constrains)

    terms = TermExtractor(speaker("prompting"))
    return {
        "original": OriginalQuestion(terms, offers),
        "query2doc": Query2Doc(speaker("query2doc"), terms, offers),
        "prompting": Prompting(Proposer(speaker("prompting"), offers)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--questions", type=int, default=40, help="of each set")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--work", type=Path, help="knowledge base and results; kept")
    parser.add_argument("--planners", default=",".join(PLANNERS[:-1]))
    parser.add_argument("--store", action="store_true", help="write into quality.toml")
    given = parser.parse_args()
    if not given.data.is_dir():
        print(f"no data in {given.data}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as place:
        given.work = given.work or Path(place)
        results = with_oracle(asyncio.run(go(given)))
    print(table(results))
    if given.store:
        store("planning", part(results, given))
    return 0


if __name__ == "__main__":
    sys.exit(main())
