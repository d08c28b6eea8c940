"""The way out of a test."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.testing.loopback import Lines


@pytest.fixture
def lines(tmp_path: Path) -> Lines:
    return Lines(tmp_path / "web")
