"""Evidence tables as FHIR, opened by a reader of FHIR."""

from __future__ import annotations

from typing import Any

from fhir.resources.R4B.bundle import Bundle

from osler.answer.export import ExportedAnswer, write_export
from osler.types import Answer, Evidence, Halt, Hit, Locator, Passage, Question, Solution

TEXT = (
    "In this double-blind trial 120 patients took drug A or placebo."
    " Death was rarer (odds ratio 0.61; 95% CI, 0.40 to 0.92)."
    " Pain fell by −3·2 mm (95% CI −5.3 to −1.1)."
)


def _read(*passages: Passage) -> list[Any]:
    evidence = tuple(Evidence(Hit(one, 1.0, 1, "q", "x"), 0, 8, "quote") for one in passages)
    solution = Solution(Answer(evidence=evidence), Halt.CONVERGED, "")
    exported = ExportedAnswer(
        Question("q", "Why?"), solution, "20260102-030405-0123456789ab", "rag"
    )
    bundle: Any = Bundle.model_validate_json(write_export([exported], "fhir-evidence"))
    return [entry.resource for entry in bundle.entry]


def _study(text: str, number: int = 0, year: int | None = 2020) -> Passage:
    place = Locator(year=year, code="PMID:33012345", kind="Randomized Controlled Trial")
    return Passage(f"research:33012345#{number}", text, "research", "Drug A", place)


def test_each_effect_is_evidence_that_cites_its_document() -> None:
    citation, *found = _read(_study(TEXT), _study("Nothing is counted here.", 1))
    assert [one.value for one in citation.identifier] == ["research:33012345", "33012345"]
    assert citation.citedArtifact.publicationForm[0].articleDate == "2020"
    assert all(one.meta.security[0].code == "AIAST" for one in found)
    assert {one.citeAsReference.reference for one in found} == {f"urn:uuid:{citation.id}"}
    odds, pain, bare = found
    assert odds.studyType.text == "randomised-trial"
    (statistic,) = odds.statistic
    assert statistic.statisticType.text == "odds ratio"
    assert float(statistic.quantity.value) == 0.61
    assert statistic.sampleSize.numberOfParticipants == 120
    bounds = statistic.attributeEstimate[0].range
    assert (float(bounds.low.value), float(bounds.high.value)) == (0.4, 0.92)
    assert (float(pain.statistic[0].quantity.value), pain.statistic[0].quantity.unit) == (
        -3.2,
        "mm",
    )
    assert bare.statistic is None
    assert {one.description for one in bare.variableDefinition} == {"not stated"}


def test_what_is_not_stated_has_no_element() -> None:
    citation, evidence = _read(
        _study("Sixty patients came; odds ratio was 2 (P = 0.1).", year=None)
    )
    assert citation.citedArtifact.publicationForm is None
    (statistic,) = evidence.statistic
    assert statistic.sampleSize is None
    assert statistic.attributeEstimate is None
    assert statistic.quantity.unit is None
    assert evidence.variableDefinition[0].description.startswith("Sixty patients")


def test_an_answer_without_evidence_is_an_empty_bundle() -> None:
    solution = Solution(Answer(note="no"), Halt.NO_EVIDENCE, "")
    exported = ExportedAnswer(
        Question("q", "Why?"), solution, "20260102-030405-0123456789ab", "rag"
    )
    bundle: Any = Bundle.model_validate_json(write_export([exported], "fhir-evidence"))
    assert bundle.entry is None
