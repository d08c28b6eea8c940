"""Cautions of evidence: what each rule sees, and what it leaves alone. Drugs are invented."""

import json
from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import caution_cases
import pytest
from rich.console import Console

from osler.answer.cautions import MOST, WORDS, CautiousComposer, find_cautions
from osler.answer.currency import Issue, newer_issue, read_issue, retraction_notice
from osler.answer.directions import read_directions
from osler.answer.disagreement import Amount, find_difference, read_amounts, read_claim
from osler.answer.written import WrittenComposer
from osler.cli.page import render_page
from osler.cli.render import RunPage, run_page, short_page
from osler.cli.run_documents import report_document
from osler.kb.ingest.prepare import IngestOptions, PreparedDocument, prepare_record
from osler.serve import documents
from osler.sources.records import Document, Section
from osler.trace import Cautioned, Run
from osler.trace.events import from_line, to_line
from osler.types import (
    Answer,
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


TEN = passage("book:ex", "Samplosis is treated with examplol 10 mg once a day.", "Drugs")
FORTY = passage("guideline:ex", "Examplol 40 mg once a day is how samplosis is treated.", "Doses")


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


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Give 0.5 g.", [Amount("mg", 500, 500, "0.5 g")]),
        ("Give 5-10 mg a day.", [Amount("mg", 5, 10, "5-10 mg")]),
        ("每日10至20毫克", [Amount("mg", 10, 20, "10至20毫克")]),
        ("Up to 1,000 mg.", [Amount("mg", 0, 1000, "1,000 mg")]),
        ("at least 2 weeks", [Amount("hours", 336, float("inf"), "2 weeks")]),
        ("3 mg/kg", [Amount("mg/kg", 3, 3, "3 mg/kg")]),
        ("5 mg/day", [Amount("mg", 5, 5, "5 mg/day")]),
        ("5 mg/h", [Amount("mg/h", 5, 5, "5 mg/h")]),
        ("疗程7天", [Amount("hours", 168, 168, "7天")]),
        ("vitamin B12 and CD4 and 10 gallons", []),
        ("2.5.1 mg", []),
    ],
)
def test_amounts_are_read_with_their_unit(sentence: str, found: list[Amount]) -> None:
    assert read_amounts(sentence) == found


@pytest.mark.parametrize(
    ("sentence", "axis", "way"),
    [
        ("Examplol is recommended.", "advice", 1),
        ("Examplol is not recommended.", "advice", -1),
        ("Examplol should be avoided.", "advice", -1),
        ("It should not be given.", "advice", -1),
        ("It does not raise the pressure.", "change", -1),
        ("It is not effective.", "effect", -1),
        ("不推荐使用例素。", "advice", -1),
        ("患者应卧床。", "advice", 1),
        ("患者不应卧床。", "advice", -1),
        ("应避免使用。", "advice", -1),
        ("例素升高血压。", "change", 1),
        ("样本病患者禁用例素。", "advice", -1),
        ("例素对样本病无效。", "effect", -1),
    ],
)
def test_words_point_one_way_and_a_negation_turns_them(sentence: str, axis: str, way: int) -> None:
    assert set(read_directions(sentence)[axis]) == {way}


def test_amounts_that_differ_are_named_with_both_passages_and_the_words_they_share() -> None:
    (found,) = find_cautions(answered(TEN), [hit(TEN), hit(FORTY)])
    assert found.rule == "amounts"
    assert "[1] Drugs says 10 mg, Doses says 40 mg" in found.text
    assert "samplosis" in found.text
    assert [each.quote for each in found.evidence] == [TEN.text, FORTY.text]


@pytest.mark.parametrize(
    "other",
    [
        "Samplosis is treated with examplol 10 mg once a day.",
        "Samplosis is treated with examplol 0.01 g once a day.",
        "Samplosis in children is treated with examplol 2 mg once a day.",
        "Samplosis is treated with examplol 20 mg or 40 mg once a day.",
        "Mockitis is treated with testamycin 40 mg once a day.",
        "Samplosis is treated with examplol once a day.",
    ],
)
def test_passages_that_agree_or_differ_in_subject_give_no_caution(other: str) -> None:
    assert rules(TEN, passage("research:1", other)) == []


def test_a_document_is_not_held_against_itself() -> None:
    assert rules(TEN, replace(FORTY, id="book:ex#7")) == []


def test_passages_in_another_language_give_no_caution() -> None:
    assert rules(TEN, replace(FORTY, language="zh")) == []


def test_comparing_sentence_gives_no_caution() -> None:
    ours = "Examplol increases the risk of bleeding in samplosis."
    theirs = "Examplol decreases the risk of bleeding in samplosis less than dummyfen."
    assert find_difference(read_claim(ours), read_claim(theirs), "en") is None


def test_chinese_sentences_disagree_in_chinese_words() -> None:
    cited = passage("book:1", "样本病推荐使用例素。", "例素", language="zh")
    other = passage("guideline:1", "样本病不推荐使用例素。", "样本病", language="zh")
    (found,) = find_cautions(answered(cited), [hit(other)])
    assert found.rule == "directions"
    assert "“推荐”" in found.text
    assert "“不推荐”" in found.text


def test_only_what_is_cited_is_held_against_the_rest() -> None:
    assert find_cautions(Answer(note="nothing is cited"), [hit(TEN), hit(FORTY)]) == ()


def test_cautions_are_at_most_six_the_more_serious_first() -> None:
    cited = replace(TEN, locator=Locator(kind="Retracted Publication"))
    others = [replace(FORTY, id=f"research:{n}#0") for n in range(10)]
    found = rules(cited, *others)
    assert found == ["retracted", *["amounts"] * (MOST - 1)]


def test_the_metadata_rules_can_stand_alone() -> None:
    assert find_cautions(answered(TEN), [hit(FORTY)], "currency") == ()


async def test_a_composer_tells_a_caution_once_a_run_however_often_it_composes() -> None:
    composer, run, hits = CautiousComposer(WrittenComposer()), Run(), [hit(TEN), hit(FORTY)]
    for _ in range(2):
        answer = await composer.conclude(QUESTION, hits, f"{TEN.text} [1]", run)
        assert [found.rule for found in answer.cautions] == ["amounts"]
    (event,) = [each for each in run.events if isinstance(each, Cautioned)]
    assert event.passages == (TEN.id, FORTY.id)
    assert (composer.uses_draft, composer.writes_answer) == (True, False)


def test_a_caution_of_a_rule_that_is_gone_is_still_read_from_an_old_run() -> None:
    old = Cautioned("newer-guideline", "A guideline of 2020 was found.", (TEN.id,), (TEN.text,))
    assert from_line(to_line(old)) == old


def solved(*others: Passage) -> RunPage:
    answer = answered(TEN)
    answer = replace(answer, cautions=find_cautions(answer, [hit(each) for each in others]))
    return RunPage("r", "rag", "", {}, Solution(answer, Halt.CONVERGED, "w"), (), QUESTION)


def test_terminal_json_page_and_api_show_rule_and_both_passages() -> None:
    report = solved(FORTY)
    assert report.solution is not None
    for shown in (run_page(report), short_page(report)):
        console = Console(file=StringIO(), width=200)
        console.print(shown)
        told = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
        assert "! amounts: [1] Drugs says 10 mg, Doses says 40 mg" in told
    (found,) = report_document(report)["cautions"]
    assert [each["id"] for each in found["evidence"]] == [TEN.id, FORTY.id]
    json.dumps(found)
    html = render_page(report)
    assert "<h2>Cautions</h2>" in html
    assert FORTY.text in html
    (wired,) = documents.caution_views(report.solution.answer)
    assert [each.passage.id for each in wired.evidence] == [TEN.id, FORTY.id]
    assert "<h2>Cautions</h2>" not in render_page(solved())


def tried() -> Sequence[caution_cases.Tried]:
    return list(caution_cases.tried())


def test_every_rule_and_both_languages_have_labelled_cases() -> None:
    cases = tried()
    assert len(cases) >= 90
    assert {rule for case in cases for rule in case.expected} == WORDS.keys()
    assert sum(not case.expected for case in cases) >= 30  # what must be left alone
    assert {case.language for case in cases} == {"en", "zh"}


def test_the_guide_shows_the_figures_that_the_cases_give() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    for line in caution_cases.markdown(caution_cases.table(tried())):
        assert line in text
