"""Places that tell who somebody is: hospitals, schools, employers, homes, streets, wards.

Only where the name is one: `Willow Court Nursing Home`, not `the nursing home`; 北京协和医院, not
上级医院. English ones are words with capitals before or after a word for a kind of place, Chinese
ones what stands between a boundary and such a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from osler.sources.common_words import is_common, is_listed, read_words
from osler_serve.clinic.identifiers.found import Identifier

_CAP = r"(?:St\.?|[A-Z][\w'’-]*)"
_KIND = (
    r"(?:Hospital|Infirmary|Hospice|Sanatorium|Clinic|Surgery|Practice|Health Cent(?:re|er)"
    r"|Medical Cent(?:re|er)|Cent(?:re|er)|School|Academy|College|University|Primary|Secondary"
    r"|High|Nursery|Kindergarten|(?:Nursing|Care|Residential|Retirement|Rest) Home|House|Lodge"
    r"|Manor|Court|Pharmacy|Ward|Prison|Barracks|Church|Mosque|Temple|Station|Colliery|Hotel|Inn"
    r"|Restaurant|Airport|Library|Shelter|Hostel|Farm|Foundry|Mill|Works|Shipyard|Bank|Club|Gym)"
)
_NAMED = re.compile(
    rf"\b(?P<x>(?:{_CAP} ){{1,4}}{_KIND}(?: (?:of|at|for) (?:the )?{_CAP}(?: {_CAP}){{0,2}})?)\b"
    rf"(?! (?:scale|score|criteria|test|classification|scan))"
)
_OF = re.compile(
    rf"\b(?P<x>(?:Royal |Queen'?s? )?(?:University|Infirmary|Hospital|Bank|Church) of "
    rf"(?:the )?{_CAP}(?: {_CAP}){{0,2}})\b"
)
_STATE = re.compile(
    r"\b(?:at|to|from|in) (?P<x>[A-Z][a-z]+(?: [A-Z][a-z]+)?"
    r" (?:General|Royal|Memorial|Mercy|Infirmary))\b"
)
_SAINT = re.compile(rf"\b(?P<x>(?:St\.?|Saint) [A-Z][\w'’-]+(?: {_CAP}| of [A-Z]\w*){{0,3}})\b")
# Whatever has a capital after these is an employer, a school or a town.
_AFTER = re.compile(
    r"\b(?:employed (?:by|at|with)|works? (?:nights |days |shifts )?(?:as an? [\w -]{3,30} )?"
    r"(?:at|for)(?: the)?|working (?:at|for)|(?:student|pupil|fellow|lecturer|nurse) at"
    r"|plays (?:[a-z]+ )?for|teach(?:es|er)? (?:[a-z]+ )?at|(?:fire|police)man with the"
    r"|former (?:[a-z]+ )?at|inpatient (?:at|in)|admitted to|transferred (?:to|from)"
    r"|discharged (?:to|from)|attends|visited(?: the)?|studies at|job at|shift at|visitor from"
    r"|here from|(?:moved|came|comes|flew|arrived) (?:here )?from|lives in|born in|raised in)"
    rf" (?P<x>{_CAP}(?: {_CAP}| (?:of|on|and|at) {_CAP}){{0,3}})(?![\w'’-])"
)
_STREET = re.compile(
    r"\b(?:on|in|at|near|off|of|from|along|outside)(?: the)? (?P<x>(?:[A-Z][a-z'’]+ ){1,3}"
    r"(?:Street|Road|Avenue|Lane|Boulevard|Terrace|Crescent|Close|Square|Gardens|Mews))\b"
)
_CODE = re.compile(
    r"(?i:\b(?:zip|post|postal) ?code)(?: is)?:? (?P<x>[A-Z\d]{3,5}(?:[ -]?[A-Z\d]{3,4})?)\b"
)
_ABBREVIATION = re.compile(r"[A-Z]{2,5}s?\d*")

_H = r"[\u4e00-\u9fff]"
_HAN_KIND = (
    r"(?:医院|卫生院|卫生室|卫生所|卫生服务[中总]心|卫生服务站|卫生站|疗养院|养老院|敬老院|福利院|护理院|康养中心|颐养院|诊所|门诊部"
    r"|大学|学院|中学|小学|幼儿园|托儿所|附中|附小|[一二三四五六七八九十]中|实验学校|学校|公司|集团|工厂"
    r"|[械钢铁纱织药纺泥革车鞋化子品电]厂|酒店|宾馆|饭店|派出所|监狱|看守所|银行|检验中心|体检中心|检验所|农场|林场|煤矿|矿区|合作社)"
)
# Taken away from what stands before such a word: if nothing is left, no one place is named.
_HAN_GENERIC = re.compile(
    r"[我你他她本外该某贵此另省市县区乡镇村小大几多两家所个各分总原老新好州]|们|当地|上级|下级|社区|这家|那家|一[家所]|附近|地方|综合|专科|医学"
    r"|基层|私立|公立|民营|正规|普通|儿童|妇产|妇幼|妇科|男科|眼科|口腔|肿瘤|精神|心理|传染病|中医|西医|结合|骨科|胸科|皮肤病|结核病|康复|[县市省]级"
    r"|[一二三]级|[三二]甲|[甲乙]等|就诊|住院|医科|教学|互联网|急救|人民|保险|药|重点|实验|寄宿|聋哑|特殊|职业|技术|专业|[高初]级|老年|成人|什么|任何|其他|其它|不同|有关|相关|医药|制药|生物|科技|化工|全国"
)
_HAN_INTO = re.compile(r"在|于|从|由|至|到|往|赴|转|送|来自|去|就读|毕业|任职|供职|住|入")
_HAN_NAMED = re.compile(
    rf"(?P<x>(?:(?!{_HAN_KIND}){_H}){{1,16}}{_HAN_KIND}"
    rf"(?:附属{_H}{{0,4}}医院|{_H}{{1,3}}(?:分院|院区|校区|分公司|支行|分行))?)"
)
_HAN_OFFICIAL = re.compile(
    r"[省市县区州](?:第?[一二三四五六七八九十]+)?(?:人民|中心|中|中医|妇幼|儿童|精神病?)医?院?"
)
_HAN_LEARNED = re.compile(r"(?:附中|附小|大学|养老院|集团|[械钢铁纱织纺泥革车鞋化]厂)$")
_HAN_LINK = re.compile(r"[某的了着是有因时已被我您你他她不没再又也就都说问给让把]")
_HAN_FUNCTION = re.compile(r"[某的了着是有和及与因后前时已被我您你他她不没再又也就都说问给让把]")


def find_places(line: str) -> Iterator[Identifier]:
    """Named institutions, employers, streets and codes of post, in order of the rules."""
    for rule, holds in _RULES:
        for match in rule.finditer(line):
            if holds(match["x"]):
                yield Identifier("PLACE", *match.span("x"))
    for match in _HAN_NAMED.finditer(line):
        start, end = match.span("x")
        into = None
        for into in _HAN_INTO.finditer(match["x"]):
            start = match.start("x") + into.end()
        start = max(start, line.rfind("院", start, end - 3) + 1) if into is None else start
        if _is_named_in_chinese(line[start:end], located=into is not None):
            yield Identifier("PLACE", start, end)


def _is_named(words: str) -> bool:
    """Whether a word says which one it is: one that no generic name of such places has."""
    each = re.sub(rf" {_KIND}(?: (?:of|at|for) .*)?$", "", words).split()
    own = [word for word in each if not is_listed(word, "kinds")]
    return bool(own) and any(not _ABBREVIATION.fullmatch(word) for word in own)


def _is_own(words: str) -> bool:
    return any(
        not is_common(word) or is_listed(word, "brands", "towns", "given", "family")
        for word in words.split()
        if not is_listed(word, "kinds", "never", "short")
    )


_RULES = (
    (_NAMED, _is_named),
    (_OF, bool),
    (_SAINT, bool),
    (_STATE, _is_named),
    (_AFTER, _is_own),
    (_STREET, bool),
    (_CODE, bool),
)


def _is_named_in_chinese(words: str, *, located: bool) -> bool:
    before = re.sub(rf"{_HAN_KIND}.*$", "", words)
    if _HAN_OFFICIAL.search(words):
        return True
    if (_HAN_LINK if located else _HAN_FUNCTION).search(before):
        return False
    own = before if re.search("[路街]", before) else _HAN_GENERIC.sub("", before)
    if located or _HAN_LEARNED.search(words):
        return len(own) > 1 or (located and own == before[: len(own)] != "")
    pairs = [before[at : at + 2] for at in range(len(before) - 1)]
    return len(own) > 1 and any(pair not in read_words() for pair in pairs)
