"""Formats that need a package which is not always there."""

from __future__ import annotations

from importlib.util import find_spec

from osler.sources.formats.containers import Unreadable


def require_package(module: str, extra: str, name: str) -> None:
    """Raises `Unreadable`, with the command that mends it, where the package is absent."""
    if find_spec(module) is None:
        raise Unreadable(name, f"needs osler[{extra}]", fix=f'pip install "osler[{extra}]"')
