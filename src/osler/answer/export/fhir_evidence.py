"""What the cited studies state, as FHIR R4B resources: `Citation` for a document, `Evidence` for
each effect, and for a study that states none.

Each value is a quote. A number that cannot be read as a decimal stands in the description only;
what a study does not state has no element. All bear the label AIAST, as a program read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from osler.answer.evidence_table import QuotedEffect, StudyRow, tabulate_studies
from osler.answer.export.fhir import Resource, address_of, new_resource
from osler.answer.export.layout import ExportedAnswer
from osler.answer.export.references import find_identifiers
from osler.types import Evidence, Passage

_ROLES = "http://terminology.hl7.org/CodeSystem/variable-role"
_SYSTEMS = {
    "pmid": "https://pubmed.ncbi.nlm.nih.gov",
    "doi": "https://doi.org",
    "nct": "https://clinicaltrials.gov",
}
_SIGNS = str.maketrans({"−": "-", "·": ".", ",": ""})


def write_fhir_evidence(answers: Sequence[ExportedAnswer]) -> bytes:
    """A Bundle: each cited document as a Citation, then its Evidence."""
    hits = (evidence.hit for one in answers for evidence in one.solution.answer.evidence)
    resources: list[Resource] = []
    for row in tabulate_studies(hits):
        citation = _make_citation(row.passage)
        if citation not in resources:  # another passage of a document that stands there
            resources.append(citation)
        for number, effect in enumerate(row.effects or (None,), 1):
            resources.append(_make_evidence(row, effect, number, citation))
    entries = [{"fullUrl": address_of(one), "resource": one} for one in resources]
    bundle = {"resourceType": "Bundle", "type": "collection"} | (
        {"entry": entries} if entries else {}
    )
    return json.dumps(bundle, ensure_ascii=False, indent=2).encode()


def _make_citation(passage: Passage) -> Resource:
    document, place = passage.id.partition("#")[0], passage.locator
    identifiers = [{"system": "urn:osler:document", "value": document}]
    identifiers += [
        {"system": _SYSTEMS.get(name, f"urn:{name}"), "value": value}
        for name, value in find_identifiers(passage).items()
    ]
    artifact: Resource = {"title": [{"text": passage.title or document}]}
    if place.url:
        artifact["webLocation"] = [{"url": place.url}]
    if place.year is not None:
        artifact["publicationForm"] = [{"articleDate": str(place.year)}]
    return {
        **new_resource("Citation", document),
        "identifier": identifiers,
        "status": "active",
        "title": passage.title or document,
        "citedArtifact": artifact,
    }


def _make_evidence(
    row: StudyRow, effect: QuotedEffect | None, number: int, citation: Resource
) -> Resource:
    made: Resource = {
        **new_resource("Evidence", f"{row.passage.id}/{number}"),
        "identifier": [{"system": "urn:osler:passage", "value": row.passage.id}],
        "status": "active",
        "title": row.passage.title or row.passage.id,
        "citeAsReference": {"reference": address_of(citation)},
        "variableDefinition": [
            _make_variable("population", row.people),
            _make_variable("measuredVariable", effect.sentence if effect else None),
        ],
    }
    if row.design:
        made["studyType"] = {"text": row.design.design}
    if row.hints:
        made["note"] = [{"text": "; ".join(hint.quote for hint in row.hints)}]
    statistic = {**_size_of(row), **(dict(_effect_fields(effect)) if effect else {})}
    return made | ({"statistic": [statistic]} if statistic else {})


def _make_variable(role: str, quote: Evidence | None) -> Resource:
    """A role, described in the study's own words; without them the study does not state it."""
    coded = {"coding": [{"system": _ROLES, "code": role}]}
    return {"variableRole": coded, "description": quote.quote if quote else "not stated"}


def _size_of(row: StudyRow) -> Resource:
    size = _read_number(row.sample)
    if row.sample is None or size is None or size != int(size):
        return {}
    sample = {"description": row.sample.quote, "numberOfParticipants": int(size)}
    return {"sampleSize": sample}


def _effect_fields(effect: QuotedEffect) -> Iterator[tuple[str, object]]:
    yield "description", effect.sentence.quote
    if effect.measure:
        yield "statisticType", {"text": effect.measure.quote}
    unit = {"unit": effect.unit.quote.strip()} if effect.unit else {}
    value = _read_number(effect.value)
    if value is not None:
        yield "quantity", {"value": value, **unit}
    low, high = _read_number(effect.low), _read_number(effect.high)
    if low is not None and high is not None:
        bounds = {"low": {"value": low, **unit}, "high": {"value": high, **unit}}
        yield "attributeEstimate", [{"type": {"text": "confidence interval"}, "range": bounds}]


def _read_number(quote: Evidence | None) -> float | None:
    try:
        return float(quote.quote.translate(_SIGNS)) if quote else None
    except ValueError:  # "sixty"
        return None
