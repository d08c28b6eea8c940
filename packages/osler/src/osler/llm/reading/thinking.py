"""Says what a reply is where it says nothing: cut while thinking, thought alone, or empty.

Where thinking ends is found by `osler.llm.core.thinking`. A server without a parser of it gives
thinking that a chat template began without any mark; cut, it has none at its end either, and only
its first words tell.
"""

from __future__ import annotations

import re
from typing import Literal

from osler.llm.core.base import Completion
from osler.llm.core.thinking import split_thinking

Silence = Literal["", "cut", "thought", "empty"]
"""Why a reply says nothing; "" where it says something."""
_MUSING = re.compile(
    r"\s*(?:(?:okay|ok|alright|hmm+|well|right|so)[,.…]|first, i (?:need|should|have)"
    r"|i need to (?:figure|think|recall)|let me (?:think|see|recall|start|break|figure)"
    r"|we (?:need|are asked|have) to|the user (?:is|wants|asks|has|asked)"
    r"|好的?，|嗯，|首先，?我(?:需要|得|要)|让我(?:想|看)|用户(?:问|想|的问题))",
    re.IGNORECASE,
)


def silence_of(completion: Completion) -> Silence:
    """Why a reply says nothing: its tokens ended while it thought, it thought alone, or is empty.

    Its thinking may be split off already, or not.
    """
    reply = split_thinking(completion)
    cut = reply.finish == "length"
    if reply.text.strip():
        muses = cut and not reply.thinking and _MUSING.match(reply.text) is not None
        return "cut" if muses else ""
    if reply.thinking:
        return "cut" if cut else "thought"
    # A hosted model's thinking is not shown: its tokens ended before it said a word.
    return "cut" if cut and not reply.text else "empty"


def spoken_part(text: str) -> str:
    """The text without thinking, wherever it stands; empty for nothing but thinking."""
    return split_thinking(Completion(text)).text.strip()
