"""Currency of evidence: two rules over the metadata of passages.

The rules use no model and read no claims: they compare publication types, titles, editions, years
and headings. `osler.answer.cautions` words their findings.

| Rule | A cited passage is named when |
|---|---|
| `retracted` | a notice, its publication type or its title says that it was retracted |
| `superseded` | a passage of its source was found whose title is the same but for edition, version or year, of a later one |
"""  # noqa: E501  a table's row is one line

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from osler.retrieve import content_terms
from osler.text import is_cjk, word_set
from osler.types import Hit, Passage

_RETRACTED = re.compile(
    r"^\W*(?:retracted\b|withdrawn\b)|\bretracted (?:article|publication)\b|撤稿|已撤回|撤销论文",
    re.IGNORECASE,
)
_NOTICE = re.compile(r"retraction (?:of publication|notice)|撤稿(?:声明|通知|公告)", re.IGNORECASE)
_ORDINAL_WORDS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_ORDINALS = tuple(_ORDINAL_WORDS.split())
_CHINESE = {sign: n for n, sign in enumerate("一二三四五六七八九十", 1)}
_EDITION = re.compile(
    r"(?P<ordinal>\b\d{1,2})(?:st|nd|rd|th)\s+ed(?:ition|n)?\b\.?"
    rf"|\b(?P<word>{'|'.join(_ORDINALS)})\s+edition\b"
    r"|\b(?:edition|version|v)\s*(?P<number>\d{1,3})(?:\.\d+)*\b"
    r"|第\s*(?P<zh>\d{1,2}|[一二三四五六七八九十]{1,3})\s*版",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d{2})(?!\d)\s*(?:年(?:修订|更新)?版?|版)?")
_REVISED = re.compile(
    r"\b(?:(?:focused\s+)?updated?|revised|revision|new)\b(?:\s+edition\b)?|修订版|更新版|新版",
    re.IGNORECASE,
)
# Words of headings that do not describe the subject.
_GENERIC = word_set(
    "guideline guidelines guidance recommendation recommendations statement consensus management"
    " treatment therapy diagnosis assessment care patients patient adults adult children clinical"
    " practice practical handbook textbook manual medicine medical internal introduction overview"
    " general chapter section part disease diseases disorder disorders syndrome acute chronic"
    " prevention use choice dose drug drugs follow-up monitoring new edition version"
    " 指南 共识 治疗 诊断 诊治 诊疗 管理 防治 临床 实践 手册 概述 疾病 患者 成人 儿童 预防 药物"
    " 用药 剂量 学会 中国 中华 推荐 意见 建议 内科 科学 医学 教材 章节 定义"
)


def retraction_notice(passage: Passage) -> str:
    """The notice of its retraction, else the passage's own words that say it was retracted; ""
    otherwise. The notice of a retraction is not itself retracted.
    """
    if passage.locator.is_retracted:
        return passage.locator.notice
    for said in (passage.locator.kind, passage.title):
        if _RETRACTED.search(said) and not _NOTICE.search(said):
            return said
    return ""


@dataclass(frozen=True, slots=True)
class Issue:
    """The edition of the work from which a passage comes; unknown parts are `None`."""

    work: str
    """The title without edition, version and year; "" when too little is left to identify a
    work."""
    edition: int | None
    year: int | None

    def is_before(self, other: Issue) -> bool:
        """Whether both are of one work and this is the earlier issue: by edition where both have
        one, else by year."""
        if not self.work or self.work != other.work:
            return False
        for mine, theirs in ((self.edition, other.edition), (self.year, other.year)):
            if mine is not None and theirs is not None:
                return mine < theirs
        return False

    def __str__(self) -> str:
        edition = f"edition {self.edition}" if self.edition is not None else ""
        return ", ".join(filter(None, (edition, str(self.year) if self.year else "")))


def read_issue(passage: Passage) -> Issue:
    """Reads the issue from the title; the year from the passage when the title has none."""
    title = passage.title
    found, year = _EDITION.search(title), _YEAR.search(title)
    rest = _REVISED.sub(" ", _YEAR.sub(" ", _EDITION.sub(" ", title)))
    # Two content words at least: "Guideline 2020" identifies no work.
    work = " ".join(re.findall(r"\w+", rest.casefold()))
    told = [word for word in heading_subject(work) | set(content_terms(work)) if not word.isdigit()]
    return Issue(
        work if len(told) >= 2 else "",
        _read_number(found) if found else None,
        int(year[1]) if year else passage.locator.year,
    )


def newer_issue(cited: Passage, hits: Sequence[Hit]) -> Hit | None:
    """The latest issue of the cited work among `hits`, if later than the cited one."""
    mine = read_issue(cited)
    same = [hit for hit in hits if hit.passage.source == cited.source]
    later = [hit for hit in same if mine.is_before(read_issue(hit.passage))]
    best: Hit | None = None
    for hit in later:
        if best is None or read_issue(best.passage).is_before(read_issue(hit.passage)):
            best = hit
    return best


def heading_subject(heading: str) -> frozenset[str]:
    """The words of a heading that describe its subject; in Chinese, pairs of characters."""
    told = (term for term in content_terms(heading) if len(term) > 1 or not is_cjk(term))
    return frozenset(term for term in told if term not in _GENERIC and not term.isdigit())


def _read_number(found: re.Match[str]) -> int:
    if word := found["word"]:
        return _ORDINALS.index(word.casefold()) + 1
    if (chinese := found["zh"]) and not chinese.isdigit():
        return _chinese_number(chinese)
    return int(found["ordinal"] or found["number"] or found["zh"])


def _chinese_number(signs: str) -> int:
    """Reads a Chinese number from 1 to 99: 九, 十二, 二十, 二十一."""
    tens, ten, ones = signs.partition("十")
    if not ten:
        return _CHINESE[signs[0]]
    return (_CHINESE[tens] if tens else 1) * 10 + (_CHINESE[ones] if ones else 0)
