"""Follow-up questions made to stand alone by a language model that may word.

The rule's wording is kept where the model fails, answers in place of asking, or names what the
conversation does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from osler.answer.follow_up import LONGEST, REACH, Standalone, name_entities, rewrite_follow_up
from osler.errors import ModelError
from osler.llm.core.base import LanguageModel, Message, Sampling
from osler.llm.reading.answers import answer_words
from osler.prompts import render_prompt
from osler.retrieve.entity_names import EntityNames
from osler.retrieve.words import content_terms
from osler.text import has_cjk

_SAMPLING = Sampling(temperature=0.0, max_tokens=400, top=0)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# Of a question's own words, the least share that its rewording keeps; of the rewording's words,
# the most that no question of the conversation has ("therapy" for "treated").
_KEPT, _NEW = 0.5, 0.34


async def reword_follow_up(
    model: LanguageModel,
    question: str,
    earlier: Sequence[str],
    tables: Sequence[EntityNames] = (),
) -> Standalone:
    """As `rewrite_follow_up`, worded by the model where the rule would rewrite.

    A question that stands alone costs no call.
    """
    by_rule = rewrite_follow_up(question, earlier, tables)
    if not by_rule.by:
        return by_rule
    prompt = render_prompt(
        "answer/standalone",
        "zh" if has_cjk(question) else "en",
        earlier=[" ".join(one.split()) for one in earlier[-REACH:]],
        question=" ".join(question.split()),
    )
    try:
        reply = await model.complete([Message("user", prompt.text)], _SAMPLING)
    except ModelError:
        return by_rule
    wording = answer_words(reply.text).strip('"“”「」*')
    if not keeps_to_conversation(wording, question, earlier[-REACH:], tables):
        return by_rule
    return Standalone(wording, "model")


def keeps_to_conversation(
    wording: str, question: str, earlier: Sequence[str], tables: Sequence[EntityNames] = ()
) -> bool:
    """Whether a rewording is one line in the question's language that keeps its words and numbers,
    takes some from the questions before it, and brings in no name, no number and few words that
    the conversation lacks."""
    if not wording or "\n" in wording or len(wording) > LONGEST:
        return False
    if has_cjk(wording) != has_cjk(question):
        return False
    asked = " ".join([*earlier, question]).casefold()
    known, given, own = map(set, (content_terms(t) for t in (asked, wording, question)))
    numbers = set(_NUMBER.findall(wording))
    return (
        all(name.casefold() in asked for name in name_entities(wording, tables))
        and set(_NUMBER.findall(question)) <= numbers <= set(_NUMBER.findall(asked))
        and len(own & given) >= _KEPT * len(own)
        and bool((given & known) - own)
        and len(given - known) <= _NEW * len(given)
    )
