"""Packages of the extra `graph`, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

from osler.errors import CapabilityMissing


def has_rapidfuzz() -> bool:
    """Whether misspelt names can be looked up; asked without importing it."""
    return find_spec("rapidfuzz") is not None


def import_extra(module: str, what: str) -> ModuleType:
    """Imports a module of the extra. Raises `CapabilityMissing`, saying what is not possible
    without it."""
    package = module.partition(".")[0]
    try:
        import_module(package)
        return import_module(module)
    except ImportError as error:
        raise CapabilityMissing(
            f"{what}: {package} is not installed", fix='pip install "osler[graph]"'
        ) from error
