"""Our measures against independent implementations: 1,000 random pairs each, to 1e-9."""

import random
from collections.abc import Iterator

import numpy as np
import pytest

from osler_lab.evaluate.metrics import choice, overlap, retrieval

N = 1_000
EXACT = 1e-9

ENGLISH = (
    *(["the", "patient", "has", "a", "2.5", "mg", "dose", "of", "aspirin"]),
    *(
        [
            "twice-daily",
            ";",
            "40%",
            "of",
            "them",
            "improved",
            "(p<0.01).",
            "No",
            "adverse",
            "events",
        ]
    ),
    *(["were", "seen", "in-hospital:", "A,", "B", "&", "C", "3-4", "1,000", "U.S.", "yes"]),
)
CHINESE = list(
    "糖尿病患者应当每日监测血糖水平，并且遵照医嘱服药。高血压（Ⅱ级）：收缩压、舒张压abc12"
)


def english(rng: random.Random) -> str:
    return " ".join(rng.choices(ENGLISH, k=rng.randint(1, 25)))


def chinese(rng: random.Random) -> str:
    return "药" + "".join(rng.choices(CHINESE, k=rng.randint(1, 40)))


def pairs(make: object, references: int = 2) -> Iterator[tuple[str, list[str]]]:
    rng = random.Random(7)
    for _ in range(N):
        yield make(rng), [make(rng) for _ in range(rng.randint(1, references))]  # type: ignore[operator]


@pytest.mark.parametrize("order", [1, 4])
@pytest.mark.parametrize(("make", "tokenizer"), [(english, "13a"), (chinese, "zh")])
def test_bleu_is_sacrebleus_sentence_by_sentence(make: object, tokenizer: str, order: int) -> None:
    bleu = pytest.importorskip("sacrebleu").BLEU(
        tokenize=tokenizer, effective_order=True, max_ngram_order=order
    )
    for said, references in pairs(make):
        wanted = bleu.sentence_score(said, references).score / 100
        assert overlap.bleu(said, references, order) == pytest.approx(wanted, abs=EXACT), said


def test_rouge_l_of_english_is_rouge_scores_with_its_own_tokenizer() -> None:
    scorer = pytest.importorskip("rouge_score.rouge_scorer").RougeScorer(["rougeL"])
    for said, references in pairs(english, 3):
        theirs = scorer.score_multi(references, said)["rougeL"]
        ours = overlap.rouge_l(said, references)
        assert ours.precision == pytest.approx(theirs.precision, abs=EXACT)
        assert ours.recall == pytest.approx(theirs.recall, abs=EXACT)
        assert ours.f1 == pytest.approx(theirs.fmeasure, abs=EXACT)


@pytest.mark.parametrize(
    "text",
    ["β-blockers, naïve", "U.S.: 1,000 mg/m²", "Ｆull ﬁne ½", "İstanbul's", "", "—", "ß₂ a_b"],
)
def test_english_words_of_rouge_are_rouge_scores_whatever_the_marks(text: str) -> None:
    tokenizers = pytest.importorskip("rouge_score.tokenizers")
    wanted = tokenizers.DefaultTokenizer(use_stemmer=False).tokenize(text)
    assert overlap.rouge_tokens(text, "en") == wanted


def test_an_article_is_a_word_for_rouge() -> None:
    """Of "the dose" in "a dose", one word of two is there: precision, recall and F1 are 1/2."""
    assert overlap.rouge_l("a dose", ["the dose"]).f1 == pytest.approx(0.5)


def test_rouge_of_chinese_is_over_characters_and_words_of_other_scripts() -> None:
    assert overlap.rouge_tokens("每日２次，HbA1c！", "zh") == ["每", "日", "2", "次", "hba1c"]


def test_rouge_l_of_chinese_is_rouge_chineses() -> None:
    """Its F1 has 1e-8 in the denominator; precision and recall have no such thing.

    It has no tokenizer: it is given characters parted by blanks, as its users do.
    """
    rouge = pytest.importorskip("rouge_chinese").Rouge(metrics=["rouge-l"])
    for said, (reference,) in pairs(chinese, 1):
        ours, meant = overlap.rouge_tokens(said, "zh"), overlap.rouge_tokens(reference, "zh")
        if not ours or not meant:
            continue
        theirs = rouge.get_scores(" ".join(ours), " ".join(meant))[0]["rouge-l"]
        found = overlap.rouge_l(said, [reference])
        assert found.precision == pytest.approx(theirs["p"], abs=EXACT)
        assert found.recall == pytest.approx(theirs["r"], abs=EXACT)
        assert found.f1 == pytest.approx(theirs["f"], abs=1e-7)


def test_retrieval_measures_are_trec_evals() -> None:
    measures = pytest.importorskip("ir_measures")
    rng, qrels, runs = random.Random(3), [], []
    ours: dict[str, tuple[float, float, float]] = {}
    for number in range(N):
        documents = [f"d{i}" for i in range(12)]
        grades = {doc: rng.randint(0, 3) for doc in rng.sample(documents, 6)}
        grades["d0"] = 2
        ranked = rng.sample(documents, rng.randint(1, 12))
        relevant = {doc for doc, grade in grades.items() if grade > 0}
        query = f"q{number}"
        ours[query] = (
            retrieval.recall_at(ranked, relevant, 5),
            retrieval.reciprocal_rank(ranked, relevant),
            retrieval.ndcg(ranked, grades, 10),
        )
        qrels += [measures.Qrel(query, doc, grade) for doc, grade in grades.items()]
        runs += [measures.ScoredDoc(query, doc, -float(r)) for r, doc in enumerate(ranked)]
    wanted = [measures.R @ 5, measures.RR, measures.nDCG @ 10]
    seen = 0
    for metric in measures.iter_calc(wanted, qrels, runs):
        value = ours[metric.query_id][wanted.index(metric.measure)]
        assert value == pytest.approx(metric.value, abs=EXACT), metric
        seen += 1
    assert seen == 3 * N


def test_agreement_is_scikit_learns() -> None:
    """For each length, as many judgements side by side: scikit-learn takes them as one."""
    sk = pytest.importorskip("sklearn.metrics")
    rng, side, seen = random.Random(5), 35, 0
    for n in range(2, 31):
        machine = [[rng.random() < 0.6 for _ in range(n)] for _ in range(side)]
        person = [[rng.random() < 0.5 for _ in range(n)] for _ in range(side)]
        theirs = np.transpose(person).astype(int), np.transpose(machine).astype(int)
        precision, recall, f1, _ = sk.precision_recall_fscore_support(*theirs, zero_division=0)
        right = sk.multilabel_confusion_matrix(*theirs)[:, (0, 1), (0, 1)].sum(axis=1)
        for k in range(side):
            found = choice.agreement(machine[k], person[k])
            assert found.accuracy == pytest.approx(right[k] / n, abs=EXACT)
            assert found.precision == pytest.approx(precision[k], abs=EXACT)
            assert found.recall == pytest.approx(recall[k], abs=EXACT)
            assert found.f1 == pytest.approx(f1[k], abs=EXACT)
            seen += 1
        assert choice.agreement(machine[0], person[0]).accuracy == pytest.approx(
            sk.accuracy_score(person[0], machine[0]), abs=EXACT
        )
    assert seen >= N


def test_reliability_bins_are_scikit_learns() -> None:
    curve = pytest.importorskip("sklearn.calibration").calibration_curve
    rng = random.Random(6)
    for _ in range(N):
        n = rng.randint(2, 60)
        confidence = [rng.random() for _ in range(n)]
        rights = [float(rng.random() < 0.5) for _ in range(n)]
        rights[:2] = [0.0, 1.0]
        accuracy, mean = curve(rights, confidence, n_bins=10)
        bins = choice.reliability(confidence, rights)
        assert [b.accuracy for b in bins] == pytest.approx(list(accuracy), abs=EXACT)
        assert [b.confidence for b in bins] == pytest.approx(list(mean), abs=EXACT)


def test_query_diversity_is_the_mean_of_scikit_learns_cosine_distances() -> None:
    distances = pytest.importorskip("sklearn.metrics.pairwise").cosine_distances
    rng = random.Random(8)
    for _ in range(N):
        n = rng.randint(2, 6)
        vectors = [[rng.gauss(0, 1) for _ in range(4)] for _ in range(n)]
        full = distances(vectors)
        wanted = sum(full[i][j] for i in range(n) for j in range(i)) / (n * (n - 1) / 2)
        assert choice.query_diversity(vectors) == pytest.approx(wanted, abs=EXACT)


def squad_normal(text: str) -> str:
    """The SQuAD 1.1 evaluation script's, word for word in its order of steps."""
    import re
    import string

    lowered = "".join(c for c in text.lower() if c not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", lowered).split())


def test_exact_match_and_f1_are_squads_on_english() -> None:
    from collections import Counter

    for said, references in pairs(english):
        wanted, best = 0.0, 0.0
        for reference in references:
            a, b = squad_normal(said).split(), squad_normal(reference).split()
            wanted = max(wanted, float(a == b))
            same = sum((Counter(a) & Counter(b)).values())
            verdict = {" ".join(a), " ".join(b)} & {"yes", "no", "noanswer"}
            if same and (a == b or not verdict):
                p, r = same / len(a), same / len(b)
                best = max(best, 2 * p * r / (p + r))
            elif a == b:
                best = 1.0
        assert overlap.exact_match(said, references) == wanted
        assert overlap.f1(said, references) == pytest.approx(best, abs=EXACT)


@pytest.mark.parametrize("text", ["糖尿病患者应每日监测血糖。", "高血压，二级", "是"])
def test_identical_chinese_texts_score_one(text: str) -> None:
    assert overlap.exact_match(text, [text]) == 1
    assert overlap.f1(text, [text]) == 1
    assert overlap.bleu(text, [text]) == pytest.approx(1, abs=EXACT)
    assert overlap.paper_bleu(text, [text]) == 1
    assert overlap.rouge_l(text, [text]).f1 == 1
    assert overlap.rouge_r(text, [text]) == 1


def test_the_papers_bleu_is_higher_than_bleu_by_its_wrong_weights() -> None:
    """ "abcd" against "abce": p1 = 3/4, no penalty; weights (1/4, 0, 0, 0) give (3/4)^(1/4)."""
    assert overlap.paper_bleu("abcd", ["abce"], 4) == pytest.approx(0.75**0.25)
    assert overlap.paper_bleu("abcd", ["abce"], 1) == pytest.approx(0.75)


def test_luq_worked_by_hand() -> None:
    """Two responses: one sentence with 3:1, two sentences with 1:1 and 1:0.

    C(0) = 0.75; C(1) = (0.5 + 1) / 2 = 0.75; U = 1 - 0.75 = 0.25.
    """
    e = choice.Entailment
    scores = [[[None, e(0.6, 0.2)]], [[e(0.3, 0.3), None], [e(0.4, 0.0), None]]]
    assert choice.luq(scores) == pytest.approx(0.25)


def test_the_leaderboard_average_is_over_types_of_means_over_classes() -> None:
    """Type X: class a 1/2, class b 1 → 0.75; type Y: class c 0 → 0; mean 0.375."""
    rows = [("X", "a", 1.0), ("X", "a", 0.0), ("X", "b", 1.0), ("Y", "c", 0.0)]
    types, mean = choice.leaderboard(rows)
    assert (types, mean) == ({"X": 0.75, "Y": 0.0}, 0.375)


@pytest.mark.parametrize(
    ("value", "base", "printed"),
    [(76.8, 80.0, -4.0), (50.0, 40.0, 25.0)],
)
def test_a_drop_is_relative_to_the_base(value: float, base: float, printed: float) -> None:
    assert 100 * choice.relative_drop(value, base) == pytest.approx(printed)


def test_mirages_standard_error_by_hand() -> None:
    """sqrt(0.8 · 0.2 / 100) = 0.04."""
    assert choice.standard_error(0.8, 100) == pytest.approx(0.04)
