"""Choosing an option by likelihood, or by the letter that a model is asked to write.

With a small model the likelihood of letters is uninformative and that of texts is not, by mean
log-probability per token (10 of 12 against 3 of 12, chance 3); strong models know their letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from osler.answer.option_reading import written_option
from osler.errors import MalformedOutput
from osler.llm.core.ask import ask, score_all
from osler.llm.core.base import Completion, LanguageModel, Likelihood, Message, Sampling, Scored
from osler.llm.core.grammar import Grammar, alt, seq
from osler.prompts import render_prompt
from osler.retrieve.experts.supporting import VERDICTS, SupportsExpert, Verdict, read_evidence
from osler.sources.catalogue import RESEARCH
from osler.trace import Noted, Run
from osler.types import Hit, Language, Question, Relevance, Sureness

_TEXTS_NOTE = {
    "en": "The option was chosen by its likelihood under a small model; do not rely on it.",
    "zh": "选项由小模型按似然选出，不可依赖。",
}
_LETTERS_NOTE = {
    "en": "The option is the model's choice of a letter; it is not led back to the quotes.",
    "zh": "选项是模型所选的字母，并未与引文逐一对应。",
}


_READ_BY_TEXTS, _READ_BY_LETTERS = 3, 10
"""Passages in the prompt: a small model reads only a few well; else as Omni-RAG §5.1.2."""


def letter_grammar(letters: Sequence[str]) -> Grammar:
    """`<answer>B</answer>`. Raises `ValueError` without letters."""
    return Grammar("letter", seq("<answer>", alt(*letters), "</answer>"))


class OptionChooser(Protocol):
    """Chooses an option when no model words the answer."""

    async def choose_option(
        self, question: Question, hits: Sequence[Hit], run: Run, *, said: str = ""
    ) -> str | None:
        """The letter; `None` when the model names none.

        `said` is reasoning that stands before the option (chain of thought).
        """

    def selection_note(self, language: Language) -> str:
        """A note for the reader on how the option was chosen."""


@dataclass(frozen=True)
class OptionTexts:
    """Chooses the option whose text is likeliest after the documents and the question."""

    model: Likelihood

    async def choose_option(
        self, question: Question, hits: Sequence[Hit], run: Run, *, said: str = ""
    ) -> str | None:
        prompt = render_prompt(
            "answer/documents",
            question.language,
            question=question.text,
            documents=[hit.passage.text for hit in hits[:_READ_BY_TEXTS]],
        )
        scored = await score_all(
            self.model,
            _evidence_messages(prompt.text, said),
            question.options,
            run,
            role="reader",
            prompt=prompt.identity,
        )
        return _likeliest_option(question, scored)

    def selection_note(self, language: Language) -> str:
        return _TEXTS_NOTE[language]


@dataclass(frozen=True)
class OptionLetters:
    """Chooses the option whose letter is likeliest, or written where the model cannot be scored."""

    model: LanguageModel
    constrains: bool = True
    """Whether the model takes a grammar."""

    written: bool = False
    """Whether the letter is written even where it could be scored."""

    async def choose_option(
        self, question: Question, hits: Sequence[Hit], run: Run, *, said: str = ""
    ) -> str | None:
        prompt = render_prompt(
            "answer/letters",
            question.language,
            question=question.text,
            options=question.lettered,
            documents=[hit.passage.text for hit in hits[:_READ_BY_LETTERS]],
        )
        context = _evidence_messages(prompt.text, said)
        if self.written or not isinstance(self.model, Likelihood):
            return await self._ask_letter(question, context, run, prompt.identity)
        # The scored letter directly follows the opened tag.
        begun = _evidence_messages(prompt.text, f"{said}\n<answer>" if said else "<answer>", end="")
        scored = await score_all(
            self.model, begun, question.letters, run, role="reader", prompt=prompt.identity
        )
        return _likeliest_option(question, scored)

    async def _ask_letter(
        self, question: Question, context: list[Message], run: Run, prompt: str
    ) -> str | None:
        def parse(completion: Completion) -> str:
            letter = written_option(completion.text, question)
            if letter is None:
                offered = ", ".join(question.letters)
                expected = f"<answer>X</answer> with one of {offered}"
                raise MalformedOutput(completion.text, expected=expected)
            return letter

        grammar = letter_grammar(question.letters) if self.constrains else None
        sampling = Sampling(temperature=0.0, grammar=grammar)
        try:
            return await ask(
                self.model, context, parse, sampling, run, role="reader", prompt=prompt
            )
        except MalformedOutput as error:
            run.emit(Noted(f"no option was chosen: {error.message}"))
            return None

    def selection_note(self, language: Language) -> str:
        return _LETTERS_NOTE[language]


def _evidence_messages(prompt: str, said: str, *, end: str = "\n") -> list[Message]:
    context = [Message("user", prompt)]
    return [*context, Message("assistant", f"{said}{end}")] if said else context


def _likeliest_option(question: Question, scored: Sequence[Scored]) -> str:
    """The letter with the greatest mean log-probability per token: a sum would penalise long
    options."""
    means = [fmean(token.logprob for token in one.tokens) for one in scored]
    return question.letters[means.index(max(means))]


READS = RESEARCH
"""The source whose passages the expert was trained on and measured with."""
_VERDICT_NOTE = {
    "en": 'The choice of "{said}" follows the wording of the passages found, by a small trained'
    " part; estimated probability that it is right: {share:.0f} %.",
    "zh": "“{said}”由一个小型训练部件根据检索段落的措辞选出；估计正确的概率为 {share:.0f}%。",
}


@dataclass(frozen=True, slots=True)
class ChosenVerdict:
    """The option that the evidence supports."""

    letter: str
    verdict: Verdict
    sureness: Sureness
    """How likely the choice is right."""

    def describe(self, language: Language) -> str:
        """A sentence for the reader; a calibrated estimate is never called certain."""
        share = min(99.0, max(1.0, 100 * self.sureness.probability))
        return _VERDICT_NOTE[language].format(said=self.verdict, share=share)


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
