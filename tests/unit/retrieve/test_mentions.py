"""Medical terms of a text, by the names of a graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from osler.errors import SourceUnavailable
from osler.graph.items import Name, Relation
from osler.graph.store import Graph
from osler.retrieve.graph import MentionRetriever


async def test_each_name_is_found_once_in_order_in_both_languages(tmp_path: Path) -> None:
    with Graph.create(tmp_path) as graph:
        graph.add(
            (
                Name("T:1", "Metformin"),
                Name("T:2", "renal failure"),
                Name("T:3", "肾脏"),
                Relation("T:1", "excreted_by", "T:3"),
            )
        )
        asked = "In Renal failure metformin stays in the 肾脏; metformin again."
        hits = await MentionRetriever(graph).search(asked, k=5)
        assert [hit.passage.text for hit in hits] == [
            "Renal failure (renal failure)",
            "metformin (Metformin)",
            "肾脏",
        ]
        assert await MentionRetriever(graph).search("Does it rain?", k=5) == []
        assert len(await MentionRetriever(graph).search(asked, k=1)) == 1


async def test_a_graph_that_is_gone_is_said(tmp_path: Path) -> None:
    with Graph.create(tmp_path) as graph:
        graph.add((Name("T:1", "Metformin"), Name("T:2", "x"), Relation("T:1", "is", "T:2")))
        graph.close()
        (tmp_path / "graph.sqlite").unlink()
        with pytest.raises(SourceUnavailable):
            await MentionRetriever(graph).search("metformin", k=1)
