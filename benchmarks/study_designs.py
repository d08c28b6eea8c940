"""What kind of study an abstract reports, and how many it studied: by rules, beside simpler ways.

    python benchmarks/study_designs.py DATA [dev|test]

`designs.tsv` holds 200 PMIDs with labels that one of us gave by reading; the rules were written on
`dev` and frozen before `test` was read. DATA: a folder with PubMedQA (`A_questions/pubmedqa`) and
PubMed's XML (`B_corpora/pubmed`). "mesh": the design that the record's MeSH headings name, the most
specific first. "record": publication types first, then the rules, as Osler reads a record.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from osler.answer.evidence_table import Design, design_of, read_design, read_sample_size
from osler.evaluate.intervals import proportion
from osler.sources.formats.pubmed import PubmedXml
from osler.sources.records import Document
from osler.types import Locator, Passage

LABELS = Path(__file__).parent / "authority" / "designs.tsv"
_MESH: dict[str, Design] = {
    "Cross-Sectional Studies": "cross-sectional",
    "Case-Control Studies": "case-control",
    "Double-Blind Method": "randomised-trial",
    "Random Allocation": "randomised-trial",
    "Retrospective Studies": "cohort",
    "Prospective Studies": "cohort",
    "Follow-Up Studies": "cohort",
    "Cohort Studies": "cohort",
    "Longitudinal Studies": "cohort",
    "Surveys and Questionnaires": "cross-sectional",
}


@dataclass(frozen=True, slots=True)
class Abstract:
    title: str
    text: str
    mesh: frozenset[str]
    kind: str = ""

    @property
    def by_mesh(self) -> str:
        if "Animals" in self.mesh and "Humans" not in self.mesh:
            return "laboratory"
        return next((design for name, design in _MESH.items() if name in self.mesh), "none")

    @property
    def by_record(self) -> str:
        passage = Passage(
            "research:1#0", self.text, "research", self.title, Locator(kind=self.kind)
        )
        found = design_of(passage)
        return found.design if found else "none"

    @property
    def by_rules(self) -> str:
        found = read_design(self.title, self.text)
        return found.design if found else "none"


def load_abstracts(data: Path) -> dict[str, Abstract]:
    found: dict[str, Abstract] = {}
    packed = data / "B_corpora/pubmed/pubmed_sample_baseline.xml.gz"
    raw = gzip.decompress(packed.read_bytes())
    mesh = {
        article.findtext("MedlineCitation/PMID"): frozenset(
            name.text or "" for name in article.iter("DescriptorName")
        )
        for article in etree.fromstring(raw).iter("PubmedArticle")
    }
    for record in PubmedXml().parse(io.BytesIO(raw), packed.name):
        if isinstance(record, Document):
            text = record.sections[0].text
            headings = mesh.get(record.id, frozenset())
            found[record.id] = Abstract(record.title, text, headings, record.kind)
    for name in ("ori_pqal_rest.json", "test_set.json"):
        rows = json.loads((data / "A_questions/pubmedqa" / name).read_text())
        for pmid, row in rows.items():
            parts = zip(row["LABELS"], row["CONTEXTS"], strict=True)
            text = "\n".join(
                [*(f"{a}: {b}" for a, b in parts), f"CONCLUSION: {row['LONG_ANSWER']}"]
            )
            found[pmid] = Abstract(row["QUESTION"], text, frozenset(row["MESHES"]))
    return found


def main(data: Path, half: str) -> None:
    with LABELS.open() as stream:
        labels = [row for row in csv.DictReader(stream, delimiter="\t") if row["half"] == half]
    abstracts = load_abstracts(data)
    most = Counter(row["design"] for row in labels).most_common(1)[0][0]
    right: Counter[str] = Counter({"majority": sum(row["design"] == most for row in labels)})
    sized = wrong_size = given = 0
    each: dict[str, list[bool]] = {}
    for row in labels:
        one = abstracts[row["pmid"]]
        for way, said in (
            ("mesh", one.by_mesh),
            ("rules", one.by_rules),
            ("record", one.by_record),
        ):
            right[way] += said == row["design"]
        each.setdefault(row["design"], []).append(one.by_record == row["design"])
        size = read_sample_size(one.text)
        told = set(row["n"].split(",")) - {"-"}
        sized += bool(told) and size is not None and str(size.count) in told
        given += bool(told)
        wrong_size += not told and size is not None
    for way, count in right.items():
        print(f"design, {way:9}", _share(count, len(labels)))
    for design, answers in sorted(each.items()):
        print(f"  {design:18} {sum(answers)}/{len(answers)}")
    print(
        "sample size      ", _share(sized, given), f"; given where none is labelled: {wrong_size}"
    )


def _share(right: int, n: int) -> str:
    return f"{right}/{n} = {proportion(right, n)}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "dev")
