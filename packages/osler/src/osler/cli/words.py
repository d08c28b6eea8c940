"""The lines that stand around an answer in the terminal, in the language of its question."""

from __future__ import annotations

from collections.abc import Sequence

from osler.types import Halt, Language

_ZH = {
    "s": "秒",
    "; ": "；",
    "; next: ": "；接下来：",
    "How: ": "经过：",
    "illustrative sample text, not a clinical reference": "示例文本，不作临床依据",
    "Extractive: quoted sentences, worded by no model.": "以下为原文摘句，未经模型改写。",
    "Evidence": "依据",
    "By these steps": "推理步骤",
    "Plan": "计划",
    "Cautions": "注意",
    "How it went": "过程",
    "quoted": "摘引原文",
    "worded by a model": "由模型撰写",
    "not kept": "未保存",
    "source down": "来源不可用",
    "superseded": "已有新版",
    "of this year": "今年",
    "reading the question": "正在读问题",
    "a search": "检索",
    "reading what is found": "阅读检索结果",
    "the answer, or another search": "作答，或再检索一次",
    "the first step": "第一步",
    "its answer": "这一步的答案",
    "the next step, or the answer": "下一步，或作答",
    "calculating": "正在计算",
    "the answer": "作答",
    "thinking it over": "正在思考",
    "a search, or the answer": "检索，或作答",
    "checking how sure the answer is": "正在核对答案的把握",
    "the answer, or another look": "作答，或再查一次",
    "nothing found there": "那里没有检索到内容",
}
_ENDS = {
    Halt.BUDGET: "用完了预算",
    Halt.NO_EVIDENCE: "检索到的内容没有回答这个问题",
    Halt.REFUSED: "没有作答",
}


def say(words: str, language: Language) -> str:
    """The line in the language; as it is where it has no Chinese form."""
    return _ZH.get(words, words) if language == "zh" else words


def say_end(halt: Halt, why: str, language: Language) -> str:
    """Why a run ended early. In Chinese the kind alone: `osler trace` has the method's words."""
    return _ENDS.get(halt, halt.value) if language == "zh" else f"{halt.value}: {why}"


def say_read(count: int, sources: Sequence[str], language: Language) -> str:
    """How many passages were read, and of which sources."""
    if language == "zh":
        return f"读了 {'、'.join(sources)} 的 {count:,} 段"
    return f"{count:,} passage{'s' * (count != 1)} of {', '.join(sources)} read"
