"""Questions with texts that answer them and texts that do not, from data sets as published.

| Set | Answers | Does not answer |
|---|---|---|
| MedQuAD (CC BY 4.0) | the answer to the very question | the other answers of its page |
| BioASQ (CC BY 2.5) | a gold snippet | |
| PubMedQA (MIT) | the authors' conclusion | background and methods of the abstract |
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from lxml import etree

from osler.errors import MalformedSource
from osler.evaluate.datasets.base import json_records, read_json
from osler.sources.formats.safe_xml import iterate_elements, raw_text, text_of
from osler.text import clean_text, one_line

MEDQUAD, BIOASQ, PUBMEDQA = "medquad", "bioasq", "pubmedqa"
LICENCES = {MEDQUAD: "CC BY 4.0", BIOASQ: "CC BY 2.5", PUBMEDQA: "MIT"}
_MEDQUAD_FILE = "MedQuAD_xml.tar.gz"
_QRELS_FILE = "qrels_LiveQAMed2017.txt"
BIOASQ_FILES = ("bioasq_yesno_golden.json", "bioasq_other_golden.json")
PUBMEDQA_FILES = {"test_set.json": True, "ori_pqal_rest.json": False}
# Sections of an abstract that say what was asked and done, not what was found.
_UNANSWERING = ("background", "method", "objective", "purpose", "design", "setting", "aim")


@dataclass(frozen=True, slots=True)
class CandidateText:
    """A text that answers a question, or does not."""

    text: str
    title: str = ""
    why: str = "answer"
    """Why it is here: "answer", or the kind of wrong text."""


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """A question with texts that answer it (`right`) and texts that do not (`wrong`)."""

    id: str
    """Set and id, as in "bioasq:5e46c8ab3f54159529000011"."""
    text: str
    source: str
    documents: tuple[str, ...]
    """What its texts come from: pages, PubMed ids. A split never divides a document."""
    right: tuple[CandidateText, ...]
    wrong: tuple[CandidateText, ...] = ()
    kind: str = ""
    """The set's own kind of question: "treatment", "factoid"."""
    held_out: bool = False
    """Whether it must be tested on: the set's own test part, or judged for another test set."""
    verdict: str = ""
    """"yes", "no" or, in PubMedQA, "maybe"; empty where it asks for something else."""


@dataclass(frozen=True, slots=True)
class MedquadPage:
    """A page of MedQuAD: its subject and its question–answer pairs."""

    id: str
    focus: str
    pairs: tuple[tuple[str, str, str, str], ...] = field(default=())
    """Number, kind of question, question and answer."""


def read_pair_questions(data: Path) -> list[PairQuestion]:
    """Reads all sets that are somewhere below `data`. Raises `MalformedSource` for none."""
    found = [*medquad_questions(data), *bioasq_questions(data), *pubmedqa_questions(data)]
    if not found:
        wanted = ", ".join((_MEDQUAD_FILE, *BIOASQ_FILES, *PUBMEDQA_FILES))
        raise MalformedSource(f"{data} holds none of {wanted}", fix="name their folder with --data")
    return found


def find_data_file(data: Path, name: str) -> Path | None:
    """The file of this name below a folder; the first by path where there are several."""
    return next(iter(sorted(data.rglob(name))), None)


def read_medquad_pages(data: Path) -> Iterator[MedquadPage]:
    """Pages with answers, from the archive as published."""
    path = find_data_file(data, _MEDQUAD_FILE)
    if path is None:
        return
    with tarfile.open(path) as packed:
        for member in packed:
            stream = packed.extractfile(member) if member.name.endswith(".xml") else None
            if stream is None:
                continue
            for page in iterate_elements(cast(BinaryIO, stream), member.name, ("Document",)):
                if (read := _read_page(page)).pairs:
                    yield read


def _read_page(page: etree._Element) -> MedquadPage:
    pairs = []
    for number, pair in enumerate(page.iter("QAPair"), 1):
        question = pair.find("Question")
        answer = one_line(raw_text(pair.find("Answer")))
        if question is not None and answer and (asked := text_of(question)):
            kind = clean_text(question.get("qtype") or "")
            pairs.append((pair.get("pid") or str(number), kind, asked, answer))
    id = f"{page.get('source')}_{page.get('id')}"
    return MedquadPage(id, text_of(page.find("Focus")), tuple(pairs))


def medquad_questions(data: Path) -> list[PairQuestion]:
    """One question per pair; pages that LiveQA's judgements name are held out."""
    judged = judged_pages(data)
    return [
        PairQuestion(
            f"{MEDQUAD}:{page.id}_{number}",
            asked,
            MEDQUAD,
            (f"{MEDQUAD}:{page.focus.casefold()}", f"{MEDQUAD}:{page.id}"),
            (CandidateText(answer, page.focus),),
            tuple(
                CandidateText(other, page.focus, "same page")
                for n, _, theirs, other in page.pairs
                # Some pages ask one question several times, each time with another answer.
                if n != number and other != answer and theirs.casefold() != asked.casefold()
            ),
            kind,
            page.id in judged,
        )
        for page in read_medquad_pages(data)
        for number, kind, asked, answer in page.pairs
    ]


def judged_pages(data: Path) -> frozenset[str]:
    """Pages whose answers were judged for LiveQA, which only measures."""
    path = find_data_file(data, _QRELS_FILE)
    if path is None:
        return frozenset()
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(line.split()[-1].partition("_Sec")[0] for line in lines if line.strip())


def bioasq_questions(data: Path) -> list[PairQuestion]:
    """Questions of all types with their gold snippets."""
    found = []
    for path in filter(None, (find_data_file(data, name) for name in BIOASQ_FILES)):
        for row in json_records(path, "questions"):
            snippets: Sequence[Mapping[str, Any]] = row.data.get("snippets") or ()
            right = dict.fromkeys(one_line(str(one.get("text") or "")) for one in snippets)
            addresses = dict.fromkeys(str(one.get("document") or "") for one in snippets)
            documents = tuple(f"PMID:{url.rpartition('/')[2]}" for url in addresses)
            texts = tuple(CandidateText(text) for text in right if len(text) >= 30)
            if texts:
                id, kind = f"{BIOASQ}:{row.text_of('id')}", row.text_of("type")
                asked = one_line(row.text_of("body"))
                said = row.texts_of("exact_answer") if kind == "yesno" else ()
                found.append(
                    PairQuestion(
                        id,
                        asked,
                        BIOASQ,
                        documents,
                        texts,
                        kind=kind,
                        verdict=said[0].lower() if said else "",
                    )
                )
    return found


def pubmedqa_questions(data: Path) -> list[PairQuestion]:
    """Questions with the authors' conclusion; the official test questions are held out."""
    found = []
    for name, held_out in PUBMEDQA_FILES.items():
        if (path := find_data_file(data, name)) is None:
            continue
        for pmid, record in read_json(path).items():
            conclusion = one_line(str(record.get("LONG_ANSWER") or ""))
            if not conclusion:
                continue
            sections = zip(record["LABELS"], record["CONTEXTS"], strict=True)
            wrong = tuple(
                CandidateText(one_line(text), "", "said before the results")
                for label, text in sections
                if label.casefold().startswith(_UNANSWERING)
            )
            right = (CandidateText(conclusion),)
            id, asked = f"{PUBMEDQA}:{pmid}", one_line(record["QUESTION"])
            documents = (f"PMID:{pmid}",)
            kind = str(record.get("final_decision") or "")
            found.append(
                PairQuestion(
                    id, asked, PUBMEDQA, documents, right, wrong, kind, held_out, verdict=kind
                )
            )
    return found
