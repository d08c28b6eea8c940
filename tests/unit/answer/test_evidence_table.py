"""What studies state of themselves, each number a quote of its passage."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from osler.answer.evidence_table import flat_rows, read_effects, tabulate_studies
from osler.kb.base import KnowledgeBase
from osler.retrieve.hybrid import LexicalRetriever
from osler.types import Hit, Locator, Passage

TEXT = (
    "METHODS: In this double-blind trial 120 patients were randomised to drug A or placebo."
    " RESULTS: Death was rarer with drug A (odds ratio 0.61; 95% CI, 0.40 to 0.92; P = 0.02)."
    " Pain fell by 3.2 mm (95% confidence interval 1.1-5.3)."
)


def _hit(text: str, number: int = 1, kind: str = "") -> Hit:
    place = Locator(year=2020, kind=kind)
    return Hit(Passage(f"research:{number}#0", text, "research", "Drug A", place), 1.0, 1, "q", "x")


def _parts(text: str) -> list[str]:
    found = []
    for effect in read_effects(text):
        spans = (effect.measure, effect.value, effect.unit, effect.low, effect.high)
        found.append("|".join(text[slice(*span)] if span else "" for span in spans))
    return found


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(odds ratio, 6; 95% confidence interval, 1.1 to 31; p = 0.03)", "odds ratio|6||1.1|31"),
        ("[hazard ratio (HR) = 0.49; 95% CI 0.29, 0.82]", "HR|0.49||0.29|0.82"),
        ("OR=1.49; CI: 1.07-2.06", "OR|1.49||1.07|2.06"),
        ("(HR = 6, 95%CI of HR = 1.2-34.2)", "HR|6||1.2|34.2"),
        ("mean difference (95% CI) of -1.6 (-4.0 to 0.9) dBA", "mean difference|-1.6||-4.0|0.9"),
        ("survival was 37 per cent (95%CI = 7%-69%)", "survival|37|per cent|7|69"),
        (
            "a hazard ratio of 0.47 and 95% confidence interval 0.2-1.1",
            "hazard ratio|0.47||0.2|1.1",
        ),
        ("the odds ratio of failure was 6.8 (P = 0.007)", "odds ratio|6.8|||"),
        ("(AUC: 0.906, P<0.001, 95% CI: 0.871-0.941)", "AUC|0.906||0.871|0.941"),
        ("a difference of -0.03 ng/ml (95% CI -0.40-0.49)", "|-0.03|ng/ml|-0.40|0.49"),
        ("15.66 times higher for one vs. another location (95% CI: 5.5-44.6)", ""),
        ("死亡风险比为 0.80（95%CI：0.65~0.98）", "风险比|0.80||0.65|0.98"),
    ],
)
def test_an_effect_is_read_as_it_is_written(text: str, parts: str) -> None:
    assert _parts(text) == [part for part in (parts,) if part]


def test_p_values_and_numbers_without_a_measure_are_no_effects() -> None:
    assert read_effects("It was better (P<0.001, 95% CI: 0.04-0.13).") == ()
    assert read_effects("In 1999 40 of 80 women (50%) came.") == ()
    assert read_effects("") == ()


def test_effects_without_units_have_none() -> None:
    (row,) = tabulate_studies([_hit("Mean change 3.2 (95% CI 1.1 to 5.3).")])
    assert [effect.unit for effect in row.effects] == [None]
    assert [effect.measure for effect in row.effects] == [None]


def test_each_number_opens_its_quote() -> None:
    (row,) = tabulate_studies([_hit(TEXT, kind="Randomized Controlled Trial"), _hit(TEXT)])
    assert row.design is not None
    assert (row.design.design, row.design.by) == ("randomised-trial", "record")
    assert row.sample is not None
    assert row.sample.quote == "120"
    assert [hint.quote for hint in row.hints] == ["double-blind", "placebo"]
    first, second = row.effects
    assert first.measure is not None
    assert first.measure.quote == "odds ratio"
    assert first.low is not None
    assert first.low.quote in first.sentence.quote
    assert second.unit is not None
    assert second.unit.quote == "mm"
    for effect in row.effects:
        for cell in (effect.value, effect.low, effect.high):
            assert cell is not None
            assert cell.quote in TEXT


def test_a_study_without_numbers_keeps_its_row() -> None:
    (flat,) = flat_rows(tabulate_studies([_hit("Fever is heat.")]))
    assert (flat["design"], flat["n"], flat["value"], flat["start"]) == ("", "", "", None)
    assert flat["passage"] == "research:1#0"


def test_flat_rows_hold_an_effect_each() -> None:
    rows = list(flat_rows(tabulate_studies([_hit(TEXT)])))
    assert [(row["n"], row["value"], row["low"], row["high"]) for row in rows] == [
        ("120", "0.61", "0.40", "0.92"),
        ("120", "3.2", "1.1", "5.3"),
    ]
    assert all(TEXT[row["start"] : row["end"]] == row["quote"] for row in rows)


def test_long_hostile_texts_are_read_in_time() -> None:
    words = "fiftyfifty-one-nine" * 300
    for text in ("(" * 20_000, "95% CI " * 5_000, "seven " * 5_000, "1,000" * 4_000, "OR " * 8_000):
        tabulate_studies([_hit(text), _hit(words)])


_STUDIES = {
    "gout": "In 120 patients attacks were rarer (odds ratio 0.61; 95% CI, 0.40 to 0.92).",
    "asthma": "We studied 64 children; FEV1 rose by 3.2 ml (95% confidence interval 1.1-5.3).",
    "stroke": "Of 1,204 participants some died: hazard ratio (HR) = 0.49; 95% CI 0.29, 0.82.",
    "scurvy": "Twelve sailors took lemons (RR 2.5, 95% CI 1.2-5.1).",
    "anaemia": "n = 88 women; mean difference (95% CI) of -1.6 (-4.0 to 0.9) g/dl.",
    "sepsis": "Among 310 adults survival was 37 per cent (95%CI = 7%-69%).",
    "malaria": "The odds ratio of failure was 6.8 (P = 0.007) in 45 infants.",
    "migraine": "In 73 subjects AUC: 0.906, P<0.001, 95% CI: 0.871-0.941.",
    "psoriasis": "OR=1.49; CI: 1.07-2.06 in 501 patients.",
    "痛风": "120例患者死亡风险比为 0.80（95%CI：0.65~0.98）。",
}


def test_in_the_tables_of_ten_questions_each_number_opens_its_quote(tmp_path: Path) -> None:
    path = tmp_path / "studies.jsonl"
    rows = [{"id": f"s{n}", "title": t, "content": _STUDIES[t]} for n, t in enumerate(_STUDIES)]
    path.write_text("\n".join(map(json.dumps, rows)))
    with KnowledgeBase.create(tmp_path / "kb") as kb:
        kb.add([path], source="research")
        search = LexicalRetriever(kb)
        for subject, said in _STUDIES.items():
            (hit,) = asyncio.run(search.search(subject, k=5))
            (row,) = flat_rows(tabulate_studies([hit]))
            text = kb.get(row["passage"]).text
            assert text == said
            assert row["value"]
            for name in ("value", "low", "high"):
                assert row[name] in text[row["start"] : row["end"]] == row["quote"]
            assert row["n"] in row["people"]
            assert row["people"] in text
