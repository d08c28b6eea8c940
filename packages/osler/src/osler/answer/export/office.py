"""Word and PDF, by python-docx and reportlab (extra `export`)."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from html import escape
from typing import Any

from osler.answer.export.layout import Block, ExportedAnswer, lay_out
from osler.answer.export.texts import is_web_address
from osler.errors import require_extra
from osler.text import escape_controls

# Of Adobe's fonts that every reader of PDF has: it has Chinese, Greek and signs such as ≥.
_WIDE_FONT = "STSong-Light"
# Helvetica has Latin-1 and these quotation marks, dashes and dots.
_NOT_LATIN = re.compile(r"[^\x00-\x7e\xa0-\xff\u2018\u2019\u201c\u201d\u2013\u2014\u2026]+")


def _require_export() -> AbstractContextManager[None]:
    return require_extra("export", "Word and PDF need the extra `export`")


def write_docx(answers: Sequence[ExportedAnswer]) -> bytes:
    """Raises `BadConfig` without the extra."""
    with _require_export():
        from docx import Document
    document = Document()
    for number, one in enumerate(answers):
        if number:
            document.add_page_break()  # type: ignore[no-untyped-call]
        for block in lay_out(one):
            _add_block(document, block)
    if answers:
        document.core_properties.title = escape_controls(answers[0].question.text)[:255]
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _add_block(document: Any, block: Block) -> None:
    text = escape_controls(block.text)
    match block.kind:
        case "title":
            document.add_heading(text, level=1)
        case "heading":
            document.add_heading(text, level=2)
        case "item":
            document.add_paragraph(text, style="List Bullet")
        case "danger":
            document.add_paragraph().add_run(text).bold = True
        case "note":
            document.add_paragraph().add_run(text).italic = True
        case "paragraph" | "reference":
            link = f" {block.url}" if is_web_address(block.url) else ""
            document.add_paragraph(text + link)


def write_pdf(answers: Sequence[ExportedAnswer]) -> bytes:
    """Raises `BadConfig` without the extra."""
    with _require_export():
        from reportlab.lib.styles import getSampleStyleSheet
        from reportlab.pdfbase import pdfmetrics
        from reportlab.pdfbase.cidfonts import UnicodeCIDFont
        from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate
    pdfmetrics.registerFont(UnicodeCIDFont(_WIDE_FONT))
    styles = getSampleStyleSheet()
    named = {"title": "Heading1", "heading": "Heading2", "note": "Italic"}
    story: list[Any] = []
    for number, one in enumerate(answers):
        if number:
            story.append(PageBreak())
        for block in lay_out(one):
            style = styles[named.get(block.kind, "BodyText")]
            bullet = "\u2022" if block.kind == "item" else None
            story.append(Paragraph(_pdf_markup(block), style, bulletText=bullet))
    out = io.BytesIO()
    title = escape_controls(answers[0].question.text) if answers else ""
    SimpleDocTemplate(out, title=title, invariant=1).build(story)
    return out.getvalue()


def _pdf_markup(block: Block) -> str:
    """The text as reportlab's markup: what Helvetica lacks in the other font."""
    text = escape(escape_controls(block.text))
    text = _NOT_LATIN.sub(lambda found: f'<font name="{_WIDE_FONT}">{found[0]}</font>', text)
    if block.kind == "danger":
        text = f"<b>{text}</b>"
    if is_web_address(block.url):
        address = escape(block.url, quote=True)
        text += f' <link href="{address}">{address}</link>'
    return text
