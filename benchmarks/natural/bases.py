"""The knowledge bases that natural questions are asked of, each made in a home of its own.

| Base | Texts |
|---|---|
| sample | what comes with Osler |
| open | MedQuAD's pages, research, nursing textbooks and guidelines, as `osler kb add` reads them |
| consumer | the answers of K-QA and MedicationQA, among 1,700 answers of MedQuAD |
| covid | the articles of COVID-QA |
| labels | labels of 34 drugs, half as openFDA's download and half as DailyMed packs them |
| filed | these, and labels of the 118 drugs whose label answers a question of MedicationQA |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from natural.filed import add_filed
from natural.labels import dailymed_archive, openfda_download, openfda_result, read_drugs
from natural.published import add_corpora, find_data_file, read_medquad_pages
from natural.questions import NaturalPlaces, kqa_answers, medication_answers
from osler.build.knowledge import build_sample
from osler.build.models import load_encoder
from osler.kb.base import KnowledgeBase
from osler.settings import Settings
from osler.settings.settings import AnswerSettings
from osler.text import one_line
from osler_lab.evaluate.datasets.base import read_json
from osler_lab.jobs.runner import Progress

_AMONG = 1_700
"""Answers of MedQuAD among those of the consumers' sets."""


def open_base(
    name: str, at: NaturalPlaces, answer: AnswerSettings, progress: Progress | None = None
) -> Settings:
    """The settings of a home with this base, which is made where it is not there.

    A build that was stopped goes on."""
    home = at.homes / name
    home.mkdir(parents=True, exist_ok=True)
    settings = Settings.model_validate(
        {"home": home, "audit": {"log": "off"}, "answer": answer.model_dump()}
    )
    encoder = load_encoder(settings)
    if name == "sample":
        build_sample(settings, progress)
        return settings
    path = home / "kb"
    if not path.is_dir():
        draft = home / "kb.partial"
        with KnowledgeBase.create(draft) as kb:
            BASES[name](kb, at.data, home)
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


def _add_labels(kb: KnowledgeBase, data: Path, home: Path) -> None:
    drugs = read_drugs()
    parts = {
        "drug-label-0001-of-0001.json.zip": openfda_download([*map(openfda_result, drugs[::2])]),
        "dm_spl_release_human_rx_part1.zip": dailymed_archive(drugs[1::2]),
    }
    for name, data_of_part in parts.items():
        (home / name).write_bytes(data_of_part)
    kb.add([home / name for name in parts], source="label")


BASES: Mapping[str, Callable[[KnowledgeBase, Path, Path], None]] = {
    "open": _add_open,
    "consumer": _add_consumer,
    "covid": _add_covid,
    "labels": _add_labels,
    "filed": add_filed,
}
"""Name → what adds its texts; `sample` is made elsewhere."""
