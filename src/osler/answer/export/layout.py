"""The blocks of an exported answer: what stands in it, in which order, for every format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from osler.answer import NOTHING_SAID
from osler.answer.export.references import Reference, list_references
from osler.types import DangerNotice, Language, Question, Solution

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
        return list_references(self.solution.answer.evidence)

    @property
    def danger(self) -> DangerNotice | None:
        return self.solution.danger


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
    if exported.danger is not None:
        yield Block("danger", exported.danger.text)
    yield Block("title", exported.question.text)
    if exported.standalone and exported.standalone != exported.question.text:
        yield Block("note", words["searched"].format(exported.standalone))
    if answer.option is not None:
        text = dict(exported.question.lettered).get(answer.option, "")
        yield Block("paragraph", f"{answer.option}. {text}".strip())
    for line in answer.text.splitlines():
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
        yield from (_reference_block(one, words["sample"]) for one in references)
    when = f", {exported.created}" if exported.created else ""
    yield Block("note", words["origin"].format(exported.run, exported.strategy, when))


def _reference_block(reference: Reference, sample: str) -> Block:
    marks = "".join(f"[{number}]" for number in reference.numbers)
    note = f" ({sample})" if reference.first.illustrative else ""
    quotes = " ".join(f"“{quote}”" for quote in reference.quotes)
    return Block("reference", f"{marks} {reference.line}{note} {quotes}", reference.url)
