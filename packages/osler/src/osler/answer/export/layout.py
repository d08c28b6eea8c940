"""The blocks of an exported answer, in order, for every format."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from osler.answer import NOTHING_SAID
from osler.errors import UnknownPassage
from osler.kb.base import KnowledgeBase
from osler.sources.citable import FINDERS, CitableId, find_citable_ids
from osler.text import make_slug
from osler.types import Answer, Evidence, Language, Passage, Question, Solution

# What BibTeX and RIS take as a key.
_KEY = re.compile(r"[^\s,{}#%\"'()=\\~]+")


@dataclass(frozen=True, slots=True)
class Reference:
    """A cited document."""

    marks: tuple[str, ...]
    """Of the answer's citations that quote it."""
    passages: tuple[Passage, ...]
    """Those that are quoted, in the order of their first number."""
    quotes: tuple[str, ...]
    identifiers: dict[str, str]
    """By name, lower case: those of `osler.sources.citable`."""

    @property
    def first(self) -> Passage:
        return self.passages[0]

    @property
    def key(self) -> str:
        """A name for reference managers: that of the library it came from, else one of ASCII
        letters, digits and hyphens."""
        if _KEY.fullmatch(own := self.first.locator.key):
            return own
        document = self.first.id.partition("#")[0]
        return (
            re.sub(r"[^A-Za-z0-9]+", "-", document).strip("-") or f"ref-{self.marks[0].strip('[]')}"
        )

    @property
    def url(self) -> str:
        """Where it can be read: as its source says, else by its identifier."""
        found = self.identifiers
        by_name = {
            "doi": "https://doi.org/{}",
            "pmcid": "https://pmc.ncbi.nlm.nih.gov/articles/{}/",
            "pmid": "https://pubmed.ncbi.nlm.nih.gov/{}/",
            "nct": "https://clinicaltrials.gov/study/{}",
            "eudract": "https://www.clinicaltrialsregister.eu/ctr-search/search?query=eudract_number:{}",
            "nbk": "https://www.ncbi.nlm.nih.gov/books/{}/",
        }
        resolved = (form.format(found[name]) for name, form in by_name.items() if name in found)
        return self.first.locator.url or next(resolved, "")

    @property
    def line(self) -> str:
        """As a reader sees it: a notice against it, authors, title, section, source, journal, year,
        identifiers."""
        place = self.first.locator
        named = [f"{name.upper()} {value}" for name, value in self.identifiers.items()]
        authors = ", ".join(place.authors[:6]) + (" et al" if len(place.authors) > 6 else "")
        known = (authors, self.first.title, place.section, place.kind or self.first.source)
        year = str(place.year) if place.year is not None else ""
        parts = (place.notice.upper(), *known, place.journal, year, *named)
        return ". ".join(part.rstrip(".") for part in parts if part) + "."


def list_references(answer: Answer) -> list[Reference]:
    """The cited documents as the page shows them: by source, in the order of the first citation."""
    grouped: dict[str, dict[str, list[tuple[str, Evidence]]]] = {}
    for mark, one in zip(answer.marks, answer.evidence, strict=True):
        document = one.passage.id.partition("#")[0]
        grouped.setdefault(one.passage.source, {}).setdefault(document, []).append((mark, one))
    return [_make_reference(group) for found in grouped.values() for group in found.values()]


def _make_reference(group: list[tuple[str, Evidence]]) -> Reference:
    passages = tuple({one.passage.id: one.passage for _, one in group}.values())
    identifiers: dict[str, str] = {}
    for passage in passages:
        identifiers = {**find_identifiers(passage), **identifiers}
    return Reference(
        tuple(mark for mark, _ in group),
        passages,
        tuple(one.quote for _, one in group),
        {name: identifiers[name] for name in FINDERS if name in identifiers},
    )


def find_identifiers(passage: Passage) -> dict[str, str]:
    """The identifiers in the passage's code, address and id, by name."""
    document = passage.id.partition("#")[0].partition(":")[2]
    text = f"{passage.locator.code} {passage.locator.url} {document}"
    found: dict[str, str] = {}
    for one in find_citable_ids(text):
        if one.is_valid:
            found.setdefault(one.kind, one.value)
    return found


BlockKind = Literal["title", "danger", "paragraph", "item", "heading", "note", "reference"]


@dataclass(frozen=True, slots=True)
class ExportedAnswer:
    """A question with its answer, as far as a file needs it."""

    question: Question
    solution: Solution
    run: str
    strategy: str
    snapshot: str = ""
    created: str = ""
    """ISO 8601; empty where it is not known."""
    standalone: str = ""
    """The question as it was searched for, where a conversation stands behind it."""

    @property
    def references(self) -> list[Reference]:
        return list_references(self.solution.answer)


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph of the file."""

    kind: BlockKind
    text: str
    url: str = ""


_WORDS: dict[Language, dict[str, str]] = {
    "en": {
        "references": "References",
        "cautions": "Cautions",
        "searched": "Searched for: {}",
        "quoted": "Quoted sentences, worded by no model.",
        "written": "Worded by a model; each citation shows the passage that it rests on.",
        "sample": "illustrative sample text, not a clinical reference",
        "origin": "Osler, run {}, {}{}. To support clinical judgement, not to replace it.",
    },
    "zh": {
        "references": "参考文献",
        "cautions": "注意",
        "searched": "检索的问题：{}",
        "quoted": "引用原句，未经模型改写。",
        "written": "由模型撰写；每条引文标明所依据的段落。",
        "sample": "示例文本，不作临床依据",
        "origin": "Osler，运行 {}，{}{}。用于辅助临床判断，不能代替临床判断。",
    },
}


def lay_out(exported: ExportedAnswer) -> Iterator[Block]:
    """The blocks in order: danger first, then the answer, its cautions, its references."""
    answer = exported.solution.answer
    words = _WORDS[answer.language]
    if (danger := exported.solution.danger) is not None:
        yield Block("danger", danger.text)
    yield Block("title", exported.question.text)
    if exported.standalone and exported.standalone != exported.question.text:
        yield Block("note", words["searched"].format(exported.standalone))
    if answer.option is not None:
        text = dict(exported.question.lettered).get(answer.option, "")
        yield Block("paragraph", f"{answer.option}. {text}".strip())
    for line in replace(answer, statements=answer.leading).text.splitlines():
        bare = line.lstrip("-*•‣· ")
        yield Block("item", bare) if bare != line else Block("paragraph", line)
    worded = words[answer.authorship.value if answer.authorship.value in words else "quoted"]
    yield Block(
        "note", answer.note or (worded if answer.statements else NOTHING_SAID[answer.language])
    )
    if answer.cautions:
        yield Block("heading", words["cautions"])
        yield from (Block("item", caution.text) for caution in answer.cautions)
    if references := exported.references:
        yield Block("heading", words["references"])
        said = {one.text for one in answer.leading}
        yield from (_reference_block(one, words["sample"], said) for one in references)
    when = f", {exported.created}" if exported.created else ""
    yield Block("note", words["origin"].format(exported.run, exported.strategy, when))


def _reference_block(reference: Reference, sample: str, said: Collection[str]) -> Block:
    marks = "".join(reference.marks)
    note = f" ({sample})" if reference.first.illustrative else ""
    quotes = "".join(f" “{quote}”" for quote in reference.quotes if quote not in said)
    return Block("reference", f"{marks} {reference.line}{note}{quotes}", reference.url)


def resolve_reference(kb: KnowledgeBase, words: str) -> tuple[Passage, ...]:
    """The first passage of each document that bears the identifier. Blocks.

    Raises `UnknownPassage` for one whose form or check digit is wrong, and for one that no document
    has; words without an identifier name nothing.
    """
    named = next(iter(find_citable_ids(words)), None)
    if named is None:
        return ()
    if not named.is_valid:
        raise UnknownPassage(
            f"{words!r} is not a valid {named.kind}",
            fix="compare it with its source: a digit is wrong",
        )
    found = tuple(
        passage
        for passage in kb.first_passages(_document_ids(named))
        if find_identifiers(passage).get(named.kind) == named.value
    )
    if not found:
        raise UnknownPassage(f"no document has {named.kind} {named.value}", fix="`osler kb search`")
    return found


def _document_ids(named: CitableId) -> list[str]:
    """How the readers of formats name a document with this identifier."""
    plain = named.value.replace(" ", "-")
    upper, lower = make_slug(plain), make_slug(plain.lower())
    return [upper, lower, named.value.removeprefix("PMC")]
