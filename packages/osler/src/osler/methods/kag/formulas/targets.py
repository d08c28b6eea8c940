"""The formula that a question asks for, by its names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from osler.methods.kag.formulas.base import Formula
from osler.methods.kag.formulas.findings import find_ages, input_words, label_pattern
from osler.methods.kag.formulas.pieces import NONE, ReadPieces
from osler.methods.kag.formulas.quantities import (
    find_pressures,
    find_quantities,
    longest_apart,
    write_figures,
)
from osler.retrieve import content_terms

# Words of titles that name no subject: "kidney function" is no discriminant function.
_TITLE_WORDS = (
    "function score index rate ratio formula rule total age scale area day hour hours first last"
    " since average mean expected estimated corrected calculated 函数 评分 指数 公式 总量"
)
_SUBJECTLESS = frozenset(_TITLE_WORDS.split())
_SENTENCE = re.compile(r"(?<=[?!？！。])\s*|(?<=\.)\s+(?=[A-Z\d])|[;；]\s*")
_ASKS = re.compile(
    r"\b(?:what(?:['’]?s)?|how (?:much|many|high|large|big|long)|calculate|compute|estimate|"
    r"determine|work out|give|find|predict|tell|needs?|wants?|(?:would |'d )like|"
    r"like to know|looking for|work(?:s)? out)\b"
    r"|多[少长大高重]|几分|几|计算|估算|估计|算|估|求|需要|想知道|想要",
    re.IGNORECASE,
)
_QUESTION_WORD = re.compile(
    r"\b(?:what|which|how|why|should|can|is|are|does)\b|多[少大]|什么|哪|几|怎|为何|吗|能不能|可以",
    re.IGNORECASE,
)
# "She needs a Mosteller BSA. What is it?"
_ASKS_IT = re.compile(
    r"\bwhat\b[^.?!]{0,25}\b(?:it|that|this)\b[^.?!]{0,12}\?|(?:那|结果|这)?(?:应该)?是多少[？?]",
    re.IGNORECASE,
)
# What may stand behind a name that is asked for without a verb.
_CLOSING = re.compile(
    r"\b(?:score|total|points?|pls|plz|please|thanks|thank you|for (?:him|her|me|them)|"
    r"value|result)\b|"
    r"评分|得分|总分|打分|谢谢|[\s,.!?=:，。！？：()（）~～]",
    re.IGNORECASE,
)
# A question about the measure, not for its value.
_ABOUT = re.compile(
    r"\b(?:dos(?:e|es|age|ing)|cut-?offs?|thresholds?|(?:what|is|the|a) normal|"
    r"normal (?:values?|limits?)|ranges?|reference|interpret\w*|"
    r"meaning|means?(?! arterial| glucose)|definition|defined?|formula for|components?|"
    r"criteria for|treat\w*|manag\w+|contraindicat\w*|indicat\w+|drug|medication|next step|therapy|"
    r"limitations?|used for|why|which patients|stand for|accura\w+|validated|risk|mortality|"
    r"prognos\w+)\b"
    r"|剂量|用量|正常值|参考值|范围|意义|定义|含义|治疗|禁忌|适应|药物|处理|组成|包括|为什么|风险|预后",
    re.IGNORECASE,
)
_VALUE_BEHIND = re.compile(
    r"\s*(?:\([^)]*\)\s*)?(?:is|was|of|=|:|：|为|是|<|>|≥|≤|below|above|under|over|less than|"
    r"more than|小于|大于|低于|高于)?\s*(?:about\s+)?(?=\d)",
    re.IGNORECASE,
)
# Units of what is told of a patient; others behind a name are the value's own.
_OF_A_PATIENT = frozenset(
    ["kg", "lb", "cm", "m", "inch", "foot", "year", "month", "week", "day", "percent"]
)
_GLUED = re.compile(r"[A-Z]{2}\d")
# Share from which the pieces of a question choose the formula.
_SURE = 0.7
_NEAREST = 5
# What tells formulas of one name apart; another than these is the usual one.
_TOLD_APART = {
    "anion-gap-corrected": re.compile(r"\bgap\b|间隙", re.IGNORECASE),
    "parkland-first-8-hours": re.compile(
        r"\b(?:8|eight|eighth|8th)[- ]?h(?:ou)?rs?\b"
        r"|[头前首第](?:一?个)?\s?[8八]\s?(?:个)?(?:小时|钟头|h)",
        re.IGNORECASE,
    ),
    "maintenance-fluid-hourly": re.compile(
        r"\b(?:hourly|(?:per|an|each|every)\s+h(?:ou)?r?)\b|/\s?h(?:ou)?r?\b"
        r"|[每一1]个?(?:小时|钟头)",
        re.IGNORECASE,
    ),
    "wells-dvt": re.compile(r"\bDVT\b|deep vein|深静脉血栓", re.IGNORECASE | re.ASCII),
    "wells-pe": re.compile(r"\bPE\b|pulmonary embol|肺栓塞|肺血栓", re.IGNORECASE | re.ASCII),
}
# Formulas of a whole, and those of its part of a time.
_OF_A_PART = {
    "parkland": "parkland-first-8-hours",
    "maintenance-fluid-daily": "maintenance-fluid-hourly",
}
# "30% of the body surface area": a measure, not what is asked for.
_SHARE_OF = re.compile(r"(?:占(?:全身|总)?|(?:%|per ?cent|share) of (?:the |his |her |total )*)$")


@dataclass(frozen=True, slots=True)
class AliasMatch:
    """A name of formulas in a text; of several formulas the first is the usual one."""

    start: int
    end: int
    formulas: tuple[str, ...]

    def __len__(self) -> int:
        return self.end - self.start


def find_target(formulas: Mapping[str, Formula], question: str) -> Formula | None:
    """The formula whose value a question asks for by name; `None` where it asks for something else,
    or for several values."""
    question = write_figures(question)
    matches = [
        match
        for match in find_aliases(formulas, question)
        if not _has_value(formulas[match.formulas[0]], question, match)
        and not _SHARE_OF.search(question[: match.start])
        and not _is_finding(question, match)
    ]
    asked = [match for match in matches if _is_asked(question, match)]
    asked = [match for match in asked if not _is_topic(formulas, question, match, asked)]
    families = _merge_families(match.formulas for match in asked)
    if len(families) != 1:
        return None
    (family,) = families
    # "by Bazett" may stand in another sentence than the question for the QTc.
    for match in matches:
        family = tuple(id for id in family if id in match.formulas) or family
    return formulas[_choose_of_name(family, question)]


_GAP = re.compile(
    r"(?<=[\u4e00-\u9fff\d%])[ \u3000]"
    r"(?=(?!岁|次|分|公|斤|克|毫|厘|周|天|个|月|年|小时|度|升|摩|微)[\u4e00-\u9fff])"
)
_STOP = re.compile("[，,。；;：:]")
_FIRST = re.compile(r"\b1st\b")  # no weight of one stone
_COMA = re.compile(r"\bE\s?([1-4])\W{0,2}V\s?([1-5])\W{0,2}M\s?([1-6])\b", re.ASCII)


def prepare_text(text: str) -> str:
    """The text with figures for numbers, a comma for a space in Chinese without any, what E3 V4 M6
    stands for, and a space between a name in capitals and its number: "INR2.5"."""
    written = _FIRST.sub("first", write_figures(text))
    written = written if _STOP.search(written) else _GAP.sub("，", written)
    written = _COMA.sub(r"eye \1, verbal \2, motor \3", written)
    # The table of names takes a tenth of a second to read, and few questions glue one.
    return _short_labels().sub(r"\1 ", written) if _GLUED.search(written) else written


@cache
def _short_labels() -> re.Pattern[str]:
    labels = {label for words in input_words().values() for label in words.labels}
    short = "|".join(sorted(label for label in labels if re.fullmatch(r"[A-Z]{2,}", label)))
    return re.compile(rf"(?<![A-Za-z\d])({short})(?=\d)")


def choose_target(
    formulas: Mapping[str, Formula], question: str, pieces: ReadPieces | None
) -> Formula | None:
    """The formula whose value a question asks for, by its pieces where they are sure of one, else
    by name, and by name where it tells more, as MELD-Na does; `None` where it asks for none."""
    found = _choose_whole(formulas, question, pieces)
    part = _OF_A_PART.get(found.id) if found else None
    return formulas[part] if part and _TOLD_APART[part].search(question) else found


def _choose_whole(
    formulas: Mapping[str, Formula], question: str, pieces: ReadPieces | None
) -> Formula | None:
    named = find_target(formulas, question)
    if pieces is None:
        return named
    likeliest, share = pieces.likeliest
    is_more = likeliest == "meld" and named is not None and named.id == "meld-na"
    if is_more or likeliest == NONE or (share < _SURE and not (named and named.id == likeliest)):
        return named
    return formulas.get(likeliest, named)


def _choose_of_name(family: tuple[str, ...], question: str) -> str:
    """The formula of what the question names first, a disease or a time, else the usual one."""
    named = [
        (found.start(), id)
        for id in family
        if id in _TOLD_APART and (found := _TOLD_APART[id].search(question))
    ]
    return min(named)[1] if named else family[0]


def find_aliases(formulas: Mapping[str, Formula], text: str) -> list[AliasMatch]:
    """The formulas' names in a text, in order; a longer name wins over one inside it."""
    found, folded = [], text.casefold()
    known = tuple(formulas.values())
    for alias, ids in _name_table(known, worded=False).items():
        # Most names are not in a question, and a pattern takes longer to make than to search.
        if alias.casefold().split()[0] in folded:
            pattern = _alias_pattern(alias)
            found += [AliasMatch(*match.span(), ids) for match in pattern.finditer(text)]
    wordings = _name_table(known, worded=True) if re.search(r"\d", text) else {}
    for wording, ids in wordings.items():
        found += [
            AliasMatch(*match.span(), ids) for match in re.finditer(wording, text, re.IGNORECASE)
        ]
    return longest_apart(found)


def nearest_formulas(formulas: Mapping[str, Formula], text: str) -> list[Formula]:
    """The few formulas that a text names, then those whose titles share most of their words with
    it."""
    named = [id for match in find_aliases(formulas, text) for id in match.formulas]
    wanted = set(content_terms(text))
    scored = []
    for formula in formulas.values():
        title = set(content_terms(f"{formula.title} {formula.title_zh}"))
        shared = wanted & title
        if shared - _SUBJECTLESS:
            scored.append((len(shared) / len(title), formula.id))
    scored.sort(key=lambda pair: -pair[0])
    return [formulas[id] for id in dict.fromkeys([*named, *(id for _, id in scored)])][:_NEAREST]


@lru_cache(maxsize=8)
def _name_table(formulas: tuple[Formula, ...], *, worded: bool) -> dict[str, tuple[str, ...]]:
    """Each name with its formulas; `worded`: each in other words, as a pattern."""
    table: dict[str, list[str]] = {}
    for formula in formulas:
        names = (formula.title, formula.title_zh, *formula.aliases)
        for name in formula.wordings if worded else names:
            table.setdefault(name, []).append(formula.id)
    return {name: tuple(ids) for name, ids in table.items()}


@lru_cache(maxsize=1_000)
def _alias_pattern(alias: str) -> re.Pattern[str]:
    """Finds a name; a possessive and a plural are the same name."""
    return re.compile(label_pattern(alias) + (r"(?:['’]s?)?" if alias[-1:].isascii() else ""))


def _has_value(formula: Formula, question: str, match: AliasMatch) -> bool:
    """Whether the value stands behind the name; in "BMI of 80 kg and 1.75 m" the weight does."""
    found = _VALUE_BEHIND.match(question, match.end)
    if found is None:
        return False
    if any(pair.start == found.end() for pair in find_pressures(question)):
        return False
    told = (*find_ages(question), *find_quantities(question))
    behind = next((each for each in told if each.start == found.end()), None)
    if behind is None or behind.unit not in _OF_A_PATIENT or question[behind.end :][:1] == "/":
        return True
    return behind.unit == formula.unit


def _is_asked(question: str, match: AliasMatch) -> bool:
    """Whether the sentence with the name asks for its value."""
    start, end = _sentence_around(question, match)
    sentence = question[start:end].rstrip()
    before, behind = question[start : match.start], question[match.end :]
    if not before.strip() and behind.lstrip()[:1] in ":：":
        return behind.strip(" :：") != ""
    if _is_about(before) or _ABOUT.search(question[match.end : end]):
        return False
    # "BP 94/52, curb65 pls": a name that closes a list of numbers.
    if re.search(r"\d", question) and not _CLOSING.sub("", behind):
        return True
    if not before.strip(" ,:：，") or _ASKS_IT.search(behind) or _ASKS.search(sentence):
        return True
    # "Weight 70 kg, height 1.75 m: BMI?"
    ends = ("is", "is:", "为", "是", "为（ ）", "为( )", "?", "？")
    return sentence.endswith(ends) or re.search(r"\d.*[:：]\s*$", before) is not None


def _is_about(before: str) -> bool:
    """Whether what stands before a name asks about the measure; "to dose her chemo, …" is why its
    value is wanted."""
    *earlier, own = re.split(r"[,，:：]", before)
    return bool(_ABOUT.search(own)) or any(
        _ABOUT.search(clause) and _QUESTION_WORD.search(clause) for clause in earlier
    )


def _is_topic(
    formulas: Mapping[str, Formula], question: str, match: AliasMatch, asked: Sequence[AliasMatch]
) -> bool:
    """Whether a name is what another asked score counts: 肾功能 of a HAS-BLED score."""
    others = {id for other in asked if other != match for id in other.formulas}
    inputs = {each.name for id in others - {*match.formulas} for each in formulas[id].inputs}
    topics = (input_words()[name].topic for name in inputs)
    return any(topic.search(question[match.start : match.end]) for topic in topics if topic)


def _is_finding(question: str, match: AliasMatch) -> bool:
    """Whether a name is a part of a finding: "abnormal kidney function"."""
    return any(
        found.start() <= match.start and match.end <= found.end() and len(found[0]) > len(match)
        for words in input_words().values()
        if words.finding is not None
        for found in words.finding.finditer(question)
    )


def _sentence_around(question: str, match: AliasMatch) -> tuple[int, int]:
    ends = [cut.end() for cut in _SENTENCE.finditer(question) if cut.end() > 0]
    start = max((at for at in ends if at <= match.start), default=0)
    end = min((at for at in ends if at >= match.end), default=len(question))
    return start, end


def _merge_families(families: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Families that share formulas, narrowed to what they share."""
    merged: list[tuple[str, ...]] = []
    for family in families:
        for i, other in enumerate(merged):
            if shared := tuple(id for id in other if id in family):
                merged[i] = shared
                break
        else:
            merged.append(family)
    return merged
