"""A found passage as other libraries store what they know of one: flat."""

from __future__ import annotations

from osler.client.calls import Json


def flat_metadata(hit: Json) -> Json:
    """What the passage says of itself beside its text: title, source, section, year, address,
    licence, and whether it is a sample; its score and rank in this search."""
    passage = hit["passage"]
    place = {name: value for name, value in passage["locator"].items() if value not in ("", None)}
    own = {name: passage[name] for name in ("source", "title", "licence", "illustrative")}
    return {**place, **own, "score": hit["score"], "rank": hit["rank"]}
