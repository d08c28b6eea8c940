"""The report: what it says, what it refuses to say, and how it looks in a browser."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from osler.errors import BadRun
from osler.trace import Noted
from osler.types import Question, Usage
from osler_lab.cli.evaluate_pages import report_page
from osler_lab.evaluate import measures
from osler_lab.evaluate import plan as planning
from osler_lab.evaluate.compare import compare_logs
from osler_lab.evaluate.intervals import Estimate, holm, mcnemar, paired_test, permutation
from osler_lab.evaluate.log import LogWriter
from osler_lab.evaluate.measures import BY_NAME, MEASURES, measure_value
from osler_lab.evaluate.metrics.choice import relative_drop
from osler_lab.evaluate.plan import EvaluatedTask, EvaluationPlan
from osler_lab.evaluate.record import (
    Gold,
    RecordedEvidence,
    RecordedOutcome,
    RecordedStatement,
    Sample,
    SampleRecord,
    Status,
)
from osler_lab.evaluate.report import (
    build_report,
    format_figure,
    measure_tables,
    render_markdown,
)

HOSTILE = '<script>alert(1)</script> & "quoted" 糖尿病？'


def record(strategy: str, number: int, option: str | None, *, error: str = "") -> SampleRecord:
    question = Question(f"q{number:02d}", f"Case {number}: {HOSTILE}", ("yes", "no"))
    sample = Sample("pubmedqa", "choice", question, Gold(("A",), (), ("PMID:7",)))
    outcome = RecordedOutcome(
        option,
        "Because [1].",
        "grounded",
        "converged",
        "said so",
        (RecordedStatement("Because.", (1,)),),
        (RecordedEvidence("research:pubmed_7_0#0", "A title", "PMID:7", "quote"),),
        ("research:pubmed_8_0#0", "research:pubmed_7_0#0"),
        ("answer/letters@abc",),
        0.9 if option == "A" else 0.3,
        Usage(calls=2, prompt_tokens=100, searches=1, seconds=0.5),
    )
    status: Status = "failed" if error else "done"
    when = "2026-01-01T00:00:00"
    return SampleRecord(
        strategy, sample, status, when, 1.5, 0, RecordedOutcome() if error else outcome, error
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two strategies on ten questions: direct gets 4 right, rag 9; one sample of rag failed."""
    folder = tmp_path / "log"
    settings = {"strategy": {"kind": "direct"}, "sampling": {"seed": 3}}
    entrants = {}
    for label, kind in (("direct", "direct"), ("rag:k=5", "rag")):
        found = planning.make_entrant(label, {**settings, "strategy": {"kind": kind}})
        entrants[label] = replace(found, models={"reader": "tiny"}, snapshot="snap1")
    task = EvaluatedTask("pubmedqa", "choice", "d" * 64, 14, 12, {"no gold option": 2})
    asked = {"direct": {"pubmedqa": 10}, "rag:k=5": {"pubmedqa": 12}}
    planning.save_plan(folder, EvaluationPlan(0, {"pubmedqa": task}, entrants, asked, "0.1"))
    with LogWriter(folder, "w") as writer:
        for number in range(10):
            for strategy, rights in (("direct", 4), ("rag:k=5", 9)):
                made = record(strategy, number, "A" if number < rights else "B")
                trace = writer.write_trace([Noted(f"note {HOSTILE}")])
                writer.write_record(replace(made, trace=trace))
        writer.write_record(record("rag:k=5", 10, None, error="ModelUnreachable: away"))
    return folder


def test_the_figures_are_those_of_the_records(log: Path) -> None:
    report = build_report(log)
    direct, rag = report.cells
    assert direct.estimates["accuracy"].value == pytest.approx(0.4)
    assert rag.estimates["accuracy"].value == pytest.approx(9 / 11)
    assert (rag.done, rag.failed, rag.missing) == (10, 1, 1)
    assert rag.estimates["mrr"].value == pytest.approx(0.5)
    assert rag.estimates["recall_10"].value == 1
    assert rag.estimates["citation_precision"].value == 1
    assert rag.estimates["citation_recall"].value == 1
    assert rag.estimates["calls"].value == 2
    assert rag.ece is None  # of ten answers it would tell nothing


def test_the_paired_test_sees_what_changed(log: Path) -> None:
    (one,) = build_report(log).compared
    assert (one.first, one.second, one.change.n) == ("direct", "rag:k=5", 10)
    assert one.change.value == pytest.approx(0.5)
    assert one.p == one.corrected == pytest.approx(2 * 0.5**5)
    assert [change.id for change in one.better] == ["q04", "q05", "q06", "q07", "q08"]
    assert one.worse == ()


def test_strategies_are_compared_with_the_plan_s_first_whoever_s_file_comes_first(
    log: Path,
) -> None:
    # Files of records are named by host and process: any order may come.
    with LogWriter(log, "a") as writer:
        writer.write_record(replace(record("rag:k=5", 0, "A"), when="2026-01-02T00:00:00"))
    (one,) = compare_logs(log, log)
    assert (one.first, one.second) == ("direct", "rag:k=5")
    assert one.change.value == pytest.approx(0.5)


def test_the_markdown_says_what_was_measured_how_and_what_is_left_out(log: Path) -> None:
    text = render_markdown(build_report(log))
    assert "| rag:k=5 | 81.8 [52.3, 94.9] | 81.8 |" in text
    assert "Omni-RAG Table 4, No Retrieval | 34.60 | 40.0" in text
    assert "Qwen2.5-7B-Instruct there, tiny here; n = 10" in text
    assert "- pubmedqa: 2 of 14 rows were no samples: no gold option" in text
    assert "- rag:k=5 on pubmedqa: 1 not tried yet" in text
    assert "seed 3; prompts: answer/letters@abc" in text
    assert "McNemar, exact" in text


def test_what_no_strategy_of_the_log_did_stands_as_printed_by_the_authors(log: Path) -> None:
    report = build_report(log)
    places = [one.place for one in report.rivals]
    assert "Omni-RAG Table 4, SPO Planning" in places
    assert "Omni-RAG Table 4, No Retrieval" not in places, "it stands beside ours"
    text = render_markdown(report)
    assert "## Rivals, as printed by the authors" in text
    assert "| pubmedqa | Omni-RAG Table 4, SPO Planning | 60.20 |  | Qwen2.5-7B-Instruct; " in text


def test_a_printed_figure_says_where_the_data_is_not_the_published_set(log: Path) -> None:
    report = build_report(log)
    told = "14 rows of data here, 500 as published; "
    assert all(told in one.differs for one in report.printed)
    assert all(told in one.differs for one in report.rivals)
    plan = planning.read_plan(log)
    whole = {"pubmedqa": replace(plan.tasks["pubmedqa"], rows=500)}
    planning.save_plan(log, replace(plan, tasks=whole))
    report = build_report(log)
    assert report.printed
    assert not any("as published" in one.differs for one in report.printed)
    assert not any("as published" in one.differs for one in report.rivals)


def test_the_leaderboard_of_cmb_has_the_eleven_models_of_the_paper(tmp_path: Path) -> None:
    """TC-RAG Table 4: eleven models and TC-RAG, each with six examinations."""
    question = Question("q1", "Which?", ("a", "b"))
    asked = replace(
        gold_record(0, "A"), sample=Sample("cmb-exam", "choice", question, Gold(("A",)))
    )
    rivals = build_report(log_of(tmp_path / "cmb", [asked])).rivals
    table = [one for one in rivals if one.place.startswith("TC-RAG Table 4")]
    assert len(table) == 12
    for one in table:
        assert len(one.parts) == 6
        assert sum(one.parts.values()) / 6 == pytest.approx(one.theirs, abs=0.02)
    assert len([one for one in rivals if one.place.startswith("TC-RAG Table 1")]) >= 12


def test_failures_come_first(log: Path) -> None:
    page = render_markdown(build_report(log))
    shown = re.findall(r"\| rag:k=5 \| pubmedqa \| (q\d\d) \|", page)
    assert shown[:3] == ["q10", "q09", "q00"]
    assert "| q10 | failed |" in page


def test_a_measure_that_fails_fails_the_report_by_name(log: Path) -> None:
    def broken(record: SampleRecord) -> float:
        raise ZeroDivisionError("nothing to divide")

    found = [replace(m, of=broken) if m.name == "mrr" else m for m in MEASURES]
    with pytest.raises(BadRun, match="'mrr' failed on pubmedqa q00 under direct: ZeroDivision"):
        build_report(log, measures=found)


def test_an_empty_log_has_no_report(log: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    planning.save_plan(empty, planning.read_plan(log))
    with pytest.raises(BadRun, match="holds no sample yet"):
        build_report(empty)
    with pytest.raises(BadRun, match="is not a log folder"):
        build_report(tmp_path / "nothing")


def test_logs_without_a_common_sample_cannot_be_compared(log: Path, tmp_path: Path) -> None:
    with pytest.raises(BadRun, match="is not a log folder"):
        compare_logs(log, tmp_path / "nothing")
    (tmp_path / "other").mkdir()
    with pytest.raises(BadRun, match="no sample in common"):
        compare_logs(log, tmp_path / "other")


def test_an_unparsed_choice_is_wrong_and_counted() -> None:
    made = record("direct", 1, None)
    assert measure_value(BY_NAME["accuracy"], made) == 0
    assert measure_value(BY_NAME["unparsed"], made) == 1
    assert measure_value(BY_NAME["f1"], made) is None


def test_a_choice_of_several_is_all_or_nothing() -> None:
    question = Question("q", "?", ("a", "b", "c"))
    sample = Sample("cmb-exam", "choices", question, Gold(("A", "C")))
    for text, score in (("答案是AC", 1.0), ("Answer: A and C", 1.0), ("答案是A", 0.0), ("", 0.0)):
        made = replace(record("x", 1, None), sample=sample, outcome=RecordedOutcome(None, text))
        assert measure_value(BY_NAME["accuracy"], made) == score, text


def test_marks_of_citations_are_not_part_of_an_answer() -> None:
    assert measures.answer_text(record("x", 1, "A")) == "Because."


def test_mcnemar_by_hand() -> None:
    """5 against 1 discordant: 2 · (1 + 6) / 64."""
    first = [1.0] * 5 + [0.0] + [1.0] * 4
    second = [0.0] * 5 + [1.0] + [1.0] * 4
    assert mcnemar(first, second) == pytest.approx(14 / 64)
    assert paired_test(first, second).name == "McNemar, exact"
    assert mcnemar([1.0], [1.0]) == 1


def test_mcnemar_is_scipys_binomial_test() -> None:
    stats = pytest.importorskip("scipy.stats")
    for only_first in range(12):
        for only_second in range(12):
            if not only_first + only_second:
                continue
            a = [1.0] * only_first + [0.0] * only_second
            b = [0.0] * only_first + [1.0] * only_second
            wanted = stats.binomtest(only_first, only_first + only_second).pvalue
            assert mcnemar(a, b) == pytest.approx(wanted, abs=1e-9)


def test_a_permutation_test_of_few_pairs_is_near_all_its_flips() -> None:
    """Gaps 1, 2, 3, 4: of 16 flips only ++++ and ---- reach the mean: p = 1/8."""
    p = permutation([0, 0, 0, 0], [1, 2, 3, 4], draws=40_000)
    assert p == pytest.approx(1 / 8, abs=0.01)
    assert permutation([1.5, 2.0], [1.5, 2.0]) == 1


def test_holm_by_hand() -> None:
    """0.01 · 3, then 0.02 · 2, then 0.9; never below the one before."""
    assert holm([0.02, 0.9, 0.01]) == pytest.approx([0.04, 0.9, 0.03])
    assert holm([0.5, 0.4]) == pytest.approx([0.8, 0.8])
    assert holm([]) == []


TABLE_6 = {
    76.98: {70.38: -8.57, 72.35: -6.01, 71.72: -6.83, 71.48: -7.14, 60.80: -21.02},
    60.20: {52.60: -12.62, 56.40: -6.31, 35.40: -41.20, 58.20: -3.32, 34.60: -42.52},
    61.90: {56.80: -8.24, 52.10: -15.83, 51.20: -17.29, 55.50: -10.34, 51.00: -17.61},
}


@pytest.mark.parametrize("base", TABLE_6)
def test_omni_rags_table_6_recomputes_from_its_accuracies(base: float) -> None:
    for accuracy, printed in TABLE_6[base].items():
        assert 100 * relative_drop(accuracy, base) == pytest.approx(printed, abs=0.011)


def test_a_failed_sample_counts_as_wrong_in_figures_and_comparisons(log: Path) -> None:
    with LogWriter(log, "more") as writer:
        writer.write_record(record("direct", 10, "A"))
    report = build_report(log)
    direct, rag = report.cells
    assert (rag.estimates["accuracy"].value, rag.estimates["accuracy"].n) == (9 / 11, 11)
    assert (direct.estimates["accuracy"].value, direct.estimates["accuracy"].n) == (5 / 11, 11)
    (compared,) = report.compared
    assert compared.change.n == 11
    assert [change.id for change in compared.worse] == ["q10"]
    assert compared.worse[0].said_after == "ModelUnreachable: away"
    # What a failed sample cost, and what it found, is not known.
    assert rag.estimates["calls"].n == rag.estimates["mrr"].n == 10
    assert rag.error == pytest.approx((9 / 11 * 2 / 11 / 11) ** 0.5)


def test_the_report_says_that_failed_samples_are_counted_as_wrong(log: Path) -> None:
    text = render_markdown(build_report(log))
    assert "A sample that failed counts as 0" in text
    assert "- rag:k=5 on pubmedqa: 1 failed, counted as 0 (ModelUnreachable × 1)" in text


def test_a_failed_sample_without_gold_counts_nowhere() -> None:
    question = Question("q", "What helps?")
    for gold, wanted in (((), None), (("rest",), 0.0)):
        sample = Sample("expertqa", "long", question, Gold((), gold))
        failed = SampleRecord("rag", sample, "failed", "", 1.0, 0, RecordedOutcome(), "OSError: x")
        assert measure_value(BY_NAME["rouge_l"], failed) == wanted


def gold_record(number: int, letter: str, said: str = "A") -> SampleRecord:
    question = Question(f"q{number}", f"Case {number}?", ("yes", "no", "maybe"))
    sample = Sample("pubmedqa", "choice", question, Gold((letter,)))
    return SampleRecord("direct", sample, "done", "", 1.0, 0, RecordedOutcome(said, confidence=0.5))


def log_of(folder: Path, records: list[SampleRecord]) -> Path:
    kind = records[0].sample.kind
    name = records[0].sample.task
    labels = dict.fromkeys(one.strategy for one in records)
    entrants = {label: planning.make_entrant(label, {}) for label in labels}
    asked = {label: {name: len(records)} for label in labels}
    task = EvaluatedTask(name, kind, "d" * 64, len(records), len(records))
    planning.save_plan(folder, EvaluationPlan(0, {name: task}, entrants, asked, "0.1"))
    with LogWriter(folder, "w") as writer:
        for one in records:
            writer.write_record(one)
    return folder


def test_every_report_has_the_rows_of_the_majority_answer_and_of_chance(tmp_path: Path) -> None:
    """Three of five are yes: who always says so has 60 %; one of three options, 33 %."""
    made = [gold_record(n, letter) for n, letter in enumerate("ABACA")]
    made += [replace(one, strategy="rag") for one in made]  # the same questions count once
    report = build_report(log_of(tmp_path / "log", made))
    majority, chance = report.opponents["pubmedqa"]["accuracy"]
    assert (majority.said, majority.estimate.value, majority.estimate.n) == ("A", 0.6, 5)
    assert chance.estimate.value == pytest.approx(1 / 3)
    text = render_markdown(report)
    assert "| majority answer | 60.0 [23.1, 88.2] | 60.0 |" in text
    assert "| chance | 33.3 | 33.3 |" in text


def test_the_majority_of_short_answers_and_of_sets_of_options(tmp_path: Path) -> None:
    golds = [("yes", "Yes!"), ("Yes",), ("1.2 mg",)]
    short = [
        SampleRecord(
            "direct",
            Sample("hotpotqa", "short", Question(f"q{n}", "Which?"), Gold((), texts)),
            *("done", "", 1.0, 0, RecordedOutcome(text="no")),
        )
        for n, texts in enumerate(golds)
    ]
    opponents = build_report(log_of(tmp_path / "short", short)).opponents["hotpotqa"]
    assert {name: [o.name for o in found] for name, found in opponents.items()} == {
        "held": ["majority answer"],
        "em": ["majority answer"],
        "f1": ["majority answer"],
    }
    assert opponents["em"][0].estimate.value == pytest.approx(2 / 3)
    assert opponents["held"][0].estimate.value == pytest.approx(2 / 3)
    question = Question("q", "?", ("a", "b"))
    sets = [
        SampleRecord(
            "direct",
            Sample("cmb-exam", "choices", replace(question, id=f"q{n}"), Gold(tuple(letters))),
            *("done", "", 1.0, 0, RecordedOutcome(text="")),
        )
        for n, letters in enumerate(("AB", "BA", "A"))
    ]
    majority, chance = build_report(log_of(tmp_path / "sets", sets)).opponents["cmb-exam"][
        "accuracy"
    ]
    assert majority.said == "A B"
    assert majority.estimate.value == pytest.approx(2 / 3)
    assert chance.estimate.value == pytest.approx(1 / 3)  # of the three sets that are not empty


def test_equal_changes_of_few_samples_have_an_interval(tmp_path: Path) -> None:
    """Of five samples none differs: up to 43 % of all may (Wilson's bound of 0 of 5)."""
    made = [gold_record(n, "A") for n in range(5)]
    made += [replace(one, strategy="rag") for one in made]
    folder = log_of(tmp_path / "log", made)
    (one,) = compare_logs(folder, folder)
    assert one.change.value == 0
    assert (one.change.low, one.change.high) == pytest.approx((-0.434, 0.434), abs=0.001)


def test_the_mean_is_over_the_data_sets_that_the_measure_is_of(tmp_path: Path) -> None:
    made = [gold_record(n, "AB"[n % 2]) for n in range(4)]
    folder = log_of(tmp_path / "log", made)
    text = Sample("bioasq-summary", "long", Question("q", "What?"), Gold((), ("rest",)))
    other = Sample("bioasq", "choice", made[0].sample.question, Gold(("A",)))
    with LogWriter(folder, "more") as writer:
        writer.write_record(replace(made[0], sample=text))
        writer.write_record(replace(made[0], sample=other))
        writer.write_record(replace(made[0], sample=other, strategy="rag"))
    report = build_report(folder)
    assert report.macro_mean("direct", "accuracy") == pytest.approx((0.5 + 1) / 2)
    assert report.macro_mean("rag", "accuracy") is None, "it has one of two"
    majority = re.findall(r"\n(\| majority.*)", render_markdown(report))[0]
    assert majority.endswith("| 75.0 |")


def test_long_means_are_written_out(log: Path) -> None:
    costs = {
        name: Estimate(value, 0, 0, 3) for name, value in (("tokens", 12345), ("calls", 999.7))
    }
    for name, wanted in (("tokens", "12,345"), ("calls", "1,000")):
        assert format_figure(BY_NAME[name], costs[name]) == wanted
    report = build_report(log)
    for cell in report.cells:
        cell.estimates = costs
    rows = {table.measure.name: table.rows[0][1] for table in measure_tables(report)}
    assert (rows["tokens"], rows["calls"]) == (("12,345",) * 2, ("1,000",) * 2)


def test_a_right_value_in_a_sentence_is_right_where_strategies_are_compared(
    tmp_path: Path,
) -> None:
    made = [
        SampleRecord(
            strategy,
            Sample("sample-formulas", "short", Question("q", "How much?"), Gold((), ("47.3333",))),
            *("done", "", 1.0, 0),
            RecordedOutcome(text=said, statements=(RecordedStatement(said),)),
        )
        for strategy, said in (("rag", "A long quoted sentence."), ("auto", "It is 47.3 mmHg."))
    ]
    folder = log_of(tmp_path / "log", made)
    (one,) = compare_logs(folder, folder)
    assert (one.measure, one.change.value) == ("held", 1.0)
    report = build_report(folder)
    assert "F1 of tokens" in report_page(report), "both are shown"
    (majority,) = report.opponents["sample-formulas"]["held"]
    assert (majority.said, majority.estimate.value) == ("47.3333", 1.0)


def test_chance_of_a_task_with_single_and_multiple_choice_is_over_both(tmp_path: Path) -> None:
    """Of two options: one to choose 1/2, a set 1/3."""
    made = [gold_record(n, "A") for n in range(2)]
    several = replace(made[1].sample, kind="choices")
    question = replace(made[0].sample.question, options=("a", "b"))
    first = replace(made[0], sample=replace(made[0].sample, question=question))
    second = replace(
        made[1], sample=replace(several, question=replace(several.question, options=("a", "b")))
    )
    report = build_report(log_of(tmp_path / "log", [first, second]))
    _, chance = report.opponents["pubmedqa"]["accuracy"]
    assert chance.estimate.value == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_calibration_error_of_few_answers_is_not_shown(tmp_path: Path) -> None:
    few = build_report(log_of(tmp_path / "few", [gold_record(n, "A") for n in range(99)]))
    assert few.cells[0].ece is None
    assert "ECE" not in render_markdown(few)
    many = build_report(log_of(tmp_path / "many", [gold_record(n, "A") for n in range(100)]))
    assert many.cells[0].ece == pytest.approx(0.5)
    assert "| direct | pubmedqa | 0.500 | 100 |" in render_markdown(many)
