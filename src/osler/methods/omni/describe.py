"""The sources that a planner may ask, and what it is told of each (Omni-RAG App. E.1).

Only sources that are there are offered. The paper's five are described in its own words,
so that a planner trained elsewhere reads what it learnt; a source of the user's own is
described by what it holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from osler.types import BOOK, EMR, GRAPH, GUIDELINE, RESEARCH, WEB, WIKI, Language

_LONGEST = 60
"""Characters of a title in a description."""

_DESCRIPTIONS: dict[str, dict[Language, str]] = {
    BOOK: {
        "en": "The API provides access to medical knowledge resources, including various"
        " educational resources and textbooks.",
        "zh": "该接口提供医学知识资源，包括各类教学资料和教材。",
    },
    GUIDELINE: {
        "en": "The API provides access to clinical guidelines from leading health organizations.",
        "zh": "该接口提供权威卫生机构发布的临床指南。",
    },
    RESEARCH: {
        "en": "The API provides access to advanced biomedical research, facilitating access to"
        " specialized knowledge and resources.",
        "zh": "该接口提供前沿的生物医学研究文献，便于获取专业知识和资源。",
    },
    WIKI: {
        "en": "The API provides access to general knowledge across a wide range of topics.",
        "zh": "该接口提供涵盖广泛主题的通用知识。",
    },
    GRAPH: {
        "en": "The API provides a structured knowledge graph that connects medical definitions and"
        " related terms.",
        "zh": "该接口提供结构化知识图谱，连接医学定义与相关术语。",
    },
    EMR: {
        "en": "The API provides access to de-identified records of patients.",
        "zh": "该接口提供去标识化的患者病历。",
    },
    WEB: {
        "en": "The API provides access to web pages for patients and the public.",
        "zh": "该接口提供面向患者和公众的网页。",
    },
}
"""The first five in English are App. E.1's; the rest is ours."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A source that may be asked."""

    name: str
    titles: tuple[str, ...] = ()
    """Of some of its documents; they describe a source that the paper does not know."""

    @property
    def graph(self) -> bool:
        """Whether its queries have the form `term , query`."""
        return self.name == GRAPH

    def described(self, language: Language) -> str:
        if self.name in _DESCRIPTIONS:
            return _DESCRIPTIONS[self.name][language]
        titles = [title[:_LONGEST] for title in self.titles]
        if language == "zh":
            named = f"，其中有：{'、'.join(titles)}" if titles else ""
            return f"该接口提供用户自建资料集“{self.name}”{named}。"
        quoted = ", ".join(f'"{title}"' for title in titles)
        named = f", with documents such as {quoted}" if titles else ""
        return f'The API provides access to the collection "{self.name}" of the user{named}.'


def told(offers: tuple[Offer, ...], language: Language) -> list[dict[str, object]]:
    """The offers as the prompts take them."""
    return [
        {"name": offer.name, "description": offer.described(language), "graph": offer.graph}
        for offer in offers
    ]
