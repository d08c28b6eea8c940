"""What the experts learn from: published questions, sentences that were labelled, and searches.

| Set | Answers | Does not answer |
|---|---|---|
| MedQuAD (CC BY 4.0) | the answer to the very question | the other answers of its page |
| BioASQ (CC BY 2.5) | a gold snippet | |
| PubMedQA (MIT) | the authors' conclusion | background and methods of the abstract |
| COVID-QA (Apache-2.0) | the sentence of the span | other sentences of the article |
| `judge_labels*.jsonl` | as it was read | as it was read |
| `questions_unlabelled.txt` | a teacher says | |

The labels name passages and places in them, not texts: these are read from the corpora.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from natural.published import (
    BIOASQ,
    BIOASQ_FILES,
    MEDQUAD,
    PUBMEDQA,
    PUBMEDQA_FILES,
    DataSplit,
    Part,
    add_corpora,
    bioasq_snippets,
    document_name,
    find_data_file,
    find_data_files,
    hash_of,
    part_of_document,
    read_medquad_pages,
    read_split,
)

from osler.errors import MalformedSource
from osler.kb.base import KnowledgeBase
from osler.retrieve import content_terms
from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts.judge import JudgedText
from osler.retrieve.hybrid import LexicalRetriever
from osler.text import one_line, split_sentences
from osler.types import Passage
from osler_lab.evaluate.datasets.base import json_records, read_json

HERE = Path(__file__).parent
SPLIT = HERE / "split.json"
LABELLED, SEARCHED, COVIDQA, UNLABELLED = "labelled", "searched", "covid-qa", "unlabelled"
"""Labels of sentences of the passage that a question was written for, of what a search found,
spans, and what a search found for questions that nobody labelled."""
_OWN = "texts CC BY 4.0 or free, questions and labels Apache-2.0"
LICENCES: Mapping[str, str] = {
    MEDQUAD: "CC BY 4.0",
    BIOASQ: "CC BY 2.5",
    PUBMEDQA: "MIT",
    COVIDQA: "Apache-2.0",
    **dict.fromkeys((LABELLED, SEARCHED, UNLABELLED), _OWN),
}
_SHORTEST, _OTHERS = 30, 12
"""Characters of a sentence that may be quoted; wrong sentences of a question that are kept."""
_SEARCHED, _PASSAGES, _TEXTS = 20, 10, 20
"""Passages that are searched for and read, and sentences kept, of an unlabelled question."""
_split = lru_cache(maxsize=64)(split_sentences)
# Sections of an abstract that say what was asked and done, not what was found.
_UNANSWERING = ("background", "method", "objective", "purpose", "design", "setting", "aim")


@dataclass(frozen=True, slots=True)
class PairQuestion:
    """A published question with texts that answer it and texts that do not."""

    id: str
    text: str
    documents: tuple[str, ...]
    right: tuple[str, ...]
    wrong: tuple[str, ...] = ()
    title: str = ""
    kind: str = ""
    """The set's own kind of question: "treatment", "factoid"; in PubMedQA the verdict."""
    verdict: str = ""
    """"yes", "no" or, in PubMedQA, "maybe"; empty where it asks for something else."""
    held_out: bool = False
    """Whether it must be tested on: the set's own test part, or judged for another test set."""

    @property
    def source(self) -> str:
        return self.id.partition(":")[0]


def read_pair_questions(data: Path) -> list[PairQuestion]:
    """Reads MedQuAD, BioASQ and PubMedQA from somewhere below `data`."""
    return [*_medquad_questions(data), *_bioasq_questions(data), *_pubmedqa_questions(data)]


def _medquad_questions(data: Path) -> Iterator[PairQuestion]:
    judged = judged_pages(data)
    for page in read_medquad_pages(data):
        for number, kind, asked, answer in page.pairs:
            # Some pages ask one question several times, each time with another answer.
            wrong = tuple(
                other
                for n, _, theirs, other in page.pairs
                if n != number and other != answer and theirs.casefold() != asked.casefold()
            )
            yield PairQuestion(
                f"{MEDQUAD}:{page.id}_{number}",
                asked,
                (f"{MEDQUAD}:{page.focus.casefold()}", f"{MEDQUAD}:{page.id}"),
                (answer,),
                wrong,
                page.focus,
                kind,
                held_out=page.id in judged,
            )


def judged_pages(data: Path) -> frozenset[str]:
    """Pages whose answers were judged for LiveQA, which only measures."""
    path = find_data_file(data, "qrels_LiveQAMed2017.txt")
    lines = path.read_text(encoding="utf-8").splitlines() if path else ()
    return frozenset(line.split()[-1].partition("_Sec")[0] for line in lines if line.strip())


def _bioasq_questions(data: Path) -> Iterator[PairQuestion]:
    for path in find_data_files(data, BIOASQ_FILES):
        for row in json_records(path, "questions"):
            texts, documents = bioasq_snippets(row.data)
            kind = row.text_of("type")
            said = row.texts_of("exact_answer") if kind == "yesno" else ()
            verdict = said[0].lower() if said else ""
            id, asked = f"{BIOASQ}:{row.text_of('id')}", one_line(row.text_of("body"))
            if texts:
                yield PairQuestion(id, asked, documents, texts, kind=kind, verdict=verdict)


def _pubmedqa_questions(data: Path) -> Iterator[PairQuestion]:
    for path in find_data_files(data, PUBMEDQA_FILES):
        for pmid, record in read_json(path).items():
            sections = zip(record["LABELS"], record["CONTEXTS"], strict=True)
            verdict = str(record.get("final_decision") or "")
            yield PairQuestion(
                f"{PUBMEDQA}:{pmid}",
                one_line(record["QUESTION"]),
                (f"PMID:{pmid}",),
                (one_line(record["LONG_ANSWER"]),),
                tuple(
                    one_line(text)
                    for label, text in sections
                    if label.casefold().startswith(_UNANSWERING)
                ),
                kind=verdict,
                verdict=verdict,
                held_out=path.name == PUBMEDQA_FILES[0],
            )


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A question, and sentences with what they are worth as its answer."""

    question: str
    source: str
    texts: tuple[JudgedText, ...]
    worth: tuple[float, ...]
    """1 = answers, 0.5 = partly, 0 = does not; empty where nobody labelled them."""
    document: str = ""
    kind: str = ""
    taught: tuple[float, ...] = ()
    """A teacher's logits that each text answers; empty without a teacher."""

    def places_worth(self, least: float, most: float) -> list[int]:
        """The places of the texts whose worth lies within these bounds."""
        return [at for at, worth in enumerate(self.worth) if least <= worth <= most]


def read_cases(data: Path, kb: KnowledgeBase, part: Part) -> list[JudgedCase]:
    """The labelled cases of a part of all sets. `kb`: `open_texts`."""
    chosen = read_split(SPLIT).choose_items(read_pair_questions(data), part)
    # A list of links is no answer: no quote should be one.
    cases = pair_cases([x for x in chosen if not x.right[0].startswith("These resources address")])
    cases += [one for one in covid_cases(data) if part_of_document(one.document) == part]
    for path in sorted(HERE.glob("judge_labels*.jsonl")):
        cases += read_labels(path, kb, part, data)
    return cases


def open_texts(data: Path, work: Path) -> KnowledgeBase:
    """The corpora as passages, without vectors; made in `work` where it is not there."""
    path, draft = work / "texts", work / "texts.partial"
    if not path.is_dir():
        with KnowledgeBase.create(draft) as kb:
            add_corpora(kb, data)
        draft.rename(path)
    return KnowledgeBase.open(path)


def pair_cases(questions: Sequence[PairQuestion], seed: int = 0) -> list[JudgedCase]:
    """An answer's first sentences against those of other answers, of its page and of its kind."""
    kinds: dict[str, list[PairQuestion]] = {}
    for one in questions:
        kinds.setdefault(f"{one.source} {one.kind}", []).append(one)
    chance = random.Random(seed)
    return [_pair_case(one, kinds[f"{one.source} {one.kind}"], chance) for one in questions]


def _pair_case(
    one: PairQuestion, alike: Sequence[PairQuestion], chance: random.Random
) -> JudgedCase:
    # On a page of MedQuAD the question is the heading, as where its pages are read.
    heading = f"{one.title} > {one.text}" if one.title else ""
    right = [text for answer in one.right[:4] for text in _read_sentences(answer, heading)[:2]]
    wrong = [text for other in one.wrong for text in _read_sentences(other, one.title)[:3]]
    for other in chance.sample(alike, min(3, len(alike))):
        if set(other.documents).isdisjoint(one.documents):
            its = f"{other.title} > {other.text}" if other.title else ""
            wrong += _read_sentences(other.right[0], its)[:2]
    wrong = chance.sample(wrong, min(_OTHERS, len(wrong)))
    worth = (1.0,) * len(right) + (0.0,) * len(wrong)
    return JudgedCase(one.text, one.source, (*right, *wrong), worth, one.documents[0], one.kind)


def _read_sentences(text: str, heading: str) -> list[JudgedText]:
    text = one_line(text)
    return [
        _text_in(text, at, heading)
        for at in _split(text)
        if at[1] - at[0] >= _SHORTEST and not text[: at[1]].endswith("?")
    ]


def _text_in(text: str, place: tuple[int, int], heading: str) -> JudgedText:
    """The sentence at a place under its heading, between its neighbours."""
    start, end = place
    spans = _split(text)
    before = next((span for span in reversed(spans) if span[1] <= start), (0, 0))
    after = next((span for span in spans if span[0] >= end), (0, 0))
    return JudgedText(text[start:end], heading, text[slice(*before)], text[slice(*after)])


def covid_cases(data: Path) -> Iterator[JudgedCase]:
    """COVID-QA: the sentence that holds the answer's span against others of its article."""
    path = find_data_file(data, "covid_qa.json")
    for article in read_json(path)["data"] if path else ():
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            spans = [one for one in _split(text) if one[1] - one[0] >= _SHORTEST]
            title = one_line(text[:200].strip().split("\n")[0])
            document = f"covid-qa:{paragraph['document_id']}"
            for asked in paragraph["qas"]:
                at = asked["answers"][0]["answer_start"] if asked["answers"] else -1
                gold = next((n for n, (start, end) in enumerate(spans) if start <= at < end), None)
                if gold is None:
                    continue
                chosen = [gold, *_choose_others(gold, len(spans), random.Random(f"{asked['id']}"))]
                texts = tuple(_text_in(text, spans[n], title) for n in chosen)
                worth = (1.0, *(0.0 for _ in chosen[1:]))
                yield JudgedCase(one_line(asked["question"]), COVIDQA, texts, worth, document)


def _choose_others(gold: int, count: int, chance: random.Random) -> list[int]:
    """Sentences near the gold one and anywhere, but for its neighbours."""
    near = range(max(0, gold - 3), min(count, gold + 4))
    far = chance.sample(range(count), min(8, count))
    return [n for n in dict.fromkeys((*near, *far)) if abs(n - gold) > 1]


def read_labels(path: Path, kb: KnowledgeBase, part: Part, data: Path) -> list[JudgedCase]:
    """The labelled questions of a part, with their texts.

    A question of a published set stands there as a digest, and is read from the set in `data`.
    Raises `MalformedSource` where a text is not what was labelled, or a question is not there.
    """
    cases, published = [], _published_questions(data)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(line)
        if row["part"] != part:
            continue
        place = f"{path.name}:{number}"
        asked = row.get("question") or published.get(row["digest"])
        if asked is None:
            raise MalformedSource(f"{place}: its question is in no K-QA or MeQSum below the data")
        texts = tuple(_labelled_text(kb, row["passages"], one, place) for one in row["texts"])
        worth = tuple(float(one[-1]) for one in row["texts"])
        source = SEARCHED if row["made"].startswith(SEARCHED) else LABELLED
        cases.append(JudgedCase(asked, source, texts, worth, row["document"]))
    return cases


def _published_questions(data: Path) -> dict[str, str]:
    """Questions of K-QA and of MeQSum that nobody answered there, by their digest."""
    rows = (
        json.loads(line)
        for name in ("questions.jsonl", "meqsum.jsonl")
        for path in sorted(data.rglob(name))
        for line in path.read_text(encoding="utf-8").splitlines()
    )
    asked = (row.get("Question") or row.get("question") for row in rows)
    return {digest_of(one): one for one in asked if one}


def digest_of(text: str) -> str:
    """The first digits of a text's SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _labelled_text(
    kb: KnowledgeBase, passages: Sequence[str], label: Sequence[Any], place: str
) -> JudgedText:
    """`label`: number of the passage, start, end, digits of the digest, and what it is worth."""
    at, start, end, digest, _ = label
    found = _text_of(kb.get(passages[at]), start, end)
    if not digest_of(found.sentence).startswith(digest):
        raise MalformedSource(f"{place}: {passages[at]} has another text than was labelled")
    return found


def _text_of(passage: Passage, start: int, end: int) -> JudgedText:
    return _text_in(passage.text, (start, end), passage.heading)


def read_unlabelled(asked: Sequence[str], kb: KnowledgeBase, split: DataSplit) -> list[JudgedCase]:
    """The questions with sentences that may answer them, none from a page of the test part."""
    found = asyncio.run(_search_questions(asked, kb, split))
    return [one for one in found if one.texts]


async def _search_questions(
    asked: Sequence[str], kb: KnowledgeBase, split: DataSplit
) -> list[JudgedCase]:
    reader = QuestionReader()
    search = LexicalRetriever(kb, reader=reader)
    cases = []
    for question in asked:
        hits = await search.search(question, k=_SEARCHED)
        passages = [one.passage for one in hits if not _is_held_out(one.passage, split)]
        rarity = kb.term_rarity(content_terms(reader.read(question).full))
        texts = _choose_sentences(passages[:_PASSAGES], rarity)
        document = f"question {digest_of(question)}"
        cases.append(JudgedCase(question, UNLABELLED, texts, (), document))
    return cases


def _is_held_out(passage: Passage, split: DataSplit) -> bool:
    name = document_name(passage)
    return "test" in {split.parts.get(hash_of(one)) for one in (name, f"{MEDQUAD}:{name}")}


def _choose_sentences(
    passages: Sequence[Passage], rarity: Mapping[str, float]
) -> tuple[JudgedText, ...]:
    """The sentences whose words tell most of the question's, under their headings."""
    found = [
        _text_of(passage, start, end)
        for passage in passages
        for start, end in _split(passage.text)
        if end - start >= _SHORTEST
    ]
    told = {
        text: sum(rarity.get(one, 0) for one in content_terms(f"{text.heading} {text.sentence}"))
        for text in found
    }
    return tuple(sorted(told, key=lambda text: -told[text])[:_TEXTS])
