"""State values that look at the evidence of an answer (ours: docs/papers/tc-rag.md).

Eq. 4 asks how likely the text is after the query alone, so that fluent words over the wrong
passages are as sure as a true quote. These compare the model with and without the evidence, or
ask the gate how sure the evidence answers. Lower is surer, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, log
from statistics import fmean

from osler.errors import CapabilityMissing
from osler.llm.core.ask import complete, score_all
from osler.llm.core.base import LanguageModel, Likelihood, Message, Sampling
from osler.methods.tcrag.monitor import Draft, StateValue
from osler.methods.tcrag.stack import MemoryStack
from osler.prompts import render_prompt
from osler.trace import Run
from osler.types import Evidence, Hit, Question, Relevance

ROLE = "monitor"
DOCUMENTS, CHARACTERS, BEFORE = 2, 500, 150
"""Passages that a value reads, characters of each, and how many of these stand before the quote."""
_STEEPEST = 700.0  # exp of more is no number


@dataclass(frozen=True)
class EvidenceGain:
    """Perplexity of the text after question and evidence over that after the question alone.

    exp of the negative gain log P(text | question, evidence) - log P(text | question) per token, in
    (0, inf): below 1 where the evidence makes the text likelier. With `whole` the gain is not
    divided by the number of tokens.
    """

    model: Likelihood
    metric: str = "gain"
    whole: bool = False

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> StateValue:
        found = []
        for documents in (read_documents(draft, memory), ()):
            asked = question_messages(memory.question, documents)
            (scored,) = await score_all(
                self.model, asked, [draft.text], run, role=ROLE, prompt=self.metric
            )
            found.append([token.logprob for token in scored.tokens])
        with_evidence, without = (sum(one) if self.whole else fmean(one) for one in found)
        return StateValue(exp(min(_STEEPEST, max(-_STEEPEST, without - with_evidence))))


@dataclass(frozen=True)
class QuestionGain:
    """Perplexity of the *question* after the cited quotes over that after nothing, in (0, inf).

    The same mutual information read the other way (query likelihood, Ponte and Croft 1998): a quote
    is always likely after its own passage, a question only after a text on its subject.
    """

    model: Likelihood
    metric: str = "question-gain"

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> StateValue:
        question = memory.question.text
        found = []
        for before in (f"{draft.text}\n", ""):
            (scored,) = await score_all(
                self.model, f"{before}Question: ", [question], run, role=ROLE
            )
            found.append(fmean(token.logprob for token in scored.tokens))
        return StateValue(exp(found[1] - found[0]))


@dataclass(frozen=True)
class OptionEntropy:
    """Entropy over the options' texts with the evidence, as a share of the greatest, 0 to 1; with
    `change`, e to the power of what the evidence added to the entropy, in (0, inf).

    An option's weight is its mean log-probability per token, as where an option is chosen.
    """

    model: Likelihood
    metric: str = "option-entropy"
    change: bool = False

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> StateValue:
        question = memory.question
        if len(question.options) < 2:
            raise CapabilityMissing(
                f"{self.metric} needs a question with options",
                fix='set strategy.metric = "sureness" for open questions',
            )
        sure = await self._entropy(question, read_documents(draft, memory), run)
        if not self.change:
            return StateValue(sure / log(len(question.options)))
        return StateValue(exp(sure - await self._entropy(question, (), run)))

    async def _entropy(self, question: Question, documents: Sequence[str], run: Run) -> float:
        asked = question_messages(question, documents)
        scored = await score_all(
            self.model, asked, question.options, run, role=ROLE, prompt=self.metric
        )
        return entropy_of([fmean(token.logprob for token in one.tokens) for one in scored])


@dataclass(frozen=True)
class SurenessMonitor:
    """How likely the evidence of a composed answer does *not* answer the question, 0 to 1, as a
    calibrated expert says; 1 for a text that no expert judges. No language model is asked."""

    metric: str = "sureness"

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> StateValue:
        sureness = draft.answer.sureness if draft.answer else None
        return StateValue(1 - sureness.probability if sureness else 1.0)


@dataclass(frozen=True)
class SemanticEntropy:
    """Entropy over the meanings of several answers of the model's, 0 to 1 (Farquhar et al. 2024).

    `samples` answers to the question with its evidence are drawn at temperature 1 and put into one
    meaning where `relevance` between them is at least `alike` (a cosine; the paper asks a model
    whether each entails the other). For models that may write.
    """

    model: LanguageModel
    relevance: Relevance
    sampling: Sampling = field(default_factory=lambda: Sampling(1.0, 60))
    metric: str = "semantic-entropy"
    samples: int = 5
    alike: float = 0.8

    async def state_value(self, draft: Draft, memory: MemoryStack, run: Run) -> StateValue:
        asked = question_messages(memory.question, read_documents(draft, memory))
        answers = []
        for _ in range(self.samples):
            drawn = replace(self.sampling, seed=run.rng.getrandbits(31))
            reply = await complete(self.model, asked, drawn, run, role=ROLE, prompt=self.metric)
            answers.append(" ".join(reply.text.split()))
        sizes = [len(one) for one in await self._meanings(answers)]
        entropy = entropy_of([log(size) for size in sizes])
        return StateValue(entropy / log(self.samples))

    async def _meanings(self, said: Sequence[str]) -> list[list[str]]:
        meanings: list[list[str]] = []
        for text in said:
            near = await self.relevance.relevance(text, [one[0] for one in meanings])
            best = max(range(len(near)), key=lambda at: near[at], default=None)
            if best is not None and near[best] >= self.alike:
                meanings[best].append(text)
            else:
                meanings.append([text])
        return meanings


def entropy_of(weights: Sequence[float]) -> float:
    """Entropy in nats of the distribution whose logarithms, up to a constant, are `weights`."""
    highest = max(weights)
    shares = [exp(weight - highest) for weight in weights]
    whole = sum(shares)
    return -sum(share / whole * log(share / whole) for share in shares if share > 0)


def question_messages(question: Question, documents: Sequence[str]) -> list[Message]:
    """The conversation in which an answer is scored, with these documents or with none."""
    prompt = render_prompt(
        "answer/documents", question.language, question=question.text, documents=list(documents)
    )
    return [Message("user", prompt.text)]


def read_documents(draft: Draft, memory: MemoryStack) -> tuple[str, ...]:
    """What an answer rests on: its cited passages around their quotes, else those in memory."""
    cited = draft.answer.evidence if draft.answer else ()
    first: dict[str, Evidence | Hit] = {}
    for one in cited or memory.hits:
        first.setdefault(one.passage.id, one)
    return tuple(map(_cut_passage, list(first.values())[:DOCUMENTS]))


def _cut_passage(one: Evidence | Hit) -> str:
    start = max(0, one.start - BEFORE) if isinstance(one, Evidence) else 0
    return one.passage.text[start : start + CHARACTERS]
