"""Packages of the extra `graph`, imported when they are first needed."""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType

from osler.errors import CapabilityMissing


def has_rapidfuzz() -> bool:
    """Whether misspelt names can be looked up; asked without importing it."""
    return find_spec("rapidfuzz") is not None


def import_rapidfuzz() -> ModuleType:
    """Raises `CapabilityMissing` when the extra is not installed."""
    try:
        import rapidfuzz.distance
        import rapidfuzz.fuzz
    except ImportError as error:
        raise CapabilityMissing(
            "names that are misspelt cannot be looked up: rapidfuzz is not installed",
            fix='pip install "osler[graph]"',
        ) from error
    return rapidfuzz


def import_igraph() -> ModuleType:
    """Raises `CapabilityMissing` when the extra is not installed."""
    try:
        import igraph
    except ImportError as error:
        raise CapabilityMissing(
            "communities cannot be found: igraph is not installed", fix='pip install "osler[graph]"'
        ) from error
    found: ModuleType = igraph
    return found
