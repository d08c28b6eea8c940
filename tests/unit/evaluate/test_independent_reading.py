"""The published files read again with json, csv, XML and a workbook alone, sample by sample.

Nothing of Osler's readers is used here: what both find must be the same ids, the same gold and as
many options, of every sample and not of ten.
"""

from __future__ import annotations

import ast
import csv
import json
import re
from collections.abc import Callable, Iterator
from itertools import islice, product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from osler_lab.evaluate.datasets import DATA_SETS, load_dataset
from osler_lab.evaluate.record import Sample

Seen = tuple[str | None, str | list[str], int]
"""Id as the file has it (`None` where it has none), gold letters or texts, number of options."""
Read = Callable[[Path], Iterator[Seen]]

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def whole(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def medqa(folder: Path) -> Iterator[Seen]:
    for row in lines(folder / "medqa_us/phrases_no_exclude_test.jsonl"):
        yield None, row["answer_idx"], len(row["options"])


def medmcqa(folder: Path) -> Iterator[Seen]:
    for row in lines(folder / "medmcqa/dev.json"):
        yield row["id"], " ABCD"[row["cop"]], 4


def mmlu(folder: Path) -> Iterator[Seen]:
    for path in sorted((folder / "mmlu_med").glob("*_test.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.reader(file)):
                yield f"{path.stem.removesuffix('_test')}-{number:03d}", row[5], len(row) - 2


def pubmedqa(folder: Path) -> Iterator[Seen]:
    key = whole(folder / "pubmedqa/test_ground_truth.json")
    for pmid in whole(folder / "pubmedqa/test_set.json"):
        yield pmid, {"yes": "A", "no": "B", "maybe": "C"}[key[pmid]], 3


def pubmedqa_rest(folder: Path) -> Iterator[Seen]:
    for pmid, row in whole(folder / "pubmedqa/ori_pqal_rest.json").items():
        yield pmid, {"yes": "A", "no": "B", "maybe": "C"}[row["final_decision"]], 3


def bioasq(folder: Path) -> Iterator[Seen]:
    for row in whole(folder / "bioasq/bioasq_yesno_golden.json")["questions"]:
        exact = row["exact_answer"]
        said = exact[0] if isinstance(exact, list) else exact
        yield row["id"], {"yes": "A", "no": "B"}[said.lower()], 2


def bioasq_other(kind: str) -> Read:
    def read(folder: Path) -> Iterator[Seen]:
        for row in whole(folder / "bioasq/bioasq_other_golden.json")["questions"]:
            if row["type"] == kind:
                found = row["ideal_answer" if kind == "summary" else "exact_answer"]
                names = islice(product(*map(flat, found)), 64)
                lists = ["; ".join(items) for items in names]
                yield row["id"], lists if kind == "list" else flat(found), 0

    return read


def flat(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for inner in value for text in flat(inner)]
    return [str(value)]


def exam(file: str) -> Read:
    def read(folder: Path) -> Iterator[Seen]:
        for row in whole(folder / file):
            offered = [letter for letter, text in row["option"].items() if text]
            answer = row["answer"].strip()
            if set(answer) <= set(offered):
                yield str(row["id"]), "".join(sorted(answer)), len(offered)

    return read


def clin(folder: Path) -> Iterator[Seen]:
    for row in whole(folder / "cmb_clin/CMB-Clin.json"):
        yield None, [row["answers"]], 0


def consultations(folder: Path) -> Iterator[Seen]:
    for row in lines(folder / "zh_consumer/zh_consumer.jsonl"):
        yield None, [row["answer"]], 0


def liveqa(file: str) -> Read:
    def read(folder: Path) -> Iterator[Seen]:
        for question in ElementTree.parse(folder / "liveqa" / file).iter("NLM-QUESTION"):  # noqa: S314
            answers = ["".join(answer.itertext()) for answer in question.iter("ANSWER")]
            yield question.get("qid") or question.get("questionid"), answers, 0

    return read


def medication(folder: Path) -> Iterator[Seen]:
    openpyxl = pytest.importorskip("openpyxl")
    sheet = openpyxl.load_workbook(folder / "medicationqa/MedInfo2019-QA-Medications.xlsx").active
    head, *rows = sheet.iter_rows(values_only=True)
    at = [str(cell).strip() for cell in head].index("Answer")
    for row in rows:
        if any(row):
            yield None, [str(row[at])], 0


def expert(folder: Path) -> Iterator[Seen]:
    for row in lines(folder / "expertqa/lfqa_biomed.jsonl"):
        told = (answer.get("revised_answer_string") for answer in row["answers"].values())
        yield None, [text for text in told if text], 0


def omnirag(part: str) -> Read:
    def read(folder: Path) -> Iterator[Seen]:
        for row in whole(folder / f"omnirag_long/{part}_long.json"):
            if (row["question"] or "").strip() and (row["gold"] or "").strip():
                yield row["id"], [row["gold"]], 0

    return read


def ddxplus(language: str) -> Read:
    def read(folder: Path) -> Iterator[Seen]:
        conditions = sorted(whole(folder / f"ddxplus/release_conditions_{language}.json"))
        with (folder / f"ddxplus/patients_{language}.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                yield None, ALPHABET[conditions.index(row["PATHOLOGY"])], len(conditions)

    return read


def ddxplus_omnirag(folder: Path) -> Iterator[Seen]:
    for row in whole(folder / "ddxplus/ddxplus_omnirag_short.json"):
        options = re.findall(r"^[A-Za-z]\. ", row["question"], re.MULTILINE)
        yield row["id"], row["gold"], len(options)


def flashrag(name: str) -> Read:
    def read(folder: Path) -> Iterator[Seen]:
        for row in lines(folder / f"opendomain/{name}/test.jsonl"):
            yield row["id"], flat(row["golden_answers"]), 0

    return read


def facts(file: str) -> Read:
    def read(folder: Path) -> Iterator[Seen]:
        for row in whole(folder / file):
            yield row["_id"], [row["answer"]], 0

    return read


def musique(folder: Path) -> Iterator[Seen]:
    path = folder / "multihop/musique/qa_train.json"
    text = path.read_text(encoding="utf-8")
    for row in json.loads(text) if text.lstrip().startswith("[") else lines(path):
        if row.get("answerable", True):
            yield row["id"], [row["answer"], *row.get("answer_aliases", [])], 0


def listed(file: str) -> Read:
    def read(folder: Path) -> Iterator[Seen]:
        path = folder / "multihop" / file
        for row in lines(path) if path.suffix == ".jsonl" else whole(path):
            yield row.get("id"), flat(row["answer"]), 0

    return read


def expert_questions(folder: Path) -> Iterator[Seen]:
    seen = set()
    for row in lines(folder / "expertqa/r1_data_anon_biomed.jsonl"):
        if row["question"] not in seen:
            told = (answer.get("revised_answer_string") for answer in row["answers"].values())
            yield None, [text for text in told if text], 0
        seen.add(row["question"])


def medsbench(folder: Path) -> Iterator[Seen]:
    found = whole(folder / "ddxplus/ddxplus_medsbench.json")
    text = " ".join(found["Definition"])
    # Python would glue the two labels together between which the file has no comma.
    apart = re.sub(r"""(?<=['"])\s+(?=['"])""", ", ", text[text.index("[") : text.rindex("]") + 1])
    offered = ast.literal_eval(apart)
    for row in found["Instances"]:
        said = row["output"] if isinstance(row["output"], str) else row["output"][0]
        name = same_words(said.lower().removeprefix("the diagnosis result is").strip(" ."))
        # One label of the list is "inguinal, hernia", and "inguinal hernia" in the answers.
        right = [
            n
            for n, label in enumerate(offered)
            if same_words(label.lower().replace(",", "")) == name.replace(",", "")
        ]
        yield row["id"], ALPHABET[right[0]] if right else name, len(offered)


READERS: dict[str, Read] = {
    "medqa-us": medqa,
    "medmcqa": medmcqa,
    "mmlu-med": mmlu,
    "pubmedqa": pubmedqa,
    "pubmedqa-rest": pubmedqa_rest,
    "bioasq": bioasq,
    **{f"bioasq-{kind}": bioasq_other(kind) for kind in ("factoid", "list", "summary")},
    "cmb-exam": exam("cmb_exam/CMB-4000.json"),
    "cmb-exam-framed": exam("cmb_exam/CMB-4000.json"),
    "cmb-exam-500": exam("cmb_exam/CMB-500.json"),
    "mmcu-medical": exam("mmcu_medical/MMCU_test.json"),
    "cmb-clin": clin,
    "zh-consumer": consultations,
    "zh-consumer-letters": consultations,
    "liveqa": liveqa("TREC-2017-LiveQA-Medical-Test-Questions-w-summaries.xml"),
    "liveqa-plain": liveqa("TREC-2017-LiveQA-Medical-Test.xml"),
    "medicationqa": medication,
    "expertqa-biomed": expert,
    **{f"omnirag-long-{part}": omnirag(part) for part in ("train", "dev", "test")},
    "ddxplus": ddxplus("en"),
    "ddxplus-fr": ddxplus("fr"),
    "ddxplus-omnirag": ddxplus_omnirag,
    **{name: flashrag(name) for name in ("nq", "triviaqa", "popqa", "bamboogle")},
    "hotpotqa": facts("multihop/hotpotqa/qa_train.json"),
    "2wiki-native": facts("multihop/2wikimultihopqa/qa_native_sample.json"),
    "musique": musique,
    "2wiki": listed("2wikimultihopqa/questions.json"),
    "musique-1000": listed("musique/questions_1000.json"),
    **{
        f"{name}-500": listed(f"r1_searcher_eval/{name}_500.jsonl")
        for name in ("hotpotqa", "2wiki", "musique")
    },
    "expertqa-questions": expert_questions,
    "ddxplus-medsbench": medsbench,
}


def same_words(text: str) -> str:
    """Readers clean white space and invisible characters; words must stay."""
    return "".join(c for c in text if c.isprintable() and not c.isspace())


def told(sample: Sample) -> tuple[str | list[str], int]:
    gold = "".join(sample.gold.letters) or sorted({same_words(text) for text in sample.gold.texts})
    return gold, len(sample.question.options)


@pytest.mark.parametrize("name", READERS)
def test_another_reading_of_the_files_finds_the_same_ids_gold_and_options(
    name: str, shared_data: Path
) -> None:
    folder = shared_data / "A_questions"
    found = load_dataset(name, folder).samples
    seen = list(READERS[name](folder))
    assert len(found) == len(seen)
    for sample, (id, gold, options) in zip(found, seen, strict=True):
        plain = gold if isinstance(gold, str) else sorted({same_words(text) for text in gold})
        assert told(sample) == (plain, options), sample.id
        assert id in (None, sample.id)


def test_every_set_that_is_there_is_read_twice(shared_data: Path) -> None:
    there = {
        name
        for name, found in DATA_SETS.items()
        if all((shared_data / "A_questions" / file).is_file() for file in found.files)
    }
    assert READERS.keys() == there
