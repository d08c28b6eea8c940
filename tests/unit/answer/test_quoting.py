"""Quotes that an expert judges: as many as answer, a definition first for "What is"."""

from collections.abc import Mapping, Sequence

import pytest

from osler.answer import NOTHING_SAID
from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import EvidenceGate, QuoteThresholds
from osler.answer.quoting import QuoteJudge
from osler.answer.sentences import QuoteCandidate, quote_candidates
from osler.retrieve.experts.answering import TextPair
from osler.retrieve.relevance import OverlapRelevance
from osler.testing.scripted import ScriptedModel
from osler.text import split_sentences
from osler.trace import Run
from osler.types import Answer, Grounding, Hit, Passage, Question

SCURVY = "Scurvy is a lack of vitamin C in the diet."
GUMS = "Bleeding gums are an early symptom of scurvy."
JOINTS = "Swollen joints follow in scurvy after weeks."
SAILORS = "Sailors feared scurvy for three centuries."
TEXT = (
    f"{SAILORS} {GUMS} {SCURVY} {JOINTS} What are the symptoms of scurvy? See the page on scurvy."
)
SHARES = {SCURVY: 0.7, GUMS: 0.9, JOINTS: 0.8, SAILORS: 0.1}


class KnownShares:
    """A judge that knows its texts; it reads English."""

    def __init__(self, shares: Mapping[str, float]) -> None:
        self.shares = shares
        self.asked: list[tuple[str, list[TextPair]]] = []

    def can_judge(self, question: str) -> bool:
        return question.isascii()

    def judge_texts(self, question: str, texts: Sequence[TextPair]) -> list[float]:
        self.asked.append((question, list(texts)))
        return [self.shares[one.text] for one in texts]

    def judge_quotes(self, question: str, sentences: Sequence[TextPair]) -> list[float]:
        return self.judge_texts(question, sentences)


def hit(text: str, number: int = 0, title: str = "Scurvy", source: str = "web") -> Hit:
    passage = Passage(f"{source}:a#{number}", text, source, title)
    return Hit(passage, 1.0, number + 1, "q", source)


def evidence_of(*hits: Hit) -> list[QuoteCandidate]:
    return [QuoteCandidate(one, *split_sentences(one.passage.text)[0], 0.5) for one in hits]


async def choose(question: str, text: str, **changes: float) -> list[str]:
    judge = QuoteJudge(KnownShares(SHARES), **{"further": 0.6} | changes)  # type: ignore[arg-type]
    evidence, asked = evidence_of(hit(text)), Question("q", question)
    chosen = await judge.choose_quotes(asked, question, evidence, [hit(text)])
    return [one.text for one in chosen or ()]


async def test_as_many_are_quoted_as_answer_and_the_surest_stands_first() -> None:
    found = f"{SAILORS} {GUMS} {SCURVY} {JOINTS}"
    assert await choose("Symptoms of scurvy?", found) == [GUMS, JOINTS, SCURVY]
    assert await choose("Symptoms of scurvy?", found, further=0.8) == [GUMS, JOINTS]
    assert await choose("Symptoms of scurvy?", found, most=1) == [GUMS]
    assert await choose("Symptoms of scurvy?", found, first=0.95) == []


async def test_in_books_none_is_refused_and_a_share_of_the_first_suffices() -> None:
    judge, asked = QuoteJudge(KnownShares(SHARES)), Question("q", "Who feared scurvy?")
    sailors = hit(SAILORS, source="book")
    chosen = await judge.choose_quotes(asked, asked.text, evidence_of(sailors), [sailors])
    assert [one.text for one in chosen or ()] == [SAILORS]
    book = hit(f"{SAILORS} {GUMS} {JOINTS}", source="book")
    judge = QuoteJudge(KnownShares(SHARES), each=3)
    chosen = await judge.choose_quotes(asked, asked.text, evidence_of(book), [book])
    assert [one.text for one in chosen or ()] == [GUMS, JOINTS]


async def test_of_the_question_with_an_option_the_best_is_quoted_in_any_case() -> None:
    judge, asked = QuoteJudge(KnownShares(SHARES)), Question("q", "Who feared it?")
    evidence = evidence_of(hit(SAILORS))
    assert await judge.choose_quotes(asked, asked.text, evidence, [hit(SAILORS)]) == []
    chosen = await judge.choose_quotes(asked, "Who feared it? Cooks", evidence, [hit(SAILORS)])
    assert [one.text for one in chosen or ()] == [SAILORS]


@pytest.mark.parametrize(
    "question", ["What is scurvy?", "What is (are) scurvy ?", "Define scurvy.", "what is Scurvy"]
)
async def test_a_definition_stands_first_for_what_is(question: str) -> None:
    found = f"{GUMS} {SCURVY} {JOINTS}"
    assert await choose(question, found) == [SCURVY, GUMS, JOINTS]


@pytest.mark.parametrize(
    "question", ["What is the treatment of scurvy?", "What are gums?", "Who feared scurvy?"]
)
async def test_other_questions_keep_the_order(question: str) -> None:
    assert await choose(question, f"{GUMS} {SCURVY}") == [GUMS, SCURVY]


async def test_the_same_words_are_quoted_once() -> None:
    assert await choose("Symptoms of scurvy?", f"{GUMS} {GUMS}") == [GUMS]


async def test_sentences_with_the_question_s_words_are_judged_with_their_passage() -> None:
    expert = KnownShares(SHARES)
    texts = hit(f"{SAILORS} {GUMS} {JOINTS}"), hit(SCURVY, 1)
    judge = QuoteJudge(expert, read=1, further=0.6)
    asked = "Which gums are bleeding in scurvy?"
    chosen = await judge.choose_quotes(Question("q", "Why?"), asked, evidence_of(*texts), texts)
    lead = texts[0].passage.text
    read = [TextPair(GUMS, "Scurvy", lead), TextPair(SCURVY, "Scurvy", SCURVY)]
    assert expert.asked == [(asked, read)]
    assert [one.relevance for one in chosen or ()] == [0.9, 0.7]


async def test_of_a_document_that_is_evidence_other_passages_may_be_quoted() -> None:
    first, same, other = hit(SAILORS), hit(GUMS, 1), hit(JOINTS, 2, "Rickets")
    expert = KnownShares(SHARES)
    chosen = await QuoteJudge(expert).choose_quotes(
        Question("q", "Why?"), "Why?", evidence_of(first), [first, same, other]
    )
    assert [one.text for one in chosen or ()] == [GUMS]
    assert {one.text for one in expert.asked[0][1]} == {SAILORS, GUMS}


async def test_a_passage_without_a_title_brings_no_other() -> None:
    first, other = hit(JOINTS, 0, ""), hit(GUMS, 1, "")
    chosen = await QuoteJudge(KnownShares(SHARES)).choose_quotes(
        Question("q", "Why?"), "Why?", evidence_of(first), [first, other]
    )
    assert [one.text for one in chosen or ()] == [JOINTS]


async def test_only_the_first_passages_are_judged() -> None:
    hits = [hit(JOINTS), hit(GUMS, 1)]
    chosen = await QuoteJudge(KnownShares(SHARES), passages=1).choose_quotes(
        Question("q", "Why?"), "Why?", evidence_of(*hits), hits
    )
    assert [one.text for one in chosen or ()] == [JOINTS]


async def test_what_states_nothing_is_no_candidate() -> None:
    found = await quote_candidates(OverlapRelevance(), "symptoms of scurvy", [hit(TEXT)])
    assert {one.text for one in found} == set(SHARES)


async def answer(question: str, expert: KnownShares, *, nearest: bool = True) -> tuple[Answer, int]:
    """The answer, and how often the model scored a text."""
    gate = EvidenceGate(
        OverlapRelevance(),
        OverlapRelevance(),
        {"en": QuoteThresholds(0, 0), "zh": QuoteThresholds(0, 0)},
    )
    run = Run()
    composer = ExtractiveComposer(
        gate, ScriptedModel([]), 1, judge=QuoteJudge(expert), nearest=nearest
    )
    given = await composer.conclude(Question("q", question), [hit(TEXT)], "", run)
    return given, run.usage.scored_tokens


async def test_a_judged_answer_asks_no_model() -> None:
    given, scored = await answer("What are the symptoms of scurvy?", KnownShares(SHARES))
    assert [one.text for one in given.statements] == [GUMS]
    assert scored == 0


async def test_where_nothing_says_what_is_asked_the_nearest_is_quoted_and_called_so() -> None:
    unsure = KnownShares(SHARES | {GUMS: 0.4, SCURVY: 0.3, JOINTS: 0.1})
    given, _ = await answer("What are the symptoms of scurvy?", unsure)
    lead, quote = given.statements
    assert lead.text == (
        "What was found does not say this directly; nearest to it, under “Scurvy”:"
    )
    assert (lead.cites, quote.text, quote.cites) == ((), GUMS, (1,))
    assert [one.use for one in given.evidence] == ["nearest"]
    assert given.grounding is Grounding.PARTLY
    assert given.is_silent
    assert given.sureness is None
    assert given.note == NOTHING_SAID["en"]


async def test_where_the_nearest_is_not_wanted_the_answer_abstains() -> None:
    unsure = KnownShares(dict.fromkeys(SHARES, 0.4))
    given, _ = await answer("What are the symptoms of scurvy?", unsure, nearest=False)
    assert (given.statements, given.evidence) == ((), ())
    assert given.grounding is Grounding.ABSTAINED
    assert given.is_silent


async def test_what_answers_is_not_silent() -> None:
    given, _ = await answer("What are the symptoms of scurvy?", KnownShares(SHARES))
    assert given.grounding is Grounding.GROUNDED
    assert not given.is_silent


async def test_a_question_that_it_cannot_judge_is_left_to_the_rule() -> None:
    expert = KnownShares(SHARES)
    given, scored = await answer("Quels sont les symptômes du scurvy?", expert)
    assert expert.asked == []
    assert len(given.statements) == 1
    assert scored > 0
