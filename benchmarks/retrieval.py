"""How well each way of searching finds what is known to be right, on real questions.

    python benchmarks/retrieval.py [--data FOLDER] [--reranked N] [--home FOLDER]
        [--hops FOLDER] [--most N] [--figures FILE]

One knowledge base of all passages of `pubmed` and `medquad`, in which no question stands: the
titles of PubMedQA's abstracts and the questions of MedQuAD's pages are left out, a page keeps its
subject. Asked are PubMedQA's questions for their own abstract, MedQuAD's for an answer to that
very question, BioASQ's for the articles of its gold snippets, and the letters of LiveQA for
MedQuAD's answers by the graded judgements; questions that the expert `retrieve` was trained on are
left out (the dev part, by which its form was chosen, is not). A document ranks where its best
passage does. Searched by words, by meaning, by both (ranks fused), by the expert, and by it with a
second look at the first twenty on N questions of each task. With `--hops`, a home for a base of
2WikiMultihopQA's own corpus, its questions are asked of that for the pages that they rest on.
Prints a table; writes the part "retrieval" of quality.toml, or with `--figures` the scoreboard's
file with a value for each question.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import re
import shutil
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import multihop
import quality
from state_values import build_2wiki

from osler.app.config import Settings
from osler.app.wiring.hub import open_reranker, with_reranker
from osler.app.wiring.knowledge import make_retriever, open_or_create
from osler.app.wiring.models import load_encoder
from osler.evaluate.datasets import read_qrels
from osler.evaluate.datasets.splits import question_digest
from osler.evaluate.intervals import Estimate, mean
from osler.evaluate.metrics.retrieval import ndcg, recall_at, reciprocal_rank
from osler.evaluate.trained_on import list_beside, read_trained_on
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.retrieve import rank_hits
from osler.retrieve.experts.searching import RETRIEVE
from osler.retrieve.experts.shelf import packaged_folder
from osler.retrieve.hybrid import LexicalRetriever
from osler.types import Hit, Retriever

DATA = Path(__file__).resolve().parents[1].parent / "shared" / "data"
SEED, MOST, DEPTH = 0, 1_000, 50
LEXICAL, HYBRID, EXPERT = "lexical", "hybrid", "expert"
OPPONENTS = {"dense": LEXICAL, HYBRID: LEXICAL, EXPERT: HYBRID, "reranked": EXPERT}
Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A question and the grades (above 0: right) of documents."""

    text: str
    grades: Mapping[str, int]


# The passages


def write_passages(data: Path, folder: Path) -> tuple[Path, Path]:
    """Two folders: what is of PubMed, what is of MedQuAD; no question is in them."""
    pubmed, medquad = folder / "pubmed", folder / "medquad"
    pubmed.mkdir()
    medquad.mkdir()
    corpus = data / "B_corpora"
    _write(pubmed / "pubmedqa.jsonl", _untitled(corpus / "pubmed/pubmedqa_contexts.jsonl"))
    for name in ("bioasq_snippets.jsonl", "pubmed_sample_baseline.xml.gz"):
        shutil.copy(corpus / "pubmed" / name, pubmed)  # links are not followed
    _write(medquad / "answers.jsonl", _answers(corpus / "medquad").values())
    return pubmed, medquad


def _write(path: Path, records: Any) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _untitled(path: Path) -> Iterator[Json]:
    """PubMedQA's questions are its titles."""
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        yield {key: record[key] for key in ("id", "content", "PMID")} | {"title": ""}


def _pairs(folder: Path) -> Iterator[tuple[str, str, str, str]]:
    """Id as in the judgements, subject, question and answer of each pair that has one."""
    with tarfile.open(folder / "MedQuAD_xml.tar.gz") as packed:
        for member in packed:
            file = packed.extractfile(member) if member.name.endswith(".xml") else None
            if file is None:
                continue
            page = ElementTree.parse(file).getroot()  # noqa: S314 - data that we were given
            for pair in page.iter("QAPair"):
                id = f"{page.get('source')}_{page.get('id')}_Sec{pair.get('pid')}"
                if answer := (pair.findtext("Answer") or "").strip():
                    yield id, page.findtext("Focus") or "", pair.findtext("Question") or "", answer


def _answers(folder: Path) -> dict[str, Json]:
    """Pages' answers, and the judged ones of which no page is here."""
    found = {id: _answer(id, subject, text) for id, subject, _, text in _pairs(folder)}
    with (folder / "judged_answers.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            id = row["AnswerID"].removesuffix(".txt")
            found.setdefault(id, _answer(id, "", row["Answer"].partition("Answer:")[2].strip()))
    return {id: record for id, record in found.items() if record["content"]}


def _answer(id: str, subject: str, text: str) -> Json:
    return {"id": id, "title": subject, "content": text}


# The questions


def questions(data: Path, most: int = MOST) -> dict[str, list[Asked]]:
    """The questions of each task that the packaged expert was not trained on."""
    seen = read_trained_on(list_beside(packaged_folder() / RETRIEVE))
    found = {}
    for task, asked in every_question(data).items():
        unseen = [one for one in asked if question_digest(one.text) not in seen]
        found[task] = Random(SEED).sample(unseen, min(len(unseen), most))
    return found


def every_question(data: Path) -> dict[str, list[Asked]]:
    medquad = data / "B_corpora/medquad"
    return {
        "pubmedqa": _pubmedqa(data / "A_questions/pubmedqa"),
        "medquad": _medquad(medquad),
        "bioasq": _bioasq(data / "A_questions/bioasq"),
        "liveqa": _liveqa(data / "A_questions/liveqa", medquad),
    }


def _pubmedqa(folder: Path) -> list[Asked]:
    return [
        Asked(record["QUESTION"], {f"PMID:{pmid}": 1})
        for name in ("test_set.json", "ori_pqal_rest.json")
        for pmid, record in json.loads((folder / name).read_text(encoding="utf-8")).items()
    ]


def _medquad(folder: Path) -> list[Asked]:
    same: dict[str, tuple[str, dict[str, int]]] = {}
    for id, _, question, _ in _pairs(folder):
        same.setdefault(" ".join(question.lower().split()), (question, {}))[1][id] = 1
    return [Asked(question, grades) for question, grades in same.values()]


def _bioasq(folder: Path) -> list[Asked]:
    found = []
    for name in ("bioasq_yesno_golden.json", "bioasq_other_golden.json"):
        for record in json.loads((folder / name).read_text(encoding="utf-8"))["questions"]:
            pmids = {snippet["document"].rsplit("/", 1)[1] for snippet in record["snippets"]}
            if pmids:
                found.append(Asked(record["body"], {f"PMID:{pmid}": 1 for pmid in pmids}))
    return found


def _liveqa(folder: Path, medquad: Path) -> list[Asked]:
    """Grades of the answers that are here; letters without a right one among these are left out."""
    held = _answers(medquad)
    judged = read_qrels(medquad / "qrels_LiveQAMed2017.txt")
    letters = ElementTree.parse(folder / "TREC-2017-LiveQA-Medical-Test.xml")  # noqa: S314
    found = []
    for letter in letters.iter("NLM-QUESTION"):
        grades = judged.get(letter.get("qid") or "", {})
        here = {id.removesuffix(".txt"): grade for id, grade in grades.items()}
        here = {id: grade for id, grade in here.items() if id in held and grade > 0}
        words = (letter.findtext(f".//{tag}") or "" for tag in ("SUBJECT", "MESSAGE"))
        if here:
            found.append(Asked(" ".join(" ".join(words).split()), here))
    return found


# The measures


def names(hits: Sequence[Hit]) -> list[str]:
    """Documents in the order of their best passages."""
    return list(dict.fromkeys(map(_name, hits)))


def _name(hit: Hit) -> str:
    """PMID where there is one, else the document's part of the id."""
    code = hit.passage.locator.code
    return code or re.sub(r"^[^:]*:|#.*$", "", hit.passage.id)


async def measure(found: Retriever, asked: Sequence[Asked]) -> dict[str, list[float]]:
    ranked = [names(await found.search(one.text, k=DEPTH))[:10] for one in asked]
    pairs = list(zip(ranked, asked, strict=True))
    return {
        "mrr10": [reciprocal_rank(docs, one.grades) for docs, one in pairs],
        "recall10": [recall_at(docs, one.grades, 10) for docs, one in pairs],
        "ndcg10": [ndcg(docs, one.grades, 10) for docs, one in pairs],
    }


def ways(settings: Settings, kb: KnowledgeBase, encoder: Encoder) -> dict[str, Retriever]:
    off = settings.model_copy(
        update={"retrieve": settings.retrieve.model_copy(update={"expert": "off"})}
    )
    return {
        LEXICAL: LexicalRetriever(kb),
        "dense": DenseRetriever(kb, encoder),
        HYBRID: make_retriever(off, kb, encoder, kb.sources),
        EXPERT: make_retriever(settings, kb, encoder, kb.sources),
    }


@dataclass(frozen=True)
class DenseRetriever:
    """The dense ranking alone, for queries in a language of the encoder."""

    kb: KnowledgeBase
    encoder: Encoder

    async def search(self, query: str, *, k: int) -> list[Hit]:
        vector = self.encoder.encode([query], kind="query")[0]
        return rank_hits(
            self.kb.by_vector(vector, encoder=self.encoder.identity, k=k), query, "dense"
        )


def second_look(settings: Settings, kb: KnowledgeBase, encoder: Encoder) -> Retriever:
    kind = settings.reranker.model_copy(update={"kind": "sentences"})
    chosen = settings.model_copy(update={"reranker": kind})
    hybrid = make_retriever(chosen, kb, encoder, kb.sources)
    return with_reranker(chosen, hybrid, open_reranker(chosen, encoder), kb.sources)


def hop_questions(data: Path, most: int) -> list[Asked]:
    """2WikiMultihopQA's, for the pages of their evidence, named as `state_values` builds them."""
    items, corpus = multihop.items_2wiki(data / "A_questions/multihop/2wikimultihopqa")
    number = {one["title"]: str(n) for n, one in enumerate(corpus)}
    asked = [Asked(i.question, {number[t]: 1 for t in i.gold if t in number}) for i in items]
    return Random(SEED).sample(asked, min(len(asked), most))


@dataclass
class Tables:
    """What was measured, printed line by line."""

    quality: Json
    figures: list[Json]
    kept: Path | None = None
    """Where the figures are kept after each task; a stopped run goes on with the next."""

    def is_done(self, task: str) -> bool:
        return any(row["set"] == task for row in self.figures)

    def keep(self) -> None:
        if self.kept:
            quality.write_figures(self.kept, self.figures)

    def note(
        self, task: str, way: str, values: Mapping[str, list[float]], seconds: float, part: str = ""
    ) -> None:
        made: dict[str, Estimate] = {name: mean(column) for name, column in values.items()}
        n = len(values["mrr10"])
        name = f"{way}, {part}" if part else way
        cells = " | ".join(map(str, made.values()))
        print(f"| {task} | {name} | {n} | {cells} | {seconds / n:.3f} |", flush=True)
        self.quality.setdefault(task, {})[name] = {
            name: quality.figure(estimate) for name, estimate in made.items()
        }
        row = {"table": "retrieval", "set": f"{task}, {part}" if part else task, "row": way}
        row |= {"opponent": OPPONENTS.get(way, ""), "source": "Retrieval (benchmarks/retrieval.py)"}
        self.figures += [
            {**row, "measure": title, "values": quality.join_values(values[name])}
            for name, title in (("recall10", "recall@10"), ("ndcg10", "nDCG@10"))
        ]


def run(
    settings: Settings,
    kb: KnowledgeBase,
    encoder: Encoder,
    tasks: Mapping[str, list[Asked]],
    few: int,
    tables: Tables,
) -> None:
    every = ways(settings, kb, encoder)
    looked = second_look(settings, kb, encoder)
    for task, asked in tasks.items():
        if tables.is_done(task):
            continue
        sample = Random(SEED).sample(asked, min(few, len(asked)))
        part = "the sample"
        jobs = [(way, "", found, asked) for way, found in every.items()]
        if sample:
            jobs += [(EXPERT, part, every[EXPERT], sample), ("reranked", part, looked, sample)]
        for way, of, found, some in jobs:
            began = time.perf_counter()
            values = asyncio.run(measure(found, some))
            tables.note(task, way, values, time.perf_counter() - began, of)
        tables.keep()


def run_hops(home: Path, data: Path, most: int, few: int, tables: Tables) -> None:
    home.mkdir(parents=True, exist_ok=True)
    settings = Settings.model_validate({"home": home})
    with open_or_create(settings) as kb:
        built = bool(kb.sources)
    if not built:
        build_2wiki(settings, data)
    with open_or_create(settings) as kb:
        asked = {"2wiki": hop_questions(data, most)}
        run(settings, kb, load_encoder(settings), asked, few, tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--reranked", type=int, default=200, metavar="N")
    parser.add_argument("--home", type=Path, help="kept, so that a second run need not encode")
    parser.add_argument("--hops", type=Path, help="home of a base of 2WikiMultihopQA's corpus")
    parser.add_argument("--most", type=int, default=MOST, help="questions of a task")
    parser.add_argument("--figures", type=Path, help="the scoreboard's file, and no quality.toml")
    given = parser.parse_args()
    tables = Tables({}, quality.read_figures(given.figures), given.figures)
    print("| task | search | n | MRR@10 | recall@10 | nDCG@10 | s a search |")
    print("|---|---|--:|---|---|---|--:|")
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings.model_validate({"home": given.home or Path(scratch) / "home"})
        encoder = load_encoder(settings)
        with open_or_create(settings) as kb:
            if not kb.sources:
                pubmed, medquad = write_passages(given.data, Path(scratch))
                kb.add([pubmed], source="research")
                kb.add([medquad], source="web")
            kb.build(encoder)
            asked = questions(given.data, given.most)
            run(settings, kb, encoder, asked, given.reranked, tables)
            about = {
                "script": "benchmarks/retrieval.py",
                "encoder": encoder.identity,
                "passages": sum(each.passages for each in kb.info().sources),
                "seed": SEED,
            }
    if given.hops:
        run_hops(given.hops, given.data, given.most, given.reranked, tables)
    if not given.figures:
        quality.store("retrieval", {**about, **tables.quality})


if __name__ == "__main__":
    main()
