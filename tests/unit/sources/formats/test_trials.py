"""Trial registrations, as JSON."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from osler.kb.base import KnowledgeBase
from osler.sources.formats.registry import sniff_file
from osler.sources.formats.trials import ClinicalTrialsJson
from osler.sources.records import Document, Drop, Record

STUDY: dict[str, Any] = {
    "protocolSection": {
        "identificationModule": {"nctId": "NCT00000001", "briefTitle": "Drug A in gout"},
        "statusModule": {
            "overallStatus": "TERMINATED",
            "whyStopped": "Slow accrual",
            "startDateStruct": {"date": "2015-02"},
            "completionDateStruct": {"date": "2018-06-30"},
        },
        "descriptionModule": {"briefSummary": "Does drug A prevent attacks?"},
        "designModule": {
            "studyType": "INTERVENTIONAL",
            "phases": ["PHASE3"],
            "designInfo": {"allocation": "RANDOMIZED", "maskingInfo": {"masking": "DOUBLE"}},
            "enrollmentInfo": {"count": 120, "type": "ACTUAL"},
        },
        "conditionsModule": {"conditions": ["Gout"]},
        "armsInterventionsModule": {
            "armGroups": [{"label": "A", "type": "EXPERIMENTAL", "description": "Drug A 5 mg"}],
            "interventions": [{"type": "DRUG", "name": "Drug A"}],
        },
        "outcomesModule": {"primaryOutcomes": [{"measure": "Attacks", "timeFrame": "1 year"}]},
        "eligibilityModule": {"eligibilityCriteria": "Adults with gout"},
        "referencesModule": {"references": [{"pmid": "33012345", "type": "RESULT"}]},
    },
    "resultsSection": {
        "outcomeMeasuresModule": {
            "outcomeMeasures": [
                {
                    "title": "Attacks",
                    "groups": [{"id": "OG000", "title": "Drug A"}],
                    "classes": [
                        {"categories": [{"measurements": [{"groupId": "OG000", "value": "12"}]}]}
                    ],
                    "analyses": [
                        {
                            "paramType": "Hazard Ratio (HR)",
                            "paramValue": "0.6",
                            "ciPctValue": "95",
                            "ciLowerLimit": "0.4",
                            "ciUpperLimit": "0.9",
                        }
                    ],
                }
            ]
        }
    },
}


def _read(given: Any) -> list[Record]:
    return list(ClinicalTrialsJson().parse(io.BytesIO(json.dumps(given).encode()), "t.json"))


def _texts(document: Record) -> dict[str, str]:
    assert isinstance(document, Document)
    return {section.path[0]: section.text for section in document.sections}


def test_a_study_has_its_status_arms_outcomes_and_results() -> None:
    (trial,) = _read(STUDY)
    assert isinstance(trial, Document)
    assert (trial.id, trial.year, trial.code) == ("NCT00000001", 2018, "NCT:NCT00000001")
    assert trial.url == "https://clinicaltrials.gov/study/NCT00000001"
    assert trial.kind == "Randomized Controlled Trial (registered)"
    texts = _texts(trial)
    assert texts["Status"].startswith(
        "Number: NCT00000001; Status: TERMINATED; Stopped because: Slow accrual"
    )
    assert texts["Design"].endswith("Masking: DOUBLE; Enrolment: 120 (actual)")
    assert texts["Arms"] == "A (EXPERIMENTAL): Drug A 5 mg"
    assert texts["Primary outcomes"] == "Attacks. 1 year"
    # The unit is not stated, so there is none.
    assert texts["Results"] == "Attacks\nDrug A: 12\nHazard Ratio (HR) 0.6; 95% CI 0.4 to 0.9"
    assert texts["Papers"] == "PMID:33012345 (RESULT)"


def _results(**outcome: Any) -> str:
    groups = [{"id": "A", "title": "Aspirin"}, {"id": "B", "title": "Placebo"}]
    told = {"outcomeMeasures": [{"title": "Vital status", "groups": groups, **outcome}]}
    (trial,) = _read({**STUDY, "resultsSection": {"outcomeMeasuresModule": told}})
    return _texts(trial)["Results"]


def test_the_rows_of_a_result_say_what_they_are_of() -> None:
    def category(title: str, *values: str) -> Any:
        found = zip("AB", values, strict=True)
        return {
            "title": title,
            "measurements": [{"groupId": group, "value": value} for group, value in found],
        }

    weeks = [
        {"title": "Week 4", "categories": [category("Died", "5", "3"), category("Lived", "9", "8")]}
    ]
    assert _results(classes=weeks, paramType="COUNT_OF_PARTICIPANTS").split("\n")[1:] == [
        "Week 4, Died: Aspirin: 5",
        "Week 4, Died: Placebo: 3",
        "Week 4, Lived: Aspirin: 9",
        "Week 4, Lived: Placebo: 8",
    ]


@pytest.mark.parametrize(
    ("value", "kind", "read"),
    [
        ({"spread": "1.1"}, "Standard Deviation", "mean 3.2 kg (Standard Deviation 1.1)"),
        ({"lowerLimit": "1", "upperLimit": "5"}, "Full Range", "mean 3.2 kg (Full Range 1 to 5)"),
        ({"spread": "1.1"}, "", "mean 3.2 kg (±1.1)"),
    ],
)
def test_a_value_says_whether_it_is_a_mean_and_what_its_spread_is(
    value: dict[str, str], kind: str, read: str
) -> None:
    measured = [{"measurements": [{"groupId": "A", "value": "3.2", **value}]}]

    text = _results(
        classes=[{"categories": measured}],
        paramType="MEAN",
        dispersionType=kind,
        unitOfMeasure="kg",
    )

    assert text == f"Vital status\nAspirin: {read}"


@pytest.mark.parametrize(
    ("limits", "read"),
    [
        ({"ciLowerLimit": "0.4", "ciUpperLimit": "7.3"}, "CI 0.4 to 7.3"),
        ({"ciPctValue": "97.5", "ciLowerLimit": "0.4"}, "97.5% CI from 0.4"),
        ({"ciNumSides": "ONE_SIDED", "ciUpperLimit": "1.9"}, "CI up to 1.9, one-sided"),
    ],
)
def test_the_limits_of_an_effect_are_told_as_far_as_they_are_stated(
    limits: dict[str, str], read: str
) -> None:
    effect = {"groupIds": ["A", "B"], "paramType": "Odds Ratio", "paramValue": "1.7", **limits}

    text = _results(analyses=[effect])

    assert text == f"Vital status\nAspirin, Placebo: Odds Ratio 1.7; {read}"


def test_an_answer_of_the_interface_holds_several_studies() -> None:
    records = _read({"studies": [STUDY, {"protocolSection": {}}, STUDY]})
    assert [isinstance(one, Document) for one in records] == [True, False, True]
    assert isinstance(records[1], Drop)
    assert records[1].reason == "no NCT number"


def test_a_record_without_dates_has_no_year() -> None:
    bare = {"protocolSection": {**STUDY["protocolSection"], "statusModule": {}}}
    (trial,) = _read(bare)
    assert isinstance(trial, Document)
    assert trial.year is None
    assert _texts(trial)["Status"] == "Number: NCT00000001"


def test_what_is_of_another_kind_than_told_is_left_out() -> None:
    (trial,) = _read({"protocolSection": {**STUDY["protocolSection"], "designModule": []}})
    assert isinstance(trial, Document)
    assert trial.kind == "Trial Registration"
    assert "Design" not in _texts(trial)
    assert isinstance(_read({"protocolSection": [1]})[0], Drop)


def test_a_search_for_its_number_finds_the_trial_and_the_paper(tmp_path: Path) -> None:
    (tmp_path / "trial.json").write_text(json.dumps(STUDY))
    (tmp_path / "paper.txt").write_text("Drug A prevented attacks (NCT00000001).")
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "trial.json"], source="trial")
        kb.add([tmp_path / "paper.txt"], source="research")
        found = {passage.source for passage, _ in kb.by_words(["nct00000001"], k=5)}
    assert found == {"trial", "research"}


def test_registrations_are_known_by_their_content() -> None:
    json_parser = sniff_file("x.json", json.dumps(STUDY).encode()[:4096])
    assert isinstance(json_parser, ClinicalTrialsJson)
    several = sniff_file("x.json", json.dumps({"studies": [STUDY]}).encode()[:4096])
    assert isinstance(several, ClinicalTrialsJson)
