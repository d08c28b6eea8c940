"""Open-domain and multi-hop questions: the seven sets of KAG-Thinker §4.1, in all their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from osler.evaluate.datasets.base import (
    APACHE,
    MIT,
    SHARE,
    DatasetRow,
    UnusableRow,
    family,
    hash_id,
    json_rows,
)
from osler.evaluate.sample import Gold, Sample
from osler.types import Question


def flashrag_sample(row: DatasetRow, task: str) -> Sample:
    """FlashRAG's layout: id, question, golden_answers[]. NQ, TriviaQA, PopQA, Bamboogle …"""
    metadata = row.data.get("metadata")
    details: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    support = (str(details["s_wiki_title"]),) if _has_key(details, "s_wiki_title") else ()
    tags = (("prop", str(details["prop"])),) if _has_key(details, "prop") else ()
    question = Question(row.text_of("id"), row.text_of("question"))
    return Sample(task, "short", question, Gold((), row.texts_of("golden_answers"), support), tags)


def hotpot_sample(row: DatasetRow, task: str) -> Sample:
    """Reads HotpotQA and 2Wiki as published: _id, answer, supporting_facts [[title, sentence]]."""
    facts = row.data.get("supporting_facts")
    titles = [str(fact[0]) for fact in facts if fact] if isinstance(facts, list) else []
    support = tuple(dict.fromkeys(titles))
    question = Question(row.text_of("_id", "id"), row.text_of("question"))
    tags = row.tags_of(type="type", level="level")
    return Sample(task, "short", question, Gold((), (row.text_of("answer"),), support), tags)


def musique_sample(row: DatasetRow, task: str) -> Sample:
    """Reads MuSiQue as published: aliases count as answers; paragraphs say which support them."""
    if row.data.get("answerable") is False:
        raise UnusableRow("not answerable")
    paragraphs = row.data.get("paragraphs")
    titles = [
        str(paragraph["title"])
        for paragraph in (paragraphs if isinstance(paragraphs, list) else [])
        if _has_key(paragraph, "title") and paragraph.get("is_supporting")
    ]
    # The answer itself comes first: it is what a judge is shown as gold.
    answers = tuple(dict.fromkeys((row.text_of("answer"), *row.texts_of("answer_aliases"))))
    gold = Gold((), answers, tuple(dict.fromkeys(titles)))
    question = Question(row.text_of("id"), row.text_of("question"))
    return Sample(task, "short", question, gold, (("hops", question.id[:4]),))


def listed_sample(row: DatasetRow, task: str) -> Sample:
    """Reads plain lists (R1-Searcher, HippoRAG), whose answers may be numbers."""
    text = row.text_of("question")
    # `idx` counts the rows of one file; the hash keeps ids apart between files.
    id = row.optional_text("id") or f"{row.text_of('idx')}-{hash_id(text)}"
    support = tuple(dict.fromkeys(_triple_subjects(row.data.get("evidence"))))
    tags = row.tags_of(type="question_type")
    return Sample(
        task, "short", Question(id, text), Gold((), row.texts_of("answer"), support), tags
    )


def _triple_subjects(evidence: Any) -> Iterator[str]:
    """Subjects of 2Wiki's evidence triples."""
    for triple in evidence if isinstance(evidence, list) else ():
        if isinstance(triple, list) and triple:
            yield str(triple[0])


def _has_key(value: Any, key: str) -> bool:
    return isinstance(value, Mapping) and value.get(key) not in (None, "")


_short = {"kind": "short", "rows": json_rows}
_flash = family(
    **_short, split="test", sample=flashrag_sample, origin="github.com/RUC-NLPIR/FlashRAG"
)
# What HippoRAG and R1-Searcher drew from the development splits is what is measured on.
_listed = {**_short, "sample": listed_sample, "split": "test"}
_hippo = family(**_listed, origin="github.com/OSU-NLP-Group/HippoRAG")
_searcher = family(**_listed, origin="github.com/RUCAIBox/R1-Searcher")
_hotpot = family(**_short, sample=hotpot_sample)
_musique = family(**_short, sample=musique_sample, origin="github.com/StonyBrookNLP/musique")
_R1, _CC = "multihop/r1_searcher_eval", "CC BY 4.0"
SETS = (
    _flash("nq", "Natural Questions", "opendomain/nq/test.jsonl", licence=SHARE),
    _flash("triviaqa", "TriviaQA", "opendomain/triviaqa/test.jsonl", licence=APACHE),
    _flash("popqa", "PopQA", "opendomain/popqa/test.jsonl", licence=MIT),
    _flash("bamboogle", "Bamboogle", "opendomain/bamboogle/test.jsonl", licence=MIT),
    _hotpot(
        "hotpotqa",
        "HotpotQA with its supporting facts",
        "multihop/hotpotqa/qa_train.json",
        split="train",
        origin="hotpotqa.github.io",
        licence=SHARE,
    ),
    _hippo(
        "2wiki",
        "2WikiMultiHopQA, the questions of HippoRAG",
        "multihop/2wikimultihopqa/questions.json",
        licence=APACHE,
    ),
    _hotpot(
        "2wiki-native",
        "2WikiMultiHopQA as published",
        "multihop/2wikimultihopqa/qa_native_sample.json",
        origin="github.com/Alab-NII/2wikimultihop",
        licence=APACHE,
    ),
    _musique(
        "musique",
        "MuSiQue with its decompositions",
        "multihop/musique/qa_train.json",
        split="train",
        licence=_CC,
    ),
    _hippo(
        "musique-1000",
        "MuSiQue, the questions of HippoRAG",
        "multihop/musique/questions_1000.json",
        licence=_CC,
    ),
    _searcher(
        "hotpotqa-500", "500 questions of HotpotQA", f"{_R1}/hotpotqa_500.jsonl", licence=SHARE
    ),
    _searcher(
        "2wiki-500", "500 questions of 2WikiMultiHopQA", f"{_R1}/2wiki_500.jsonl", licence=APACHE
    ),
    _searcher("musique-500", "500 questions of MuSiQue", f"{_R1}/musique_500.jsonl", licence=_CC),
)
