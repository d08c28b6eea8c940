"""The experts on sets that nothing was trained on and no figure was tuned on.

    python benchmarks/experts/measured_only.py [--data FOLDER] [--answers DIR] [--supports DIR]

`answers`: LiveQA's letters and their judged answers, MEDIQA 2019's answers with grades, and
Chinese case questions with the answers to the other questions of the case (the expert is English:
what it does there is measured, not hoped). `supports`: HealthVer's and CovidFact's claims, each
with its evidence. The simple rule stands beside. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from xml.etree import ElementTree

from osler.answer.disagreement import find_difference, read_claim
from osler.answer.verify import supports_claim
from osler.evaluate.datasets import read_qrels
from osler.evaluate.intervals import Estimate, difference, mean
from osler.evaluate.metrics.retrieval import ndcg
from osler.kb.encoders.base import MiniLMEncoder
from osler.retrieve.experts.answering import AnswersExpert, TextPair
from osler.retrieve.experts.cues import CuedSentence
from osler.retrieve.experts.shelf import open_expert
from osler.retrieve.experts.supporting import SupportsExpert
from osler.retrieve.words import content_terms
from osler.text import split_sentences
from osler.train.experts.pair_evaluation import area_under_curve, cosine_score
from osler.train.experts.pair_questions import read_medquad_pages

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
PASSAGE = 700
Graded = list[tuple[str, str, int]]
"""Id, text and grade (0 = of no use) of the texts of one question."""
Score = Callable[[str, Sequence[TextPair]], Sequence[float]]


def row(on: str, measure: str, ours: Estimate, rule: str, theirs: Estimate, gain: Estimate) -> None:
    print(f"| {on} | {measure} | {ours.n} | {ours} | {rule} {theirs} | {gain} |", flush=True)


def compare(on: str, asked: Mapping[str, Graded], ours: Score, theirs: Score, rule: str) -> None:
    """nDCG@10 of the judged texts, and the area under the curve over all of them."""
    places: list[list[float]] = [[], []]
    flat: list[list[tuple[float, float]]] = [[], []]
    for question, graded in asked.items():
        grades = {id: grade for id, _, grade in graded}
        if not any(grades.values()) or len(graded) < 2:
            continue
        texts = [TextPair(text[:PASSAGE]) for _, text, _ in graded]
        for at, score in enumerate((ours, theirs)):
            scores = score(question, texts)
            order = sorted(zip(scores, grades, strict=True), key=lambda pair: (-pair[0], pair[1]))
            places[at].append(ndcg([id for _, id in order], grades, 10))
            right = [float(grade > 0) for _, _, grade in graded]
            flat[at] += list(zip(scores, right, strict=True))
    gain = difference(places[1], places[0])
    row(on, "nDCG@10", mean(places[0]), rule, mean(places[1]), gain)
    curves = [f"{area_under_curve(one):.3f}" for one in flat]
    print(f"| {on} | area under curve | {len(flat[0])} | {curves[0]} | {rule} {curves[1]} | |")


def liveqa(data: Path) -> dict[str, Graded]:
    """Letters with the judged answers whose text is here; grades 2 and 3 of 0 to 3 are of use."""
    texts = {
        f"{page.id}_Sec{number}": answer
        for page in read_medquad_pages(data)
        for number, _, _, answer in page.pairs
    }
    folder = data / "B_corpora/medquad"
    with (folder / "judged_answers.csv").open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            id = line["AnswerID"].removesuffix(".txt")
            texts.setdefault(id, line["Answer"].partition("Answer:")[2].strip())
    judged = read_qrels(folder / "qrels_LiveQAMed2017.txt")
    letters = ElementTree.parse(  # noqa: S314 - data that we were given
        data / "A_questions/liveqa/TREC-2017-LiveQA-Medical-Test.xml"
    )
    found: dict[str, Graded] = {}
    for letter in letters.iter("NLM-QUESTION"):
        words = " ".join((letter.findtext(f".//{tag}") or "") for tag in ("SUBJECT", "MESSAGE"))
        grades = judged.get(letter.get("qid") or "", {})
        named = {id.removesuffix(".txt"): grade for id, grade in grades.items()}
        found[" ".join(words.split())] = [
            (id, texts[id], grade) for id, grade in named.items() if texts.get(id)
        ]
    return found


def mediqa(data: Path) -> dict[str, Graded]:
    """Questions with answers graded 1 to 4; 3 and 4 are right."""
    found: dict[str, Graded] = {}
    for path in sorted((data / "A_questions/mediqa2019_qa").glob("*.xml")):
        for question in ElementTree.parse(path).getroot().iter("Question"):  # noqa: S314
            asked = " ".join((question.findtext("QuestionText") or "").split())
            answers = [
                (answer.get("AID") or str(n), answer.findtext("AnswerText") or "", answer)
                for n, answer in enumerate(question.iter("Answer"))
            ]
            found[asked] = [
                (id, " ".join(text.split()), max(0, int(one.get("ReferenceScore") or 0) - 2))
                for id, text, one in answers
                if text.strip()
            ]
    return found


def chinese_cases(data: Path) -> dict[str, Graded]:
    """Questions about a case with all answers of that case, of which one is theirs."""
    rows = json.loads((data / "A_questions/cmb_clin/CMB-Clin.json").read_text(encoding="utf-8"))
    cases: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for one in rows:
        case, _, asked = one["question"].rpartition("以下你需要回答的[问题]：")
        cases[case].append((asked.strip(), one["answers"]))
    return {
        asked: [(str(n), answer, int(n == at)) for n, (_, answer) in enumerate(pairs)]
        for pairs in cases.values()
        for at, (asked, _) in enumerate(pairs)
        if len(pairs) > 1
    }


def overlap_score(question: str, texts: Sequence[TextPair]) -> list[float]:
    """Share of the question's content words that a text has."""
    asked = set(content_terms(question))
    return [len(asked & set(content_terms(one.text))) / max(1, len(asked)) for one in texts]


def or_rule(answers: AnswersExpert, rule: Score) -> Score:
    """As it is used: a question that the expert cannot judge keeps the rule's order."""

    def score(question: str, texts: Sequence[TextPair]) -> Sequence[float]:
        known = answers.can_judge(question)
        return answers.judge_texts(question, texts) if known else rule(question, texts)

    return score


def claims(data: Path) -> Iterable[tuple[str, str, list[str], str]]:
    """Set, claim, sentences of evidence and verdict: yes (supported), no (refuted)."""
    with (data / "A_questions/healthver/healthver_dev.csv").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            verdict = {"Supports": "yes", "Refutes": "no"}.get(line["label"])
            if verdict:
                yield "HealthVer", line["claim"], _sentences(line["evidence"]), verdict
    path = data / "A_questions/covidfact/covidfact_first3000.jsonl"
    for text in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(text)
        verdict = "yes" if record["label"] == "SUPPORTED" else "no"
        yield "CovidFact", record["claim"], list(record["evidence"]), verdict


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


def compare_claims(data: Path, expert: SupportsExpert) -> None:
    """Accuracy beside the more frequent verdict, and the area under the curve of "yes".

    Sentences count by the words that they share with the claim, as the word rule reads them.
    """
    by_set: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for name, claim, sentences, verdict in claims(data):
        near = overlap_score(claim, [TextPair(one) for one in sentences])
        read = [CuedSentence(*pair) for pair in zip(sentences, near, strict=True)]
        shares = expert.judge_evidence(claim, read, maybe=False)
        by_set[name].append((shares["yes"], word_rule(claim, sentences), float(verdict == "yes")))
    for name, judged in by_set.items():
        golds = [gold for _, _, gold in judged]
        usual = float(sum(golds) * 2 >= len(golds))
        rights = [float((share >= 0.5) == bool(gold)) for share, _, gold in judged]
        plain = [float(gold == usual) for gold in golds]
        words = [float((said or 2 * usual - 1) == 2 * gold - 1) for _, said, gold in judged]
        for rule, theirs in (("majority", plain), ("words, else majority", words)):
            gain = difference(theirs, rights)
            row(f"{name}, zero-shot", "accuracy", mean(rights), rule, mean(theirs), gain)
        said = f"{sum(bool(one) for _, one, _ in judged)} of {len(judged)}"
        area = area_under_curve([(share, gold) for share, _, gold in judged])
        print(f"| {name}, zero-shot | area under curve | {len(judged)} | {area:.3f} | words | |")
        print(f"| {name} | claims on which the word rule says anything | | | {said} | |")


def word_rule(claim: str, sentences: Sequence[str]) -> float:
    """1 where a sentence supports the claim by `verify`'s rule, -1 where one contradicts it."""
    mine = read_claim(claim)
    theirs = [read_claim(one) for one in sentences]
    yes = any(supports_claim(mine, one, "en") for one in theirs)
    no = any(find_difference(mine, one, "en") for one in theirs)
    return float(yes) - float(no)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--answers", type=Path, help="the expert's folder; else the packaged one")
    parser.add_argument("--supports", type=Path, help="the expert's folder; else the packaged one")
    given = parser.parse_args()
    print("| on | measure | n | expert | rule | gain |\n|---|---|--:|---|---|---|")
    compare_claims(given.data, SupportsExpert(open_expert("supports", given.supports)))
    answers = AnswersExpert(open_expert("answers", given.answers), threads=1)
    cosine = cosine_score(MiniLMEncoder(threads=1))
    for name, asked, rule, called in (
        ("CMB-Clin (Chinese)", chinese_cases(given.data), overlap_score, "overlap"),
        ("LiveQA, judged answers", liveqa(given.data), cosine, "cosine"),
        ("MEDIQA 2019", mediqa(given.data), cosine, "cosine"),
    ):
        known = sum(map(answers.can_judge, asked))
        compare(f"{name}, {known} judged", asked, or_rule(answers, rule), rule, called)
        by_expert = {q: graded for q, graded in asked.items() if answers.can_judge(q)}
        if by_expert:
            compare(f"{name}, those alone", by_expert, answers.judge_texts, rule, called)


if __name__ == "__main__":
    main()
