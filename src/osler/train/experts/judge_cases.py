"""Questions with sentences that were read and labelled, as the judge is trained on them.

Labels made for Osler name passages and places in them, not texts: `judge_labels*.jsonl` of the
benchmarks holds questions and places, and the texts are read from the corpora as published. Beside
them stand the sets of `pair_questions` and the spans of COVID-QA.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osler.errors import MalformedSource
from osler.evaluate.datasets.base import read_json
from osler.kb.base import KnowledgeBase
from osler.retrieve.experts.judge import JudgedText
from osler.text import one_line, split_sentences
from osler.train.experts.pair_questions import (
    CandidateText,
    PairQuestion,
    find_data_file,
)
from osler.train.experts.splits import DIGITS, Part, hash_of
from osler.types import Passage

LABELLED, SEARCHED, COVIDQA = "labelled", "searched", "covid-qa"
"""Labels of sentences of the passage that a question was written for, of what a search found, and
spans."""
UNLABELLED = "unlabelled"
"""What a search found for questions that nobody labelled: a teacher alone says what it is worth."""
CORPORA: Mapping[str, tuple[str, ...]] = {
    "web": ("MedQuAD_xml.tar.gz",),
    "research": ("bioasq_snippets.jsonl", "pubmedqa_contexts.jsonl"),
    "book": ("pharmacology.collection.xml", "openstax_nursing_cnxml.tar.gz"),
    "guideline": ("ngc_guidelines_meditron_schema.jsonl.gz",),
}
"""Source → files of the corpora in whose passages labels were made."""
PARTLY = 0.5
"""What a sentence counts that answers with others."""
SHORTEST = 30
"""Characters of a sentence that may be quoted."""
_OTHERS = 12
"""Wrong sentences of a question that are kept of its own page."""


@dataclass(frozen=True, slots=True)
class JudgedCase:
    """A question, and sentences with what they are worth as its answer."""

    question: str
    source: str
    texts: tuple[JudgedText, ...]
    worth: tuple[float, ...]
    """1 = answers, 0.5 = partly, 0 = does not; empty where nobody labelled them."""
    document: str = ""
    """What its right texts come from, by which a split divides."""
    kind: str = ""
    """The set's own kind of question: "treatment", "factoid"."""
    taught: tuple[float, ...] = ()
    """A teacher's logits that each text answers; empty without a teacher."""

    def places_worth(self, least: float, most: float) -> list[int]:
        """The places of the texts whose worth lies within these bounds."""
        return [at for at, worth in enumerate(self.worth) if least <= worth <= most]

    def texts_worth(self, least: float, most: float) -> list[JudgedText]:
        """The texts whose worth lies within these bounds."""
        return [self.texts[at] for at in self.places_worth(least, most)]


def open_texts(data: Path, work: Path) -> KnowledgeBase:
    """The corpora as passages, without vectors; made in `work` where it is not there.

    Raises `MalformedSource` where a corpus is not below `data`.
    """
    path = work / "texts"
    if not path.is_dir():
        draft = work / "texts.partial"
        with KnowledgeBase.create(draft) as kb:
            add_corpora(kb, data)
        draft.rename(path)
    return KnowledgeBase.open(path)


def add_corpora(kb: KnowledgeBase, data: Path) -> None:
    """Adds the corpora to a knowledge base. Raises `MalformedSource` where one is not there."""
    for source, names in CORPORA.items():
        kb.add([_corpus_file(data, name) for name in names], source=source)


def _corpus_file(data: Path, name: str) -> Path:
    if (path := find_data_file(data, name)) is None:
        raise MalformedSource(f"{data} holds no {name}", fix="name its folder with --data")
    return path


def text_at(passage: Passage, start: int, end: int) -> JudgedText:
    """The sentence at a place under its heading, between its neighbours."""
    spans = split_sentences(passage.text)
    before = next((span for span in reversed(spans) if span[1] <= start), None)
    after = next((span for span in spans if span[0] >= end), None)
    return JudgedText(
        passage.text[start:end],
        passage.heading,
        passage.text[slice(*before)] if before else "",
        passage.text[slice(*after)] if after else "",
    )


def read_labels(
    path: Path, kb: KnowledgeBase, part: str = "train", data: Path | None = None
) -> list[JudgedCase]:
    """The labelled questions of a part, with their texts.

    A question of a published set stands there as a digest, and is read from the set in `data`.
    Raises `MalformedSource` where a text is not what was labelled, or a question is not there.
    """
    cases = []
    published = published_questions(data) if data else {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        row = json.loads(line)
        if row["part"] != part:
            continue
        asked = row.get("question") or published.get(row["digest"])
        if asked is None:
            raise MalformedSource(
                f"{path.name}:{number}: its question is in no set below the data",
                fix="name the folder with K-QA and MeQSum",
            )
        place = f"{path.name}:{number}"
        texts = [_labelled_text(kb, row["passages"], one, place) for one in row["texts"]]
        worth = tuple(float(one[-1]) for one in row["texts"])
        source = SEARCHED if row["made"].startswith(SEARCHED) else LABELLED
        cases.append(JudgedCase(asked, source, tuple(texts), worth, row["document"]))
    return cases


def published_questions(data: Path) -> dict[str, str]:
    """Questions of K-QA and of MeQSum that nobody answered there, by their digest."""
    found = {}
    for name, key in (("questions.jsonl", "Question"), ("meqsum.jsonl", "question")):
        for path in sorted(data.rglob(name)):
            for line in path.read_text(encoding="utf-8").splitlines():
                if asked := json.loads(line).get(key):
                    found[digest_of(asked)] = asked
    return found


def _labelled_text(
    kb: KnowledgeBase, passages: Sequence[str], label: Sequence[Any], place: str
) -> JudgedText:
    """`label`: number of the passage, start, end, digits of the digest, and what it is worth."""
    at, start, end, digest, _ = label
    found = text_at(kb.get(passages[at]), start, end)
    if not digest_of(found.sentence).startswith(digest):
        raise MalformedSource(
            f"{place}: {passages[at]} has another text than was labelled",
            fix="use the corpora as they were published",
        )
    return found


def digest_of(sentence: str) -> str:
    """The first digits of a sentence's SHA-256."""
    return hashlib.sha256(sentence.encode()).hexdigest()[:12]


def pair_cases(questions: Sequence[PairQuestion], seed: int = 0) -> list[JudgedCase]:
    """The sets of `pair_questions`: an answer's first sentences against those of other answers.

    On a page of MedQuAD the kind of question is the heading, as where its pages are read.
    """
    kinds: dict[str, list[PairQuestion]] = {}
    for one in questions:
        kinds.setdefault(f"{one.source} {one.kind}", []).append(one)
    chance = random.Random(seed)
    return [_pair_case(one, kinds[f"{one.source} {one.kind}"], chance) for one in questions]


def _pair_case(
    one: PairQuestion, alike: Sequence[PairQuestion], chance: random.Random
) -> JudgedCase:
    right = [text for answer in one.right[:4] for text in _sentences(answer, one.text)[:2]]
    wrong = [text for other in one.wrong for text in _sentences(other, "")[:3]]
    others = [other for other in chance.sample(alike, min(3, len(alike))) if other.id != one.id]
    wrong += [
        text
        for other in others
        if set(other.documents).isdisjoint(one.documents)
        for text in _sentences(other.right[0], other.text)[:2]
    ]
    wrong = chance.sample(wrong, min(_OTHERS, len(wrong)))
    worth = (1.0,) * len(right) + (0.0,) * len(wrong)
    return JudgedCase(one.text, one.source, (*right, *wrong), worth, one.documents[0], one.kind)


def _sentences(candidate: CandidateText, asked: str) -> list[JudgedText]:
    """Sentences of an answer under the page's subject and what was asked."""
    text = one_line(candidate.text)
    heading = " > ".join(filter(None, (candidate.title, asked if candidate.title else "")))
    spans = split_sentences(text)
    found = []
    for number, (start, end) in enumerate(spans):
        if end - start < SHORTEST or text[:end].endswith("?"):
            continue
        before = text[slice(*spans[number - 1])] if number else ""
        after = text[slice(*spans[number + 1])] if number + 1 < len(spans) else ""
        found.append(JudgedText(text[start:end], heading, before, after))
    return found


def covid_cases(data: Path) -> Iterator[JudgedCase]:
    """COVID-QA: the sentence that holds the answer's span against others of its article."""
    path = find_data_file(data, "covid_qa.json")
    for article in read_json(path)["data"] if path else ():
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            spans = [one for one in split_sentences(text) if one[1] - one[0] >= SHORTEST]
            title = one_line(text[:200].strip().split("\n")[0])
            for asked in paragraph["qas"]:
                yield from _span_case(asked, str(paragraph["document_id"]), text, spans, title)


def _span_case(
    asked: Mapping[str, Any],
    document: str,
    text: str,
    spans: Sequence[tuple[int, int]],
    title: str,
) -> Iterator[JudgedCase]:
    if not asked["answers"]:
        return
    at = asked["answers"][0]["answer_start"]
    gold = next((n for n, (start, end) in enumerate(spans) if start <= at < end), None)
    if gold is None:
        return
    chance = random.Random(f"{asked['id']}")
    near = [n for n in range(max(0, gold - 3), min(len(spans), gold + 4)) if abs(n - gold) > 1]
    far = [n for n in chance.sample(range(len(spans)), min(8, len(spans))) if abs(n - gold) > 1]
    chosen = [gold, *dict.fromkeys([*near, *far])]
    texts = tuple(_article_text(text, spans, n, title) for n in chosen)
    worth = (1.0, *(0.0 for _ in chosen[1:]))
    yield JudgedCase(one_line(asked["question"]), COVIDQA, texts, worth, f"covid-qa:{document}")


def _article_text(
    text: str, spans: Sequence[tuple[int, int]], number: int, title: str
) -> JudgedText:
    def at(n: int) -> str:
        return text[slice(*spans[n])] if 0 <= n < len(spans) else ""

    return JudgedText(at(number), title, at(number - 1), at(number + 1))


def part_of_document(document: str) -> Part:
    """The part of a document that the split does not list: by its hash."""
    lot = int(hash_of(document), 16) / 16**DIGITS
    return "test" if lot < 0.3 else "dev" if lot < 0.4 else "train"
