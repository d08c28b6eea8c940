"""The data sets as published: counts, ten samples each, and what a broken file does."""

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from osler.errors import BadConfig, MalformedSource, OslerError
from osler_lab.evaluate.datasets import DATA_SETS, load_dataset
from osler_lab.evaluate.datasets.base import LoadedDataset, json_records
from osler_lab.evaluate.datasets.clinical import read_labels
from osler_lab.evaluate.datasets.longform import inline_options
from osler_lab.evaluate.metrics.overlap import f1, holds_answer

GOLDEN: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "golden" / "datasets.json").read_text(encoding="utf-8")
)
_LOADED: dict[str, LoadedDataset] = {}


def questions(shared_data: Path) -> Path:
    return shared_data / "A_questions"


def loaded(name: str, folder: Path) -> LoadedDataset:
    if name not in _LOADED:
        _LOADED[name] = load_dataset(name, folder)
    return _LOADED[name]


def told(shared_data: Path) -> dict[str, int]:
    """File → number of records, as the data's own description says."""
    text = (shared_data / "DATA.md").read_text(encoding="utf-8")
    found = re.findall(r"^- `A_questions/(\S+)`: (\d+) \w+", text, re.MULTILINE)
    return {name: int(count) for name, count in found}


@pytest.mark.parametrize("name", GOLDEN)
def test_every_record_of_a_published_file_is_read(name: str, shared_data: Path) -> None:
    counts, found = told(shared_data), DATA_SETS[name]
    assert loaded(name, questions(shared_data)).rows == GOLDEN[name]["rows"]
    if name.startswith("bioasq-"):
        return  # three sets share one file; see the next test
    data = [file for file in found.files if counts[file] and "release_" not in file]
    wanted = sum(counts[file] for file in data) if name == "mmlu-med" else counts[data[0]]
    assert loaded(name, questions(shared_data)).rows == wanted


def test_the_three_other_types_of_bioasq_are_all_of_their_file(shared_data: Path) -> None:
    names = ("bioasq-factoid", "bioasq-list", "bioasq-summary")
    rows = sum(loaded(name, questions(shared_data)).rows for name in names)
    assert rows == told(shared_data)["bioasq/bioasq_other_golden.json"]


def test_the_official_key_of_cmb_is_read(shared_data: Path) -> None:
    path = questions(shared_data) / "cmb_exam" / "CMB-test-choice-answer.json"
    rows = list(json_records(path))
    assert len(rows) == told(shared_data)["cmb_exam/CMB-test-choice-answer.json"]
    assert all(row.text_of("answer") for row in rows)


@pytest.mark.parametrize("name", GOLDEN)
def test_ten_samples_are_as_they_were_when_the_golden_file_was_written(
    name: str, shared_data: Path
) -> None:
    """Guards against change; that they are right, `test_independent_reading.py` shows."""
    found, wanted = loaded(name, questions(shared_data)), GOLDEN[name]
    assert len(found.samples) == wanted["samples"]
    assert {reason: d.count for reason, d in found.dropped.items()} == wanted["dropped"]
    for at, id, kind, gold, options, language, support, digest in wanted["golden"]:
        sample = found.samples[at]
        text = "\n".join((sample.question.text, *sample.question.options, *sample.gold.texts))
        letters = "".join(sample.gold.letters)
        assert (sample.id, sample.kind, sample.question.language) == (id, kind, language)
        assert (letters or len(sample.gold.texts)) == gold
        assert (len(sample.question.options), len(sample.gold.support)) == (options, support)
        assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("name", GOLDEN)
def test_no_question_holds_its_gold_answer_as_a_field(name: str, shared_data: Path) -> None:
    for sample in loaded(name, questions(shared_data)).samples[:200]:
        assert set(sample.question.__slots__) == {"id", "text", "options", "language"}
        if not sample.question.options and sample.kind == "long":
            assert all(
                len(gold) < 60 or gold not in sample.question.text for gold in sample.gold.texts
            )


def test_emergency_stays_are_read_from_the_users_own_files(shared_data: Path) -> None:
    folder = shared_data / "D_emr" / "mimic4ed_shaped" / "ed"
    paths = [folder / "edstays.csv.gz", folder / "triage.csv.gz"]
    found = DATA_SETS["mimic-ed-admission"].read(paths)
    assert found.rows == 43
    assert "Complaint: SEPSIS" in found.samples[0].question.text
    assert "ADMITTED" not in found.samples[0].question.text
    back = DATA_SETS["mimic-ed-return"].read(paths)
    assert {sample.gold.letters[0] for sample in back.samples} <= {"A", "B"}


def medqa(tmp_path: Path, *rows: object) -> Path:
    path = tmp_path / "questions.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


GOOD = {"question": "Which?", "options": {"A": "one", "B": "two"}, "answer_idx": "B"}


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({**GOOD, "answer_idx": "E"}, "gold outside the options"),
        ({**GOOD, "question": " "}, "no 'question'"),
        ({"options": {"A": "x", "B": "y"}, "answer_idx": "A"}, "no 'question'"),
        ({**GOOD, "options": {"A": "x", "C": "y"}}, "options are not A, B, C, …"),
        ({**GOOD, "options": {"A": "", "B": "y"}}, "an option without text"),
        ({**GOOD, "options": {"A": "x", "B": ""}, "answer_idx": "A"}, "fewer than two options"),
        ({**GOOD, "options": "A or B"}, "no 'options'"),
        ({**GOOD, "answer": "one"}, "answer and answer_idx differ"),
        (GOOD, "id seen before"),
        (["a", "list"], "no 'question'"),
    ],
)
def test_a_broken_row_is_counted_under_its_reason_with_its_place(
    tmp_path: Path, row: object, reason: str
) -> None:
    found = DATA_SETS["medqa-us"].read([medqa(tmp_path, GOOD, row, row)])
    assert (len(found.samples), found.rows) == (1, 3)
    assert found.dropped[reason].count == 2
    assert found.dropped[reason].first == "questions.jsonl:2"


def test_a_file_without_one_sample_says_why(tmp_path: Path) -> None:
    path = medqa(tmp_path, {**GOOD, "answer_idx": "Z"})
    with pytest.raises(MalformedSource, match=r"1 rows, no sample: 1 × gold outside the options"):
        DATA_SETS["medqa-us"].read([path])


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(MalformedSource, match=r"questions\.jsonl:2: not JSON"):
        DATA_SETS["medqa-us"].read([medqa(tmp_path, GOOD, '{"question": ')])


@pytest.mark.parametrize(("text", "said"), [("\n", "no rows"), ("{", "not JSON")])
def test_a_file_that_cannot_be_read_says_what_to_give(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(MalformedSource, match=said) as refused:
        DATA_SETS["medqa-us"].read([medqa(tmp_path, text)])
    assert "as published" in refused.value.fix


def test_options_of_medmcqa_that_are_counted_from_0_are_refused(tmp_path: Path) -> None:
    row = {"question": "Which?", "opa": "a", "opb": "b", "opc": "c", "opd": "d"}
    path = medqa(tmp_path, *({**row, "id": str(n), "cop": n % 4} for n in range(1, 6)))
    with pytest.raises(MalformedSource, match=r"questions\.jsonl:4: cop counts .* from 0"):
        DATA_SETS["medmcqa"].read([path])


def test_another_encoding_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "CMB.json"
    path.write_bytes(b"[\n{}]" + "问题".encode("gb18030"))
    with pytest.raises(MalformedSource, match=r"CMB\.json:2: not UTF-8 text"):
        DATA_SETS["cmb-exam"].read([path])


BROKEN = {
    "nothing": b"",
    "half a gzip file": b"\x1f\x8b\x08\x00",
    "a damaged gzip file": gzip.compress(b"[]")[:10] + b"\xff" * 20,
    "another encoding": '[{"question": "问题"}]'.encode("gb18030"),
    "no records": b"[]",
    "records without fields": b"[{}, {}]",
    "an object without fields": b"{}",
    "no record": b'["a", 3, null]',
    "null": b"null",
    "a list where an object is wanted, and the other way round": b'{"questions": {"a": [1]}}',
    "numbers that are none": b'[{"id": 1e999, "question": NaN, "answer": -Infinity}]',
    "half a character": b'[{"id": "\\ud800", "question": "\\ud800"}]',
    "brackets without an end": b"[" * 100_000,
    "a table of other columns": b"a,b\n1,2,3\n",
    "an element without fields": b"<a><NLM-QUESTION/></a>",
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("name", DATA_SETS)
def test_files_of_nothing_that_is_wanted_are_refused_by_name(
    name: str, content: bytes, tmp_path: Path
) -> None:
    if name == "medicationqa":
        pytest.importorskip("openpyxl")
    paths = [tmp_path / Path(file).name for file in DATA_SETS[name].files]
    for path in paths:
        path.write_bytes(content)
    with pytest.raises(MalformedSource) as refused:
        DATA_SETS[name].read(paths)
    assert any(path.name in refused.value.message for path in paths)


@pytest.mark.parametrize("name", DATA_SETS)
def test_a_file_that_is_not_there_is_named(name: str, tmp_path: Path) -> None:
    if name == "medicationqa":
        pytest.importorskip("openpyxl")
    with pytest.raises(MalformedSource) as refused:
        load_dataset(name, tmp_path)
    assert any(file in refused.value.message for file in DATA_SETS[name].files)


def test_ids_of_mirage_must_be_as_many_as_the_questions(tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("0000\n0001\n", encoding="utf-8")
    with pytest.raises(MalformedSource, match="2 ids for 1 questions"):
        DATA_SETS["medqa-us"].read([medqa(tmp_path, GOOD), ids])


def test_a_set_of_answers_is_several_options(tmp_path: Path) -> None:
    path = tmp_path / "exam.json"
    record = {"id": 7, "question": "哪些？", "option": {"A": "甲", "B": "乙", "C": ""}}
    rows = [
        {**record, "answer": "BA", "question_type": "多项选择题"},
        {**record, "id": 8, "answer": "C"},
    ]
    path.write_text(json.dumps(rows), encoding="utf-8")
    found = DATA_SETS["cmb-exam"].read([path])
    (sample,) = found.samples
    assert (sample.kind, sample.gold.letters, sample.question.options) == (
        "choices",
        ("A", "B"),
        ("甲", "乙"),
    )
    assert found.dropped["gold outside the options"].count == 1


def test_a_list_of_bioasq_is_answered_by_all_its_items_under_any_of_their_names(
    tmp_path: Path,
) -> None:
    path = tmp_path / "golden.json"
    row = {"id": "1", "type": "list", "body": "Which?", "exact_answer": [["x"], ["y", "z"]]}
    path.write_text(json.dumps({"questions": [row]}), encoding="utf-8")
    (sample,) = DATA_SETS["bioasq-list"].read([path]).samples
    golds = sample.gold.texts
    assert golds == ("x; y", "x; z")
    assert [any(holds_answer(said, gold) for gold in golds) for said in ("x", "z, x")] == [0, 1]
    assert f1("x, z", golds) == 1 > f1("x", golds)


def test_the_exam_prompt_of_the_paper_frames_a_question(tmp_path: Path) -> None:
    path = tmp_path / "exam.json"
    record = {
        "id": 7,
        "exam_type": "医师考试",
        "exam_class": "执业医师",
        "exam_subject": "内科",
        "question_type": "单项选择题",
        "question": "首选什么？",
        "option": {"A": "甲", "B": "乙"},
        "answer": "A",
    }
    rows = [record, {**record, "id": 8, "exam_class": ""}]
    path.write_text(json.dumps(rows), encoding="utf-8")
    found = DATA_SETS["cmb-exam-framed"].read([path])
    (sample,) = found.samples
    assert sample.question.text == (
        "以下是中国医师考试中执业医师考试的一道内科相关的单项选择题，请分析每个选项，并最后给出答案。\n首选什么？"
    )
    assert found.dropped["no 'exam_class'"].count == 1


def test_the_key_of_cmb_is_joined_by_id(tmp_path: Path) -> None:
    asked, key = tmp_path / "asked.json", tmp_path / "key.json"
    asked.write_text(
        json.dumps([{"id": 1, "question": "哪个？", "option": {"A": "甲", "B": "乙"}}]),
        encoding="utf-8",
    )
    key.write_text(json.dumps([{"id": 1, "answer": "B"}]), encoding="utf-8")
    assert DATA_SETS["cmb-exam-test"].read([asked, key]).samples[0].gold.letters == ("B",)


def test_cases_of_cmb_clin_as_published_give_a_row_a_question(tmp_path: Path) -> None:
    path = tmp_path / "clin.json"
    case = {
        "description": "病例",
        "QA_pairs": [{"question": "问一", "answer": "答一"}, {"question": "问二"}],
    }
    path.write_text(json.dumps([case]), encoding="utf-8")
    found = DATA_SETS["cmb-clin-native"].read([path])
    assert found.samples[0].question.text == "病例\n问一"
    assert found.dropped["no 'answers'"].first == "clin.json[0].QA_pairs[1]"


def test_fifty_options_go_on_with_small_letters() -> None:
    lines = [f"{letter}. option {i}" for i, letter in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabc")]
    stem, options = inline_options("\n".join(["Which of these?", *lines]))
    assert (stem, len(options)) == ("Which of these?", 29)


def test_labels_without_commas_between_them_are_still_apart() -> None:
    assert read_labels("Choose from ['a b' 'c', \"d\"]. One word.") == ("a b", "c", "d")
    assert read_labels("True or not?") == ("True", "False")


def test_a_workbook_that_is_none_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path = tmp_path / "qa.xlsx"
    path.write_bytes(b"no workbook")
    with pytest.raises(OslerError, match="not an Excel workbook"):
        DATA_SETS["medicationqa"].read([path])


def test_an_unknown_data_set_gets_a_hint() -> None:
    with pytest.raises(BadConfig, match="did you mean 'medqa-us'"):
        load_dataset("medqa_us", Path())


def test_chinese_consumers_are_asked_by_title_or_by_letter(tmp_path: Path) -> None:
    path = tmp_path / "zh_consumer.jsonl"
    row = {
        "department": "心血管科",
        "title": "高血压能喝酒吗",
        "ask": "大夫您好，我血压高，能喝酒吗？",
        "answer": "最好不喝。",
    }
    rows = [row, {**row, "answer": "少喝。"}, {**row, "answer": ""}]
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in rows))
    found = {name: DATA_SETS[name].read([path]) for name in ("zh-consumer", "zh-consumer-letters")}
    asked = {name: [one.question.text for one in data.samples] for name, data in found.items()}
    assert asked == {"zh-consumer": [row["title"]] * 2, "zh-consumer-letters": [row["ask"]] * 2}
    assert [one.gold.texts for one in found["zh-consumer"].samples] == [
        ("最好不喝。",),
        ("少喝。",),
    ]
    assert found["zh-consumer"].dropped["no 'answer'"].count == 1


@pytest.mark.parametrize("name", ["zh-consumer", "zh-consumer-letters"])
def test_every_published_consultation_is_a_sample(name: str, shared_data: Path) -> None:
    found = loaded(name, questions(shared_data))
    assert found.rows == 3_000
    assert len(found.samples) + sum(one.count for one in found.dropped.values()) == 3_000
    assert len(found.samples) > 2_900
