"""The page in a real Chromium, over a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')

import browsing
from served import FixedModel, ServedOsler, serve_osler
from stores import write_log_folder

from osler_serve.cli.serve import report_page

REPLY = "Adrenaline is given first. [1] 过敏性休克首选肾上腺素。[3]"
"""It cites two sources."""
Open = Callable[..., AbstractContextManager[Any]]


@pytest.fixture(scope="session", autouse=True)
def _there() -> None:
    if lacks := browsing.missing_program():
        pytest.skip(lacks)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    home = tmp_path_factory.mktemp("page")
    write_log_folder(home / "eval" / "two")
    many = {"caller_minute": 100_000, "uploads": ["ward"]}
    model = FixedModel(reply=REPLY)
    how: dict[str, Any] = {"page": report_page, "fill": browsing.fill_with_graph, "serve": many}
    with serve_osler(home, model=model, **how) as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browsing.launch_browser() as launched:
        yield launched


@pytest.fixture
def window(chromium: Any) -> Open:
    """Opens a window on any server."""
    return partial(browsing.open_page, chromium)


@pytest.fixture
def page(chromium: Any, place: ServedOsler) -> Iterator[Any]:
    with browsing.open_page(chromium, place) as made:
        yield made


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path
