"""Questions that no packaged expert learnt from, and knowledge bases that they are asked of.

Of the experts' test part (`research/experts/split.json`): PubMedQA, BioASQ and MedQuAD, over all
their passages; and 2WikiMultihopQA, over its own corpus.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from natural.published import (
    MEDQUAD,
    SearchQuestion,
    document_name,
    find_data_files,
    read_medquad_pages,
    read_searches,
    read_split,
)

from osler.build.knowledge import open_or_create
from osler.build.models import load_encoder
from osler.errors import BadConfig, MalformedSource
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.settings import Settings
from osler.sources.catalogue import WIKI
from osler.types import Hit, Question
from osler_lab.jobs.runner import Progress

SPLIT = Path(__file__).parents[1] / "research" / "experts" / "split.json"
TWO_WIKI = Path("A_questions/multihop/2wikimultihopqa")
SETS = ("pubmedqa", "bioasq", "medquad")
_PUBMED_FILES = ("pubmedqa_contexts.jsonl", "bioasq_snippets.jsonl")


@dataclass(frozen=True)
class Asked:
    set: str
    question: Question
    gold: frozenset[str]
    """Names of documents."""
    right: str = ""
    """Letter; empty for open questions."""


def of_research(data: Path, sets: Sequence[str] = SETS) -> list[Asked]:
    """Questions that no expert learnt from, of PubMedQA, BioASQ, MedQuAD."""
    split = read_split(SPLIT)
    labels = {**_pubmedqa_labels(data), **_bioasq_labels(data)}
    found = []
    for one in split.choose_items(read_searches(data), "test"):
        if one.source in sets:
            said = labels.get(one.id.partition(":")[2], "")
            options = ("yes", "no", "maybe")[: 3 if one.source == "pubmedqa" else 2]
            chosen = options if said in options else ()
            letter = "ABC"[options.index(said)] if chosen else ""
            found.append(Asked(one.source, Question(one.id, one.text, chosen), one.gold, letter))
    return found


def _pubmedqa_labels(data: Path) -> dict[str, str]:
    folder = data / "A_questions/pubmedqa"
    return {
        id: record["final_decision"]
        for name in ("test_set", "ori_pqal_rest")
        for id, record in json.loads((folder / f"{name}.json").read_text("utf-8")).items()
    }


def _bioasq_labels(data: Path) -> dict[str, str]:
    path = data / "A_questions/bioasq/bioasq_yesno_golden.json"
    return {
        one["id"]: str(one["exact_answer"]).casefold()
        for one in json.loads(path.read_text("utf-8"))["questions"]
    }


def of_2wiki(data: Path) -> list[Asked]:
    """Those questions all of whose subjects are titles of the corpus."""
    folder = data / TWO_WIKI
    titles = {one["title"] for one in _read_json(folder / "corpus.json")}
    found = []
    for row in _read_json(folder / "questions.json"):
        gold = frozenset(fact[0] for fact in row["evidence"])
        if gold <= titles:
            found.append(Asked("2wiki", Question(f"2wiki:{row['id']}", row["question"]), gold))
    return found


def _read_json(path: Path) -> list[dict[str, Any]]:
    read: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return read


def build_2wiki(settings: Settings, data: Path) -> None:
    corpus = _read_json(data / TWO_WIKI / "corpus.json")
    file = settings.home / "2wiki.jsonl"
    lines = [
        json.dumps({"id": str(n), "title": one["title"], "content": one["text"]})
        for n, one in enumerate(corpus)
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    with open_or_create(settings) as kb:
        kb.add([file], source=WIKI)
        kb.build(load_encoder(settings))


def names_of(hit: Hit) -> set[str]:
    return {document_name(hit.passage), hit.passage.id, hit.passage.heading}


def half_of(id: str) -> str:
    return ("dev", "test")[hashlib.sha256(id.encode()).digest()[0] % 2]


def settings_of(work: Path, name: str, kb: Path | None) -> Settings:
    home = kb if kb and name == "research" else work / name
    home.mkdir(parents=True, exist_ok=True)
    return Settings.model_validate(
        {"home": home, "model": {"threads": 1}, "strategy": {"kind": "rag"}}
    )


def require_built(settings: Settings, name: str, data: Path) -> None:
    if settings.kb.path.exists():
        return
    if name == "2wiki":
        build_2wiki(settings, data)
    else:
        encoder = load_encoder(settings)
        open_corpus(data, settings.kb.path.parent, encoder, read_searches(data)).close()


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
    for path in find_data_files(data, _PUBMED_FILES):
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            if f"PMID:{record['PMID']}" not in documents:
                continue
            # PubMedQA's questions are its titles.
            yield {key: record[key] for key in ("id", "content", "PMID")} | {"title": ""}
