"""Who differs: the kinds of evidence on both sides of a disagreement, with their years."""

from __future__ import annotations

from osler.retrieve.study_design import Design, design_of
from osler.types import Language, Passage

_NAMES: dict[Design, dict[Language, tuple[str, str]]] = {
    "guideline": {"en": ("guideline", "guidelines"), "zh": ("指南", "指南")},
    "systematic-review": {
        "en": ("systematic review", "systematic reviews"),
        "zh": ("系统综述", "系统综述"),
    },
    "randomised-trial": {
        "en": ("randomised trial", "randomised trials"),
        "zh": ("随机对照试验", "随机对照试验"),
    },
    "trial": {"en": ("trial", "trials"), "zh": ("试验", "试验")},
    "cohort": {"en": ("cohort study", "cohort studies"), "zh": ("队列研究", "队列研究")},
    "case-control": {
        "en": ("case-control study", "case-control studies"),
        "zh": ("病例对照研究", "病例对照研究"),
    },
    "cross-sectional": {
        "en": ("cross-sectional study", "cross-sectional studies"),
        "zh": ("横断面研究", "横断面研究"),
    },
    "book": {"en": ("book", "books"), "zh": ("教科书", "教科书")},
    "narrative": {"en": ("review", "reviews"), "zh": ("综述", "综述")},
    "case-report": {"en": ("case report", "case reports"), "zh": ("病例报告", "病例报告")},
    "encyclopaedia": {
        "en": ("encyclopaedia article", "encyclopaedia articles"),
        "zh": ("百科条目", "百科条目"),
    },
    "laboratory": {
        "en": ("laboratory study", "laboratory studies"),
        "zh": ("实验研究", "实验研究"),
    },
    "web": {"en": ("web page", "web pages"), "zh": ("网页", "网页")},
}


def word_sides(mine: Passage, theirs: Passage, language: Language) -> str:
    """Says which kinds of evidence differ, and of which years, as "Two guidelines differ (2016 and
    2022). "; empty where the kind of one of them is not known."""
    kinds = design_of(mine), design_of(theirs)
    if kinds[0] is None or kinds[1] is None:
        return ""
    years = [str(year) for year in (mine.locator.year, theirs.locator.year) if year is not None]
    one, other = (_NAMES[kind.design][language] for kind in kinds if kind)
    if language == "zh":
        when = f"（{'、'.join(years)}）" if len(years) == 2 else ""
        who = f"两份{one[0]}" if one == other else f"{one[0]}与{other[0]}"
        return f"{who}说法不一{when}。"
    when = f" ({' and '.join(years)})" if len(years) == 2 else ""
    who = (
        f"Two {one[1]}" if one == other else f"{_article(one[0])} and {_article(other[0]).lower()}"
    )
    return f"{who} differ{when}. "


def _article(name: str) -> str:
    return f"{'An' if name[0] in 'aeiou' else 'A'} {name}"
