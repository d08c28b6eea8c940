"""Questions of published sets with the documents that answer them, and passages to search.

PubMedQA's questions ask for their own abstract, MedQuAD's for an answer to that very question,
BioASQ's for the articles of its gold snippets, and the letters of LiveQA for MedQuAD's answers by
the graded judgements. No question stands in the passages: the titles of PubMedQA's abstracts and
the questions of MedQuAD's pages are left out, a page keeps its subject.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from osler.evaluate.datasets import read_qrels
from osler.types import Hit

DEPTH = 50
"""Passages that a search brings, of which documents are named."""
Json = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """A question and the grades (above 0: right) of documents."""

    text: str
    grades: Mapping[str, int]


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


def names(hits: Sequence[Hit]) -> list[str]:
    """Documents in the order of their best passages."""
    return list(dict.fromkeys(map(_name, hits)))


def _name(hit: Hit) -> str:
    """PMID where there is one, else the document's part of the id."""
    code = hit.passage.locator.code
    return code or re.sub(r"^[^:]*:|#.*$", "", hit.passage.id)
