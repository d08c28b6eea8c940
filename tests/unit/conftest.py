"""What several folders of unit tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from osler.graph.store import Graph


@pytest.fixture
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Graph]:
    """A concept graph of the facts that the test's module holds as `FACTS`."""
    with Graph.create(tmp_path) as graph:
        graph.add(request.module.FACTS)
        yield graph
