"""The knowledge bases that natural questions are asked of, each made in a home of its own.

| Base | Texts |
|---|---|
| sample | what comes with Osler |
| open | MedQuAD's pages, research, nursing textbooks and guidelines, as `osler kb add` reads them |
| consumer | the answers of K-QA and MedicationQA, among 1,700 passages of MedQuAD and a textbook |
| covid | the articles of COVID-QA |
| published | MedQuAD's answers and research without any question, as the experts' split has them |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from osler.app.config import Settings
from osler.app.natural.questions import kqa_answers, medication_answers
from osler.app.wiring.knowledge import build_sample
from osler.app.wiring.models import load_encoder
from osler.evaluate.datasets.base import read_json
from osler.jobs.runner import Progress
from osler.kb.base import KnowledgeBase
from osler.text import one_line
from osler.train.experts.judge_cases import add_corpora
from osler.train.experts.pair_questions import find_data_file, read_medquad_pages
from osler.train.experts.searches import open_corpus, read_searches

_AMONG = 1_700
"""Answers of MedQuAD among those of the consumers' sets."""


def open_base(name: str, data: Path, homes: Path, progress: Progress | None = None) -> Settings:
    """The settings of a home with this base, which is made where it is not there.

    A build that was stopped goes on."""
    home = homes / name
    home.mkdir(parents=True, exist_ok=True)
    settings = Settings.model_validate({"home": home, "audit": {"log": "off"}})
    encoder = load_encoder(settings)
    if name == "sample":
        build_sample(settings, progress)
        return settings
    if name == "published":
        open_corpus(data, home, encoder, read_searches(data), progress).close()
        return settings
    path = home / "kb"
    if not path.is_dir():
        draft = home / "kb.partial"
        with KnowledgeBase.create(draft) as kb:
            BASES[name](kb, data, home)
        draft.rename(path)
    with KnowledgeBase.open(path) as kb:
        kb.build(encoder, progress=progress)
    return settings


def _add_open(kb: KnowledgeBase, data: Path, home: Path) -> None:
    add_corpora(kb, data)


def _add_consumer(kb: KnowledgeBase, data: Path, home: Path) -> None:
    own = [
        {"id": f"kqa-{id}", "title": "Answer to a patient", "content": answer}
        for id, _, answer in kqa_answers(data)
    ]
    own += [
        {"id": f"medication-{id}", "title": heading or "Drug information", "content": answer}
        for id, _, answer, heading in medication_answers(data)
    ]
    others = (
        {"id": f"{page.id}-{number}", "title": page.focus, "content": answer}
        for page in read_medquad_pages(data)
        for number, _, _, answer in page.pairs
    )
    _add_records(kb, (*own, *islice(others, 0, _AMONG * 4, 4)), home, "web")
    if book := find_data_file(data, "pharmacology.collection.xml"):
        kb.add([book, book.parent / "openstax_nursing_cnxml.tar.gz"], source="book")


def _add_covid(kb: KnowledgeBase, data: Path, home: Path) -> None:
    _add_records(kb, _covid_articles(data), home, "research")


def _covid_articles(data: Path) -> Iterator[dict[str, str]]:
    path = find_data_file(data, "covid_qa.json")
    for article in read_json(path)["data"] if path else ():
        for one in article["paragraphs"]:
            title = one_line(one["context"][:300].strip().split("\n")[0])
            yield {"id": f"covid-{one['document_id']}", "title": title, "content": one["context"]}


def _add_records(
    kb: KnowledgeBase, records: Iterable[Mapping[str, str]], home: Path, source: str
) -> None:
    path = home / "records.jsonl"
    lines = (json.dumps(one, ensure_ascii=False) + "\n" for one in records)
    path.write_text("".join(lines), encoding="utf-8")
    kb.add([path], source=source)


BASES: Mapping[str, Callable[[KnowledgeBase, Path, Path], None]] = {
    "open": _add_open,
    "consumer": _add_consumer,
    "covid": _add_covid,
}
"""Name → what adds its texts; `sample` and `published` are made elsewhere."""
