"""Searches with their gold documents over all passages of the data.

The knowledge base has MedQuAD's answers, PubMedQA's abstracts and BioASQ's snippets, and no
question: titles of PubMedQA's abstracts and questions of MedQuAD's pages are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from osler.errors import BadConfig, MalformedSource
from osler.jobs.runner import Progress
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.train.experts.pair_questions import (
    MEDQUAD,
    PairQuestion,
    find_data_file,
    read_medquad_pages,
    read_pair_questions,
)
from osler.types import Passage

_PUBMED_FILES = ("pubmedqa_contexts.jsonl", "bioasq_snippets.jsonl")


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """A question and its gold documents."""

    id: str
    text: str
    source: str
    documents: tuple[str, ...]
    gold: frozenset[str]
    """Names of documents, as `document_name` gives them."""
    held_out: bool = False


def read_searches(data: Path) -> list[SearchQuestion]:
    """The questions of `pair_questions`; MedQuAD's that are asked of several pages are merged."""
    found: dict[tuple[str, str], SearchQuestion] = {}
    for one in read_pair_questions(data):
        gold = frozenset({_gold_of(one)} if one.source == MEDQUAD else one.documents)
        key = (one.source, " ".join(one.text.casefold().split()))
        if (known := found.get(key)) is None:
            found[key] = SearchQuestion(
                one.id, one.text, one.source, one.documents, gold, one.held_out
            )
        else:
            documents = tuple(dict.fromkeys(known.documents + one.documents))
            found[key] = replace(known, gold=known.gold | gold, documents=documents)
    return list(found.values())


def _gold_of(one: PairQuestion) -> str:
    """The answer's document, "GHR_0000064_Sec1"."""
    page, _, number = one.id.partition(":")[2].rpartition("_")
    return f"{page}_Sec{number}"


def document_name(passage: Passage) -> str:
    """PubMed id where there is one, else the document's part of the passage's id."""
    return passage.locator.code or passage.id.partition(":")[2].partition("#")[0]


def open_corpus(
    data: Path,
    folder: Path,
    encoder: Encoder,
    questions: Sequence[SearchQuestion],
    progress: Progress | None = None,
) -> KnowledgeBase:
    """The knowledge base of all documents of these questions; a stopped build goes on.

    Raises `MalformedSource` where the corpora are not below `data`, and `BadConfig` for a folder
    with the documents of other questions: most gold would not be there to be found.
    """
    path, mark = folder / "kb", folder / "documents.sha256"
    documents = frozenset(document for one in questions for document in one.documents)
    listed = hashlib.sha256("\n".join(sorted(documents)).encode()).hexdigest()
    if not path.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        mark.write_text(listed, encoding="utf-8")
        _add_corpora(data, folder, path, documents)
    elif not mark.is_file() or mark.read_text(encoding="utf-8") != listed:
        raise BadConfig(
            f"{folder} holds the documents of other questions",
            fix="give the --share that it was made with, or another folder as --work",
        )
    kb = KnowledgeBase.open(path)
    kb.build(encoder, progress=progress)
    return kb


def _add_corpora(data: Path, folder: Path, path: Path, documents: Collection[str]) -> None:
    """Adds the passages to a new knowledge base, which appears whole."""
    texts = folder / "passages"
    texts.mkdir(parents=True, exist_ok=True)
    pages = texts / "medquad.jsonl"
    _write_lines(pages, _medquad_records(data, documents))
    _write_lines(texts / "pubmed.jsonl", _pubmed_records(data, documents))
    draft = folder / "kb.partial"
    with KnowledgeBase.create(draft) as kb:
        kb.add([pages], source="web")
        kb.add([texts / "pubmed.jsonl"], source="research")
    draft.rename(path)


def _write_lines(path: Path, records: Iterable[Mapping[str, object]]) -> None:
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    if not text:
        raise MalformedSource(f"no passages for {path.name}", fix="name their folder with --data")
    path.write_text(text, encoding="utf-8")


def _medquad_records(data: Path, documents: Collection[str]) -> Iterator[Mapping[str, object]]:
    for page in read_medquad_pages(data):
        if f"{MEDQUAD}:{page.id}" not in documents:
            continue
        for number, _, _, answer in page.pairs:
            yield {"id": f"{page.id}_Sec{number}", "title": page.focus, "content": answer}


def _pubmed_records(data: Path, documents: Collection[str]) -> Iterator[Mapping[str, object]]:
    for path in filter(None, (find_data_file(data, name) for name in _PUBMED_FILES)):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if f"PMID:{record['PMID']}" not in documents:
                continue
            # PubMedQA's questions are its titles.
            yield {key: record[key] for key in ("id", "content", "PMID")} | {"title": ""}
