"""Rules that need no language: e-mail, telephone, numbers of known form, numeric dates."""

from __future__ import annotations

from osler.sources.patients.identifiers.found import Patterns

# No digit or letter beside it: Chinese writes no blanks, so \b does not do.
_L, _R = r"(?<![0-9A-Za-z])", r"(?![0-9A-Za-z])"
_YEAR = r"(?:1[89]|20)\d\d"

PATTERNS: Patterns = {
    "URL": (r"(?:https?://|www\.)[^\s，。；）)>]+",),
    "AGE": (
        r"\b(?i:(?:wom[ae]n|m[ae]n|lady|gentleman|widow|widower|resident|patient|male|female|teacher"
        r"|farmer) of )(?P<x>9\d|1[01]\d)\b",
        r"(?i:\bage(?:d|:)?\s)(?P<x>9\d|1[01]\d)\b",
        r"(?<![\d.])(?P<x>9\d|1[01]\d)(?=(?:[- ]?(?:year|yr|y/?o\b)|\s?岁))",
    ),
    "EMAIL": (r"[\w.+-]+@[^\W_][\w-]*(?:\.[^\W_][\w-]*)+",),
    "PHONE": (
        rf"\+\d{{1,3}}[ -]?(?:\(\d{{1,4}}\)[ -]?)?\d{{1,4}}(?:[ -]?\d{{2,4}}){{1,4}}{_R}",
        r"(?<![\w-])(?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\w-])",
        rf"{_L}\(?0\d{{2,4}}\)?[ -]?\d{{3,4}}[ -]?\d{{3,4}}{_R}",
        rf"{_L}1[3-9]\d[ -]?\d{{4}}[ -]?\d{{4}}{_R}",
        r"[（(]0\d[）)] ?\d{3,4}[ -]?\d{3,4}(?!\d)",
        r"[（(]0\d{2,4}[）)] ?\d{3,4}[ -]?\d{3,4}(?!\d)",
        rf"{_L}0\d{{2,3}}-?\d{{3,4}}[ -]?\d{{4}}(?: ?(?:转|ext\.?|x) ?\d{{1,6}})?{_R}",
        rf"{_L}[48]00[- ]?\d{{3,4}}[- ]?\d{{3,4}}{_R}",
        # A label, then whatever looks like a number of seven digits or more.
        r"(?i:\b(?:cell|phone|tel|telephone|mobile|ph|fax|pager|contact|call|ring|text|voicemail"
        r"|reached (?:at|on)|home|work)\b|电话|座机|手机号?|致电|请拨|拨打|热线"
        r"|传真|联系方式|微信|来电|去电|电联|通话|小灵通|固话|宅电)"
        r"(?i:\s?(?:no\.?|number|is|at|on|her|him|号码?|记录|为|是|改为))*\s*[:：.#]?\s*"
        r"(?P<x>[(（+]?\d(?:[ ()（）./-]{0,2}\d){6,14}(?:,? ?(?i:x|ext\.?|extension"
        r"|转) ?\d{1,6})?)",
        r"(?i:\b(?:ext|extension|pager|bleep)\b\.?(?: no\.?)?) ?#?(?P<x>\d{3,6})\b",
    ),
    "ID": (
        rf"{_L}\d{{3}}-\d\d-\d{{4}}{_R}",
        rf"{_L}\d{{17}}[\dXx]{_R}",
        rf"{_L}\d{{4}}([ -]?)\d{{4}}\1\d{{4}}\1\d{{3,7}}{_R}",
        rf"{_L}(?=\w*\d)(?=\w*[A-Z])[A-HJ-NPR-Z0-9]{{17}}{_R}",
        rf"{_L}(?:\d{{1,3}}\.){{3}}\d{{1,3}}{_R}(?!\.\d)",
        rf"{_L}0\d{{6,9}}{_R}(?!\.\d)",
        r"(?<![\w.])@[A-Za-z_]\w{2,}",
        r"(?i:微信号?|wechat(?: id)?|whatsapp|instagram|skype)[:：]?\s*(?P<x>[A-Za-z][\w-]{4,})",
        r"QQ(?:号码?)?[:：]?\s*(?P<x>\d{5,11})",
    ),
    "DATE": (
        rf"{_L}{_YEAR}([-/.])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])(?![0-9A-SU-Za-z])",
        r"(?i:\b(?:date|dob|born|on)\b|日期|生日|出生)[:： ]*(?P<x>(?:19|20)\d\d[01]\d[0-3]\d)"
        r"(?!\d)",
        rf"{_L}\d{{1,2}}([-/.])\d{{1,2}}\1(?:{_YEAR}|\d\d){_R}",
        rf"{_L}\d{{1,2}}([-/.])(?i:[ivx]{{1,4}})\1(?:{_YEAR}|\d\d){_R}",
        # A month and a day that no score, strength or acuity has; others where a word says so.
        r"(?<![\d/.])(?P<x>(?:0?[1-5]|0?[7-9]|1[0-2])/(?:1[3-9]|2\d|3[01]))(?![\d/%]|\.\d)",
        r"(?i:\b(?:on|since|until|till|wk of|week of|dated|before|after|through|thru|due|lmp|edd)) "
        r"(?P<x>(?:0?[1-9]|1[0-2])/(?:0?[1-9]|[12]\d|3[01]))(?![\d/%]|\.\d)",
        r"(?i:\bfrom )(?P<x>\d{1,2}/\d{1,2})(?= (?:to|through|until) \d{1,2}/(?:1[1-9]|2\d|3[01]))",
        r"(?<![\d/.-])(?P<x>(?:0?[1-9]|1[0-2])[-/](?:0?[1-9]|[12]\d|3[01]))"
        r"(?=\s*(?:\d{1,2}[:：]\d\d|上午|下午|晚|早|凌晨|中午|夜))",
    ),
}
