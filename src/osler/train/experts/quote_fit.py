"""What decides which sentences `answers` quotes: what each is about, and whether it answers.

What a sentence is about is learnt from the kinds of MedQuAD's questions and from the sections of
PubMedQA's abstracts, on the train part. Whether it answers is learnt from sentences that searches
found for questions of the dev part and that were read by hand (`quote_labels.csv`: ids, places
and labels). The labels of whole sections are worse judges: area .78, by hand .87.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from osler.answer.statements import states_something
from osler.llm.transformers.hub import import_extra
from osler.retrieve.experts.answering import QUOTED, TextPair, quote_rows
from osler.retrieve.experts.aspects import BUCKETS, NAMES, AspectModel, hash_words
from osler.retrieve.naming import telling_words
from osler.train.experts.linear import fit_linear, tensors_of
from osler.train.experts.pair_batches import sentences_of
from osler.train.experts.pair_questions import (
    MEDQUAD,
    PUBMEDQA,
    PUBMEDQA_FILES,
    PairQuestion,
    find_data_file,
)
from osler.train.experts.searches import read_documents, read_searches

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MERGED = {"genetic changes": "causes"}
_SECTIONS = {
    "aim": r"background|objective|aim|purpose|introduction|context|rationale|hypothes|stud",
    "method": r".*(?:method|design|setting|patients|participants|material|subjects|measure)",
    "finding": r".*(?:result|finding|conclu)",
}
_PENALTY = 10.0
_ROUNDS = 80
_RIDGE = 10.0
"""Inverse and plain strength of the two fits' ridges."""


@dataclass(frozen=True, slots=True)
class AspectSentence:
    """A sentence of the train part with what it is about."""

    text: str
    aspect: str
    question: PairQuestion


@dataclass(frozen=True, slots=True)
class LabelledQuote:
    """A sentence that was found for a question, with its passage, read by hand."""

    question: str
    text: TextPair
    answers: bool


def fit_quotes(
    learnt: Sequence[PairQuestion],
    labelled: Sequence[LabelledQuote],
    data: Path,
    score: Callable[[str, Sequence[TextPair]], Sequence[float]],
) -> dict[str, NDArray[Any]]:
    """The tensors of both models; `score` gives the pair model's logits."""
    packed = fit_aspects([*read_aspects(learnt, data)])
    aspects = AspectModel.of_tensors(packed)
    rows = [
        quote_rows(
            one.question,
            score(one.question, [one.text]),
            score(one.question, [one.text.passage]),
            [one.text],
            [float(aspects.measure_agreement(one.question, [one.text.text])[0])],
        )
        for one in labelled
    ]
    model = fit_linear(
        np.vstack(rows), [int(one.answers) for one in labelled], count=1, ridge=_RIDGE
    )
    return {QUOTED + name: one for name, one in (packed | tensors_of(model)).items()}


def read_aspects(learnt: Sequence[PairQuestion], data: Path) -> Iterator[AspectSentence]:
    """Sentences of answers by the kind of their question, and of abstracts by their section."""
    sections = _read_sections(data)
    seen: set[tuple[str, str]] = set()
    for one in learnt:
        kind = _MERGED.get(one.kind, one.kind)
        if one.source == MEDQUAD and kind in NAMES:
            found = [(text, kind) for text in _stating_sentences(one.right[0].text)]
        elif one.source == PUBMEDQA:
            found = [
                (text, aspect)
                for aspect, section in sections.get(one.id.partition(":")[2], ())
                for text in _stating_sentences(section)
            ]
        else:
            continue
        for pair in found:
            if pair not in seen:
                seen.add(pair)
                yield AspectSentence(*pair, one)


def _stating_sentences(text: str) -> list[str]:
    return [one for one in sentences_of(text) if states_something(one)]


def _read_sections(data: Path) -> Mapping[str, list[tuple[str, str]]]:
    """Of each abstract of PubMedQA its sections by aspect, the conclusion among them."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name in PUBMEDQA_FILES:
        path = find_data_file(data, name)
        for pmid, row in json.loads(path.read_text(encoding="utf-8")).items() if path else ():
            named = [
                (next((n for n, like in _SECTIONS.items() if re.match(like, label.lower())), ""), t)
                for label, t in zip(row["LABELS"], row["CONTEXTS"], strict=True)
            ]
            found[pmid] = [one for one in named if one[0]] + [("finding", row["LONG_ANSWER"])]
    return found


def fit_aspects(sentences: Sequence[AspectSentence]) -> dict[str, NDArray[Any]]:
    """A softmax regression, its weights in bytes; aspects are as frequent as each other."""
    linear = import_extra("sklearn.linear_model")
    sparse = import_extra("scipy.sparse")
    subjects = {one.question.id: frozenset(telling_words(one.question.text)) for one in sentences}
    places = [hash_words(one.text, subjects[one.question.id]) for one in sentences]
    counts = Counter(one.aspect for one in sentences)
    of_question = Counter(one.question.id for one in sentences)
    starts = np.cumsum([0, *map(len, places)])
    values = np.repeat([1 / max(1, len(own)) ** 0.5 for own in places], np.diff(starts))
    rows = sparse.csr_matrix((values, np.concatenate(places), starts), shape=(len(places), BUCKETS))
    weights = np.array(
        [(counts[one.aspect] * of_question[one.question.id]) ** -0.5 for one in sentences]
    )
    model = linear.LogisticRegression(C=_PENALTY, max_iter=_ROUNDS)
    model.fit(rows, [one.aspect for one in sentences], sample_weight=weights / weights.mean())
    found, start = np.zeros((BUCKETS, len(NAMES))), np.full(len(NAMES), -9.0)
    for at, name in enumerate(model.classes_):
        column = NAMES.index(name)
        found[:, column] = model.coef_[at]
        # Half of what frequency says is in the weights of the rows.
        start[column] = model.intercept_[at] - 0.5 * np.log(counts[name])
    step = np.maximum(np.abs(found).max(0), 1e-9) / 127
    return {
        "words": (np.rint(found / step) + 128).astype(np.uint8),
        "step": step.astype(np.float32),
        "start": (start - start[start > -9].mean()).astype(np.float32),
    }


def read_labels(data: Path) -> list[LabelledQuote]:
    """The labelled sentences whose questions and documents are below `data`."""
    questions = read_searches(data)
    asked, documents = {one.id: one.text for one in questions}, read_documents(data, questions)
    text = files("osler.train.experts").joinpath("quote_labels.csv").read_text(encoding="utf-8")
    found = []
    for row in csv.DictReader(io.StringIO(text)):
        if row["question"] not in asked or row["document"] not in documents:
            continue
        title, whole = documents[row["document"]]
        sentence, lead = (
            whole[slice(*map(int, row[name].split("-")))] for name in ("sentence", "lead")
        )
        pair = TextPair(sentence, title, lead)
        found.append(LabelledQuote(asked[row["question"]], pair, row["answers"] == "1"))
    return found
