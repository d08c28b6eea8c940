"""A run as one HTML page: no script, nothing loaded from anywhere, ready to print."""

from osler.cli.page.html import render_page

__all__ = ["render_page"]
