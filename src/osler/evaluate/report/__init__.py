"""Renders a log folder as Markdown for a repository or as one HTML page for a browser."""

from osler.evaluate.report.build import EvaluationReport, ReportedSample, build_report
from osler.evaluate.report.html import render_html
from osler.evaluate.report.markdown import render_markdown

__all__ = ["EvaluationReport", "ReportedSample", "build_report", "render_html", "render_markdown"]
