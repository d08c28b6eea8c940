"""Records: what a planner learns from, and the ablations of it."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from osler.errors import BadConfig, BadRun
from osler.methods.omni.plan import parse_source_plan
from osler.methods.omni.planners import SourceDescription
from osler.methods.omni.planners.single import trained_planner
from osler.trace import Run
from osler.types import Question
from osler_lab.evaluate.datasets.splits import question_digest
from osler_lab.evaluate.experiments import list_names
from osler_lab.evaluate.record import Gold, Sample
from osler_lab.testing.scripted import ScriptedModel
from osler_lab.train import record
from osler_lab.train.ablations import read_ablation, read_variant
from osler_lab.train.record import question_digests, write_records
from osler_lab.train.spo.explore import TrainingCase
from osler_lab.train.spo.judge import (
    JudgedCase,
    QueryVerdict,
    compare_judges,
    read_people,
    read_verdicts,
)
from osler_lab.train.spo.recipe import (
    NothingToLearn,
    RecordRecipe,
    RecordTally,
    dpo_records,
    recipe_facts,
    sft_records,
    write_record_card,
)

OFFERS = (SourceDescription("book"), SourceDescription("research"), SourceDescription("graph"))
RECIPE = RecordRecipe(OFFERS)


def made_of(id: str = "q", task: str = "t", **found: str) -> JudgedCase:
    """`book="+a -b"` is a positive and a negative query."""
    question = Question(id, f"Which drug is {id}?", ("adrenaline", "aspirin"))
    said = tuple(
        QueryVerdict(
            source, word[1:].replace("_", " "), {"+": True, "-": False, "?": None}[word[0]]
        )
        for source, words in found.items()
        for word in words.split()
    )
    return JudgedCase(TrainingCase(Sample(task, "choice", question, Gold(("A",)))), said)


BOTH = made_of("both", book="+a -b", graph="+Shock_,_drug")
GOOD = made_of("good", research="+a +b")
BAD = made_of("bad", book="-a ?b")


def test_a_positive_plan_is_shown_after_the_prompt_of_the_planner() -> None:
    made = RecordTally()
    (shown,) = sft_records(RECIPE, [BOTH], made)
    assert shown.completion == (
        "<book> a </book>\n\n<research></research>\n\n<graph> Shock , drug </graph>"
    )
    model = ScriptedModel([shown.completion])
    planner = trained_planner(model, OFFERS)
    plan = asyncio.run(planner.plan(BOTH.case.question, Run())).plan
    assert list(shown.messages) == list(model.seen[0])
    assert parse_source_plan(shown.completion, sources=RECIPE.names).plan == plan
    assert (made.size.records, made.queries) == (1, {"book": 1, "graph": 1})


def test_a_record_is_one_line_as_trainers_read_it(tmp_path: Path) -> None:
    record.write_records(
        tmp_path, (one.line for one in sft_records(RECIPE, [BOTH, GOOD], RecordTally()))
    )
    first, second = record.read_samples(tmp_path)
    assert list(json.loads(first.line)) == ["id", "messages", "completion", "meta"]
    assert [message.role for message in first.messages] == ["system", "user"]
    assert (type(first), second.id) == (record.SftRecord, "t/good")
    record.write_records(tmp_path, (one.line for one in dpo_records(RECIPE, [BOTH], RecordTally())))
    (pair,) = record.read_preferences(tmp_path)
    assert list(json.loads(pair.line)) == ["id", "messages", "chosen", "rejected", "meta"]
    assert isinstance(pair, record.DpoRecord)
    assert pair.rejected.startswith("<book> b </book>")
    assert [path.name for path in tmp_path.iterdir()] == ["data.jsonl"]


def test_case_without_a_positive_plan_makes_no_record_and_is_counted() -> None:
    made = RecordTally()
    assert [one.id for one in sft_records(RECIPE, [BAD, GOOD, BOTH], made)] == ["t/good", "t/both"]
    assert made.summary == "1 × no query was judged positive (first t/bad)"


def test_only_samples_with_both_plans_make_a_triple() -> None:
    made = RecordTally()
    assert [one.id for one in dpo_records(RECIPE, [BAD, GOOD, BOTH], made)] == ["t/both"]
    assert made.left_out == {"no query was judged positive": 1, "no query was judged negative": 1}


def test_an_empty_positive_set_is_told_with_what_to_do() -> None:
    with pytest.raises(
        NothingToLearn, match="none of 1 cases: 1 × no query was judged pos"
    ) as told:
        list(sft_records(RECIPE, [BAD], RecordTally()))
    assert "explore other queries" in told.value.fix


def test_samples_without_negatives_are_told_with_what_to_do() -> None:
    with pytest.raises(NothingToLearn, match="no query was judged negative") as told:
        list(dpo_records(RECIPE, [GOOD], RecordTally()))
    assert told.value.fix.startswith("train SFT alone")


def test_prompts_that_are_too_long_are_left_out_whole_and_never_cut() -> None:
    made = RecordTally()
    tight = replace(RECIPE, longest=100)
    with pytest.raises(NothingToLearn, match="1 × longer than the limit") as told:
        list(sft_records(tight, [GOOD], made))
    assert told.value.fix == "raise --longest"


def test_no_case_at_all_is_told() -> None:
    with pytest.raises(NothingToLearn, match="no case is left"):
        list(sft_records(replace(RECIPE, without_tasks=("t",)), [GOOD], RecordTally()))


def test_negative_plans_only_is_a_training_of_its_own() -> None:
    (shown,) = sft_records(replace(RECIPE, learns="negative"), [BOTH], RecordTally())
    assert shown.completion.startswith("<book> b </book>")


def test_a_source_that_is_left_out_stands_neither_in_prompt_nor_in_plan() -> None:
    (shown,) = sft_records(replace(RECIPE, without_sources=("book",)), [BOTH], RecordTally())
    assert "book" not in shown.messages[1].content
    assert shown.completion == "<research></research>\n\n<graph> Shock , drug </graph>"


def test_a_smaller_share_is_a_part_of_a_larger() -> None:
    cases = [made_of(str(n), book="+a") for n in range(200)]
    shares = [
        {one.id for one in sft_records(replace(RECIPE, ratio=ratio), cases, RecordTally())}
        for ratio in (0.1, 0.5, 1.0)
    ]
    assert shares[0] < shares[1] < shares[2]
    assert (5 < len(shares[0]) < 40, len(shares[2])) == (True, 200)


@pytest.mark.parametrize("name", list_names("osler_lab.train.ablations"))
def test_every_ablation_reads_and_names_what_it_repeats(name: str) -> None:
    found = read_ablation(name)
    assert found.repeats.startswith("Omni-RAG ")
    for row in found.variants:
        for stage in row.stages:
            row.recipe(RECIPE, stage)


def test_an_ablation_s_row_changes_the_recipe() -> None:
    assert read_variant("data-ratio:0.25").recipe(RECIPE, "sft").ratio == 0.25
    assert read_variant("sources:without-book").recipe(RECIPE, "dpo").names == ("research", "graph")
    assert read_variant("uncertainty:sft-negative").recipe(RECIPE, "sft").learns == "negative"
    assert read_variant("judges:rafe").judge == "rerank"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("stages:none", "stages has no 'none'"),
        ("stages", "stages has no ''"),
        ("nothing:x", "no ablation 'nothing'"),
    ],
)
def test_an_unknown_row_is_told(word: str, told: str) -> None:
    with pytest.raises(BadConfig, match=told):
        read_variant(word)


def test_a_stage_that_a_row_has_not_is_told() -> None:
    with pytest.raises(BadConfig, match="sft has no DPO"):
        read_variant("stages:sft").recipe(RECIPE, "dpo")


def test_an_ablation_of_one_s_own_reads_and_a_broken_one_is_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('repeats = "x"\nabout = "y"\n[[variants]]\nname = "a"\nratio = 0.3\n')
    assert read_variant(f"{path}:a").ratio == 0.3
    path.write_text('repeats = "x"\nabout = "y"\nvariants = []\n')
    with pytest.raises(BadConfig, match="compare it with those of Osler"):
        read_ablation(str(path))


def test_the_card_says_what_the_records_are_and_how_they_were_made(tmp_path: Path) -> None:
    made = RecordTally()
    record.write_records(tmp_path, (one.line for one in sft_records(RECIPE, [BOTH, GOOD], made)))
    told = {"explorer": "expert m x6", "snapshot": "abc"}
    facts = recipe_facts(RECIPE, made, told, "gold | documents", "stages:sft")
    write_record_card(tmp_path, "sft", made, facts)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    front, _, body = text.removeprefix("---\n").partition("\n---\n")
    assert 'license: "other"\nlanguage: ["en"]' in front
    assert 'size_categories: ["n<1K"]' in front
    assert '"path": "data.jsonl"' in front
    assert "2 records" in body
    assert "| judge | gold \\| documents |" in body


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "data.jsonl:1: not JSON"),
        ('{"messages": []}', "data.jsonl:1: id: Field required"),
        ("", "has no samples"),
    ],
)
def test_a_folder_that_holds_no_records_is_told(tmp_path: Path, line: str, told: str) -> None:
    (tmp_path / "data.jsonl").write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(BadRun, match=told):
        record.read_samples(tmp_path)
    with pytest.raises(BadRun, match="no training data"):
        record.read_samples(tmp_path / "none")


def test_failed_data_set_leaves_no_files(tmp_path: Path) -> None:
    with pytest.raises(NothingToLearn):
        record.write_records(
            tmp_path, (one.line for one in sft_records(RECIPE, [BAD], RecordTally()))
        )
    assert list(tmp_path.iterdir()) == []


def test_judges_are_compared_over_what_both_have_judged(tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text(
        "case,source,query,verdict\nt/both,book,a,yes\nt/both,book,b,yes\nt/other,book,c,no\n"
    )
    found = compare_judges(read_verdicts([BOTH, BAD]), read_people(people))
    assert (found.n, found.accuracy, found.precision, found.recall) == (2, 0.5, 1.0, 0.5)
    with pytest.raises(BadRun, match="judged by both"):
        compare_judges(read_verdicts([GOOD]), read_people(people))


@pytest.mark.parametrize("task", ["medqa-us", "medqa-us-train", "medqa-us@dev"])
def test_a_data_set_is_left_out_in_all_its_splits(task: str) -> None:
    case = replace(GOOD.case, sample=replace(GOOD.case.sample, task=task))
    assert not replace(RECIPE, without_tasks=("medqa-us",)).uses_case(case)
    assert replace(RECIPE, without_tasks=("medqa-zh",)).uses_case(case)


def test_a_meta_says_the_task_and_which_question_is_learnt(tmp_path: Path) -> None:
    (shown,) = sft_records(RECIPE, [GOOD], RecordTally())
    digest = question_digest(GOOD.case.question.text)
    wanted = {"task": "t", "learns": "positive", "question_digest": digest}
    assert json.loads(shown.line)["meta"] == wanted
    (pair,) = dpo_records(RECIPE, [BOTH], RecordTally())
    write_records(tmp_path, [shown.line, pair.line])
    wanted_digests = {digest, question_digest(BOTH.case.question.text)}
    assert question_digests(tmp_path) == wanted_digests
