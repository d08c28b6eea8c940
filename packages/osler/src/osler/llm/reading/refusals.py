"""What is no answer: the one list of replies and sentences by which a model says that it has none.

A refusal is about the references, or about what the model can do: "the references do not mention
this", "I can't answer this question". "There is no evidence that it works" is a finding.
"""

from __future__ import annotations

import re

from osler.text import split_sentences
from osler.types import CITATION_MARK

NON_ANSWERS = frozenset(
    {
        "",
        "unknown",
        "not known",
        "it is unknown",
        "no answer",
        "unanswerable",
        "n/a",
        "null",
        "nil",
        "not available",
        "not applicable",
        "not mentioned",
        "not stated",
        "not specified",
        "not provided",
        "not given",
        "not found",
        "none given",
        "none provided",
        "undetermined",
        "cannot be determined",
        "cannot answer",
        "cannot determine",
        "cannot say",
        "insufficient information",
        "not enough information",
        "no information",
        "no relevant information",
        "i don't know",
        "i do not know",
        "i'm not sure",
        "i am not sure",
        "the references do not say",
        "the evidence does not say",
        "未知",
        "不知道",
        "我不知道",
        "不详",
        "不明",
        "不清楚",
        "无",
        "无答案",
        "没有答案",
        "未提及",
        "未说明",
        "无法确定",
        "无法回答",
        "无法判断",
        "无相关信息",
        "信息不足",
        "资料没有说明",
        "现有证据没有说明",
    }
)
"""Replies that mean "the references do not say", without case, underscores and final stop."""
ECHOES = frozenset(
    {
        "your answer",
        "my answer",
        "the answer",
        "answer",
        "sample",
        "sample answer",
        "example",
        "placeholder",
        "true/false",
        "yes/no",
        "你的答案",
        "答案",
        "示例",
    }
)
"""Placeholders inside the prompts' own boxes, which small models echo."""
# A LaTeX command with at most a number behind it: "\scriptsize(2)".
_COMMAND = re.compile(
    r"\\(?:[a-z]*size|tiny|small|large|huge|text[a-z]*|math[a-z]*|quad|l?dots)"
    r"\s*[({]?\s*\d{0,3}\s*[)}]?"
)
_APOSTROPHE = str.maketrans("’‘＇", "'''")

_SHOWN = (
    r"(?:above|given|provided|supplied|available|retrieved|listed|cited|present|following|two"
    r"|three)"
)
_REFERENCES = (
    rf"(?:{_SHOWN}\s+)*+(?:references?|documents?|passages?|context|texts?|excerpts?|snippets?"
    r"|sources?|search results?|materials?|information|evidence|literature|abstracts?)"
    rf"(?:\s+(?:\[?\d+\]?(?:\s*(?:,|and|to|-)\s*\[?\d+\]?)*+|(?:that\s+(?:was|were)\s+)?{_SHOWN}))*+"
)
_NUMBERED = r"(?:(?:references?|documents?|passages?|sources?)\s*)?\[?\d{1,2}\]?"
_HOW = (
    r"(?:(?:directly|explicitly|specifically|clearly|actually|currently|sufficiently|fully|simply"
    r"|yet|really|at all|confidently|reliably|accurately|definitively|definitely)\s+)*+"
)
_NOT = r"(?:do|does|did)(?:\s+not|n't)"
_TELL = (
    r"(?:mention|say|state|specify|contain|provide|include|give|answer|address|discuss|cover|tell"
    r"|name|list|have|offer|explain|describe|identify|talk about|speak of|refer to)"
)
_TOLD = (
    r"(?:mentioned|said|stated|specified|contained|provided|included|given|answered|addressed"
    r"|discussed|covered|told|named|listed|found|available|present|described|identified|known)"
)
_WHERE = (
    rf"(?:in|by|within|from|among|on the basis of|based (?:up)?on|with|using|given|according to)"
    rf"\s+(?:any of\s+)?(?:the|these|those|this|my|what)\s+(?:{_REFERENCES}"
    r"|internal knowledge|own knowledge|knowledge|is (?:given|known|provided)|was given)"
)
_OPENING = (
    r"(?:(?:unfortunately|regrettably|sadly|sorry|i'm sorry|i am sorry|i apologi[sz]e|apologies"
    r"|i'm afraid|i am afraid|but|however|as an ai(?: language model| assistant)?|in short"
    rf"|thus|so|therefore|hence|overall|in conclusion|{_WHERE}"
    r"|based on my (?:own |internal )?knowledge|from my (?:own |internal )?knowledge"
    r"|without (?:further|more|additional) information|hmm|well"
    r"|step by step|answer(?=\s*:))\s*[,:;.]?\s*(?:(?:but|that)\s+)?)*+"
)
_FIRST_PERSON = (
    r"(?:i|we)(?:\s+|(?=')) *(?:(?:simply\s+)?(?:can(?:\s*not|'t)|could(?:\s+not|n't)"
    r"|am (?:not able|unable) to|'m (?:not able|unable) to|are (?:not able|unable) to"
    r"|was (?:not able|unable) to)\s+"
    rf"{_HOW}(?:answer|find|determine|provide|locate|tell|say|confirm|identify|give|establish|know)"
    r"|(?:do|did)(?:\s+not|n't)\s+(?:know|find|see"
    r"|have\s+(?:enough|sufficient|any|access|specific|the|that|this|information|an answer|a"
    r"|reliable))"
    r"|lack\s+(?:the|enough|sufficient)|(?:would\s+)?need to (?:retrieve|search|look|consult)"
    r"|have no (?:information|knowledge|answer|data|way)|need (?:more|further|external|additional)"
    r"|'m not (?:sure|certain)\b|am not (?:sure|certain)\b)"
)
_NO_INFORMATION = (
    r"(?:not enough|insufficient|no(?:\s+(?:relevant|specific|direct|explicit|such|clear))*)"
    r"\s+(?:information|mention|answer|details?|references?)"
)
_REFUSALS = (
    rf"(?:none of\s+)?(?:the|these|those|any of the|my)\s+{_REFERENCES}\s+"
    rf"(?:only\s+)?{_NOT}\s+{_HOW}{_TELL}\b",
    rf"(?:none|neither) of (?:the|these|those)\s+{_REFERENCES}\s+(?:\w+ly\s+)?{_TELL}s?\b",
    # Tablets may contain, give and provide as well.
    r"(?:none|neither) of them (?:\w+ly )?(?:mention|say|state|specif|answer|address|discuss|tell)",
    rf"(?:no|neither)\s+{_REFERENCES}\s+(?:\w+ly\s+)?{_TELL}s?\b",
    rf"{_NUMBERED}(?:\s*(?:,|and|nor|or)\s*{_NUMBERED})*+\s+{_NOT}\s+{_HOW}{_TELL}\b",
    rf"i (?:do not|don't) (?:think|believe) (?:that )?(?:the|these|those|any of the)"
    rf"\s+{_REFERENCES}\s+{_TELL}s?\b",
    rf"(?:no|an|the) answer (?:can(?:\s*not|'t)?|could(?:\s+not|n't)?) be {_HOW}(?:given|found"
    r"|determined|drawn|made)",
    rf"the answer (?:is|was)(?:\s+not|n't)\s+{_WHERE}",
    r"it (?:is|was)(?:\s+not|n't) possible to (?:determine|answer|say|tell|establish)",
    rf"unable to {_HOW}(?:determine|answer|find|say|establish|identify)",
    rf"can(?:\s*not|'t) be {_HOW}(?:determined|answered|found|established)\s+{_WHERE}",
    _FIRST_PERSON,
    rf"(?:this|it|that|the (?:answer|question)|this question|the requested \w+)\s+"
    rf"(?:can(?:\s*not|'t)|could(?:\s+not|n't))\s+be\s+{_HOW}"
    r"(?:determined|answered|established|inferred|found|concluded|known|derived|stated|deduced)",
    rf".{{0,80}}\b(?:can(?:\s*not|'t)|could(?:\s+not|n't))\s+be\s+{_HOW}"
    rf"(?:determined|answered|established|inferred|found|concluded|derived|deduced)\s+{_WHERE}",
    rf"there(?:'s| is| was)\s+{_NO_INFORMATION}",
    rf"there(?:'s| is| was| are)\s+(?:no|not enough|insufficient)\s+(?:evidence|data|context)\s+"
    rf"(?:to (?:answer|determine the answer|say|tell)|{_WHERE})",
    rf"{_NO_INFORMATION}\s*(?:(?:is|was|were|are|could be)\s+(?:\w+ly\s+)?{_TOLD}|about|on|to|for"
    r"|regarding|in|$)",
    rf"(?:this|it|that|the (?:answer|requested information))\s+(?:is|was|are)(?:\s+not|n't)\s+"
    rf"{_HOW}{_TOLD}(?:\s+{_WHERE}|\s+here)?\s*$",
    rf".{{0,80}}\b(?:is|was|are|were)(?:\s+not|n't)\s+{_HOW}{_TOLD}\s+(?:{_WHERE}|here)\s*$",
    rf"not {_HOW}{_TOLD}\s+(?:{_WHERE}|here)\s*$",
    r"more information (?:is|would be) (?:needed|required)",
    r"please (?:let me know|retrieve|search|(?:provide|give|share|supply)\b.{0,40}\b(?:information"
    r"|details?|context|references?|documents?|passages?|texts?|data)\b|(?:consult|refer|see|ask)\b"
    r"[\w ,-]*\b(?:professionals?|doctors?|physicians?|providers?|pharmacists?|specialists?"
    r"|experts?|sources?|references?|literature|guidelines?|questions?)(?:\s+(?:for|about)\b.*)?$)",
    r"(?:further|additional|external) (?:information|references|documents|knowledge|research)"
    r" (?:is|are|would be|must be) (?:needed|required|retrieved)",
)
_RETRIEVED = (
    r"(?:(?:所|已|以上|上述|现有|给定|给出|给|提供|检索到|查到|这些|该|本|参考(?=资料|文献|文档|材料|文本|内容)|相关|的)*+)"
    r"(?:资料|文献|文档|上下文|信息|材料|文本|段落|内容|证据|知识|参考)(?:\d+|[中里内])?"
)
_REFUSALS_ZH = (
    rf"{_RETRIEVED}(?:[和与、及]{_RETRIEVED})*\s*(?:并|均|都|也|里|中)*(?:没有|没|未能|未|并未|无法|不能)"
    r"(?:明确|直接|具体|详细|充分)*(?:提及|提到|说明|给出|包含|包括|涉及|回答|提供|找到|指出|介绍|记载)",
    r"(?:我|我们)?(?:无法|不能|没法|难以)(?:准确|直接|明确|根据\S{0,12})*"
    r"(?:回答|确定|得知|判断|得出|提供|找到|给出|作答)(?:这个|该|此|上述|你的|您的|出|答案|问题|结论|确切)*(?=[，,；\s]|$)",
    rf"(?:从|根据|依据|基于)(?:我的)?(?:内部)?{_RETRIEVED}.{{0,6}}(?:无法|不能|没法|难以)",
    r"(?:我)?(?:没有|没能|未能|没)(?:找到|查到|检索到)(?:相关|任何|确切|的)*(?:答案|信息|资料|内容|记载)",
    r"(?:我)?(?:不知道|不清楚|不了解|不确定)(?:这个|该|此|上述|答案|问题|的)*$",
    r"(?:没有|缺乏|缺少|无)(?:足够|相关|任何|充分|具体|更多|的)*(?:信息|资料|内容|答案|文献|记载)",
    r"(?:这|该|此|答案|问题)\S{0,6}(?:没有|未|并未)(?:被)?(?:提及|提到|说明|给出|涉及)",
    r"(?:信息|资料|证据)不足(?:以(?:回答|确定|判断|得出)|[，,]|$)",
    # Folate too may be what is needed (需要补充叶酸).
    r"(?:我)?(?:需要?|须|还需|请)[您你]?(?:进一步|再|先)?(?:检索|查找|查询|搜索"
    r"|(?:提供|补充|更多|额外|其他|外部|相关|的)+.{0,6}(?:信息|资料|细节|材料|知识|上下文))",
    r"(?:需要?|须|请|建议)[您你]?(?:进一步|再|先)?(?:查阅|咨询[^，,后再]{0,12}$)",
)
_OPENING_ZH = (
    r"(?:(?:抱歉|对不起|很抱歉|非常抱歉|很遗憾|遗憾的是|不好意思|因此|所以|但是|但|然而|答案"
    rf"|(?:根据|从|依据|基于)(?:我的)?(?:内部)?{_RETRIEVED}(?:来看)?)[，,：:。；\s]*)*+"
)
_OPENED = re.compile(rf"{_OPENING}(?:the answer(?: is|:)\s*)?")
_REFUSAL = re.compile(
    rf"{_OPENING}(?:{'|'.join(_REFUSALS)})|{_OPENING_ZH}(?:{'|'.join(_REFUSALS_ZH)})"
)
# What cites a passage says what is in it, unless it speaks of passages or of the answer itself.
_CITES = re.compile(
    rf"(?!.*(?:\b{_REFERENCES}\b|{_RETRIEVED}|\b(?:answer|question|mention|state|specif)|回答|问题|答案))"
    rf".+{CITATION_MARK.pattern}"
)
# The words that the prompts give for it, behind the question.
_PRESCRIBED = re.compile(
    r".*[:：]\s*(?:the (?:evidence|references?) do(?:es)? not say|现有证据没有说明|资料没有说明)"
)
# Behind it stands an answer, unless that is a refusal too.
_TURN = re.compile(
    r"[,;:—–-]?\s+(?:but|however|although|though|so|therefore|thus|while|whereas|yet)\b[\s,]*"
    r"|[，,；;]\s*(?:(?:但是|但|不过|然而|因此|所以|而)[，,]?|(?=应|需|须|请|建议|宜|可))"
)
# Sentences that tell what there is instead of an answer.
_INSTEAD = re.compile(
    rf"(?:they|it|the|these|those|reference|document|passage|instead|rather)\b[^.]*?"
    rf"(?:\bonly\b|\binstead\b|\bfocus|\bdiscuss|\bdescrib|\bmention|\bdeal\b|\babout\b|\bcover)"
    rf"|(?:它们|该|这些|{_RETRIEVED})?(?:仅|只|主要)(?:提到|说明|介绍|讨论|涉及)"
)


def is_non_answer(text: str) -> bool:
    """Whether a text says that there is no answer, echoes a prompt, or holds no word or number."""
    plain = _plain_words(text)
    if plain in NON_ANSWERS | ECHOES or _COMMAND.fullmatch(text.strip()):
        return True
    return not any(character.isalnum() for character in plain) or is_refusal(text)


def is_refusal(text: str) -> bool:
    """Whether a text of one or more sentences says nothing but that it does not answer."""
    sentences = [text[start:end] for start, end in split_sentences(text)]
    said = [plain for sentence in sentences if (plain := _plain_words(sentence))]
    if not said or not any(map(_refuses, said)):
        return False
    return all(_refuses(each) or (n > 0 and _INSTEAD.match(each)) for n, each in enumerate(said))


def _plain_words(text: str) -> str:
    words = " ".join(text.translate(_APOSTROPHE).replace("_", " ").replace("*", " ").split())
    return words.casefold().strip(" .。!！\"'“”`#>-–")


def _refuses(sentence: str) -> bool:
    """Whether a sentence refuses, and turns to nothing else."""
    opened = _OPENED.match(sentence)
    if _CITES.match(sentence):
        return False
    if _PRESCRIBED.fullmatch(sentence):
        return True
    if opened is not None and sentence[opened.end() :] in NON_ANSWERS:
        return True
    match = _REFUSAL.match(sentence)
    if match is None:
        described, *rest = _TURN.split(sentence, maxsplit=1)
        return bool(rest and _INSTEAD.match(described)) and _refuses(rest[0].strip(" ,，"))
    parts = _TURN.split(sentence[match.end() :])
    return all(_refuses(part.strip(" ,，")) for part in parts[1:])
