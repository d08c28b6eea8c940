"""A retriever whose package is not installed says which one to install."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

import pytest

from osler.errors import OslerError

EXTRAS = {"langchain": "langchain_core", "llama_index": "llama_index", "haystack": "haystack"}


@pytest.mark.parametrize("name", EXTRAS)
def test_its_import_names_the_extra_and_is_an_import_error(name: str) -> None:
    if find_spec(EXTRAS[name]):
        pytest.skip(f"{EXTRAS[name]} is installed")
    extra = name.replace("_", "-")
    with pytest.raises(ImportError, match=rf'pip install "osler\[{extra}\]"') as missing:
        importlib.import_module(f"osler_serve.client.{name}")
    assert isinstance(missing.value, OslerError)
