"""A log folder told: Markdown for a repository, one HTML page for a browser."""

from osler.evaluate.report.build import Report, Shown, build
from osler.evaluate.report.html import render_html
from osler.evaluate.report.markdown import render_markdown

__all__ = ["Report", "Shown", "build", "render_html", "render_markdown"]
