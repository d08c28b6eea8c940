"""The gate: which sentences of the hits answer a question, and how likely any of them does.

Sentences of the passages are weighed by the cosine of the question with "heading. sentence", plus
half the cosine with their passage and half of their share of the question's words; in Chinese by
the cosine, the share of the question's words that their passage has, and .3 of their own share. To
the best of them the cosine of an encoder that has learnt what answers is added (`match`), the judge
reads question and sentence together, and checks about medicine (`osler.answer.checks`) count
against them. So they are ordered, and the probability of the first, on one scale for all sources,
says how sure the answer is and decides among an answer, the nearest passages, and none. Of a
table's row the columns decide, too (`osler.answer.columns`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp, fsum

from osler.answer import sections
from osler.answer.checks import (
    CHECKS,
    UNMET,
    AskedFacts,
    ReadQuote,
    failed_checks,
    is_named_nowhere,
    is_withheld,
    lacks_matter,
    tells_of_both,
    weigh_failures,
)
from osler.answer.columns import names_row, stands_alone, weigh_rows
from osler.answer.precedence import find_warnings, may_answer, may_warn, put_first
from osler.answer.sentences import QuoteCandidate, judged_text, quotable_spans
from osler.errors import ModelError
from osler.kb.store.passages import indexed_text
from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts.cards import ExpertCard
from osler.retrieve.gloss import gloss_question
from osler.sources.catalogue import GRAPH, UNTRUSTED, trust_of
from osler.text import language_of
from osler.types import Hit, Language, Question, Relevance, Sureness

PASSAGE = 0.5
"""Weight of a passage's relevance beside its sentence's."""
WORDS = 0.5
"""Weight of the share of the question's words, rare ones counting most, that a sentence has."""
PASSAGE_WORDS, OWN_WORDS = 1.0, 0.3
"""Weights of the share of a Chinese question's words that passage and sentence have, beside the
cosine of `meaning`. Of 465 questions by other hands (dev and seen) 348 have a right first quote;
324 with half the passage's cosine and 1.2 of each share. Seven weights fitted in five folds by
subjects have 348, too."""
COLUMN_WORDS = 1.2
"""The same weight where a Chinese question is held against the columns of a table."""
MATCH = 1.5
"""Weight of the cosine of the encoder that has learnt what answers."""
CHECK = 0.25
"""What a failed check takes from a sentence in the order, where relevance lies about 1."""
_FITTED = ("ordered", "bias", "relevance", "judged", "failed", "margin", "check")
"""Parameters of a judge's card."""
COMPARED = 36
"""Sentences whose meaning is compared with the question: the best by their words and passages."""
READ = 12
"""Sentences that `match` reads: the best by relevance. With 20 passages and these, of 1,369 dev
and seen questions 944 have a right first quote and 1,114 one in three; with 10 passages, 24 and 10
sentences 914 and 1,081; with 48 and 14 it is 944 and 1,117, for half as much time again."""
JUDGED = 8
"""Sentences that the judge reads: the best with `match`. Of 1,404 dev and seen questions 1,047 have
a right first quote and 1,244 one in three; 1,046 and 1,239 where it reads all twelve."""

UNCERTAIN = 0.4
"""Probability of an answer about which is not more known than that it speaks of what is asked."""
LIKELY = 0.5
"""Probability from which sentences of trusted sources answer alone, and quotes behind the first may
not be about something else."""
FAR = 0.44
"""Relevance in a language of `BY_MEANING` below which nothing is near, whatever stands out among
the sentences. No right first quote of 465 dev and seen questions lies below."""
LEAST_WORDS = 2
"""Words of a question in the other language that say enough to read its texts by."""


@dataclass(frozen=True, slots=True)
class AnswerFit:
    """How scores make an order of sentences, and the probability that they answer."""

    ordered: float
    """Weight of the judge's logit beside relevance in the order."""
    bias: float
    """Of the logistic regression, as what follows."""
    relevance: float
    judged: float
    failed: float
    """Taken for each check that the sentence fails."""
    margin: float
    """Of how far its relevance lies above the mean of the sentences that were read."""
    check: float = CHECK
    """What a failed check takes from a sentence in the order."""

    def find_place(self, relevance: float, judged: float, failed: int) -> float:
        """By which sentences are ordered: the higher, the better."""
        return relevance + self.ordered * judged - self.check * failed

    def find_share(self, relevance: float, judged: float, failed: int, margin: float) -> float:
        """Probability that the sentence, standing first, answers with those behind it."""
        logit = self.bias + self.relevance * relevance + self.judged * judged
        logit += self.margin * margin - self.failed * failed
        return 1 / (1 + exp(min(-logit, 700.0)))  # what `exp` makes a float of


BY_RELEVANCE: Mapping[Language, AnswerFit] = {
    "en": AnswerFit(0.0, -3.3373, 2.4613, 0.0, 0.3, 4.6462, 0.15),
    "zh": AnswerFit(0.0, -1.25, 1.6, 0.0, 0.9, 0.88),
}
"""Without a judge. Fitted on questions by other hands (`benchmarks/plain`)."""
BY_MEANING: Mapping[Language, AnswerFit] = {"zh": AnswerFit(0.0, -3.4, 3.6, 0.0, 0.9, 5.8, 0.1)}
"""Where a language's own encoder weighs meaning and words. Fitted on dev and seen (n 625) and,
with .3 of the weight, on those with an answer whose document was taken away; but for what a failed
check takes from the probability, which is set, so that another drug's sentence is no answer. Of 160
without an answer .27 are answered."""


def read_fits(card: ExpertCard) -> dict[Language, AnswerFit]:
    """How the judge's logits make probabilities, by its card; other languages go without it.

    Raises `ModelError` for a card without these numbers.
    """
    if lacking := [name for name in _FITTED if name not in card.parameters]:
        raise ModelError(
            f"the card of {card.name!r} lacks {', '.join(lacking)}",
            fix="retrain it (docs/guide/experts.md)",
        )
    own = AnswerFit(*(card.parameters[name] for name in _FITTED))
    return {**BY_RELEVANCE, **dict.fromkeys(card.languages, own)}


@dataclass(frozen=True, slots=True)
class WeighedEvidence:
    """Sentences that answer, and how likely they do."""

    quotes: list[QuoteCandidate]
    """The likeliest first; `relevance` is the probability. Empty when none is likely enough."""
    sureness: Sureness | None = None
    """Probability that the best sentence answers; `None` where nothing was found."""
    near: Sequence[QuoteCandidate] = ()
    """Where nothing answers: what is nearest to an answer, if anything is near."""
    read: Sequence[QuoteCandidate] = ()
    """All that may be shown, the likeliest first."""


@dataclass(frozen=True)
class EvidenceGate:
    """Decides which sentences are evidence for a question."""

    relevance: Relevance
    """Of a sentence or passage to the question: a cosine, or a share of words."""
    coverage: Relevance | None = None
    """Of the question's words by a sentence; beside a cosine, which makes little of rare names."""
    reader: QuestionReader = field(default_factory=QuestionReader)
    match: Relevance | None = None
    """Cosine of the question and a sentence that is read, under its heading, by an encoder that
    has learnt what answers."""
    meaning: Relevance | None = None
    """In place of `relevance` for the languages of `BY_MEANING`: its scores have their own fit."""
    judge: Relevance | None = None
    """Logit that a sentence answers (`JudgedText`); `None` = relevance alone."""
    fits: Mapping[Language, AnswerFit] = field(default_factory=lambda: dict(BY_RELEVANCE))
    identity: str = "relevance"
    """Name of what makes the probability, and of its weights."""
    kinds: Relevance | None = None
    """How much a sentence is of a kind (`SentenceKinds`), for questions that ask for a section."""
    label_sections: Relevance | None = None
    """How likely what is under a heading of a drug's label answers (`LabelSections`)."""
    answers: float = UNCERTAIN
    """Least probability of an answer."""
    nearest: float = 0.14
    """Least probability of a closest passage."""
    judged: int = JUDGED
    """Sentences that the judge reads; in Chinese, and by `match`, `READ` at least."""
    checks: tuple[str, ...] = tuple(CHECKS)
    faults: tuple[str, ...] = field(default=())
    """Why a part that is set is not in use; for the reader."""

    async def weigh_evidence(
        self, question: Question, hits: Sequence[Hit], *, query: str = ""
    ) -> WeighedEvidence:
        """Sentences of the passages that answer, the likeliest first.

        `query` replaces the question where a sentence must bear out more than it, as an option;
        the best sentence then counts as an answer in any case.
        """
        is_option = bool(query and query != question.text)
        spelt = self.reader.read(question.text).spelt
        own = [] if is_option else sections.choose_subject(spelt, hits)
        # In English sections do it, and what is headed otherwise may answer, too.
        read = own if question.language == "zh" else []
        found = await self._weigh_languages(query or question.text, read)
        if not found or found[0].relevance < self.nearest:
            found = await self._weigh_languages(query or question.text, hits)
        if not found:
            return WeighedEvidence([])
        if not is_option:
            found = sorted(found, key=lambda one: one.relevance < self.answers)
            found = put_first(AskedFacts(self.reader.read(question.text)), found)
        found = sections.lead_with_section(
            await sections.quote_section(spelt, own, self.kinds), found
        )
        share = found[0].relevance
        sureness = Sureness(share, self.identity)
        if is_option or (share >= self.answers and may_answer(question.text, found[0], hits)):
            return WeighedEvidence(found, sureness, read=found)
        near = found if share >= self.nearest else ()
        return WeighedEvidence([], sureness, near, found)

    async def _weigh_languages(self, asked: str, hits: Sequence[Hit]) -> list[QuoteCandidate]:
        """As `weigh_sentences`; where texts in its own language have nothing near, those in the
        other are read by the question's words in it, and beside own ones must be likely. What of
        the question has no such word counts against them."""
        hits, language = _choose_texts(hits), language_of(asked)
        own = [hit for hit in hits if hit.passage.language == language]
        others = [hit for hit in hits if hit.passage.language != language]
        found = await self._weigh_trusted_first(asked, own) if own else []
        gloss = gloss_question(asked)
        is_near = bool(found) and found[0].relevance >= self.nearest
        if not others or is_near or len(gloss.words) < LEAST_WORDS:
            return found
        facts = AskedFacts(self.reader.read(asked))  # of which the gloss may have less
        across = [
            replace(one, relevance=one.relevance * gloss.covered)
            for one in await self._weigh_trusted_first(gloss.text, others)
            if not lacks_matter(facts, ReadQuote.of_candidate(one))
        ]
        is_likely = bool(across) and across[0].relevance >= (LIKELY if own else 0.0)
        return across if is_likely else found

    async def _weigh_trusted_first(self, asked: str, hits: Sequence[Hit]) -> list[QuoteCandidate]:
        """As `weigh_sentences`; what an untrusted source says is read only where the others do not
        likely answer. Of 40 questions with five planted passages each, 2 are answered by one, 40
        without this; of 705 dev and seen questions 5 lose their right first quote."""
        trusted = [hit for hit in hits if trust_of(hit.passage.source) > UNTRUSTED]
        if 0 < len(trusted) < len(hits):
            found = await self.weigh_sentences(asked, trusted)
            if found and found[0].relevance >= LIKELY and found[0].failed.isdisjoint(UNMET):
                facts = AskedFacts(self.reader.read(asked))
                if not may_warn(facts, hits):
                    return found
                return [*found, *find_warnings(facts, await self.weigh_sentences(asked, hits))]
        return await self.weigh_sentences(asked, hits)

    async def weigh_sentences(self, asked: str, hits: Sequence[Hit]) -> list[QuoteCandidate]:
        """The sentences that are read, likeliest first; `relevance` is the probability."""
        facts = AskedFacts(self.reader.read(asked))
        nowhere = is_named_nowhere(facts, [indexed_text(hit.passage) for hit in hits])
        if nowhere and not names_row(facts.asked, hits):
            return []
        most = max(READ, self.judged)
        found = await self.read_best(facts, hits, most)
        if not found:
            return []
        judged: Sequence[float] = [0.0] * len(found)
        if self.judge is not None:
            found.sort(key=partial(_find_turn, facts))
            most = most if self._meaning_of(facts) else self.judged
            texts = [judged_text(one).to_line() for one in found[:most]]
            judged = await self.judge.relevance(asked, texts)
        # After the judge, which a replay of the run looks for.
        alone = stands_alone(found) if self._meaning_of(facts) else ""
        far = max(one.relevance for one in found) < FAR
        if self.match and self._meaning_of(facts) and far and not alone:
            return []
        weighed = self._weigh_found(facts, found, judged)
        language = language_of(facts.asked.written)
        if self._meaning_of(facts) is None and (language == "zh" or self.coverage is None):
            return weighed  # words alone tell nothing of columns
        nearness = partial(self._measure_nearness, facts)
        return await weigh_rows(facts.asked, weighed, hits, nearness, language, alone)

    async def _measure_nearness(
        self, facts: AskedFacts, asked: str, texts: Sequence[str]
    ) -> Sequence[float]:
        """The cosines of both encoders together, where the language has two."""
        meaning = self._meaning_of(facts)
        near = await (meaning or self.relevance).relevance(asked, texts)
        if meaning is not None:
            shares = await self._measure_words(asked, texts)
            return [one + COLUMN_WORDS * share for one, share in zip(near, shares, strict=True)]
        more = await self.match.relevance(asked, texts) if self.match else near
        return [one + other for one, other in zip(near, more, strict=True)]

    async def read_best(
        self, facts: AskedFacts, hits: Sequence[Hit], most: int = READ
    ) -> list[QuoteCandidate]:
        """The most relevant sentences, with what `match` makes of them in their relevance."""
        found = (await self.rank_by_relevance(facts, hits))[:most]
        if self.kinds is not None:
            scorer = self._meaning_of(facts) or self.relevance
            found = await sections.favour_kind(facts, found, self.kinds, scorer)
        if self.match is None or not found:
            return found
        texts = [f"{one.hit.passage.heading}. {one.text}" for one in found]
        pairs = zip(found, await self.match.relevance(facts.text, texts), strict=True)
        return [replace(one, relevance=one.relevance + MATCH * more) for one, more in pairs]

    def _weigh_found(
        self, facts: AskedFacts, found: Sequence[QuoteCandidate], judged: Sequence[float]
    ) -> list[QuoteCandidate]:
        """The sentences that may be shown in their order, with their probabilities; the first of
        those that were read are judged."""
        language = language_of(facts.asked.written)
        fit = self.fits[language] if self._meaning_of(facts) is None else BY_MEANING[language]
        usual = fsum(one.relevance for one in found) / len(found)
        weighed = []
        for one, logit in zip(found, judged, strict=False):
            names = {*failed_checks(facts, one, self.checks), *one.failed}
            if is_withheld(facts, names):
                continue
            scores = (one.relevance, logit, weigh_failures(names, language))
            least = UNCERTAIN if not names and tells_of_both(facts, one) else 0.0
            share = max(least, fit.find_share(*scores, one.relevance - usual))
            quote = replace(one, relevance=share, failed=frozenset(names))
            weighed.append((fit.find_place(*scores) + one.favour, quote))
        return [one for _, one in sorted(weighed, key=lambda pair: -pair[0])]

    async def rank_by_relevance(
        self, facts: AskedFacts, hits: Sequence[Hit]
    ) -> list[QuoteCandidate]:
        """Sentences of the hits, the most relevant first."""
        hits = _choose_texts(hits)
        spans = [(hit, *span) for hit in hits for span in quotable_spans(hit)]
        if not spans:
            return []
        asked, meaning = facts.asked.written, self._meaning_of(facts)
        scorer = meaning or self.relevance
        whole = await self._weigh_passages(facts, hits)
        found = [QuoteCandidate(hit, a, b, whole[hit.passage.id]) for hit, a, b in spans]
        words = await self._measure_words(
            facts.text if meaning is None else asked, [one.text for one in found]
        )
        near = _choose_nearest(facts, found, words)
        texts = [f"{one.hit.passage.heading}. {one.text}" for one, _ in near]
        scores = await scorer.relevance(asked, texts)
        # Chinese without an encoder of its own has scores of words.
        weight = OWN_WORDS if meaning else WORDS if language_of(asked) == "en" else 0.0
        weighed = [
            replace(one, relevance=one.relevance + score + weight * share)
            for (one, share), score in zip(near, scores, strict=True)
        ]
        return sorted(weighed, key=partial(_find_turn, facts))

    async def _weigh_passages(self, facts: AskedFacts, hits: Sequence[Hit]) -> dict[str, float]:
        """What each passage adds to its sentences, by its id."""
        asked, texts = facts.asked.written, [indexed_text(hit.passage) for hit in hits]
        if self._meaning_of(facts) is None:
            scores = await self.relevance.relevance(asked, texts)
            scores = tuple(PASSAGE * one for one in scores)
        else:
            shares = await self._measure_words(asked, texts)
            scores = tuple(PASSAGE_WORDS * one for one in shares)
        more = await sections.weigh_label_sections(asked, hits, self.label_sections)
        ids = [hit.passage.id for hit in hits]
        return {id: score + own for id, score, own in zip(ids, scores, more, strict=True)}

    def _meaning_of(self, facts: AskedFacts) -> Relevance | None:
        return self.meaning if language_of(facts.asked.written) in BY_MEANING else None

    async def _measure_words(self, asked: str, said: Sequence[str]) -> Sequence[float]:
        """Share of the question's words that each text has; 0 where relevance is of words."""
        if self.coverage is None:
            return [0.0] * len(said)
        return await self.coverage.relevance(asked, said)


def _choose_nearest(
    facts: AskedFacts, found: Sequence[QuoteCandidate], words: Sequence[float]
) -> list[tuple[QuoteCandidate, float]]:
    """The sentences whose meaning is compared, with their words: the best by words and passage."""

    def find_turn(pair: tuple[QuoteCandidate, float]) -> tuple[bool, float, int, int]:
        one, share = pair
        return _find_turn(facts, replace(one, relevance=one.relevance + WORDS * share))

    return sorted(zip(found, words, strict=True), key=find_turn)[:COMPARED]


def _find_turn(facts: AskedFacts, one: QuoteCandidate) -> tuple[bool, float, int, int]:
    """Sentences about both drugs asked about come first, then the most relevant; rank and position
    break ties, so that the order is always the same."""
    return not tells_of_both(facts, one), -one.relevance, one.hit.rank, one.start


def _choose_texts(hits: Sequence[Hit]) -> Sequence[Hit]:
    """The hits without relations of the graph, which are no prose, where there are others."""
    return [hit for hit in hits if hit.passage.source != GRAPH] or hits
