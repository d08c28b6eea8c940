"""The sources that a planner may ask, and what it is told of each (Omni-RAG App. E.1).

Only sources that are there are offered. The paper's five are described in its own words,
so that a planner trained elsewhere reads what it learnt; a source of the user's own is
described by what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from osler.sources.catalogue import GRAPH, find_source
from osler.types import Language

_LONGEST = 60
"""Characters of a title in a description."""


@dataclass(frozen=True, slots=True)
class SourceDescription:
    """A source that may be asked."""

    name: str
    titles: tuple[str, ...] = ()
    """Of some of its documents; they describe a source that the paper does not know."""

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
    """The offers as the prompts take them."""
    return [
        {"name": offer.name, "description": offer.describe_in(language), "graph": offer.is_graph}
        for offer in offers
    ]
