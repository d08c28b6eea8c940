"""Published sets: their corpora, their questions with gold documents, and the split of the experts.

The split (`research/experts/split.json`) holds train, dev and test as hashes of ids. Questions that
share a document, and documents that share a question, stay on one side.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol, TypeVar, cast, get_args

from lxml import etree

from osler.errors import BadConfig, MalformedSource
from osler.kb.base import KnowledgeBase
from osler.sources.formats.safe_xml import iterate_elements, raw_text, text_of
from osler.text import clean_text, one_line
from osler.types import Passage
from osler_lab.evaluate.datasets.base import json_records, read_json

MEDQUAD, BIOASQ, PUBMEDQA = "medquad", "bioasq", "pubmedqa"
BIOASQ_FILES = ("bioasq_yesno_golden.json", "bioasq_other_golden.json")
PUBMEDQA_FILES = ("test_set.json", "ori_pqal_rest.json")
"""Of PubMedQA the official test questions, and the others."""
CORPORA: Mapping[str, tuple[str, ...]] = {
    "web": ("MedQuAD_xml.tar.gz",),
    "research": ("bioasq_snippets.jsonl", "pubmedqa_contexts.jsonl"),
    "book": ("pharmacology.collection.xml", "openstax_nursing_cnxml.tar.gz"),
    "guideline": ("ngc_guidelines_meditron_schema.jsonl.gz",),
}
"""Source → files of the corpora in whose passages labels were made."""
Part = Literal["train", "dev", "test"]
PARTS: tuple[Part, ...] = get_args(Part)
_SHORTEST = 30
"""Characters of a snippet that may answer."""
DIGITS = 10
"""Hexadecimal digits of a hash: among 20,000 ids, two are alike in 2 of 10,000 cases."""


class SplitItem(Protocol):
    """An item with an id and the documents that it rests on."""

    @property
    def id(self) -> str: ...
    @property
    def documents(self) -> tuple[str, ...]: ...


Item = TypeVar("Item", bound=SplitItem)


@dataclass(frozen=True)
class DataSplit:
    """The part of each question and of each document, by the hash of its id."""

    parts: Mapping[str, Part]

    def choose_items(self, items: Iterable[Item], part: Part) -> list[Item]:
        """The items of one part, in order. Raises `BadConfig` for an item whose documents are in
        another part than itself."""
        return [item for item in items if self.part_of(item) == part]

    def part_of(self, item: SplitItem) -> Part | None:
        """The item's part; `None` if the split does not know it. Raises as `choose_items`."""
        found = {self.parts.get(hash_of(id)) for id in (item.id, *item.documents)}
        if len(found) > 1:
            raise BadConfig(
                f"{item.id} and its documents are not in one part of the split",
                fix="give the data as they were published",
            )
        return found.pop()


def read_split(path: Path) -> DataSplit:
    """Raises `BadConfig` for a file that is no split, or names one hash in two parts."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        listed = [(str(h), part) for part in PARTS for h in content[part]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadConfig(f"{path} is not a split: {error}", fix="use research/experts") from error
    if len(dict(listed)) < len(listed):
        raise BadConfig(f"{path} names one hash in two parts")
    return DataSplit(dict(listed))


def hash_of(id: str) -> str:
    """The hash that stands for an id in the file."""
    return hashlib.sha256(id.encode()).hexdigest()[:DIGITS]


def part_of_document(document: str) -> Part:
    """The part of a document that the split does not list: by its hash."""
    lot = int(hash_of(document), 16) / 16**DIGITS
    return "test" if lot < 0.3 else "dev" if lot < 0.4 else "train"


def find_data_file(data: Path, name: str) -> Path | None:
    """The file of this name below a folder; the first by path where there are several."""
    return next(iter(sorted(data.rglob(name))), None)


def find_data_files(data: Path, names: Iterable[str]) -> Iterator[Path]:
    """Those of the files that are there."""
    return filter(None, (find_data_file(data, name) for name in names))


def add_corpora(kb: KnowledgeBase, data: Path) -> None:
    """Adds the corpora to a knowledge base. Raises `MalformedSource` where one is not there."""
    for source, names in CORPORA.items():
        paths = list(find_data_files(data, names))
        if len(paths) < len(names):
            raise MalformedSource(f"{data} lacks one of {', '.join(names)}", fix="name its folder")
        kb.add(paths, source=source)


@dataclass(frozen=True, slots=True)
class MedquadPage:
    """A page of MedQuAD: its subject and its question–answer pairs."""

    id: str
    focus: str
    pairs: tuple[tuple[str, str, str, str], ...]
    """Number, kind of question, question and answer."""


def read_medquad_pages(data: Path) -> Iterator[MedquadPage]:
    """Pages with answers, from the archive as published; none where it is not there."""
    path = find_data_file(data, CORPORA["web"][0])
    if path is None:
        return
    with tarfile.open(path) as packed:
        for member in packed:
            stream = packed.extractfile(member) if member.name.endswith(".xml") else None
            if stream is None:
                continue
            for page in iterate_elements(cast(BinaryIO, stream), member.name, ("Document",)):
                if (read := _read_page(page)).pairs:
                    yield read


def _read_page(page: etree._Element) -> MedquadPage:
    pairs = []
    for number, pair in enumerate(page.iter("QAPair"), 1):
        question = pair.find("Question")
        answer = one_line(raw_text(pair.find("Answer")))
        if question is not None and answer and (asked := text_of(question)):
            kind = clean_text(question.get("qtype") or "")
            pairs.append((pair.get("pid") or str(number), kind, asked, answer))
    id = f"{page.get('source')}_{page.get('id')}"
    return MedquadPage(id, text_of(page.find("Focus")), tuple(pairs))


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """A question and its gold documents."""

    id: str
    """Set and id, as in "bioasq:5e46c8ab3f54159529000011"."""
    text: str
    documents: tuple[str, ...]
    """What its answers come from: pages, PubMed ids. A split never divides a document."""
    gold: frozenset[str]
    """Names of documents, as `document_name` gives them."""

    @property
    def source(self) -> str:
        return self.id.partition(":")[0]


def read_searches(data: Path) -> list[SearchQuestion]:
    """The questions of MedQuAD, BioASQ and PubMedQA; those asked of several pages are merged."""
    found: dict[tuple[str, str], SearchQuestion] = {}
    for one in (*_medquad_searches(data), *_pubmed_searches(data)):
        key = (one.source, " ".join(one.text.casefold().split()))
        known = found.setdefault(key, one)
        documents = tuple(dict.fromkeys(known.documents + one.documents))
        found[key] = replace(known, gold=known.gold | one.gold, documents=documents)
    return list(found.values())


def _medquad_searches(data: Path) -> Iterator[SearchQuestion]:
    for page in read_medquad_pages(data):
        documents = (f"{MEDQUAD}:{page.focus.casefold()}", f"{MEDQUAD}:{page.id}")
        for number, _, asked, _ in page.pairs:
            gold = frozenset({f"{page.id}_Sec{number}"})
            yield SearchQuestion(f"{MEDQUAD}:{page.id}_{number}", asked, documents, gold)


def _pubmed_searches(data: Path) -> Iterator[SearchQuestion]:
    for path in find_data_files(data, BIOASQ_FILES):
        for row in json_records(path, "questions"):
            texts, documents = bioasq_snippets(row.data)
            if texts:
                id, asked = f"{BIOASQ}:{row.text_of('id')}", one_line(row.text_of("body"))
                yield SearchQuestion(id, asked, documents, frozenset(documents))
    for path in find_data_files(data, PUBMEDQA_FILES):
        for pmid, record in read_json(path).items():
            asked, documents = one_line(record["QUESTION"]), (f"PMID:{pmid}",)
            yield SearchQuestion(f"{PUBMEDQA}:{pmid}", asked, documents, frozenset(documents))


def bioasq_snippets(question: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The gold texts of a question that are long enough to answer it, and its documents."""
    snippets = question.get("snippets") or ()
    texts = dict.fromkeys(one_line(str(one.get("text") or "")) for one in snippets)
    addresses = dict.fromkeys(str(one.get("document") or "") for one in snippets)
    documents = tuple(f"PMID:{url.rpartition('/')[2]}" for url in addresses)
    return tuple(text for text in texts if len(text) >= _SHORTEST), documents


def document_name(passage: Passage) -> str:
    """PubMed id where there is one, else the document's part of the passage's id."""
    return passage.locator.code or passage.id.partition(":")[2].partition("#")[0]
