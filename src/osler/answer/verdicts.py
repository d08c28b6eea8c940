"""Choosing yes, no or maybe by what the evidence says, without a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.retrieve.experts.supporting import VERDICTS, SupportsExpert, Verdict, read_evidence
from osler.sources.catalogue import RESEARCH
from osler.types import Hit, Language, Question, Relevance, Sureness

READS = RESEARCH
"""The source whose passages the expert was trained on and measured with."""
_NOTE = {
    "en": 'The choice of "{said}" follows the wording of the passages found, by a small trained'
    " part; estimated probability that it is right: {share:.0f} %.",
    "zh": "“{said}”由一个小型训练部件根据检索段落的措辞选出；估计正确的概率为 {share:.0f}%。",
}


@dataclass(frozen=True, slots=True)
class ChosenVerdict:
    """The option that the evidence speaks for."""

    letter: str
    verdict: Verdict
    sureness: Sureness
    """How likely the choice is right."""

    def describe(self, language: Language) -> str:
        """A sentence for the reader; a calibrated estimate is never called certain."""
        share = min(99.0, max(1.0, 100 * self.sureness.probability))
        return _NOTE[language].format(said=self.verdict, share=share)


@dataclass(frozen=True)
class VerdictChooser:
    """Chooses among yes, no and maybe where these are the options."""

    expert: SupportsExpert | None
    """`None` = it chooses nothing, for `fault`."""
    relevance: Relevance
    """Of a sentence to the question: a cosine, as the expert was trained with."""
    fault: str = ""
    """Why there is no expert."""

    def find_fault(self, question: Question) -> tuple[str, ...]:
        """Why a question that the expert would have decided is left to a rule; for the reader."""
        return (self.fault,) if self.fault and _offered_verdicts(question) else ()

    async def choose_verdict(self, question: Question, hits: Sequence[Hit]) -> ChosenVerdict | None:
        """`None` for other options, another language, and where research is not found first."""
        offered = _offered_verdicts(question)
        # Guidelines and books forbid much ("do not wait"), which it would read as no.
        if not offered or not hits or hits[0].passage.source != READS or self.expert is None:
            return None
        if question.language not in self.expert.languages:
            return None
        hits = [hit for hit in hits if hit.passage.source == READS]
        sentences = await read_evidence(question.text, hits, self.relevance)
        shares = self.expert.judge_evidence(question.text, sentences, maybe="maybe" in offered)
        verdict = self.expert.choose_verdict(shares)
        sureness = Sureness(shares[verdict], self.expert.identity)
        return ChosenVerdict(offered[verdict], verdict, sureness)


def _offered_verdicts(question: Question) -> dict[Verdict, str]:
    """The letter of each verdict; empty where the options are others than yes, no and maybe."""
    letters = {text.strip(" .").casefold(): letter for letter, text in question.lettered}
    found: dict[Verdict, str] = {one: letters[one] for one in VERDICTS if one in letters}
    return found if len(found) == len(letters) and {"yes", "no"} <= found.keys() else {}
