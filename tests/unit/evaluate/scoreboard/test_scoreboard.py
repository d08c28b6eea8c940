"""The scoreboard: what may stand in one table, what a claim takes, and that a page repeats."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from osler.errors import BadRun
from osler.types import Question, Usage
from osler_lab.evaluate import plan as planning
from osler_lab.evaluate.intervals import holm, mcnemar
from osler_lab.evaluate.log import LogWriter
from osler_lab.evaluate.metrics.overlap import holds_answer
from osler_lab.evaluate.plan import EvaluatedTask, EvaluationPlan
from osler_lab.evaluate.record import Gold, RecordedOutcome, Sample, SampleRecord
from osler_lab.evaluate.scoreboard import read_scoreboard
from osler_lab.evaluate.scoreboard.page import (
    Claim,
    is_ablation,
    read_claims,
    scored_strategies,
    settle_claim,
    write_page,
)
from osler_lab.evaluate.scoreboard.scores import (
    ScoredAnswer,
    ScoredLog,
    format_scores,
    join_logs,
    of_task,
    read_scores,
    score_log,
)
from osler_lab.evaluate.scoreboard.tables import (
    chooser_of,
    cost_points,
    find_departures,
    is_on_front,
    make_tables,
    risk_curve,
)

PUBLISHED = Path(__file__).parents[4]
SCORES = PUBLISHED / "benchmarks" / "scoreboard"


def scored(strategy: str, n: int, right: float, seconds: float, **more: object) -> ScoredAnswer:
    known = ScoredAnswer(
        "set", strategy, f"{n:012x}", "choice", right, 1, 1, "reader", 1, 10, 1, seconds
    )
    return replace(known, **more)  # type: ignore[arg-type]


def made_log(*rows: ScoredAnswer, **conditions: str) -> ScoredLog:
    labels = dict.fromkeys((one.task, one.strategy) for one in rows)
    known = {f"{task} {label}": conditions.get(label, "same@base") for task, label in labels}
    return ScoredLog(0, "1", known, {"models": "tiny"}, rows)


def two_rows() -> Iterator[ScoredAnswer]:
    """`rag` has 4 of 20 right, `auto` these and 12 others."""
    for n in range(20):
        yield scored("rag", n, float(n < 4), 1.0, sureness=1 - n / 20)
        yield scored("auto", n, float(n < 16), 0.5, sureness=1 - n / 20)


def test_rows_are_compared_on_the_same_questions_with_a_corrected_test() -> None:
    three = (*two_rows(), *(scored("third", n, float(n < 5), 2.0) for n in range(20)))
    (table,) = make_tables(made_log(*three), ["rag", "auto", "third"])
    first, better, same = table.rows
    assert (first.right.value, better.right.value, first.p) == (0.2, 0.8, None)
    assert better.change is not None
    assert better.change.value == pytest.approx(0.6)
    plain = [mcnemar([1] * 4 + [0] * 16, [1] * n + [0] * (20 - n)) for n in (16, 5)]
    assert [better.p, same.p] == holm(plain)
    assert (better.verdict, same.verdict) == ("better", "")


def test_rows_of_other_questions_are_refused_by_name() -> None:
    rows = [*two_rows()][:-1]
    with pytest.raises(BadRun, match="auto and rag on set rest on different questions"):
        make_tables(made_log(*rows), ["rag", "auto"])


@pytest.mark.parametrize(
    ("other", "what"), [("other@base", "settings"), ("same@another", "knowledge bases")]
)
def test_rows_under_another_option_chooser_order_or_base_are_refused(other: str, what: str) -> None:
    with pytest.raises(BadRun, match=f"different {what}: rag, auto"):
        make_tables(made_log(*two_rows(), auto=other), ["rag", "auto"])


def test_a_row_without_a_knowledge_base_may_stand_beside_others() -> None:
    (table,) = make_tables(made_log(*two_rows(), auto="same@"), ["rag", "auto"])
    assert len(table.rows) == 2


def test_a_method_that_decides_by_itself_stands_in_a_table_of_its_own() -> None:
    rows = [*two_rows()]
    rows[-1] = replace(rows[-1], decided="method")
    tables = make_tables(made_log(*rows), ["rag", "auto"])
    assert [[row.strategy for row in table.rows] for table in tables] == [["rag"], ["auto"]]
    assert len({table.chooser for table in tables}) == 2
    stood_in = [replace(one, decided="fallback") for one in two_rows()]
    assert len(make_tables(made_log(*stood_in), ["rag", "auto"])) == 1


def settings(options: str) -> dict[str, object]:
    return {"strategy": {"kind": "rag"}, "answer": {"options": options}, "retrieve": {"k": 5}}


def test_conditions_differ_where_any_setting_but_the_strategy_differs(tmp_path: Path) -> None:
    entrants = {}
    for label, options, kind in (
        ("a", "texts", "rag"),
        ("b", "texts", "cot"),
        ("c", "letters", "rag"),
    ):
        made = planning.make_entrant(label, {**settings(options), "strategy": {"kind": kind}})
        entrants[label] = replace(made, models={"reader": "tiny"}, snapshot="base")
    task = EvaluatedTask("set", "choice", "d" * 64, 1, 1)
    asked = {label: {"set": 1} for label in entrants}
    planning.save_plan(tmp_path, EvaluationPlan(0, {"set": task}, entrants, asked, "1"))
    question = Question("1", "Secret words?", ("yes", "no"))
    with LogWriter(tmp_path) as writer:
        for label in entrants:
            outcome = RecordedOutcome(
                "A", "Yes.", "grounded", decided="reader", usage=Usage(2, seconds=2.5)
            )
            sample = Sample("set", "choice", question, Gold(("A",)))
            writer.write_record(SampleRecord(label, sample, "done", "2026", 1.5, 0, outcome))
    log = score_log(tmp_path)
    same, again, other = (log.conditions[f"set {label}"] for label in "abc")
    assert same == again != other
    *ours, majority = log.scores
    assert [(one.right, one.calls, one.decided) for one in ours] == [(1, 2, "reader")] * 3
    assert (majority.strategy, majority.right, majority.calls) == ("majority", 1, 0)
    assert [one.seconds for one in ours] == [2.5] * 3, "replies that were shared cost as if asked"
    text = format_scores(log)
    assert "Secret" not in text, "a file of scores holds no word of the data"
    (tmp_path / "scores.csv").write_text(text, encoding="utf-8")
    assert read_scores(tmp_path / "scores.csv") == log
    with pytest.raises(BadRun, match="different settings"):
        make_tables(log, ["a", "b", "c"])
    more = EvaluationPlan(0, {"set": task}, entrants, {"a": {"set": 2}}, "1")
    planning.save_plan(tmp_path, more)
    assert not score_log(tmp_path).scores, "who has not tried every question is in no table"


def test_questions_in_the_same_words_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    entrant = replace(planning.make_entrant("rag", settings("texts")), models={"reader": "tiny"})
    task = EvaluatedTask("set", "choice", "d" * 64, 3, 3)
    plan = EvaluationPlan(0, {"set": task}, {"rag": entrant}, {"rag": {"set": 3}}, "1")
    planning.save_plan(tmp_path, plan)
    with LogWriter(tmp_path) as writer:
        for id, text, gold in (("1", "Which?", "A"), ("2", "Which?", "B"), ("3", "What?", "A")):
            sample = Sample("set", "choice", Question(id, text, ("x", "y")), Gold((gold,)))
            outcome = RecordedOutcome("A", decided="reader")
            writer.write_record(SampleRecord("rag", sample, "done", "2026", 1, 0, outcome))
    log = join_logs([score_log(tmp_path)])
    by_strategy = of_task(log.scores, "set")
    assert {label: len(found) for label, found in by_strategy.items()} == {"rag": 3, "majority": 3}
    assert sum(one.right for one in by_strategy["majority"].values()) == 2
    # Hashes of published scores are of the words alone.
    assert sha256(b"What?\n('x', 'y')").hexdigest()[:12] in by_strategy["rag"]


def test_the_same_scores_give_the_same_page(tmp_path: Path) -> None:
    log = made_log(*two_rows(), *(scored("rag", n, 1, 1, task="more") for n in range(20)))
    first = write_page(log, scored_strategies(log), tmp_path / "a")
    again = write_page(log, scored_strategies(log), tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    page = first[0].read_text(encoding="utf-8")
    assert "| `auto` | 80.0 [58.4, 91.9] **+** | – |" in page
    rows = [*csv.DictReader(first[1].read_text(encoding="utf-8").splitlines())]
    assert [(row["task"], row["strategy"], row["right"]) for row in rows] == [
        *(("set", "rag", "0.2"), ("set", "auto", "0.8"), ("more", "rag", "1"))
    ]
    assert float(rows[1]["change_low"]) > 0


def test_the_published_page_is_made_of_the_published_scores(tmp_path: Path) -> None:
    log = join_logs([read_scores(path) for path in sorted(SCORES.glob("*.csv"))])
    files = write_page(log, scored_strategies(log), tmp_path)
    page, table = (PUBLISHED / "docs" / path.relative_to(tmp_path) for path in files[:2])
    assert table.read_text(encoding="utf-8") == files[1].read_text(encoding="utf-8")
    kept = page.read_text(encoding="utf-8")
    assert len(kept.encode()) <= 12_000
    assert kept == files[0].read_text(encoding="utf-8")


def test_published_rows_rest_on_the_same_questions_settings_and_chooser() -> None:
    log = join_logs([read_scores(path) for path in SCORES.glob("*.csv")])
    tables = make_tables(log, scored_strategies(log))  # refuses other questions and settings
    assert {table.task for table in tables} == set(log.tasks)
    for table in tables:
        rows = [of_task(log.scores, table.task)[row.strategy] for row in table.rows]
        assert len({frozenset(row) for row in rows}) == 1
        assert {chooser_of(row.values()) for row in rows} == {table.chooser}
        bases = {log.conditions[f"{table.task} {row.strategy}"] for row in table.rows}
        assert len({base.partition("@")[0] for base in bases}) == 1


def test_two_logs_with_the_same_answers_are_not_joined() -> None:
    with pytest.raises(BadRun, match="the same questions"):
        join_logs([made_log(*two_rows())] * 2)


def test_the_front_is_what_nothing_beats_in_cost_and_quality() -> None:
    rows = [*two_rows(), *(scored("dear", n, float(n < 16), 9.0) for n in range(20))]
    points = {point.strategy: point for point in cost_points(rows)}
    others = [point for label, point in points.items() if label != "auto"]
    assert is_on_front(points["auto"], others)
    assert not is_on_front(points["dear"], [points["auto"]])
    auto = points["auto"]
    noise, cheaper = (replace(auto, mean_seconds=auto.mean_seconds - gap) for gap in (0.09, 0.11))
    assert is_on_front(auto, [noise])
    assert not is_on_front(auto, [cheaper])


def test_risk_falls_where_the_surest_are_the_right_ones() -> None:
    curve = risk_curve(one for one in two_rows() if one.strategy == "auto")
    assert curve is not None
    assert curve.risk.value == 0.0
    assert 0 < curve.aurc < 0.2
    worse = risk_curve(scored("x", n, float(n > 9), 1, sureness=1 - n / 20) for n in range(20))
    assert worse is not None
    assert worse.aurc > curve.aurc


def test_rows_of_risk_rest_on_the_questions_that_all_are_sure_of(tmp_path: Path) -> None:
    rows = [*two_rows()]
    rows[1::4] = [replace(one, sureness=None) for one in rows[1::4]]  # ten of `auto`
    page = write_page(made_log(*rows), ["rag", "auto"], tmp_path)[0].read_text(encoding="utf-8")
    assert "over the 10 questions where each of these strategies says how sure it is" in page


def test_answers_that_are_equally_sure_are_taken_together() -> None:
    order = [scored("x", n, float(n % 2), 1, sureness=0.5) for n in range(20)]
    Random(1).shuffle(order)
    curve = risk_curve(order)
    assert curve is not None
    assert curve.aurc == 0.5


def test_a_tie_is_as_wrong_everywhere_as_in_the_mean_and_weighs_by_its_size() -> None:
    equal = risk_curve(scored("x", n, float(n < 16), 1, sureness=0.9) for n in range(20))
    assert equal is not None
    assert equal.risk.value == pytest.approx(0.2)
    assert equal.risk.low < 0.2 < equal.risk.high
    # 90 right ones before 10 wrong ones: the tie of 90 counts 90 times.
    two = risk_curve(scored("x", n, float(n < 90), 1, sureness=0.9 * (n < 90)) for n in range(100))
    assert two is not None
    assert two.aurc == pytest.approx(sum(wrong / (90 + wrong) for wrong in range(1, 11)) / 100)


def test_no_claim_is_shown_by_an_interval_that_holds_no_effect() -> None:
    with pytest.raises(ValueError, match="holds no effect"):
        Claim("TC-RAG", "§1", "c", "t", "shown", "m", "w", "s", (0.1, -0.1, 0.3))
    with pytest.raises(ValueError, match="no effect with an interval"):
        Claim("TC-RAG", "§1", "c", "t", "shown", "m", "w", "s")


def test_every_claim_has_a_reason_and_a_place_in_the_evaluation_log() -> None:
    files = sorted((PUBLISHED / "research" / "log").glob("*.md"))
    headings = "".join(path.read_text(encoding="utf-8") for path in files)
    for claim in read_claims():
        assert claim.why.endswith(".")
        assert claim.theirs
        assert claim.source == "this page" or f"\n## {claim.source}" in headings, claim.source
    assert sum(claim.status == "shown" for claim in read_claims()) >= 6


def test_a_claim_that_rests_on_scores_follows_them() -> None:
    claim = Claim("TC-RAG", "§1", "c", "t", "shown", "m", "w", "s", (1, 1, 1))
    better = replace(claim, compared=("set", "rag", "auto"))
    settled = settle_claim(better, made_log(*two_rows()))
    assert settled.status == "shown"
    assert settled.effect is not None
    assert settled.effect[0] == pytest.approx(0.6)
    worse = replace(claim, compared=("set", "auto", "rag"))
    assert settle_claim(worse, made_log(*two_rows())).status == "refuted here"


def test_strategies_without_a_part_stand_apart_from_whole_ones() -> None:
    for board in map(read_scoreboard, ("full", "papers")):
        assert {is_ablation(label) for label in board.labels} == {True, False}
    assert not any(map(is_ablation, read_scoreboard("small").labels))


@pytest.mark.parametrize("name", ["small", "full", "papers"])
def test_packaged_scoreboards_name_known_sets_and_each_strategy_once(name: str) -> None:
    board = read_scoreboard(name)
    assert len(set(board.labels)) == len(board.labels)


@pytest.mark.parametrize(
    ("said", "gold", "holds"),
    [
        ("The value is 47.3 mmHg", "47.3333", True),
        ("The value is 48.3 mmHg", "47.3333", False),
        ("It is 3,000 mL", "3000", True),
        ("Type 147.3", "47.3", False),
        ("Insulin and metformin are given.", "Insulin; Metformin", True),
        ("Insulin is given.", "Insulin; Metformin", False),
        ("Insulinoma and metformin", "Insulin; Metformin", False),
        ("", "Insulin", False),
    ],
)
def test_an_answer_holds_every_part_of_its_gold(said: str, gold: str, holds: bool) -> None:
    assert holds_answer(said, gold) is holds


def test_the_sample_s_questions_come_without_a_data_folder() -> None:
    from osler_lab.studies.tasks import read_task

    counts = {name: len(read_task(name, None).samples) for name in read_scoreboard("small").tasks}
    assert counts == {"sample-formulas": 60, "sample-steps": 60, "sample-open": 10, "sample": 30}


def test_a_second_run_is_held_against_the_published_intervals() -> None:
    published = made_log(*two_rows())
    near = [replace(one, right=1.0) if one.question.endswith("11") else one for one in two_rows()]
    assert find_departures(made_log(*near), published) == []
    far = [replace(one, right=0.0) if one.strategy == "auto" else one for one in two_rows()]
    (told,) = find_departures(made_log(*far), published)
    assert told.startswith("auto on set: 0.000")
    rag = [one for one in two_rows() if one.strategy == "rag"]
    assert "not measured" in find_departures(made_log(*rag), published)[0]
