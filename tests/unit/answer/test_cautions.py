"""Cautions of outdated evidence: what each rule sees and leaves alone. Drugs are invented."""

import json
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import caution_cases
import pytest
from rich.console import Console

from osler.answer.cautions import CautiousComposer, find_cautions
from osler.answer.currency import Issue, newer_issue, read_issue, retraction_notice
from osler.answer.written import WrittenComposer
from osler.cli.page import render_page
from osler.cli.render import RunPage, run_page, short_page
from osler.cli.run_output import report_document
from osler.kb.ingest.prepare import IngestOptions, PreparedDocument, prepare_record
from osler.sources.records import Document, Section
from osler.trace import Cautioned, Run
from osler.trace.events import from_line, to_line
from osler.types import (
    Answer,
    CautionRule,
    Evidence,
    Halt,
    Hit,
    Language,
    Locator,
    Passage,
    Question,
    Solution,
    Statement,
)

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "cautions.md"
QUESTION = Question("q", "What is the dose of examplol in samplosis?")


def passage(
    id: str,
    text: str,
    title: str = "",
    *,
    year: int | None = None,
    kind: str = "",
    section: str = "",
    language: Language = "en",
) -> Passage:
    locator = Locator(section, year=year, kind=kind)
    return Passage(f"{id}#0", text, id.split(":")[0], title or id, locator, language=language)


def hit(found: Passage) -> Hit:
    return Hit(found, 1.0, 1, "q", found.source)


def answered(found: Passage) -> Answer:
    quote = Evidence(hit(found), 0, len(found.text))
    statements = (Statement(found.text, (1,)),)
    return Answer(statements, (quote,), language=found.language)


def rules(cited: Passage, *others: Passage) -> list[str]:
    return [found.rule for found in find_cautions(answered(cited), [hit(each) for each in others])]


NEAREST = "Samplosis is treated with examplol 40 mg once a day."
OLD = passage(
    "book:old",
    "Samplosis is treated with examplol 10 mg once a day.",
    "Handbook of Samplosis, 2nd edition",
)
NEW = passage(
    "book:new",
    f"Mockitis is watched. {NEAREST} Rest is advised.",
    "Handbook of Samplosis, 3rd edition",
)


@pytest.mark.parametrize(
    ("kind", "title", "said"),
    [
        ("Retracted Publication", "A trial", "Retracted Publication"),
        ("Journal Article", "RETRACTED: a trial", "RETRACTED: a trial"),
        ("", "（已撤稿）样酰胺", "（已撤稿）样酰胺"),
        ("Retraction of Publication", "Retraction notice to: a trial", ""),
        ("Journal Article", "How often are trials retracted?", ""),
    ],
)
def test_a_passage_is_retracted_when_it_says_so_of_itself(kind: str, title: str, said: str) -> None:
    assert retraction_notice(passage("research:1", "x", title, kind=kind)) == said


def test_a_retracted_document_says_so_in_each_of_its_passages() -> None:
    """Also where its publisher tells it apart from the type, as JATS does."""
    document = Document(
        "a",
        "A trial",
        (Section("Examplol helped."),),
        kind="research-article",
        retracted=True,
    )
    prepared = prepare_record(document, IngestOptions("research"))
    assert isinstance(prepared, PreparedDocument)
    assert {row.passage.locator.kind for row in prepared.rows} == {"Retracted Publication"}
    assert prepared.kinds == "research-article"
    stands = prepare_record(replace(document, retracted=False), IngestOptions("research"))
    assert isinstance(stands, PreparedDocument)
    assert {row.passage.locator.kind for row in stands.rows} == {"research-article"}


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("Handbook of Samplosis, 2nd edition", Issue("handbook of samplosis", 2, 1999)),
        ("Handbook of Samplosis, Fifth Edition", Issue("handbook of samplosis", 5, 1999)),
        ("Care of mockitis: version 3.1", Issue("care of mockitis", 3, 1999)),
        ("Samplosis care (2018 update)", Issue("samplosis care", None, 2018)),
        ("样本病学 第十二版", Issue("样本病学", 12, 1999)),
        ("样本病防治指南（2022年版）", Issue("样本病防治指南", None, 2022)),
        ("2019", Issue("", None, 2019)),
    ],
)
def test_a_title_tells_the_work_its_edition_and_its_year(title: str, expected: Issue) -> None:
    assert read_issue(passage("book:1", "x", title, year=1999)) == expected


def test_the_latest_issue_of_the_same_source_is_named() -> None:
    cited, later, latest, elsewhere = (
        passage(f"{source}:{n}", "x", f"Handbook of Samplosis, {n}th edition")
        for source, n in (("book", 4), ("book", 5), ("book", 6), ("wiki", 7))
    )
    found = newer_issue(cited, [hit(latest), hit(later), hit(elsewhere)])
    assert found is not None
    assert found.passage == latest
    assert newer_issue(latest, [hit(cited), hit(later)]) is None


def test_a_later_issue_is_named_with_the_sentence_nearest_to_the_quote() -> None:
    (found,) = find_cautions(answered(OLD), [hit(OLD), hit(NEW)])
    assert found.rule == "superseded"
    assert "[1] Handbook of Samplosis, 2nd edition (edition 2)" in found.text
    assert "Handbook of Samplosis, 3rd edition (edition 3)" in found.text
    assert [each.quote for each in found.evidence] == [OLD.text, NEAREST]


def test_a_document_is_not_held_against_itself() -> None:
    assert rules(OLD, replace(NEW, id="book:old#7")) == []


def test_passages_that_say_otherwise_give_no_caution() -> None:
    assert rules(OLD, replace(NEW, title="Doses")) == []


def test_only_what_is_cited_is_held_against_the_rest() -> None:
    assert find_cautions(Answer(note="nothing is cited"), [hit(OLD), hit(NEW)]) == ()


def test_a_passage_quoted_twice_is_named_once_and_each_rule_tells_its_own() -> None:
    cited = replace(OLD, locator=Locator(kind="Retracted Publication"))
    answer = answered(cited)
    answer = replace(answer, evidence=(*answer.evidence, Evidence(hit(cited), 0, 9)))
    found = find_cautions(answer, [hit(NEW)])
    assert [each.rule for each in found] == ["retracted", "superseded"]


async def test_a_composer_tells_a_caution_once_a_run_however_often_it_composes() -> None:
    composer, run, hits = CautiousComposer(WrittenComposer()), Run(), [hit(OLD), hit(NEW)]
    for _ in range(2):
        answer = await composer.conclude(QUESTION, hits, f"{OLD.text} [1]", run)
        assert [found.rule for found in answer.cautions] == ["superseded"]
    (event,) = [each for each in run.events if isinstance(each, Cautioned)]
    assert event.passages == (OLD.id, NEW.id)
    assert (composer.uses_draft, composer.writes_answer) == (True, False)


@pytest.mark.parametrize("rule", ["newer-guideline", "amounts", "directions"])
def test_a_caution_of_a_rule_that_is_gone_is_still_read_from_an_old_run(rule: CautionRule) -> None:
    old = Cautioned(rule, "A guideline of 2020 was found.", (OLD.id,), (OLD.text,))
    assert from_line(to_line(old)) == old


def solved(*others: Passage) -> RunPage:
    answer = answered(OLD)
    answer = replace(answer, cautions=find_cautions(answer, [hit(each) for each in others]))
    return RunPage("r", "rag", "", {}, Solution(answer, Halt.CONVERGED, "w"), (), QUESTION)


def test_terminal_json_page_and_api_show_rule_and_both_passages() -> None:
    report = solved(NEW)
    assert report.solution is not None
    for shown in (run_page(report), short_page(report)):
        console = Console(file=StringIO(), width=200)
        console.print(shown)
        told = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
        assert "! superseded: [1] Handbook of Samplosis, 2nd edition (edition 2)" in told
    (found,) = report_document(report)["cautions"]
    assert [each["passage"]["id"] for each in found["evidence"]] == [OLD.id, NEW.id]
    json.dumps(found)
    html = render_page(report)
    assert "<h2>Cautions</h2>" in html
    assert NEAREST in html
    assert "<h2>Cautions</h2>" not in render_page(solved())


def tried() -> Sequence[caution_cases.Tried]:
    return list(caution_cases.tried())


def test_every_rule_and_both_languages_have_labelled_cases() -> None:
    cases = tried()
    assert len(cases) >= 35
    assert {rule for case in cases for rule in case.expected} == {*caution_cases.RULES}
    assert sum(not case.expected for case in cases) >= 15  # what must be left alone
    assert {case.language for case in cases} == {"en", "zh"}


def test_the_guide_shows_the_figures_that_the_cases_give() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for line in caution_cases.markdown(caution_cases.table(tried())):
        assert line in text
