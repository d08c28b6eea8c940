"""Open-domain and multi-hop questions: the seven sets of KAG-Thinker §4.1, in all their files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from osler.evaluate.datasets.base import (
    APACHE,
    MIT,
    SHARE,
    DataSet,
    DatasetRow,
    UnusableRow,
    hash_id,
    json_rows,
)
from osler.evaluate.sample import Gold, Sample
from osler.types import Question


def flashrag_sample(row: DatasetRow, task: str) -> Sample:
    """FlashRAG's layout: id, question, golden_answers[]. NQ, TriviaQA, PopQA, Bamboogle …"""
    found = row.data.get("metadata")
    details: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    support = (str(details["s_wiki_title"]),) if _has_key(details, "s_wiki_title") else ()
    tags = (("prop", str(details["prop"])),) if _has_key(details, "prop") else ()
    question = Question(row.text_of("id"), row.text_of("question"))
    return Sample(task, "short", question, Gold((), row.texts_of("golden_answers"), support), tags)


def hotpot_sample(row: DatasetRow, task: str) -> Sample:
    """HotpotQA and 2Wiki as published: _id, answer, supporting_facts [[title, sentence]]."""
    facts = row.data.get("supporting_facts")
    titles = [str(fact[0]) for fact in facts if fact] if isinstance(facts, list) else []
    support = tuple(dict.fromkeys(titles))
    question = Question(row.text_of("_id", "id"), row.text_of("question"))
    tags = tuple(
        (name, row.optional_text(name)) for name in ("type", "level") if row.optional_text(name)
    )
    return Sample(task, "short", question, Gold((), (row.text_of("answer"),), support), tags)


def musique_sample(row: DatasetRow, task: str) -> Sample:
    """MuSiQue as published: aliases count as answers; paragraphs say which of them support."""
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
    """Plain lists of questions and answers (R1-Searcher, HippoRAG): answers may be numbers."""
    text = row.text_of("question")
    # `idx` counts the rows of one file; the hash keeps ids apart between files.
    id = row.optional_text("id") or f"{row.text_of('idx')}-{hash_id(text)}"
    support = tuple(dict.fromkeys(_triple_subjects(row.data.get("evidence"))))
    kind = row.optional_text("question_type")
    tags = (("type", kind),) if kind else ()
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


_short = partial(DataSet, kind="short", rows=json_rows)
_flash = partial(_short, sample=flashrag_sample, origin="github.com/RUC-NLPIR/FlashRAG")
_hippo = partial(_short, sample=listed_sample, origin="github.com/OSU-NLP-Group/HippoRAG")
SETS = (
    _flash(
        name="nq",
        about="Natural Questions",
        files=("opendomain/nq/test.jsonl",),
        licence=SHARE,
    ),
    _flash(
        name="triviaqa",
        about="TriviaQA",
        files=("opendomain/triviaqa/test.jsonl",),
        licence=APACHE,
    ),
    _flash(name="popqa", about="PopQA", files=("opendomain/popqa/test.jsonl",), licence=MIT),
    _flash(
        name="bamboogle",
        about="Bamboogle",
        files=("opendomain/bamboogle/test.jsonl",),
        licence=MIT,
    ),
    _short(
        name="hotpotqa",
        about="HotpotQA with its supporting facts",
        files=("multihop/hotpotqa/qa_train.json",),
        sample=hotpot_sample,
        origin="hotpotqa.github.io",
        licence=SHARE,
    ),
    _hippo(
        name="2wiki",
        about="2WikiMultiHopQA, the questions of HippoRAG",
        files=("multihop/2wikimultihopqa/questions.json",),
        licence=APACHE,
    ),
    _short(
        name="2wiki-native",
        about="2WikiMultiHopQA as published",
        files=("multihop/2wikimultihopqa/qa_native_sample.json",),
        sample=hotpot_sample,
        origin="github.com/Alab-NII/2wikimultihop",
        licence=APACHE,
    ),
    _short(
        name="musique",
        about="MuSiQue with its decompositions",
        files=("multihop/musique/qa_train.json",),
        sample=musique_sample,
        origin="github.com/StonyBrookNLP/musique",
        licence="CC BY 4.0",
    ),
    _hippo(
        name="musique-1000",
        about="MuSiQue, the questions of HippoRAG",
        files=("multihop/musique/questions_1000.json",),
        licence="CC BY 4.0",
    ),
    *(
        _short(
            name=f"{name}-500",
            about=f"500 questions of {title}",
            files=(f"multihop/r1_searcher_eval/{name}_500.jsonl",),
            sample=listed_sample,
            origin="github.com/RUCAIBox/R1-Searcher",
            licence=licence,
        )
        for name, title, licence in (
            ("hotpotqa", "HotpotQA", SHARE),
            ("2wiki", "2WikiMultiHopQA", APACHE),
            ("musique", "MuSiQue", "CC BY 4.0"),
        )
    ),
)
