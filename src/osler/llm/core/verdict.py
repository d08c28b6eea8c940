r"""Yes-or-no verdicts of judges and self-checks.

<answer>yes</answer>                     Omni-RAG App. E.4
<answer>\\boxed{True}</answer>            KAG-Thinker Table 3
"""

from __future__ import annotations

import re

from osler.errors import MalformedOutput
from osler.llm.core.grammar import Grammar, Node, alt, free_text, maybe, seq

# The paper's own sample opens with the closing tag (KAG-Thinker Table 4).
_TAGGED = re.compile(r"<\s*/?\s*answer\s*>(.*?)(?:<\s*/\s*answer\s*>|$)", re.IGNORECASE | re.DOTALL)
_NAMED = re.compile(r"(?:answer|verdict|答案|结论)\s*(?:is|:|：|是|为)\s*([^\n]*)", re.IGNORECASE)
_WORD = re.compile(
    r"\s*(?:\\boxed\s*\{)?\s*(?:\\text\s*\{)?[\s\"'“‘*]*"
    r"(?:(?P<no>(?:no|false|incorrect|wrong)(?![a-z])|不|否|错|无法)"
    r"|(?P<yes>(?:yes|true|correct|right)(?![a-z])|是|正确|对|能|可以))",
    re.IGNORECASE,
)
_BOTH = re.compile(r"\s*(?:yes|true|是)\s*/\s*(?:no|false|否)", re.IGNORECASE)


def parse_verdict(reply: str) -> bool:
    """Reads the last `<answer>`; without one "Answer: …", else the reply's first word.

    English and Chinese; boxed or not. Raises `MalformedOutput` when neither yes nor no is
    said, or the question's own "yes/no" is repeated.
    """
    # The last tag counts: a model that corrects itself does so at the end.
    candidates = [*reversed(_TAGGED.findall(reply)), *reversed(_NAMED.findall(reply)), reply]
    for text in candidates:
        match = _WORD.match(text)
        if match and not _BOTH.search(text):
            return match["yes"] is not None
    raise MalformedOutput(reply, expected="<answer>yes</answer> or <answer>no</answer>")


def verdict_grammar(*, boxed: bool = False, reason: int = 0) -> Grammar:
    """Makes the grammar of a verdict. `boxed`: KAG-Thinker's form; `reason`: characters of
    reasoning that may come first.
    """
    words = (r"\boxed{True}", r"\boxed{False}") if boxed else ("yes", "no")
    verdict = seq("<answer>", alt(*words), "</answer>")
    return Grammar("verdict", after_reasoning(verdict, reason))


def after_reasoning(answer: Node, longest: int) -> Node:
    """Allows a line of up to `longest` characters before the answer."""
    return seq(maybe(free_text(longest, without="<"), "\n"), answer) if longest else answer
