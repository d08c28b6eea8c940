"""Registrations of the EU register, as it downloads them in plain text."""

from __future__ import annotations

import io
from pathlib import Path

from osler.kb.base import KnowledgeBase
from osler.sources.formats import sniff_file
from osler.sources.formats.eu_trials import EuTrials
from osler.sources.records import Document, Drop, Record

FULL = """Summary
EudraCT Number: 2010-012345-67
Sponsor's Protocol Code Number: GOUT-1
Trial Status: Completed
Date on which this record was first entered in the EudraCT database: 2010-03-04
A.1 Member State Concerned: Sweden - MPA
A.3 Full title of the trial: Drug A in gout:
a randomised comparison
A.5.2 US NCT (ClinicalTrials.gov registry) number: NCT00000001
D.3.1 Product name: Drug A
D.3.1 Product name: Placebo
E.1.1 Medical condition(s) being investigated: Gout
E.2.1 Main objective of the trial: To see whether drug A prevents attacks
E.3 Principal inclusion criteria: Adults who:
- have gout
- consent

E.5.1 Primary end point(s): Attacks
E.5.1.1 Timepoint(s) of evaluation of this end point: 1 year
E.7.3 Therapeutic confirmatory (Phase III): Yes
E.8.1 Controlled: Yes
E.8.1.1 Randomised: Yes
F.4.2.2 In the whole clinical trial: 120
P. End of Trial
P. End of Trial Status: Completed
P. Date of the global end of the trial: 2013-05-06
"""
SHORT = """This file contains 2 trials that match the search.

EudraCT Number:          2011-000001-11
Sponsor Name:            Someone
Full Title:              Drug B in asthma
Medical condition:       Asthma
Population Age:          Adults, Elderly
Gender:                  Male, Female
Trial protocol:          SE(Completed) PT(Completed)
Link:                    https://www.clinicaltrialsregister.eu/ctr-search/

EudraCT Number:          2012-000002-22
Full Title:              Drug C in scurvy
Start Date:              2012-11-29
Medical condition:       Scurvy
"""


def _read(text: str) -> list[Record]:
    return list(EuTrials().parse(io.BytesIO(text.replace("\n", "\r\n").encode()), "t.txt"))


def _texts(document: Record) -> dict[str, str]:
    assert isinstance(document, Document)
    return {section.path[0]: section.text for section in document.sections}


def test_full_details_give_status_design_and_outcomes() -> None:
    (trial,) = _read(FULL)
    assert isinstance(trial, Document)
    assert (trial.id, trial.year) == ("2010-012345-67", 2013)
    assert (trial.title, trial.code) == (
        "Drug A in gout: a randomised comparison",
        "EudraCT:2010-012345-67",
    )
    assert trial.kind == "Randomized Controlled Trial (registered)"
    texts = _texts(trial)
    assert texts["Interventions"] == "Product: Drug A; Placebo"
    assert texts["Eligibility"] == "Inclusion: Adults who:\n- have gout\n- consent"
    assert texts["Primary outcomes"] == "Attacks\nTime: 1 year"
    assert texts["Design"].endswith("Randomised: Yes\nPlanned subjects: 120")
    assert "End of trial: Completed" in texts["Status"]


def test_a_summary_holds_several_trials_and_one_without_a_date_has_no_year() -> None:
    undated, dated = _read(SHORT)
    assert isinstance(undated, Document)
    assert isinstance(dated, Document)
    assert (undated.year, dated.year) == (None, 2012)
    assert _texts(undated)["Status"] == (
        "Number: 2011-000001-11\nStatus: SE(Completed) PT(Completed)"
    )
    assert undated.kind == "Clinical Trial (registered)"


def test_the_day_of_entry_is_no_date_of_the_trial() -> None:
    (trial,) = _read(FULL.replace("P. Date of the global end of the trial: 2013-05-06\n", ""))
    assert isinstance(trial, Document)
    assert trial.year is None


def test_a_record_without_a_number_is_dropped() -> None:
    (dropped,) = _read(FULL.replace("2010-012345-67", "pending"))
    assert isinstance(dropped, Drop)
    assert dropped.reason == "no EudraCT number"


def test_its_nct_number_finds_it_and_its_content_tells_its_format(tmp_path: Path) -> None:
    assert isinstance(sniff_file("trials.txt", SHORT.encode()), EuTrials)
    (tmp_path / "eu.txt").write_text(FULL)
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([tmp_path / "eu.txt"], source="trial")
        (found,) = {passage.id.split("#")[0] for passage, _ in kb.by_words(["nct00000001"], k=5)}
    assert found == "trial:2010-012345-67"
