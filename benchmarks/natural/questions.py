"""The sets of natural questions, with what makes a quote right.

Plain questions have a key: groups of patterns that a quote must match. The others have a gold text:
a quote is right that stands in it, or, for spans, that holds the sentence of the span.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from natural.filed import find_right_sections, read_filed_answers, read_filed_drugs
from natural.labels import NO_FIELD, read_drugs, read_questions
from natural.published import (
    DIGITS,
    SearchQuestion,
    document_name,
    find_data_file,
    hash_of,
    part_of_document,
    read_searches,
    read_split,
)
from osler.errors import MalformedSource
from osler.kb.base import KnowledgeBase
from osler.sources.formats.labels import heading_of
from osler.text import one_line, split_sentences
from osler.types import Language, Passage
from osler_lab.evaluate.datasets.base import hash_id, read_json
from osler_lab.evaluate.datasets.longform import medication_rows

Half = Literal["dev", "seen", "test"]
"""`seen`: plain questions whose figures were looked at more than once; other sets have none."""
PLAIN_FOLDER = "plain"
SPLIT_FILE = "../research/experts/split.json"
"""From the folder of the benchmarks."""
_LONE_NAME = re.compile(r"[A-Za-z][A-Za-z' -]{6,40}")
_ABSENT = 120
"""Absent diseases of a half."""
_ABSENT_FORMS = (
    "What are the treatments for {} ?",
    "how do i know if i have {}",
    "What causes {}?",
    "Is {} inherited?",
)
_ABSENT_IN_TWO = (
    "Hello. What can be done against {}? Thank you.",
    "My son has {}. What treatment is there?",
    "I was told that I have {}. How long will it last?",
    "My mother is 70 and has {}. What are the symptoms?",
)
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

    def is_right(self, quote: str, places: Collection[str] = ()) -> bool:
        """Whether a quote answers the question by its key, its gold text or the place it stands
        at (`places_of`)."""
        said = fold(quote)
        if any(said in text or text in said for text in map(fold, self.gold)):
            return True
        if self.key:
            groups = (
                any(re.search(one, quote, re.IGNORECASE) for one in group) for group in self.key
            )
            return all(groups)
        return not self.gold and not self.documents.isdisjoint(places)


@dataclass(frozen=True, slots=True)
class NaturalPlaces:
    """Folders: the published data, the benchmarks, and the homes of the bases."""

    data: Path
    benchmarks: Path
    homes: Path


QuestionReaderOf: TypeAlias = Callable[[NaturalPlaces, Half], list[NaturalQuestion]]
"""The questions of a half."""


@dataclass(frozen=True, slots=True)
class NaturalSet:
    """A set of questions and the name of the base that they are asked of."""

    name: str
    base: str
    about: str
    read: QuestionReaderOf


def fold(text: str) -> str:
    """A text in lower case on one line, without marks at its ends, so that quotes compare."""
    return one_line(text).casefold().strip(" .,;:。；：")


def places_of(passage: Passage) -> tuple[str, str]:
    """Where a passage stands, as gold documents are named: its document, and its section there."""
    name = document_name(passage)
    return name, _name_section(name, passage.heading.rpartition(" > ")[2])


def _name_section(document: str, title: str) -> str:
    return f"{document} > {fold(title)}"


def _read_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    if not path.is_file():
        raise MalformedSource(f"{path} is not there", fix="name the folder with --benchmarks")
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise MalformedSource(f"{path}:{number}: no JSON: {error}") from error


def read_plain(prefix: str, base: str = "") -> QuestionReaderOf:
    """A reader of the plain questions whose files begin so; `base` keeps those of one corpus."""

    def read(at: NaturalPlaces, half: Half) -> list[NaturalQuestion]:
        folder = at.benchmarks / PLAIN_FOLDER
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
    early = int(hash_of(id), 16) < _DEV * float(16**DIGITS)
    return half != "seen" and early == (half == "dev")


def read_kqa(at: NaturalPlaces, half: Half) -> list[NaturalQuestion]:
    """K-QA: patients' questions with a physician's answer."""
    return [
        NaturalQuestion(f"kqa:{id}", question, gold=(answer,))
        for id, question, answer in kqa_answers(at.data)
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


def read_medication(at: NaturalPlaces, half: Half) -> list[NaturalQuestion]:
    """MedicationQA: consumers' questions about drugs, each with an answer from a page."""
    return [
        NaturalQuestion(f"medicationqa:{id}", question, gold=(answer,))
        for id, question, answer, _ in medication_answers(at.data)
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


def read_covid(at: NaturalPlaces, half: Half) -> list[NaturalQuestion]:
    """COVID-QA: right is the sentence that holds the answer's span; articles divide the halves."""
    path = find_data_file(at.data, "covid_qa.json")
    found = []
    for article in read_json(path)["data"] if path else ():
        for paragraph in article["paragraphs"]:
            if part_of_document(f"covid-qa:{paragraph['document_id']}") != half:
                continue
            spans = split_sentences(paragraph["context"])
            for asked in paragraph["qas"]:
                for answer in asked["answers"][:1]:
                    start = answer["answer_start"]
                    gold = next((paragraph["context"][a:b] for a, b in spans if a <= start < b), "")
                    if gold:
                        id, text = f"covid:{asked['id']}", one_line(asked["question"])
                        found.append(NaturalQuestion(id, text, gold=(gold,)))
    return found


def read_health_search(at: NaturalPlaces, half: Half) -> list[NaturalQuestion]:
    """HealthSearchQA: what people search for, without gold answers."""
    path = find_data_file(at.data / "A_questions" / "healthsearchqa", "questions.jsonl")
    rows = list(_read_lines(path)) if path else []
    ids = [(f"healthsearch:{hash_id(row['question'])}", row["question"]) for row in rows]
    return [NaturalQuestion(id, text, answerable=None) for id, text in ids if in_half(id, half)]


def read_absent(
    forms: Sequence[str],
) -> QuestionReaderOf:
    """Questions about diseases of the Disease Ontology that no text of the open corpora names."""

    def read(at: NaturalPlaces, half: Half) -> list[NaturalQuestion]:
        path = find_data_file(at.data, "doid.obo")
        terms = path.read_text(encoding="utf-8").split("[Term]") if path else []
        names = [found for found in map(_names_of_term, terms) if found]
        own = [one for one in names if in_half(f"absent:{one[0]}", half)]
        with KnowledgeBase.open(at.homes / "open" / "kb") as kb:
            read = (p.text for s in kb.sources for d in kb.read_documents(s) for p in d)
            texts = fold(" ".join(read))
        absent = [one[0] for one in own if not any(name.casefold() in texts for name in one)]
        chosen = absent[:: max(1, len(absent) // _ABSENT)][:_ABSENT]
        return [
            NaturalQuestion(
                f"absent:{name}", forms[number % len(forms)].format(name), answerable=False
            )
            for number, name in enumerate(chosen)
        ]

    return read


def _names_of_term(term: str) -> list[str]:
    """The name and exact synonyms of a disease that is named as people name one; else none."""
    name = re.search(r"^name: (.+)$", term, re.MULTILINE)
    if name is None or "is_obsolete: true" in term or not _LONE_NAME.fullmatch(name[1]):
        return []
    return [name[1], *re.findall(r'^synonym: "(.+?)" EXACT', term, re.MULTILINE)]


def read_searched(source: str) -> QuestionReaderOf:
    """Questions of MedQuAD, BioASQ or PubMedQA with their gold documents, by the split of the
    experts."""

    def read(at: NaturalPlaces, half: Half) -> list[NaturalQuestion]:
        split = read_split(at.benchmarks / SPLIT_FILE)
        own = [one for one in read_searches(at.data) if one.source == source]
        return [
            NaturalQuestion(one.id, one.text, documents=frozenset(_gold_places(one)))
            for one in (split.choose_items(own, half) if half != "seen" else ())
        ]

    return read


def _gold_places(one: SearchQuestion) -> Iterator[str]:
    """A section of a page of MedQuAD is known by the question that stands over it."""
    for name in one.gold:
        page, section, _ = name.rpartition("_Sec")
        yield _name_section(page, one.text) if section else name


def read_labels(at: NaturalPlaces, half: Half) -> list[NaturalQuestion]:
    """Consumers' questions over labels; right is a section of the drug's own label."""
    ids = {drug.ingredient: drug.set_id for drug in read_drugs()}
    return [
        NaturalQuestion(
            one.id,
            one.text,
            documents=frozenset(
                _name_section(f"SPL:{ids[drug]} version 1", heading)
                for drug, field in one.right
                for heading in _label_headings(field)
            ),
        )
        for one in read_questions()
        if one.half == half
    ]


def read_filed(at: NaturalPlaces, half: Half) -> list[NaturalQuestion]:
    """MedicationQA's questions whose answer is a label; right is such a section of the drug's."""
    answers = list(read_filed_answers(at.data))
    drugs = read_filed_drugs(answers)
    return [
        NaturalQuestion(
            f"medicationqa:{one.id}",
            one.question,
            documents=frozenset(
                _name_section(f"SPL:{set_id} version 1", heading)
                for set_id, heading in find_right_sections(one, drugs)
            ),
        )
        for one in answers
        if one.is_label and in_half(f"medicationqa:{one.id}", half)
    ]


def _label_headings(field: str) -> Iterator[str]:
    """Where a section stands: openFDA has no field for some of those of special populations."""
    yield heading_of(field)
    if field in NO_FIELD:
        yield heading_of("use_in_specific_populations")


SETS: Mapping[str, NaturalSet] = {
    one.name: one
    for one in (
        NaturalSet("plain", "sample", "plain questions, English, sample", read_plain("sample-en")),
        NaturalSet(
            "plain-zh", "sample", "plain questions, Chinese, sample", read_plain("sample-zh")
        ),
        NaturalSet(
            "elsewhere", "sample", "what no medical text answers", read_plain("elsewhere-en")
        ),
        NaturalSet("plain-open", "open", "plain questions, open corpora", read_plain("open-en")),
        NaturalSet(
            "plain-drugs", "open", "of these, the textbooks", read_plain("open-en", "textbooks")
        ),
        NaturalSet("medicationqa", "consumer", "consumers' drug questions", read_medication),
        NaturalSet("kqa", "consumer", "patients' questions, physicians' answers", read_kqa),
        NaturalSet("covidqa", "covid", "experts' questions over articles", read_covid),
        NaturalSet("labels", "labels", "consumers' questions over drug labels", read_labels),
        NaturalSet("filed", "filed", "consumers' questions that labels answer", read_filed),
        NaturalSet("healthsearchqa", "open", "what people search for", read_health_search),
        NaturalSet("absent", "open", "diseases that no text names", read_absent(_ABSENT_FORMS)),
        NaturalSet("absent-two", "open", "these in two sentences", read_absent(_ABSENT_IN_TWO)),
        NaturalSet("medquad", "open", "MedQuAD's own wording", read_searched("medquad")),
        NaturalSet("bioasq", "open", "BioASQ's own wording", read_searched("bioasq")),
    )
}
"""By name, in the order of the tables."""
