"""The way out of a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from loopback import NetworkFactory


@pytest.fixture
def lines(tmp_path: Path) -> NetworkFactory:
    return NetworkFactory(tmp_path / "web")
