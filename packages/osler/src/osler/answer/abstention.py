"""What stands beside an answer, or in its place: why the model abstained, gave half an answer or
read less than there is; and quotations below a notice to a person in danger, never as the answer.

The notice says whom to call. What the texts answer stands below it, labelled as such, and nothing
that is merely near; to somebody who may have taken too much, or may harm themself, only what is
about poisoning.
"""

from __future__ import annotations

import re
from dataclasses import replace

from osler.answer import NOT_SEARCHED, NOTHING_SAID
from osler.answer.named import find_drugs
from osler.llm.reading.answers import DECLINED, answer_words, bare_words, declines
from osler.llm.reading.refusals import is_refusal
from osler.trace import Run, list_read_passages
from osler.types import (
    CITATION_MARK,
    Answer,
    Authorship,
    DangerNotice,
    Evidence,
    Grounding,
    Halt,
    Language,
    Question,
    Solution,
    Statement,
)

_NOTES = {
    "cut": {
        "en": "The model's reply was cut while it was thinking: it said nothing.",
        "zh": "模型在思考时回复被截断，没有给出任何内容。",
    },
    "half": {
        "en": "The model's reply was cut: its tokens ended before its last sentence did.",
        "zh": "模型的回复被截断：最后一句话没有说完。",
    },
    "declined": {"en": "The model declined to answer.", "zh": "模型拒绝回答。"},
}
"""The note that a reader sees, by cause and language."""
_END = re.compile(r"(?<!\d)[.!?。！？][\"”'’)\]）]*$")
"""Of a sentence; "0." may be half a number."""
_NO_ROOM = {
    "en": "The model's context had no room for all passages: the last of them were not read.",
    "zh": "模型的上下文放不下全部段落：排在最后的没有读。",
}
_UNINDEXED = {
    "en": "Passages without a vector yet, searched by words alone: {:,}.",
    "zh": "{:,} 个段落还没有向量：对它们只按词语检索。",
}
_FILTERED = {
    "en": "Only texts that pass the filter were searched ({}); texts without a date or kind that it"
    " asks for were left out.",
    "zh": "只检索了符合筛选条件的文献（{}）；没有相应日期或类型的未纳入。",
}

_LANGUAGE = {
    "en": "Quoted from texts in Chinese: {}.",
    "zh": "引自英文资料：{}。",
}
"""Where the answer's language is the first."""


def read_draft(draft: str, run: Run, *, alone: bool = False) -> str:
    """The answer in a model's draft; empty if absent, or if the model abstains, which the
    run then knows.

    `alone`: the model was to answer without evidence, so it declines where it has no answer.
    """
    said = answer_words(draft)
    if declines(said):
        run.unsaid = DECLINED
        return ""
    if not is_refusal(said):
        return said
    if alone and not run.spent:
        run.unsaid = run.unsaid or DECLINED
    return ""


def explain_abstention(solution: Solution, run: Run) -> Solution:
    """The solution with the true reason for saying nothing, or half: the model's own, or that
    nothing was searched."""
    if _ends_in(solution, run.cut):
        return _say_cut(solution)
    answer = solution.answer
    # What a stored plan has found is read without a search.
    sought = run.usage.searches or run.spent or list_read_passages(run.events)
    if answer.note == NOTHING_SAID[answer.language] and not sought:
        answer = replace(answer, note=NOT_SEARCHED[answer.language])
        solution = replace(solution, answer=answer)
    if not run.unsaid or not solution.answer.is_silent or solution.why.startswith(run.unsaid):
        return solution
    declined = run.unsaid == DECLINED
    note = _NOTES["declined" if declined else "cut"][solution.answer.language]
    halt = Halt.NO_EVIDENCE if declined else Halt.BUDGET
    answer = replace(answer, note=note)
    return replace(solution, answer=answer, halt=halt, why=f"{run.unsaid} ({solution.why})")


def _ends_in(solution: Solution, cut: str) -> bool:
    """Whether the answer's last sentence is what a reply that was cut ends in, unfinished."""
    said = [one.text for one in solution.answer.statements if one.kind != "notice"]
    if solution.answer.authorship is not Authorship.WRITTEN or not (said and cut):
        return False
    last = CITATION_MARK.sub("", said[-1]).rstrip()
    whole = CITATION_MARK.sub("", answer_words(cut)).rstrip()
    return not _END.search(last) and bare_words(whole).endswith(bare_words(last))


def _say_cut(solution: Solution) -> Solution:
    answer = solution.answer
    note = _NOTES["half"][answer.language]
    if note in answer.note:
        return solution
    marked = replace(answer, note=f"{note} {answer.note}".strip())
    why = f"the model's reply was cut: raise sampling.max_tokens ({solution.why})"
    return replace(solution, answer=marked, halt=Halt.BUDGET, why=why)


def tell_unread(solution: Solution, run: Run) -> Solution:
    """The solution, whose note says so where passages were not read."""
    if not run.unread:
        return solution
    answer = solution.answer
    note = f"{answer.note} {_NO_ROOM[answer.language]}".strip()
    return replace(solution, answer=replace(answer, note=note))


def note_unindexed(solution: Solution, count: int) -> Solution:
    """The solution, whose note names the passages that were found by words alone, if any."""
    if not count:
        return solution
    return _add_note(solution, _UNINDEXED[solution.answer.language].format(count))


def note_filter(solution: Solution, described: str) -> Solution:
    """The solution, whose note names the filter that was asked through, if any."""
    words = _FILTERED[solution.answer.language].format(described)
    return _add_note(solution, words) if described else solution


def note_languages(solution: Solution) -> Solution:
    """The solution, whose note names the citations that are in another language than the answer."""
    answer = solution.answer
    cited = enumerate(answer.evidence, 1)
    marks = [f"[{n}]" for n, one in cited if one.passage.language != answer.language]
    words = _LANGUAGE[answer.language].format(" ".join(marks))
    return _add_note(solution, words) if marks else solution


def _add_note(solution: Solution, words: str) -> Solution:
    answer = solution.answer
    abstained = answer.grounding is Grounding.ABSTAINED
    said = answer.note or (NOTHING_SAID[answer.language] if abstained else "")
    note = f"{said} {words}" if said else words
    return replace(solution, answer=replace(answer, note=note))


_BELOW_NOTICE: dict[Language, str] = {
    "en": "This does not replace the call. What the texts say of it:",
    "zh": "以下内容不能代替呼救。资料中的相关原文：",
}
_SURE_ENOUGH: dict[Language, float] = {"en": 0.6, "zh": 0.0}
"""Least probability below a notice. Of seen English questions with one, ten have a right quote and
five a wrong one or no answer below .6, 17 and none above; in Chinese 31 and none anywhere."""
_WITHHELD: dict[Language, str] = {
    "en": "No passages are shown with this notice.",
    "zh": "出现此提示时不显示资料原文。",
}
_TOO_MUCH = re.compile(
    r"\boverdos|\btoo (?:many|much)\b|\bpoison|\b(?:accident|mistake|wrong)\w*"
    r"|\b(?:took|taken?|taking|had|gave|given|swallowed|ate)\b.{0,40}\b(?:whole|entire|handful|box"
    r"|pack(?:et)?|bottle|strip|double|twice|extra|lots?|loads?|bunch|several|[1-9]\d+|dozens?)\b"
    r"|过量|中毒|误服|(?:吃|喝|服|吞)了?.{0,8}(?:整|一?瓶|半瓶|一?盒|一板|几十|好多|好几|很多|太多|大量|\d{2,})",
    re.IGNORECASE,
)
_SWALLOWED = re.compile(
    r"\b(?:swallowed|drank|drunk|ate|ingested)\b|吞|吃了|喝了|服了", re.IGNORECASE
)
_CHILD = re.compile(
    r"\b(?:child|children|kids?|bab(?:y|ies)|toddlers?|infants?|(?:grand)?(?:sons?|daughters?))\b"
    r"|孩|宝宝|儿子|女儿|娃",
    re.IGNORECASE,
)
_POISONING = re.compile(
    r"\boverdos|\bpoison|\btoxic|\bantidote|\bingest|\bacetylcysteine|\bactivated charcoal"
    r"|过量|中毒|解毒|洗胃|活性炭",
    re.IGNORECASE,
)


def answer_below_notice(answer: Answer, question: Question, notice: DangerNotice | None) -> Answer:
    """A quoted answer as it stands below a notice; without one, and where a model wrote it, as it
    is."""
    quoted = answer.authorship is Authorship.EXTRACTIVE
    if notice is None or not quoted or not answer.evidence:
        return answer
    # What is merely near misleads: of a drooping face the ice pack that is laid on a drooping lid.
    kept = tuple(one for one in answer.evidence if one.use != "nearest")
    if "self-harm" in notice.kinds or _may_be_poisoned(question.text):
        kept = tuple(filter(_is_about_poisoning, kept))
    sureness = answer.sureness
    if not kept or (sureness and sureness.probability < _SURE_ENOUGH[answer.language]):
        return Answer(note=_WITHHELD[answer.language], language=answer.language)
    numbers = {answer.evidence.index(one) + 1: n for n, one in enumerate(kept, 1)}
    said = (
        replace(one, cites=tuple(numbers[n] for n in one.cites if n in numbers))
        for one in answer.statements
        if numbers.keys() & set(one.cites)
    )
    return replace(
        answer,
        statements=(Statement(_BELOW_NOTICE[answer.language]), *said),
        evidence=tuple(replace(one, use="nearest") for one in kept),
        note="",
        sureness=None,
    )


def _may_be_poisoned(text: str) -> bool:
    """Whether somebody had too much, or what is no drug of theirs; a drug that was taken as it
    should be is no poison: "took Cialis last night"."""
    if _TOO_MUCH.search(text):
        return True
    return bool(_SWALLOWED.search(text)) and (bool(_CHILD.search(text)) or not find_drugs(text))


def _is_about_poisoning(one: Evidence) -> bool:
    return _POISONING.search(f"{one.passage.heading} {one.quote}") is not None
