"""Consumers' questions whose answer is a label: MedicationQA's, filed as labels are.

Its answers are sections of DailyMed's labels, each beside the drug that the question means. Here
they stand in labels of these drugs to openFDA's schema, among sections that others wrote from
general knowledge (`benchmarks/labels/further.txt`), so that a drug has more than the section that
answers. What MedicationQA answers from other pages is beside them, under the drug's name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5

from natural.labels import FOLDER, DrugText, openfda_download, openfda_result, read_drugs
from natural.published import find_data_file
from osler.kb.base import KnowledgeBase
from osler.sources.formats.labels import heading_of
from osler.text import one_line
from osler_lab.evaluate.datasets.base import hash_id
from osler_lab.evaluate.datasets.longform import medication_rows

_FIELDS = (
    ("how_supplied", r"supplied|forms|strengths"),
    ("dosage_and_administration", r"dos|admin|direction|reconstitut|instructions for use"),
    ("indications_and_usage", r"indication|uses"),
    ("drug_interactions", r"interact"),
    ("contraindications", r"contraind"),
    ("adverse_reactions", r"adverse"),
    ("overdosage", r"overdos"),
    ("clinical_pharmacology", r"pharmaco"),
    ("warnings_and_cautions", r"warn|precaution"),
    ("description", r"descr|ingred|packag|label"),
    ("use_in_specific_populations", r"populations"),
    ("information_for_patients", r""),
)
"""Fields of openFDA by what the heading of a section says; the first that fits."""
_SHORTEST = 30


@dataclass(frozen=True, slots=True)
class FiledAnswer:
    """A question of MedicationQA with the answer, the drug it means, and where that stands."""

    id: str
    question: str
    answer: str
    drug: str
    section: str
    is_label: bool

    @property
    def field(self) -> str:
        said = self.section.casefold()
        return next(field for field, words in _FIELDS if re.search(words, said))


def read_filed_answers(data: Path) -> Iterator[FiledAnswer]:
    """The answers, with ids as of `medication_answers`; none where the file is not there."""
    path = find_data_file(data, "MedInfo2019-QA-Medications.xlsx")
    for row in medication_rows([path]) if path else ():
        text, answer = row.optional_text("Question"), one_line(row.optional_text("Answer"))
        if text and len(answer) > _SHORTEST:
            yield FiledAnswer(
                f"{hash_id(text)}-{row.number + 2}",
                text,
                answer,
                row.optional_text("Focus (Drug)").casefold(),
                row.optional_text("Section Title"),
                "dailymed" in row.optional_text("URL"),
            )


def read_filed_drugs(answers: Sequence[FiledAnswer]) -> dict[str, DrugText]:
    """Of each drug that a question means its label: the sections that answer, as they were
    published, and further ones."""
    texts = dict(zip(_asked_names(), read_drugs(FOLDER / "further.txt"), strict=True))
    for one in answers:
        if one.is_label:
            own = {**texts[one.drug].sections, one.field: _join(answers, one)}
            texts[one.drug] = replace(texts[one.drug], sections=own)
    return texts


def _asked_names() -> list[str]:
    """The drugs' names as MedicationQA has them, last in each head of the file."""
    lines = (FOLDER / "further.txt").read_text(encoding="utf-8").splitlines()
    return [line.rpartition(" | ")[2] for line in lines if line.startswith("# ")]


def _join(answers: Sequence[FiledAnswer], one: FiledAnswer) -> str:
    same = (
        o.answer for o in answers if (o.drug, o.field, o.is_label) == (one.drug, one.field, True)
    )
    return " ".join(dict.fromkeys(same))


def set_id_of(name: str) -> str:
    """Of the label of a drug, by its name in MedicationQA."""
    return str(uuid5(NAMESPACE_URL, f"medicationqa:{name}"))


def add_filed(kb: KnowledgeBase, data: Path, home: Path) -> None:
    """Adds the labels, those of `drugs.txt` beside them, and the answers of other pages."""
    answers = list(read_filed_answers(data))
    labels = [
        {**openfda_result(drug), "set_id": set_id_of(name)}
        for name, drug in read_filed_drugs(answers).items()
    ]
    labels += map(openfda_result, read_drugs())
    archive, pages = home / "drug-label-0001-of-0001.json.zip", home / "pages.jsonl"
    archive.write_bytes(openfda_download(labels))
    others = (
        {"id": one.id, "title": one.drug.capitalize(), "content": one.answer}
        for one in answers
        if not one.is_label
    )
    pages.write_text("\n".join(map(json.dumps, others)), encoding="utf-8")
    kb.add([archive], source="label")
    kb.add([pages], source="web")


def find_right_sections(one: FiledAnswer, drugs: dict[str, DrugText]) -> Iterator[tuple[str, str]]:
    """Set id and heading of each section that answers, of all labels of the drug: MedicationQA's,
    and those that a reader of the label found to answer as well."""
    ingredient = drugs[one.drug].ingredient.casefold()
    own = [(set_id_of(name), drug) for name, drug in drugs.items()]
    own += [(drug.set_id, drug) for drug in read_drugs()]
    for set_id, drug in own:
        if drug.ingredient.casefold() == ingredient:
            for field in {one.field, *_read_answering().get(one.id, ())}:
                yield set_id, heading_of(field)


@cache
def _read_answering() -> dict[str, list[str]]:
    lines = (FOLDER / "answering.tsv").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("\t") for line in lines if not line.startswith("#"))
    return {id: fields.split(", ") for id, fields in pairs if fields}
