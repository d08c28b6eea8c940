"""The sets of natural questions, with what makes a quote right.

Plain questions have a key: groups of patterns that a quote must match. The others have a gold text:
a quote is right that stands in it, or, for spans, that holds the sentence of the span.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from osler.errors import MalformedSource
from osler.evaluate.datasets.base import hash_id, read_json
from osler.evaluate.datasets.longform import medication_rows
from osler.text import one_line, split_sentences
from osler.train.experts.judge_cases import part_of_document
from osler.train.experts.pair_questions import find_data_file
from osler.train.experts.searches import read_searches
from osler.train.experts.splits import DIGITS, hash_of, read_split
from osler.types import Language

Half = Literal["dev", "test"]
PLAIN_FOLDER = "plain"
SPLIT_FILE = "experts/split.json"
_DEV = 0.35
"""Share of a published set that may be tuned on."""


@dataclass(frozen=True, slots=True)
class NaturalQuestion:
    """A question as it was typed, and what answers it."""

    id: str
    text: str
    language: Language = "en"
    answerable: bool | None = True
    """`None` where nobody said."""
    key: tuple[tuple[str, ...], ...] = ()
    """Groups of patterns, each of which must match."""
    gold: tuple[str, ...] = ()
    """Sentences that a right quote holds, or texts that it stands in."""
    documents: frozenset[str] = frozenset()
    """Names of documents; where given, a right quote is of one of them."""

    def is_right(self, quote: str, document: str = "") -> bool:
        """Whether a quote answers the question by its key, its gold text or its document."""
        said = fold(quote)
        if any(said in text or text in said for text in map(fold, self.gold)):
            return True
        if self.key:
            return all(
                any(re.search(one, quote, re.IGNORECASE) for one in group) for group in self.key
            )
        return not self.gold and document in self.documents


@dataclass(frozen=True, slots=True)
class NaturalSet:
    """A set of questions and the name of the base that they are asked of."""

    name: str
    base: str
    about: str
    read: Callable[[Path, Path, Half], list[NaturalQuestion]]
    """Folder of the data, folder of the benchmarks, half → the questions."""


def fold(text: str) -> str:
    """A text in lower case on one line, without marks at its ends, so that quotes compare."""
    return one_line(text).casefold().strip(" .,;:。；：")


def _read_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    if not path.is_file():
        raise MalformedSource(f"{path} is not there", fix="name the folder with --benchmarks")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise MalformedSource(f"{path}:{number}: no JSON: {error}") from error


def read_plain(prefix: str, base: str = "") -> Callable[[Path, Path, Half], list[NaturalQuestion]]:
    """A reader of the plain questions whose files begin so; `base` keeps those of one corpus."""

    def read(data: Path, benchmarks: Path, half: Half) -> list[NaturalQuestion]:
        folder = benchmarks / PLAIN_FOLDER
        files = sorted(folder.glob(f"{prefix}-*-{half}.jsonl"))
        if not files:
            raise MalformedSource(
                f"{folder} has no {prefix}-*-{half}.jsonl", fix="name its folder with --benchmarks"
            )
        rows = (row for path in files for row in _read_lines(path))
        return [_plain_question(row) for row in rows if base in ("", row.get("base"))]

    return read


def _plain_question(row: Mapping[str, Any]) -> NaturalQuestion:
    return NaturalQuestion(
        row["id"],
        row["text"],
        row["language"],
        row["answerable"],
        tuple(map(tuple, row.get("key") or ())),
        tuple(one["sentence"] for one in row.get("gold") or ()),
    )


def in_half(id: str, half: Half) -> bool:
    """Whether a question of a published set belongs to a half: by the hash of its id."""
    return (int(hash_of(id), 16) < _DEV * 16**DIGITS) == (half == "dev")


def read_kqa(data: Path, benchmarks: Path, half: Half) -> list[NaturalQuestion]:
    """K-QA: patients' questions with a physician's answer."""
    return [
        NaturalQuestion(f"kqa:{id}", question, gold=(answer,))
        for id, question, answer in kqa_answers(data)
        if in_half(f"kqa:{id}", half)
    ]


def kqa_answers(data: Path) -> list[tuple[str, str, str]]:
    """Id, question and answer of each answered question."""
    path = find_data_file(data, "questions_w_answers.jsonl")
    rows = _read_lines(path) if path else ()
    return [
        (hash_id(row["Question"]), row["Question"], one_line(row["Free_form_answer"]))
        for row in rows
    ]


def read_medication(data: Path, benchmarks: Path, half: Half) -> list[NaturalQuestion]:
    """MedicationQA: consumers' questions about drugs, each with an answer from a page."""
    return [
        NaturalQuestion(f"medicationqa:{id}", question, gold=(answer,))
        for id, question, answer, _ in medication_answers(data)
        if in_half(f"medicationqa:{id}", half)
    ]


def medication_answers(data: Path) -> list[tuple[str, str, str, str]]:
    """Id, question, answer and the heading of its page, of each row with an answer."""
    path = find_data_file(data, "MedInfo2019-QA-Medications.xlsx")
    found = []
    for row in medication_rows([path]) if path else ():
        text, answer = row.optional_text("Question"), row.optional_text("Answer")
        if text and len(answer) > 30:
            id = f"{hash_id(text)}-{row.number + 2}"
            found.append((id, text, one_line(answer), row.optional_text("Section Title")))
    return found


def read_covid(data: Path, benchmarks: Path, half: Half) -> list[NaturalQuestion]:
    """COVID-QA: right is the sentence that holds the answer's span; articles divide the halves."""
    path = find_data_file(data, "covid_qa.json")
    found = []
    for article in read_json(path)["data"] if path else ():
        for paragraph in article["paragraphs"]:
            if part_of_document(f"covid-qa:{paragraph['document_id']}") != half:
                continue
            spans = split_sentences(paragraph["context"])
            for asked in paragraph["qas"]:
                for answer in asked["answers"][:1]:
                    at = answer["answer_start"]
                    gold = next((paragraph["context"][a:b] for a, b in spans if a <= at < b), "")
                    if gold:
                        id, text = f"covid:{asked['id']}", one_line(asked["question"])
                        found.append(NaturalQuestion(id, text, gold=(gold,)))
    return found


def read_health_search(data: Path, benchmarks: Path, half: Half) -> list[NaturalQuestion]:
    """HealthSearchQA: what people search for; nobody said what answers."""
    path = find_data_file(data / "A_questions" / "healthsearchqa", "questions.jsonl")
    rows = list(_read_lines(path)) if path else []
    ids = [(f"healthsearch:{hash_id(row['question'])}", row["question"]) for row in rows]
    return [NaturalQuestion(id, text, answerable=None) for id, text in ids if in_half(id, half)]


def read_searched(source: str) -> Callable[[Path, Path, Half], list[NaturalQuestion]]:
    """Questions of MedQuAD, BioASQ or PubMedQA with their gold documents, by the split of the
    experts."""

    def read(data: Path, benchmarks: Path, half: Half) -> list[NaturalQuestion]:
        split = read_split(benchmarks / SPLIT_FILE)
        own = [one for one in read_searches(data) if one.source == source]
        return [
            NaturalQuestion(one.id, one.text, documents=one.gold)
            for one in split.choose_items(own, half)
        ]

    return read


SETS: Mapping[str, NaturalSet] = {
    one.name: one
    for one in (
        NaturalSet("plain", "sample", "plain questions, English, sample", read_plain("sample-en")),
        NaturalSet(
            "plain-zh", "sample", "plain questions, Chinese, sample", read_plain("sample-zh")
        ),
        NaturalSet("plain-open", "open", "plain questions, open corpora", read_plain("open-en")),
        NaturalSet(
            "plain-drugs", "open", "of these, the textbooks", read_plain("open-en", "textbooks")
        ),
        NaturalSet("medicationqa", "consumer", "consumers' drug questions", read_medication),
        NaturalSet("kqa", "consumer", "patients' questions, physicians' answers", read_kqa),
        NaturalSet("covidqa", "covid", "experts' questions over articles", read_covid),
        NaturalSet("healthsearchqa", "open", "what people search for", read_health_search),
        NaturalSet("medquad", "published", "MedQuAD's own wording", read_searched("medquad")),
        NaturalSet("bioasq", "published", "BioASQ", read_searched("bioasq")),
        NaturalSet("pubmedqa", "published", "PubMedQA", read_searched("pubmedqa")),
    )
}
"""By name, in the order of the tables."""
