"""Descriptions of the sources that a planner may query (Omni-RAG App. E.1).

Only available sources are described. The paper's five have its own wording, which planners
trained on its records know; a user's own source is described by the titles it contains.
"""

from __future__ import annotations

from dataclasses import dataclass

from osler.sources.catalogue import GRAPH, find_source
from osler.types import Language

# Characters of a title in a description.
_LONGEST = 60


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """A source that may be queried."""

    name: str
    titles: tuple[str, ...] = ()
    """Titles of some of its documents, which describe a source unknown to the paper."""

    @property
    def is_graph(self) -> bool:
        """Whether its queries have the form `term , query`."""
        return self.name == GRAPH

    def describe_in(self, language: Language) -> str:
        if known := find_source(self.name):
            return known.description[language]
        titles = [title[:_LONGEST] for title in self.titles]
        if language == "zh":
            named = f"，其中有：{'、'.join(titles)}" if titles else ""
            return f"该接口提供用户自建资料集“{self.name}”{named}。"
        quoted = ", ".join(f'"{title}"' for title in titles)
        named = f", with documents such as {quoted}" if titles else ""
        return f'The API provides access to the collection "{self.name}" of the user{named}.'


def source_variables(
    offers: tuple[SourceDescription, ...], language: Language
) -> list[dict[str, object]]:
    """The descriptions as prompt variables."""
    return [
        {"name": offer.name, "description": offer.describe_in(language), "graph": offer.is_graph}
        for offer in offers
    ]
