"""What the key in access.key_file may see on the command line.

Keys are the server's: its package brings what reads them, as entry points of the group
`osler.access`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from osler.errors import BadConfig
from osler.settings import Settings
from osler.text import load_plugins

GROUP = "osler.access"


def narrow_by_key(settings: Settings) -> Settings:
    """The settings within the scope of the key; as they are where none is named.

    Raises `BadConfig` for a key that is not one, or may not run the strategy of the settings.
    """
    if settings.access.key_file is None:
        return settings
    narrowed: Settings = _load_reader("narrow_by_key")(settings)
    return narrowed


def open_runs(settings: Settings) -> Callable[[Path], bool]:
    """Whether a run's folder may be shown: all may, unless access.key_file names a key."""
    if settings.access.key_file is None:
        return lambda _: True
    return partial(_load_reader("is_run_open"), settings)


def _load_reader(name: str) -> Any:
    found = load_plugins(GROUP)
    if name not in found:
        raise BadConfig(
            "access.key_file is set, and no server that could know the key is installed",
            fix='pip install "osler[serve]"',
        )
    return found[name]
