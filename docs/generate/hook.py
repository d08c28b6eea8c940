"""What mkdocs calls when it builds the site (`hooks` in mkdocs.yml).

The reference pages are generated from the code, which is asked what it has: no page lists modules,
settings or verbs, so none can lag behind.
"""

from __future__ import annotations

import logging
import re
from typing import Any

from http_page import http_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from module_pages import module_pages
from repository_pages import DOCUMENTS, repository_pages
from settings_page import settings_page
from verb_pages import verb_pages
from written_commands import mistakes

LOG = logging.getLogger("mkdocs.hooks")
NAME = re.compile(r"(?<!\[)`(osler(?:[.:]\w+)+)(?:\([^`]*\))?`")
"""`package.module`, `osler.package.module:Class`, `osler.package.module.function(…)`."""
_GROUPS = ("strategies", "formats", "encoders", "datasets", "prompts", "access")
NO_NAMES = {"osler.toml", "osler.unread", *(f"osler.{group}" for group in _GROUPS)}
"""A file, a field of a reply, and groups of entry points."""
LOADED = re.compile(
    r"<(?:script|img|link|iframe)\b[^>]*?\b(?:src|href)=[\"']?(?:https?:)?//[^\"'> ]+"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    verbs, modules = dict(verb_pages()), dict(module_pages())
    pages = {
        "reference/settings.md": settings_page(),
        "reference/http.md": http_page(),
        **verbs,
        **modules,
        **dict(repository_pages()),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    listed = {"Verbs": list(verbs), "Python API": list(modules)}
    config.nav = [_filled(entry, listed) for entry in config.nav or []]
    return files


def _filled(entry: Any, listed: dict[str, list[str]]) -> Any:
    """The navigation, with the generated pages in the sections that are to hold them."""
    if not isinstance(entry, dict):
        return entry
    ((title, below),) = entry.items()
    if isinstance(below, list):
        return {title: listed.get(title) or [_filled(one, listed) for one in below]}
    return entry


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Names of modules, classes and functions link to their documentation.

    On a page that is written for the site each of them must exist, and so must each command that it
    shows. What does not is a warning, which `--strict` makes an error.
    """
    written = not page.file.generated_by
    for mistake in mistakes(markdown) if written else ():
        LOG.warning("%s: %s", page.file.src_uri, mistake)
    if not written and page.file.src_uri not in DOCUMENTS:
        return markdown

    def linked(found: re.Match[str]) -> str:
        name = found[1].replace(":", ".")
        if name in NO_NAMES:
            return found[0]
        return f'<autoref identifier="{name}"{"" if written else " optional"}>{found[0]}</autoref>'

    blocks = re.split(r"(^```.*?^```)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(one if one.startswith("```") else NAME.sub(linked, one) for one in blocks)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Nothing is loaded from another host."""
    if found := LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} loads from elsewhere: {found[0]}")
    return output
