"""A server for a module of tests, and ways to talk to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')

from served import ServedOsler, serve_osler

from osler_serve.cli.serve import report_page


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    with serve_osler(tmp_path_factory.mktemp("served"), page=report_page) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture(scope="module")
def http(place: ServedOsler) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=place.url, timeout=20) as client:
        yield client
