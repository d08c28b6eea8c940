"""Wikipedia in the forms in which it is passed on: dumps, extracts and the API's answers.

| format          | what a file is                                                        |
|-----------------|-----------------------------------------------------------------------|
| `mediawiki`     | a dump of a wiki, pages-articles XML, usually bz2                      |
| `wikiextractor` | `{id, revid, url, title, text}`, one page a line                       |
| `kilt`          | KILT (2019): a page a line, its paragraphs in a list                   |
| `wiki-api`      | an answer of MediaWiki's API (action=query, prop=extracts), one JSON   |
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, BinaryIO
from urllib.parse import quote

from osler.sources.formats.html import fragment_sections
from osler.sources.formats.json_lines import JsonLinesParser, Object, first_keys, text_in, value_at
from osler.sources.formats.reading import (
    date_in,
    id_of_record,
    plain_head,
    raise_digits,
    raise_marked,
    read_json_file,
    year_in,
)
from osler.sources.formats.safe_xml import (
    GONE,
    Element,
    find_descendant,
    first_child,
    iterate_elements,
    local_name,
    root_tag,
    text_of,
)
from osler.sources.formats.sections import Heading, finish_document, sections_of, without_noise
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, make_slug, one_line

_HEADING = re.compile(r"(={2,6})\s*([^=\n](?:.{0,300}?))\s*\1\s*")
_REDIRECT = re.compile(r"\s*#(?:redirect|重定向)", re.IGNORECASE)
_SECTION, _BULLET = "Section::::", "BULLET::::"
_FORMULA = re.compile(r"formula_\d+")
# Bytes of one answer of the API, which holds a few pages.
_LARGEST = 8 * 2**20
_ANSWER = re.compile(rb'"query"\s*:\s*\{')
_PAGES = re.compile(rb'"(?:pages|normalized|redirects)"\s*:\s*[\[{]')


def parse_heading(line: str) -> Heading | None:
    """Level and text of a line "== Treatment =="."""
    match = _HEADING.fullmatch(line)
    return (len(match[1]), one_line(match[2])) if match else None


class Mediawiki:
    """Articles only: redirects, pages outside the main namespace and pages that are not
    wikitext are drops."""

    name = "mediawiki"

    def matches(self, name: str, head: bytes) -> bool:
        return root_tag(head) == "mediawiki"

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """A document or drop for each page; memory holds one page."""
        base = ""
        for element in iterate_elements(stream, name, ("{*}siteinfo", "{*}page")):
            if local_name(element) == "siteinfo":
                base = text_of(first_child(element, "base")).rpartition("/")[0]
            else:
                yield _read_page(element, name, base)


def _read_page(page: Element, name: str, base: str) -> Record:
    identifier, title = text_of(first_child(page, "id")), text_of(first_child(page, "title"))
    where = f"{name}: page {identifier or title}"
    revision = first_child(page, "revision")
    content = first_child(revision, "text")
    text = "" if content is None else content.text or ""
    if not identifier and not title:
        return Drop(where, "no id")
    if (text_of(first_child(page, "ns")) or "0") != "0":
        return Drop(where, "not an article")
    if first_child(page, "redirect") is not None or _REDIRECT.match(text):
        return Drop(where, "redirect")
    if text_of(first_child(revision, "model")) not in {"", "wikitext"}:
        return Drop(where, "not wikitext")
    sections, _ = without_noise(sections_of(plain_wikitext(text), parse_heading))
    url = f"{base}/{quote(title.replace(' ', '_'))}" if base and title else ""
    # Of the revision: an article is what it was on that day.
    day = text_of(find_descendant(revision, "timestamp"))[:10]
    document = Document(
        *(make_slug(identifier or title), title, sections),
        year=year_in(day),
        date=date_in(day),
        url=url,
    )
    return finish_document(document, where)


class Wikiextractor(JsonLinesParser):
    name = "wikiextractor"

    def matches(self, name: str, head: bytes) -> bool:
        return first_keys(head) >= {"id", "url", "title", "text"}

    def read_record(self, record: Object, where: str) -> Record:
        name, title = text_in(record, "id"), one_line(text_in(record, "title"))
        sections, _ = without_noise(sections_of(text_in(record, "text"), parse_heading))
        identifier = make_slug(name) if name else id_of_record(where)
        document = Document(identifier, title, sections, url=text_in(record, "url"))
        return finish_document(document, where)


class Kilt(JsonLinesParser):
    """Headings are paragraphs such as "Section::::Treatment.:Drugs."."""

    name = "kilt"

    def matches(self, name: str, head: bytes) -> bool:
        # A long list of paragraphs may stand before the title and reach beyond the head.
        keys = first_keys(head)
        return "wikipedia_title" in keys or (keys >= {"text"} and b'"wikipedia_title"' in head)

    def read_record(self, record: Object, where: str) -> Record:
        title, paragraphs = one_line(text_in(record, "wikipedia_title")), record.get("text")
        if not isinstance(paragraphs, list):
            return Drop(where, "no text")
        history = record.get("history")
        url = text_in(history, "url") if isinstance(history, dict) else ""
        identifier = text_in(record, "wikipedia_id") or text_in(record, "_id") or title or where
        texts = [each for each in paragraphs if isinstance(each, str)]
        sections, _ = without_noise(_kilt_sections(texts, title))
        return finish_document(Document(make_slug(identifier), title, sections, url=url), where)


def _kilt_sections(paragraphs: list[str], title: str) -> Iterator[Section]:
    path: tuple[str, ...] = ()
    lines: list[str] = []
    if paragraphs and one_line(paragraphs[0]) == title:
        paragraphs = paragraphs[1:]
    for paragraph in (*paragraphs, _SECTION):  # the last one only ends the page
        if not paragraph.startswith(_SECTION):
            lines.append(_FORMULA.sub("", paragraph.removeprefix(_BULLET)).strip())
            continue
        if text := clean_text("\n".join(lines)):
            yield Section(text, path)
        lines.clear()
        names = paragraph.removeprefix(_SECTION).strip().removesuffix(".").split(".:")
        path = tuple(name for part in names if (name := one_line(part)))


class WikiApi:
    name = "wiki-api"

    def matches(self, name: str, head: bytes) -> bool:
        return (
            plain_head(head).startswith(b"{")
            and _ANSWER.search(head) is not None
            and _PAGES.search(head) is not None
        )

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """A document or drop for each page of the answer."""
        for page in _answer_pages(read_json_file(stream, name, _LARGEST)):
            yield _read_answer_page(page, name)


def _answer_pages(answer: Any) -> Iterator[Object]:
    """The pages of either version of the format: an object by page id, or a list."""
    pages = value_at(answer, "query", "pages")
    values = pages.values() if isinstance(pages, dict) else pages
    for page in values if values and not isinstance(values, str) else ():
        if isinstance(page, dict):
            yield page


def _read_answer_page(page: Object, name: str) -> Record:
    title, identifier = one_line(text_in(page, "title")), text_in(page, "pageid")
    where = f"{name}: {title or identifier}"
    if page.get("missing") is not None or page.get("invalid") is not None:
        return Drop(where, "missing page")
    extract = text_in(page, "extract")
    if extract.startswith("<"):  # without the parameter "explaintext" an extract is HTML
        parts = fragment_sections(extract)
    else:
        parts = sections_of(clean_text(extract), parse_heading)
    url = text_in(page, "fullurl") or text_in(page, "canonicalurl")
    identifier = identifier or title or where
    document = Document(make_slug(identifier), title, without_noise(parts)[0], url=url)
    return finish_document(document, where)


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
# With their contents; what is opened and never closed stays, as it does on the page.
_ELEMENTS = (
    "ref", "references", "gallery", "timeline", "imagemap", "score", "graph", "maplink",
    "mapframe", "templatedata", "hiero", "inputbox", "categorytree", "noinclude",
    "s", "del", "strike",
)  # fmt: skip
_BRACES = re.compile(r"\{\{|\}\}|^[ \t:*#;]*\{\||^[ \t]*\|\}", re.MULTILINE)
_TEMPLATE = re.compile(r"\{\{\s*([\w ^±–—-]{1,40}?)\s*(?:\|([^{}]{0,2000}))?\}\}")
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
# Templates without which a number would run into another one or into its unit.
_IN_NUMBER = re.compile(rf"(?<=[0-9]){GONE}++(?=[0-9A-Za-z])|(?<=[A-Za-z]){GONE}++(?=[0-9])")
_EMPTY = re.compile(r" ?[(（][\s,;:，；、]*[)）]")
# Links inside the caption of a picture inside … , or templates; no page needs more.
_NESTING = 4


def plain_wikitext(text: str) -> str:
    """The page's prose; headings stay as lines "== … ==", list items begin with "- "."""
    text = _COMMENT.sub("", text)
    for name in _ELEMENTS:
        text = _without_element(text, name)
    text = _without_braces(_replace_nested(_TEMPLATE, _expand_template, text))
    text = _replace_nested(_LINK, _link_text, text)
    text = _ADDRESS.sub(r"\1", text)
    text = _LIST.sub("- ", _SWITCH.sub("", _QUOTES.sub("", text)))
    text = html.unescape(_TAG.sub("", _BREAK.sub("\n", raise_marked(text))))
    return clean_text(_EMPTY.sub("", text))


def _replace_nested(
    pattern: re.Pattern[str], shown: Callable[[re.Match[str]], str], text: str
) -> str:
    for _ in range(_NESTING):
        text, before = pattern.sub(shown, text), text
        if text == before:
            break
    return text


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
    name = match[1].lower().replace("_", " ")
    if match[2] is None:
        return _SIGNS.get(name, match[0])
    values, named = list[str](), dict[str, str]()
    for part in match[2].split("|"):
        key, equals, value = map(str.strip, part.partition("="))
        if equals and not key.isdecimal():
            named[key] = value
        else:
            values.append(value if equals else key)
    expand = _SHOWN.get(name)
    if not any(values) or (expand is None and name != "val"):
        return match[0]
    return expand(values) if expand else _expand_val(values, named)


def _expand_val(values: list[str], named: dict[str, str]) -> str:
    """{{val|5|1|e=9|u=mg|up=L}}: 5±1×10⁹ mg/L."""
    power = _expand_power([named["e"]]) if named.get("e") else ""
    unit, per = (named.get(key) or named.get(f"{key}l", "") for key in ("u", "up"))
    unit = f"{unit}/{per}" if per else unit
    return f"{'±'.join(filter(None, values[:2]))}{power}{'' if unit[:1] in '/%°' else ' '}{unit}"


def _expand_power(values: list[str]) -> str:
    return f"×10{raise_digits(values[0])}"


def _expand_fraction(values: list[str]) -> str:
    """{{frac|2}}, {{frac|1|2}} and {{frac|3|1|2}}: 1/2, 1/2 and 3 1/2."""
    *whole, above, below = values if len(values) > 1 else ["1", *values]
    return " ".join([*whole, f"{above}/{below}"])


def _expand_convert(values: list[str]) -> str:
    """{{convert|5|kg|lb}}: the amount as it was written, without the converted one."""
    if len(values) >= 4 and values[1] in _RANGES:
        return f"{values[0]} {values[1]} {values[2]} {values[3]}"
    return " ".join(values[:2])


def _second_value(values: list[str]) -> str:
    return values[1] if len(values) > 1 else ""


_RANGES = frozenset({"-", "–", "to", "and", "or", "by", "x", "×", "±", "+/-"})
_SIGNS = {
    **dict.fromkeys(("ndash", "en dash", "endash", "–"), "–"),
    **dict.fromkeys(("snd", "snds", "spnd", "spaced ndash", "spaced en dash"), " – "),
    **dict.fromkeys(("mdash", "em dash", "emdash", "—"), "—"),
    **dict.fromkeys(("nbsp", "thinsp", "thin space", "hair space"), " "),
    "minus": "−",
    "±": "±",
    "plusmn": "±",
    "times": "×",
    "deg": "°",
}
"""Templates without values that are one sign."""
_FIRST, _LAST = itemgetter(0), itemgetter(-1)
_SHOWN: dict[str, Callable[[list[str]], str]] = {
    **dict.fromkeys(("convert", "cvt"), _expand_convert),
    **dict.fromkeys(("lang", "tl", "color", "colored link", "font color"), _LAST),
    **dict.fromkeys(
        ("lang-en", "nowrap", "nobr", "abbr", "chem2", "small", "em", "strong"), _FIRST
    ),
    **dict.fromkeys(("title case", "as of", "circa", "sub", "keypress", "zh"), _FIRST),
    **dict.fromkeys(("chem", "gaps"), "".join),
    **dict.fromkeys(("frac", "sfrac", "fraction"), _expand_fraction),
    "e": _expand_power,
    "10^": lambda values: f"10{raise_digits(values[0])}",
    "sup": lambda values: raise_digits(values[0]),
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
            continue
        opening = "{{" if kind == "}}" else "{|"
        # A template inside a table may never be closed: the table ends all the same. Looking
        # back three openings only keeps the time linear.
        if any(one[0].endswith(opening) for one in opened[-1 if kind == "}}" else -3 :]):
            while not opened[-1][0].endswith(opening):
                opened.pop()
            begin = opened.pop().start()
            while spans and spans[-1][0] >= begin:
                spans.pop()
            spans.append((begin, mark.end()))
    kept, place = list[str](), 0
    for begin, end in spans:
        kept.append(text[place:begin])
        place = end
    return _IN_NUMBER.sub(" ", GONE.join([*kept, text[place:]])).replace(GONE, "")


def _link_text(match: re.Match[str]) -> str:
    """The visible text of a link; "" for pictures, categories and links to other languages."""
    target, _, label = match[1].partition("|")
    if _NOT_SHOWN.match(target):
        return ""
    return (label.rpartition("|")[2] or label or target).strip().removeprefix(":")
