"""The Python API: the public names, and a page for each package with all of its modules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import osler

SOURCES = sorted((Path(__file__).parents[2] / "packages").glob("*/src"))
PUBLIC = """\
# Python API

These are the names that `import osler` offers, each documented where it is defined:

{}

Everything else is internal. It is documented as well, one page for each package, and may change
between versions.
"""
PACKAGE = """\
# {0}

::: {0}
    options:
      members: {1}
      show_root_heading: false

"""


def module_pages() -> Iterator[tuple[str, str]]:
    """Path of each page, and its Markdown, which mkdocstrings fills in."""
    yield "reference/python/index.md", PUBLIC.format("\n".join(map(_public, osler.__all__)))
    found = ((home, one.parent) for home in SOURCES for one in home.rglob("__init__.py"))
    for home, package in sorted(found):
        name = ".".join(package.relative_to(home).parts)
        modules = [one.stem for one in package.glob("*.py") if not one.stem.startswith("__")]
        if modules:
            below = "\n".join(f"::: {name}.{module}\n" for module in sorted(modules))
            # Other packages only pass on what their modules define.
            own = any(getattr(osler, one).__module__ == name for one in osler.__all__)
            page = PACKAGE.format(name, str(own).lower())
            yield f"reference/python/{name}.md", page + below


def _public(name: str) -> str:
    thing = getattr(osler, name)
    first = (thing.__doc__ or "").strip().partition("\n")[0]
    return f"- [`osler.{name}`][{thing.__module__}.{name}]: {first}"
