"""Labels of drugs that were written for Osler, as openFDA and DailyMed publish labels.

`benchmarks/labels/drugs.txt` has the texts: general pharmacological knowledge in short sections, no
label of any maker. Every second drug is written as a result of openFDA's drug/label, the others as
SPL in a zip of zips, so that both readers are asked. `questions*.tsv` have what consumers ask,
each with the drug and the sections that answer; each file is by a hand of its own.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import NAMESPACE_URL, uuid5
from xml.sax.saxutils import escape

from osler.sources.formats.labels import CODES, heading_of

FOLDER = Path(__file__).parents[1] / "labels"
_EFFECTIVE = "20250310"
_POPULATIONS = "use_in_specific_populations"
_NESTED = ("pregnancy", "lactation", "geriatric_use", "renal_impairment", "hepatic_impairment")
"""Sections that SPL has inside "Use in specific populations"."""
NO_FIELD = ("renal_impairment", "hepatic_impairment", "lactation")
"""Sections that openFDA has no field for."""
_META = {
    "disclaimer": "Generated to the schema of openFDA.",
    "terms": "https://open.fda.gov/terms/",
}


@dataclass(frozen=True)
class DrugText:
    """A drug and the sections of its label, by openFDA's names of fields."""

    ingredient: str
    brand: str
    group: str
    is_otc: bool
    sections: Mapping[str, str]

    @property
    def set_id(self) -> str:
        return str(uuid5(NAMESPACE_URL, self.ingredient))


def read_drugs(path: Path = FOLDER / "drugs.txt") -> list[DrugText]:
    found = []
    for block in path.read_text(encoding="utf-8").strip().split("\n\n"):
        head, *lines = block.split("\n")
        ingredient, brand, group, kind = head.removeprefix("# ").split(" | ")[:4]
        sections = dict(line.split(": ", 1) for line in lines)
        found.append(DrugText(ingredient, brand, group, kind == "otc", sections))
    return found


def openfda_result(drug: DrugText, version: int = 1, more: str = "") -> dict[str, object]:
    """A record of openFDA's drug/label; each section ends in `more`."""
    fields: dict[str, object] = {}
    others = []
    for number, (name, text) in enumerate(drug.sections.items(), 1):
        if name in NO_FIELD:
            others.append(f"8.{number} {name.replace('_', ' ').title()} {text}{more}")
        else:
            said = heading_of(name).upper()
            fields[name] = [f"{text}{more}" if drug.is_otc else f"{number} {said} {text}{more}"]
    if others:
        fields[_POPULATIONS] = [" ".join(["8 USE IN SPECIFIC POPULATIONS", *others])]
    kind = "HUMAN OTC DRUG" if drug.is_otc else "HUMAN PRESCRIPTION DRUG"
    named = {
        "brand_name": [drug.brand],
        "generic_name": [drug.ingredient.upper()],
        "substance_name": [drug.ingredient.upper()],
        "manufacturer_name": ["Example Laboratories"],
        "pharm_class_epc": [f"{drug.group} [EPC]"],
        "product_type": [f"{kind} LABEL"],
    }
    elements = [f"{drug.brand} {drug.ingredient} {drug.ingredient.upper()} STARCH, CORN"]
    ids = {"set_id": drug.set_id, "id": str(uuid5(NAMESPACE_URL, f"{drug.set_id}{version}"))}
    issue = {"effective_time": _EFFECTIVE, "version": str(version)}
    return {"spl_product_data_elements": elements, **fields, **ids, **issue, "openfda": named}


def openfda_download(results: Sequence[Mapping[str, object]]) -> bytes:
    """A part of the download, as it is packed."""
    page = {"meta": {**_META, "results": {"total": len(results)}}, "results": results}
    return pack({"drug-label-0001-of-0001.json": json.dumps(page, indent=2).encode()})


def pack(members: Mapping[str, bytes]) -> bytes:
    """A zip of these files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def dailymed_archive(drugs: Sequence[DrugText], more: str = "") -> bytes:
    """Labels as DailyMed packs them: a zip for each, in a zip; each section ends in `more`."""
    return pack(
        {
            f"prescription/20250310_{one.set_id}.zip": pack(
                {f"{one.set_id}.xml": spl_document(one, more=more)}
            )
            for one in drugs
        }
    )


def spl_document(drug: DrugText, version: int = 1, more: str = "") -> bytes:
    """A label as SPL."""
    inside = [name for name in drug.sections if name in _NESTED and not drug.is_otc]
    parts = [
        _section(name, f"{number} {heading_of(name).upper()}", text + more)
        for number, (name, text) in enumerate(drug.sections.items(), 1)
        if name not in inside
    ]
    if inside:
        nested = (
            _section(name, f"8.{n} {name.replace('_', ' ').title()}", drug.sections[name])
            for n, name in enumerate(inside, 1)
        )
        title = "8 USE IN SPECIFIC POPULATIONS"
        parts.append(_section(_POPULATIONS, title, "", "".join(nested)))
    name, brand = escape(drug.ingredient), escape(drug.brand)
    kind = "HUMAN OTC DRUG LABEL" if drug.is_otc else "HUMAN PRESCRIPTION DRUG LABEL"
    product = (
        "<component><section>"
        '<code code="48780-1" codeSystem="2.16.840.1.113883.6.1"/><subject><manufacturedProduct>'
        f"<manufacturedProduct><name>{brand}</name><asEntityWithGeneric><genericMedicine>"
        f"<name>{name}</name></genericMedicine></asEntityWithGeneric>"
        f'<ingredient classCode="ACTIB"><ingredientSubstance><name>{name.upper()}</name>'
        "</ingredientSubstance></ingredient></manufacturedProduct></manufacturedProduct></subject>"
        "</section></component>"
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<document xmlns="urn:hl7-org:v3">'
        f'<id root="{drug.set_id}"/><code code="34391-3" displayName="{kind}"/>'
        f'<title>{brand}</title><effectiveTime value="{_EFFECTIVE}"/>'
        f'<setId root="{drug.set_id}"/><versionNumber value="{version}"/>'
        "<author><assignedEntity><representedOrganization><name>Example Laboratories</name>"
        "</representedOrganization></assignedEntity></author><component><structuredBody>"
        f"{product}{''.join(parts)}</structuredBody></component></document>"
    ).encode()


def _section(name: str, title: str, text: str, inner: str = "") -> str:
    said = f"<text><paragraph>{escape(text)}</paragraph></text>" if text else ""
    return (
        f'<component><section><code code="{CODES[name]}" codeSystem="2.16.840.1.113883.6.1"/>'
        f"<title>{escape(title)}</title>{said}{inner}</section></component>"
    )


@dataclass(frozen=True)
class LabelQuestion:
    """What a consumer asks; `right` has the ingredient and the field of each right section."""

    id: str
    half: str
    text: str
    right: Sequence[tuple[str, str]]


def read_questions(folder: Path = FOLDER) -> Iterator[LabelQuestion]:
    """The questions of all files, those of one hand in each."""
    for path in sorted(folder.glob("questions*.tsv")):
        hand = path.stem.removeprefix("questions").replace("-", ":")
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
            if line.startswith("#"):
                continue
            half, gold, text = line.split("\t")
            named = (one.split(": ") for one in gold.split("; "))
            right = [(drug, field) for drug, fields in named for field in fields.split(", ")]
            yield LabelQuestion(f"labels{hand}:{number:03}", half, text, right)
