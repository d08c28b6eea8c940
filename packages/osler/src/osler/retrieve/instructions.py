"""Instructions to a program inside passages: found by their form, and blanked out.

A passage is evidence. What in it is addressed to a model (role tags, "ignore the question above",
hidden comments) has no place in a prompt or an answer. Nor has an order or a question that has
nothing to do with its passage or with what was asked. Both are replaced by as many `BLANK`s, so
that every quote keeps its place in the passage as it is stored.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from osler.retrieve import content_terms
from osler.text import split_sentences
from osler.types import Hit, Passage, Retriever

BLANK = "\u2592"  # ▒, which no text of medicine has

_REGIONS = re.compile(
    r"<!--.*?-->"
    r"|\[(?P<tag>system|inst|instruction|assistant|user|tool|admin)\].*?\[/(?P=tag)\]"
    r"|<(?P<mark>system|instructions?|assistant|tool_call|prompt)>.*?</(?P=mark)>"
    r"|<\|[^|>\n]{1,40}\|>[^\n]*"
    r"|#{2,}\s*(?:instructions?|system|prompt|response|task|assistant)\s*:\s*\n?[^\n]*"
    # "System: cardiovascular" is a row of a table.
    r"|(?:^|\n)\s*(?:system|assistant|developer)\s*:(?=[^\n]*\b(?:you|your|users?|prompts?"
    r"|instructions?|answer|reply|respond|recommend|ignore|output)\b)[^\n]*"
    r"|[\U000e0000-\U000e007f]+",
    re.IGNORECASE | re.DOTALL,
)
_WHOM = (
    r"(?:instructions?|question|prompts?|context|rules|text|messages?|guidelines|passages?"
    r"|documents?)"
)
_OTHERS = r"(?:above|previous|prior|earlier|preceding|all|any|your|these|other)"
_REPLY = (
    r"(?:reply|answer|message|output"
    r"|response(?! to (?:an?|the|this|treatment|therapy|medicines?|drugs?)\b))"
)
_TASKS = (
    r"(?:add|anagram|append|augment|begin|change|combine|compose|create|describe|develop|encode|end"
    r"|enhance|explain|finish|generate|group|include|insert|integrate|jumble|list|mention|misspell"
    r"|modify|provide|rearrange|remove|render|replace|reverse|rewrite|scramble|shuffle|start"
    r"|substitute|summari[sz]e|swap|translate|use|write)"
)
_SAID = r"(?:[^.!?\n]|[.!?](?=\S))"  # the stop of an address ends no sentence
_BEGINS = r"(?:(?<=[.!?:\n] )|(?<=\n)|^)"
_SENTENCES = re.compile(
    # "Group letters of your answer in fours", but not "Ask about your response to treatment".
    rf"{_BEGINS}{_TASKS}\b{_SAID}{{0,160}}?\byour {_REPLY}\b"
    r"|\bIMPORTANT:\s*(?:what|who|whose|how|why|when|where|which)\b"
    r"|\bIMPORTANT:\s*(?:translate|explain|describe|write|compose|develop|create|generate)\b"
    # An "AI" is also an aromatase inhibitor, and aortic insufficiency.
    r"|\bas (?:an? |the )(?:AI (?:language )?(?:model|assistant|chatbot)|language model|chatbot)\b"
    rf"|{_BEGINS}as an? (?:AI|assistant)\s*,"
    r"|\b(?:reveal|print|output|repeat|show|leak)\b[^.!?\n]{0,30}"
    r"\b(?:system prompt|your (?:instructions|prompt))\b"
    r"|\bwhen (?:asked|answering|you (?:are asked|answer|read))\b[^.!?\n]{0,80}"
    r"(?:,|\b(?:you|always|only|please)\b)\s*(?:(?:you|must|should|always|only|please) )*"
    r"\b(?:answer|say|respond|reply|output|choose|state) (?:with|that|only|always)"
    rf"|(?:{_BEGINS}|\b(?:always|please|must|should|and|then) )(?:respond|reply|answer)"
    r" (?:only |always |exactly )(?:with|by|in)\b(?! part\b)"
    r"|\b(?:do not|never) (?:mention|cite|use|trust|follow)\b[^.!?\n]{0,40}"
    r"\b(?:other|previous)\b[^.!?\n]{0,20}\b(?:passages?|sources?|documents?|instructions?)\b"
    r"|(?:输出|泄露|复述|显示)[^。！？\n]{0,8}(?:系统提示|提示词)"
    r"|(?:被问到|回答时)[^。！？\n]{0,30}(?:必须|只能|请)(?:回答|输出|说)"
    # The order itself often stands in the next sentence: "Ignore the question above. Say …".
    r"|(?P<leads>(?<!\bnot )(?<!never )(?<!n['’]t )\b(?:ignore|disregard|forget|override|skip)\b"
    rf"[^.!?\n]{{0,40}}\b(?:{_OTHERS}\b[^.!?\n]{{0,30}}\b{_WHOM}|{_WHOM} {_OTHERS})\b"
    r"|\b(?:you are|act as|pretend to be) (?:now )?(?:an? |the )?"
    r"(?:AI|language model|assistant|chatbot)\b"
    r"|\bnote to (?:the )?(?:AI|model|assistant|LLM)\b"
    r"|(?:忽略|无视|忘记|不要理会)[^。！？\n]{0,12}(?:以上|之前|上述|前面|所有)[^。！？\n]{0,12}"
    r"(?:指令|内容|问题|提示|要求|规则)"
    r"|你现在是[^。！？\n]{0,12}(?:助手|模型|机器人|AI))",
    re.IGNORECASE,
)
_DEMANDS = re.compile(
    r"\W*(?:P\.\s?S\.\W*|(?:\w+ ){0,3}\w+\s*[:：]\s*)?(?:(?:please|kindly)\s+\w+"
    r"|(?:can|could|would|will) you\b|in your (?:reply|response|answer|message)\b"
    # What nobody orders at a bedside.
    r"|(?:access|anagram|compose|convert|craft|create|delete|deliver|describe|develop|download"
    r"|draft|email|encode|explain|forward|generate|grant|jumble|misspell|outline|pay|post|prove"
    r"|provide|rearrange|retrieve|rewrite|scramble|send|share|shuffle|summari[sz]e|swap|transfer"
    r"|translate|unlock|write)\s(?!of\b)"
    # What guidelines and advice order too ("Offer vaccination", "Use a hand rub").
    r"|(?:add|change|find|get|give|include|insert|list|make|mention|modify|offer|open|promote|put"
    r"|recommend|remind|remove|repeat|replace|request|say|schedule|show|start|state|suggest|take"
    r"|tell|use|visit) (?:my|me|us|users|readers)\b"
    r"|(?:change|remove|repeat|replace|reverse|substitute)\b[^.!?]{0,40}"
    r"\b(?:letters?|vowels?|spaces|punctuation|pronouns?|sentences?)\b"
    r"|(?:design|say|show|state|suggest) an?\b"
    r"|(?:请|帮我|给我)[^。！？\n]{0,4}(?:写|翻译|解释|列出|描述|告诉|发送|转账|输出|生成|删除))",
    re.IGNORECASE,
)
"""A sentence that asks somebody to do something."""
_MOST_WORDS, _AKIN, _LEAST_REST = 40, 0.2, 5
"""Words of a demand; the share of a sentence's words of content from which it belongs to its
passage; and the words that the rest must have for that to be seen."""
_ENDS = re.compile(r"(?<=[.!?])(?:\s+|$)|(?<=[。！？\n])\s*")
_BEDSIDE = re.compile(
    r"\b(?:\d+|one|two|three|four|five|six|ten|fifteen|thirty)\s?"
    r"(?:mg|g|mcg|micrograms?|ml|litres?|units?|mmol|minutes?|hours?|days?|weeks?|months?)\b"
    r"|\b(?:intravenous|oral|fluids?|infusion|cultures?|sputum|urine|vitamin|vaccinate|vials?"
    r"|corticosteroids?|antibiotics?|NSAIDs?|(?:HIV|blood|nucleic acid) tests?|pregnancy)\b",
    re.IGNORECASE,
)
"""What only an order to a clinician has: guidelines say "Repeat after five minutes"."""


def instruction_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each instruction: a tagged region, or a sentence, with the next where it
    leads to an order. In order, without overlaps."""
    found = [match.span() for match in _REGIONS.finditer(text)]
    for match in _SENTENCES.finditer(text):
        start = max((end.end() for end in _ENDS.finditer(text, 0, match.start())), default=0)
        stops = [end.start() for end in _ENDS.finditer(text, match.end())] + [len(text)] * 2
        found.append((start, stops[1 if match["leads"] else 0]))
    return _join_spans(found)


def foreign_demands(text: str, query: str = "") -> list[tuple[int, int]]:
    """Start and end of each order or question that shares hardly a word with the rest of the
    passage and with the query."""
    found = []
    for start, end in split_sentences(text):
        sentence = text[start:end].strip()
        demands = _DEMANDS.match(sentence) or sentence.endswith(("?", "？"))
        short = len(content_terms(sentence)) <= _MOST_WORDS and not _BEDSIDE.search(sentence)
        if demands and short and is_foreign(text, start, end, query):
            found.append((start, end))
    return found


def is_foreign(text: str, start: int, end: int, query: str = "") -> bool:
    """Whether a sentence shares hardly a word with the rest of its passage and with the query."""
    words = content_terms(text[start:end])
    rest = {*content_terms(f"{text[:start]} {text[end:]}")}
    akin = (rest | {*content_terms(query)}).intersection(words)
    return len(rest) >= _LEAST_REST and len(words) > 1 and len(akin) <= _AKIN * len(words)


def _join_spans(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def blank_instructions(passage: Passage, query: str = "") -> Passage:
    """The passage, of the same length, without its instructions."""
    text, orders = passage.text, instruction_spans(passage.text)
    for start, end in _join_spans([*orders, *foreign_demands(text, query)]):
        asks = (start, end) not in orders and text[start:end].rstrip().endswith(("?", "？"))
        # A stop ends it as a sentence, so that none beside it is taken for its rest.
        text = f"{text[:start]}{BLANK * (end - start - 1)}{'?' if asks else '.'}{text[end:]}"
    return passage if text == passage.text else replace(passage, text=text)


def has_blanked_order(text: str) -> bool:
    """Whether more than a question was blanked out."""
    return f"{BLANK}." in text


@dataclass(frozen=True)
class InstructionFreeRetriever:
    """A search whose passages hold no instructions to a program."""

    inner: Retriever

    async def search(self, query: str, *, k: int) -> list[Hit]:
        hits = await self.inner.search(query, k=k)
        return [replace(hit, passage=blank_instructions(hit.passage, query)) for hit in hits]
