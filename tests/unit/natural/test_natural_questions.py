"""Natural questions: right quotes, halves, opponents, the log, the fit and the table."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from natural.asking import AskedRow, NaturalLog, outcome_of
from natural.filed import (
    find_right_sections,
    read_filed_answers,
    read_filed_drugs,
    set_id_of,
)
from natural.fitting import fit_answers, fit_logistic, share_right
from natural.questions import (
    Half,
    NaturalPlaces,
    NaturalQuestion,
    in_half,
    places_of,
    read_covid,
    read_filed,
    read_plain,
)
from natural.rules import SimpleRules, cut_sentences, cut_words
from natural.tables import area_under_curve, measure_ways

from osler.errors import MalformedSource
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import MiniLMEncoder
from osler.types import Answer, Evidence, Hit, Locator, Passage

PLACES = Path(__file__).parents[3]


def test_a_quote_is_right_by_its_key_by_the_gold_text_or_by_its_document() -> None:
    keyed = NaturalQuestion("1", "dose?", key=(("500 micro", "0\\.5 mg"), ("thigh",)))
    assert keyed.is_right("Give 0.5 mg into the THIGH.")
    assert not keyed.is_right("Give 0.5 mg into the arm.")
    spanned = NaturalQuestion("2", "what?", gold=("Gout is treated with colchicine. Rest helps.",))
    assert spanned.is_right("Gout is treated  with colchicine")
    assert not spanned.is_right("Gout is painful.")
    filed = NaturalQuestion("3", "what?", documents=frozenset({"GHR_1 > what is gout?"}))
    gout = Passage("web:GHR_1#4", "anything", "web", "Gout", Locator("What is  Gout?"))
    assert filed.is_right("anything", places_of(gout))
    other = replace(gout, locator=Locator("How is Gout treated?"))
    assert not filed.is_right("anything", places_of(other))
    assert places_of(replace(gout, locator=Locator(code="PMID1")))[0] == "PMID1"


def test_every_id_is_in_one_half() -> None:
    ids = [f"set:{number}" for number in range(500)]
    assert all(in_half(id, "dev") != in_half(id, "test") for id in ids)
    assert 100 < sum(in_half(id, "dev") for id in ids) < 250


def test_plain_questions_are_read_from_the_files_of_a_half() -> None:
    places = NaturalPlaces(PLACES, PLACES / "benchmarks", PLACES)
    found = read_plain("sample-zh")(places, "dev")
    assert {one.language for one in found} == {"zh"}
    assert any(one.answerable for one in found)
    with pytest.raises(MalformedSource, match="no absent-"):
        read_plain("absent")(places, "dev")


def test_the_sentence_of_a_span_is_the_gold_of_covid_qa(tmp_path: Path) -> None:
    text = "The title\nBats carry the virus. Spread is by air."
    asked = {"id": 7, "question": "How?", "answers": [{"text": "air", "answer_start": 41}]}
    content = {
        "data": [
            {"paragraphs": [{"context": text, "document_id": number, "qas": [asked]}]}
            for number in range(80)
        ]
    }
    (tmp_path / "covid_qa.json").write_text(json.dumps(content))
    places = NaturalPlaces(tmp_path, tmp_path, tmp_path)
    dev, test = read_covid(places, "dev"), read_covid(places, "test")
    assert dev
    assert test
    assert len(dev) + len(test) < 80  # the rest is trained on
    assert {one.gold for one in (*dev, *test)} == {("Spread is by air.",)}


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> SimpleRules:
    folder = tmp_path_factory.mktemp("rules")
    page = folder / "pages.jsonl"
    texts = {
        "gout": "Gout is a painful disease of joints. Colchicine treats an attack of gout.",
        "asthma": "Asthma narrows the airways. Steroids are inhaled every day against it.",
        "rickets": "Rickets is a disease of bones. It is caused by a lack of vitamin D.",
    }
    lines = (json.dumps({"id": k, "title": k.title(), "content": v}) for k, v in texts.items())
    page.write_text("\n".join(lines) + "\n")
    kb = KnowledgeBase.create(folder / "kb")
    kb.add([page], source="web")
    encoder = MiniLMEncoder(threads=1)
    kb.build(encoder)
    return SimpleRules(kb, encoder)


def test_the_simple_rule_quotes_the_sentence_with_the_best_cosine(rules: SimpleRules) -> None:
    first, *_ = rules.best_sentences("which drug helps in a gout attack")
    assert first == ("web:gout#0", "Colchicine treats an attack of gout.")
    ((id, _),) = rules.first_passage("lack of vitamin D")
    assert id == "web:rickets#0"


def test_bm25_is_that_of_its_formula(rules: SimpleRules) -> None:
    # By hand: "vitamin" stands once, in the third of three passages.
    counted, rare, lengths = rules._words
    assert rare["vitami"] == pytest.approx(np.log(1 + 2.5 / 1.5))
    assert rules.rank_by_words("vitamin") == [2]
    assert lengths[2] == counted[2].total()


def test_words_are_cut_at_six_letters_and_chinese_into_pairs() -> None:
    assert cut_words("Pneumonia 5mg") == ["pneumo", "5mg"]
    assert cut_words("高血压") == ["高血", "血压"]
    assert cut_sentences("It is one thing here. Another one is there.") == [
        "It is one thing here.",
        "Another one is there.",
    ]


def row(id: str, *, right: bool, sure: float, answerable: bool = True, way: str = "default"):  # type: ignore[no-untyped-def]
    scored = {"relevance": sure, "judged": 2 * sure, "failed": [], "right": right, "text": "x"}
    return AskedRow("plain", way, id, answerable, "answer", right, right, sure, (), (scored,))


def test_a_log_goes_on_after_a_line_that_was_cut(tmp_path: Path) -> None:
    log = NaturalLog(tmp_path)
    log.append(row("1", right=True, sure=0.9), "dev")
    with (tmp_path / "plain-dev.jsonl").open("a") as out:
        out.write('{"set": "pla')
    assert [one.id for one in log.read("plain", "dev")] == ["1"]
    assert log.read("plain", "test") == []


def test_the_fit_is_that_of_a_ridge_regression() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    chance = np.random.default_rng(1)
    rows = np.hstack([np.ones((200, 1)), chance.normal(size=(200, 2))])
    right = (rows @ [0.3, 2.0, -1.0] + chance.normal(size=200) > 0).astype(float)
    ours = fit_logistic(rows, right)
    theirs = linear.LogisticRegression(C=1 / 0.5).fit(rows[:, 1:], right)
    assert ours == pytest.approx([theirs.intercept_[0], *theirs.coef_[0]], abs=1e-2)


def test_what_is_right_gets_the_higher_probability() -> None:
    rows = [row(str(n), right=n % 2 == 0, sure=0.9 if n % 2 == 0 else 0.3) for n in range(40)]
    fit = fit_answers(rows)
    assert fit.find_share(0.9, 1.8, 0, 0.0) > 0.7 > 0.3 > fit.find_share(0.3, 0.6, 0, 0.0)
    assert share_right(rows, fit) == 0.5


def test_sureness_is_measured_over_what_is_right_and_what_is_not() -> None:
    rows = [row("1", right=True, sure=0.9), row("2", right=False, sure=0.4)]
    assert area_under_curve(rows) == 1.0
    rows.append(row("3", right=True, sure=0.2, answerable=False))
    assert area_under_curve(rows) == 1.0
    assert area_under_curve(rows[:1]) is None


def test_a_table_has_each_way_beside_the_rule() -> None:
    rows = [row(str(n), right=True, sure=0.9) for n in range(4)]
    rows += [row(str(n), right=n > 1, sure=0.5, way="cosine") for n in range(4)]
    rows.append(row("5", right=False, sure=0.1, answerable=False))
    ours, theirs = measure_ways(rows)
    assert ours["n"] == 4
    assert ours["not answerable"] == 1
    assert str(ours["right first"]).startswith("1.000")
    assert str(theirs["right first"]).startswith("0.500")
    assert str(ours["first, less the rule"]).startswith("0.500")


def test_an_outcome_is_what_the_evidence_is_used_as() -> None:
    passage = Passage("web:1#0", "Gout hurts.", "web", "Gout")
    hit = Hit(passage, 1.0, 1, "gout", "lexical")
    assert outcome_of(Answer()) == "refused"
    assert outcome_of(Answer(evidence=(Evidence(hit, 0, 4, "nearest"),))) == "nearest"
    assert outcome_of(Answer(evidence=(Evidence(hit, 0, 4, "answer"),))) == "answer"


@pytest.mark.parametrize("half", ["dev", "test"])
def test_a_label_that_answers_has_other_sections_and_its_own(half: Half, shared_data: Path) -> None:
    asked = read_filed(NaturalPlaces(shared_data, PLACES / "benchmarks", PLACES), half)
    assert len(asked) == {"dev": 55, "test": 91}[half]
    answers = [one for one in read_filed_answers(shared_data) if one.is_label]
    drugs = read_filed_drugs(answers)
    assert all(len(drug.sections) >= 8 for drug in drugs.values())
    for one in answers:
        assert one.answer in drugs[one.drug].sections[one.field]
        assert any(set_id == set_id_of(one.drug) for set_id, _ in find_right_sections(one, drugs))
    places = {place for question in asked for place in question.documents}
    assert all(place.startswith("SPL:") for place in places)
