"""Markdown and HTML. What a model or a passage wrote is text there, never markup."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

from osler.answer.export.layout import Block, ExportedAnswer, lay_out
from osler.text import escape_controls

# Tags become entities: not every reader of Markdown takes "\<" for text.
_MARKDOWN = re.compile(r"([\\`*_#|~]|!(?=\[)|\[(?!\d{1,3}\])|(?<!\d)\]|(?<=\])\()")
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:2em auto;padding:0 1em}"
    ".note{color:#555;font-size:.9em}.danger{border:2px solid #a00;padding:.5em;font-weight:bold}"
    ".reference{font-size:.9em}"
)
_TAGS = {"title": "h1", "heading": "h2", "item": "li"}


def write_markdown(answers: Sequence[ExportedAnswer]) -> bytes:
    turns = ["\n".join(_markdown_line(block) for block in lay_out(one)) for one in answers]
    return ("\n---\n\n".join(turns)).encode()


def _markdown_line(block: Block) -> str:
    flat = escape(" ".join(escape_controls(block.text).split()), quote=False)
    text = _MARKDOWN.sub(r"\\\1", flat)
    # A line that begins so would be a list, a heading or a rule.
    text = re.sub(r"^([-+=]|\d+(?=[.)]\s))", r"\\\1", text)
    link = f" <{block.url}>" if is_web_address(block.url) else ""
    match block.kind:
        case "title":
            return f"# {text}\n"
        case "heading":
            return f"\n## {text}\n"
        case "danger":
            return f"> **{text}**\n"
        case "item":
            return f"- {text}"
        case "note":
            return f"\n*{text}*\n" if text else ""
        case "paragraph" | "reference":
            return f"{text}{link}\n"


def write_html(answers: Sequence[ExportedAnswer]) -> bytes:
    """A page without scripts, without anything that is loaded."""
    body = write_html_part(answers)
    title = escape(answers[0].question.text) if answers else ""
    language = answers[0].solution.answer.language if answers else "en"
    return (
        f'<!doctype html><html lang="{language}"><head><meta charset="utf-8">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>{body}</body></html>\n"
    ).encode()


def write_html_part(answers: Sequence[ExportedAnswer]) -> str:
    """The same without its page, to stand in another one."""
    return "<hr>".join("".join(map(_html_element, lay_out(one))) for one in answers)


def _html_element(block: Block) -> str:
    text = escape(escape_controls(block.text))
    if is_web_address(block.url):
        address = escape(block.url, quote=True)
        text += f' <a href="{address}" rel="noopener noreferrer">{address}</a>'
    tag = _TAGS.get(block.kind, "p")
    return f'<{tag} class="{block.kind}">{text}</{tag}>\n'


def is_web_address(url: str) -> bool:
    """Whether it may become a link: no script, no file, no white space, no control character."""
    is_plain = url.isprintable() and not re.search(r"[\s<>\"]", url)
    return is_plain and urlsplit(url).scheme in ("http", "https")
