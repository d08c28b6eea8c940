"""Choosing an option: by what a model wrote, or by the likelihood of the option's text.

Letters tell nothing on a small model; texts do, by mean log-probability per token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from osler.llm.ask import score
from osler.llm.base import Likelihood, Message
from osler.prompts import render
from osler.trace import Run
from osler.types import Hit, Question

_TAGGED = re.compile(r"<answer>\s*\(?([A-Za-z])\b[^<]*(?:</answer>|$)")
_LEADING = re.compile(r"^\s*\(?([A-Z])\s*[).,:、：．]")
_NAMED = re.compile(r"(?:answer|答案)\s*(?:is|:|：|是|为)\s*\(?([A-Z])\b", re.IGNORECASE)


def written_option(text: str, question: Question) -> str | None:
    """The letter a reply chose: `<answer>X</answer>`, a leading "X.", "Answer: X"; else None.

    The order of Omni-RAG's extraction (F-OM-34); a letter that is not offered is none.
    """
    for pattern in (_TAGGED, _LEADING, _NAMED):
        found = pattern.search(text)
        if found and found.group(1).upper() in question.letters:
            return found.group(1).upper()
    return next(
        (
            letter
            for letter, option in zip(question.letters, question.options, strict=True)
            if text.strip().rstrip(".。").casefold() == option.casefold()
        ),
        None,
    )


@dataclass(frozen=True)
class LikeliestOption:
    """The option whose text the model finds likeliest after the documents and the question."""

    model: Likelihood
    documents: int = 3
    """How many passages go into the prompt; a small model reads few well."""

    async def choose(
        self, question: Question, hits: Sequence[Hit], run: Run, *, said: str = ""
    ) -> str:
        """The letter. `said` is reasoning that stands before the option (chain of thought)."""
        prompt = render(
            "answer/documents",
            question.language,
            question=question.text,
            documents=[hit.passage.text for hit in hits[: self.documents]],
        )
        context = [Message("user", prompt.text)]
        if said:
            context.append(Message("assistant", f"{said}\n"))
        means = []
        for option in question.options:
            scored = await score(
                self.model, context, option, run, role="reader", prompt=prompt.identity
            )
            means.append(sum(t.logprob for t in scored.tokens) / len(scored.tokens))
        return question.letters[means.index(max(means))]
