"""Wikitext as plain text with its heading lines, in time linear in its length.

A page is prose between templates, tables and references. These are found by their brackets
and removed without parsing, so there is no grammar and no page that could make it slow. The
few templates that are part of a sentence (measures, words of another language) are expanded.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from operator import itemgetter

from osler.text import clean_text

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# With their contents; what is opened and never closed stays, as it does on the page.
_ELEMENTS = (
    "ref", "references", "gallery", "timeline", "imagemap", "score", "graph", "maplink",
    "mapframe", "templatedata", "hiero", "inputbox", "categorytree", "noinclude",
)  # fmt: skip
_BRACES = re.compile(r"\{\{|\}\}|^[ \t:*#;]*\{\||^[ \t]*\|\}", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{\s*([\w -]{1,40}?)\s*\|([^{}]{0,2000})\}\}")
_LINK = re.compile(r"\[\[((?:[^\[\]]|\[(?!\[)|\](?!\])){0,4000})\]\]")
_ADDRESS = re.compile(
    r"\[(?:https?:|ftp:|mailto:)?//[^\s\[\]]+[ \t]*([^\[\]\n]{0,1000})\]", re.IGNORECASE
)
_NOT_SHOWN = re.compile(
    r"\s*(?:file|image|media|category|文件|档案|檔案|图像|圖像|分类|分類|[a-z]{2,3}(?:-[a-z-]{2,12})?)\s*:",
    re.IGNORECASE,
)
_QUOTES = re.compile(r"'{2,5}")
_LIST = re.compile(r"^[*#:;]+[ \t]*", re.MULTILINE)
_BREAK = re.compile(r"<br\s*/?>|</(?:p|div|li|tr)\s*>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][\w-]{0,20}(?:\s[^<>]{0,2000})?/?>")
_SWITCH = re.compile(r"__[A-Z]{3,24}__")
_EMPTY = re.compile(r" ?[(（][\s,;:，；、]*[)）]")
# Links inside the caption of a picture inside … ; no page needs more.
_NESTING = 4


def plain_wikitext(text: str) -> str:
    """The page's prose; headings stay as lines "== … ==", list items begin with "- "."""
    text = _COMMENT.sub("", text)
    for name in _ELEMENTS:
        text = _without_element(text, name)
    text = _TEMPLATE.sub(_expand_template, text)
    text = _without_braces(text)
    for _ in range(_NESTING):
        shorter = _LINK.sub(_link_text, text)
        if shorter == text:
            break
        text = shorter
    text = _ADDRESS.sub(r"\1", text)
    text = _LIST.sub("- ", _SWITCH.sub("", _QUOTES.sub("", text)))
    text = html.unescape(_TAG.sub("", _BREAK.sub("\n", text)))
    return clean_text(_EMPTY.sub("", text))


def _without_element(text: str, name: str) -> str:
    """Removes `<name …>…</name>` and `<name …/>`."""
    opening = re.compile(rf"<{name}(?:\s[^<>]*)?>", re.IGNORECASE)
    closing = re.compile(rf"</{name}\s*>", re.IGNORECASE)
    kept, place = list[str](), 0
    can_close = True
    for begin in opening.finditer(text):
        if begin.start() < place:
            continue
        end = begin if begin[0].endswith("/>") else None
        if end is None and can_close:
            end = closing.search(text, begin.end())
            can_close = end is not None
        if end is not None:
            kept.append(text[place : begin.start()])
            place = end.end()
    return "".join([*kept, text[place:]])


def _expand_template(match: re.Match[str]) -> str:
    values = [value.strip() for value in match[2].split("|") if "=" not in value]
    expand = _SHOWN.get(match[1].lower().replace("_", " "))
    return expand(values) if expand and any(values) else match[0]


def _expand_convert(values: list[str]) -> str:
    """{{convert|5|kg|lb}}: the amount as it was written, without the converted one."""
    if len(values) >= 4 and values[1] in {"-", "–", "to", "and", "by", "x"}:
        return f"{values[0]} {values[1]} {values[2]} {values[3]}"
    return " ".join(values[:2])


def _second_value(values: list[str]) -> str:
    return values[1] if len(values) > 1 else ""


_FIRST, _LAST = itemgetter(0), itemgetter(-1)
_SHOWN: dict[str, Callable[[list[str]], str]] = {
    **dict.fromkeys(("convert", "cvt"), _expand_convert),
    **dict.fromkeys(("lang", "tl", "color", "colored link", "font color"), _LAST),
    **dict.fromkeys(
        ("lang-en", "nowrap", "nobr", "abbr", "val", "chem", "small", "em", "strong"), _FIRST
    ),
    **dict.fromkeys(("title case", "as of", "circa", "sub", "sup", "keypress", "zh"), _FIRST),
    **dict.fromkeys(("transl", "link-en", "tsl"), _second_value),
}


def _without_braces(text: str) -> str:
    """Removes templates and tables with their content; unmatched brackets stay."""
    opened: list[re.Match[str]] = []
    spans: list[tuple[int, int]] = []
    for mark in _BRACES.finditer(text):
        kind = mark[0].strip(" \t:*#;")
        if kind in {"{{", "{|"}:
            opened.append(mark)
        elif opened and opened[-1][0].strip(" \t:*#;") == ("{{" if kind == "}}" else "{|"):
            begin = opened.pop().start()
            while spans and spans[-1][0] >= begin:
                spans.pop()
            spans.append((begin, mark.end()))
        elif kind == "|}" and any(o[0].endswith("{|") for o in opened[-3:]):
            # A template inside the table was never closed: the table ends all the same. Looking
            # back three openings only keeps the time linear.
            while not opened[-1][0].endswith("{|"):
                opened.pop()
            begin = opened.pop().start()
            while spans and spans[-1][0] >= begin:
                spans.pop()
            spans.append((begin, mark.end()))
    kept, place = list[str](), 0
    for begin, end in spans:
        kept.append(text[place:begin])
        place = end
    return "".join([*kept, text[place:]])


def _link_text(match: re.Match[str]) -> str:
    """The visible text of a link; "" for pictures, categories and links to other languages."""
    target, _, label = match[1].partition("|")
    if _NOT_SHOWN.match(target):
        return ""
    return (label.rpartition("|")[2] or label or target).strip().removeprefix(":")
