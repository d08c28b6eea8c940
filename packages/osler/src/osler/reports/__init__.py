"""Reports of runs and passages, the one shape of them for every interface. Light to import."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import BaseModel, ConfigDict, Field

from osler.types import Answer, CautionRule, Citation, DangerNotice, Evidence, Question, Solution


class ResponseModel(BaseModel):
    """A reply, or a part of one. It can be made of a library's value that has the same fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    @classmethod
    def from_value(cls, value: object, **more: object) -> Self:
        """Takes fields by their names from `value`, except those in `more`."""
        same = {name: getattr(value, name) for name in cls.model_fields if name not in more}
        return cls.model_validate(same | more)

    @classmethod
    def document_of(cls, value: object) -> dict[str, Any]:
        """A library's value as plain JSON values."""
        return cls.from_value(value).model_dump(mode="json")


class LocatorView(ResponseModel):
    section: str
    page: int | None
    year: int | None
    url: str
    code: str
    kind: str
    authors: list[str]
    journal: str
    date: str
    """Month or day, "2024-03" or "2024-03-15", where more than the year is known; else empty."""
    notice: str
    """What was published against the work: a retraction, with its date and reason."""
    key: str
    """Its citation key in the library that it came from."""


class PassageView(ResponseModel):
    id: str
    source: str
    title: str
    text: str
    locator: LocatorView
    licence: str
    language: Literal["en", "zh"]
    illustrative: bool
    """A sample text: no clinical reference."""


class DrugLabelView(ResponseModel):
    document: str
    title: str
    code: str
    """Set id and version, by which it is cited."""
    url: str
    effective: str


class ReadLabel(DrugLabelView):
    """A drug's latest label, word for word."""

    name: str
    """By which it was asked for."""
    sections: dict[str, list[PassageView]]
    """Under each heading; empty where the label has no such section."""
    others: list[DrugLabelView]
    """Further labels of the name, the latest first."""


class LabelsSideBySide(ResponseModel):
    headings: list[str]
    """In reading order."""
    labels: list[ReadLabel]

    @classmethod
    def of(cls, found: Sequence[Any], headings: Sequence[str]) -> Self:
        """Of `osler.retrieve.labels.FoundLabels`."""
        labels = [
            ReadLabel.from_value(
                one.shown,
                name=one.name,
                sections={h: one.sections.get(h, []) for h in headings},
                others=one.others,
            )
            for one in found
        ]
        return cls(headings=[*headings], labels=labels)


class SearchHit(ResponseModel):
    rank: int
    score: float
    """Comparable within this search only; higher is better."""
    passage: PassageView


SourceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]


class ReportedRun(Protocol):
    """A run, whoever knows it, as far as a report needs it."""

    @property
    def solution(self) -> Solution | None: ...
    @property
    def question(self) -> Question | None: ...
    @property
    def danger(self) -> DangerNotice | None: ...
    @property
    def strategy(self) -> str: ...
    @property
    def steps(self) -> Sequence[object]: ...
    @property
    def models(self) -> Mapping[str, str]: ...
    @property
    def notes_of(self) -> Sequence[str]: ...
    @property
    def snapshot(self) -> str: ...
    @property
    def seconds(self) -> float | None: ...


class CitationView(ResponseModel):
    span: tuple[int, int]
    """In `answer.text`."""
    number: int
    """Of the evidence, from 1."""
    mark: str
    """As in `answer.text`: "[1]", or "[R1]" of a patient's record."""
    passage_id: str
    quote: str
    quote_span: tuple[int, int]
    """In the text of the passage."""

    @classmethod
    def of(cls, answer: Answer, citation: Citation) -> Self:
        cited = answer.evidence[citation.number - 1]
        return cls(
            span=(citation.start, citation.end),
            number=citation.number,
            mark=answer.marks[citation.number - 1],
            passage_id=cited.passage.id,
            quote=cited.quote,
            quote_span=(cited.start, cited.end),
        )


class StatementView(ResponseModel):
    text: str
    cites: list[int]
    kind: Literal["claim", "unconfirmed", "notice"]
    """unconfirmed: the model's own, which no passage read bears out; say so beside it, as
    `answer.text` does. notice: said about the answer, not in it."""


class SurenessView(ResponseModel):
    probability: float
    """Calibrated: that the evidence answers the question, or that the choice is right."""
    by: str
    """Name and weights of the expert that gives it."""


class AnswerView(ResponseModel):
    text: str
    option: str | None
    statements: list[StatementView]
    citations: list[CitationView]
    language: Literal["en", "zh"]
    authorship: Literal["extractive", "written"]
    note: str
    sureness: SurenessView | None
    """`null` where nothing can say."""

    @classmethod
    def of(cls, answer: Answer) -> Self:
        cited = [CitationView.of(answer, one) for one in answer.citations]
        return cls.from_value(answer, citations=cited, authorship=answer.authorship.value)


class QuotedView(ResponseModel):
    passage: PassageView
    quote: str
    quote_span: tuple[int, int]
    """In the text of the passage."""

    @classmethod
    def of(cls, evidence: Evidence) -> Self:
        return cls.from_value(evidence, quote_span=(evidence.start, evidence.end))


class CautionView(ResponseModel):
    rule: CautionRule
    text: str
    """In the answer's language."""
    evidence: list[QuotedView]
    """The cited quote; after it the one that it is held against, where there is one."""


def age_at(run: str, year: int | None) -> int | None:
    """How old a text of this year was when the run was made, in years, by the run's id; now, for an
    id without a date. `None` for a text without a year."""
    made = int(run[:4]) if re.match(r"\d{8}-", run) else datetime.now(UTC).year
    return None if year is None else max(0, made - year)


class EvidenceView(ResponseModel):
    number: int
    mark: str
    """As `answer.text` cites it: "[1]", or "[R1]" of a patient's record."""
    passage: PassageView
    quote: str
    quote_span: tuple[int, int]
    use: str
    query: str
    rank: int
    age: int | None
    """Years since `passage.locator.year` when it was answered; `null` without a year."""
    superseded: bool
    """Whether a later issue of its work was found, which a caution names."""

    @classmethod
    def list_of(cls, answer: Answer, run: str) -> list[Self]:
        return [
            cls.from_value(
                one,
                number=number,
                mark=mark,
                quote_span=(one.start, one.end),
                query=one.hit.query,
                rank=one.hit.rank,
                age=age_at(run, one.passage.locator.year),
                superseded=one.passage.id in answer.superseded,
            )
            for number, (one, mark) in enumerate(zip(answer.evidence, answer.marks, strict=True), 1)
        ]


class DangerView(ResponseModel):
    """The notice for a question about an emergency or self-harm; show it before all else."""

    kinds: list[Literal["emergency", "self-harm"]]
    text: str
    """Whom to call, in the question's language. It is no triage and no diagnosis."""
    rules: list[str]
    """Names of the rules that apply."""
    language: Literal["en", "zh"]

    @classmethod
    def of(cls, danger: DangerNotice | None) -> Self | None:
        return None if danger is None else cls.from_value(danger)


class ProofStepView(ResponseModel):
    """A step of the plan by which the answer came about."""

    n: int
    function: Literal["Retrieval", "Math", "Deduce", "Output"]
    step: str
    action: str
    """Its logical form."""
    needs: list[int]
    """Numbers of the steps whose results it needs."""
    answer: str
    """The value, or the members of a set; empty if none may be shown."""
    passages: list[str]
    """Ids of the passages that it rests on: `GET /passages/{id}` opens them."""
    computed: str
    """The formula with its inputs, or the program."""


class MoneyView(ResponseModel):
    amount: float
    currency: str


class UsageView(ResponseModel):
    calls: int
    prompt_tokens: int
    """`cached_tokens` among them."""
    completion_tokens: int
    cached_tokens: int
    scored_tokens: int
    searches: int
    seconds: float
    money: MoneyView | None
    """What the calls cost, by the server's prices; `null` where the price of one is not set."""


class RunResult(ResponseModel):
    """What came of a run, as far as every interface tells it."""

    danger: DangerView | None
    """Shown first, whatever the run's outcome; `null` without danger."""
    run_id: str
    strategy: str
    question: str
    options: list[str]
    answer: AnswerView | None
    evidence: list[EvidenceView]
    cautions: list[CautionView]
    grounding: Literal["grounded", "partly", "ungrounded", "abstained"] | None
    halt: Literal["converged", "budget", "no_evidence", "refused"] | None
    why: str
    decided: Literal["method", "reader", "fallback"] | None
    """Who decided the answer: the method, a reader of what it found, or one in its stead."""
    steps: list[ProofStepView]
    """By these steps; empty where nothing was planned."""
    usage: UsageView | None
    models: dict[str, str]
    notes_of: list[str]
    """Roles whose model may not word medicine: what they write in the events (thoughts, drafts,
    reasons) is a working note, not medical advice; fold it away, or leave it out."""
    snapshot: str
    seconds: float | None

    @classmethod
    def of(cls, run: ReportedRun, **more: object) -> Self:
        """`more`: the fields that a run does not tell by itself, `run_id` among them."""
        solution, question = run.solution, run.question
        answer = solution.answer if solution else Answer()
        return cls.from_value(
            run,
            danger=DangerView.of(run.danger),
            question=question.text if question else "",
            options=list(question.options) if question else [],
            answer=AnswerView.of(answer) if solution else None,
            evidence=EvidenceView.list_of(answer, str(more["run_id"])),
            cautions=[
                CautionView(
                    rule=one.rule, text=one.text, evidence=[QuotedView.of(e) for e in one.evidence]
                )
                for one in answer.cautions
            ],
            grounding=answer.grounding.value if solution else None,
            halt=solution.halt.value if solution else None,
            why=solution.why if solution else "",
            decided=solution.decided.value if solution else None,
            steps=[ProofStepView.from_value(one) for one in run.steps],
            usage=UsageView.from_value(solution.usage) if solution else None,
            notes_of=list(run.notes_of),
            **more,
        )
