"""Trained: a model trained to plan (Omni-RAG §4.2), or any other tried in its place.

It is prompted as it was trained: the paper's record is a system line, the prompt E.7 and the
plan, decoded greedily (App. D.4), and not constrained by a grammar.
"""

from __future__ import annotations

from dataclasses import replace

from osler.llm.core.base import LanguageModel, Message, Sampling
from osler.llm.core.speaker import Speaker
from osler.methods.omni.describe import SourceDescription
from osler.methods.omni.plan import MOST
from osler.methods.omni.planners.prompting import Form, Prompting, Proposer, plan_prompt
from osler.types import Question

SYSTEM = "You are a helpful assistant."
"""The system line of the released training records."""
# Not configurable: another temperature would be another method.
SAMPLING = Sampling(temperature=0.0, max_tokens=1000, top=0)
"""App. D.4 and the released code: greedy, 1,000 tokens."""


def trained_planner(
    model: LanguageModel,
    offers: tuple[SourceDescription, ...],
    *,
    at_most: int = MOST,
    seed: int = 0,
    form: Form = "full",
) -> Prompting:
    """A planner by `model`, whether full weights, an adapter or a server.

    `form`: the prompt's form, as in its training records.
    """
    speaker = Speaker(model, "planner", replace(SAMPLING, seed=seed), system=SYSTEM)
    return Prompting(Proposer(speaker, offers, at_most, form))


def planner_messages(
    question: Question,
    offers: tuple[SourceDescription, ...],
    at_most: int = MOST,
    form: Form = "full",
) -> list[Message]:
    """The messages before the plan, in training records and in `trained_planner` alike."""
    prompt = plan_prompt(question, offers, at_most, form)
    return [Message("system", SYSTEM), Message("user", prompt.text)]
