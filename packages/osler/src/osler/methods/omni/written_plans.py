"""Finds the source plans of a reply: in tags, JSON or labelled lines, a first attempt before the
final one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from osler.llm.reading.json_replies import json_in
from osler.text import clean_text

_BETTER = re.compile(
    r"\b(?:final|revis|refin|improv|better|updat|instead|correct|actually|wait)|最终|修改|改进|更正",
    re.IGNORECASE,
)
"""Words by which a model announces another plan."""
_KEYS = ("term", "medical_term", "concept", "entity", "query", "search_query", "query_for_term")
Tags = list[tuple[str, str]]
"""Source and content of the tags of one plan."""


def find_written_plans(reply: str, sources: Sequence[str]) -> list[Tags]:
    """The plans of a reply, a first attempt before the final one: a source that comes again after
    other words begins another. Without any tag, a plan in JSON or of labelled lines."""
    plans: list[Tags] = []
    seen: set[str] = set()
    for source, content, between in _tag_contents(reply, sources):
        elsewhere = bool(plans) and plans[-1][-1][0] != source
        said = any(map(str.isalnum, between))
        again = source in seen and said and (elsewhere or _BETTER.search(between))
        if not plans or again:
            plans.append([])
            seen = set()
        seen.add(source)
        plans[-1].append((source, content))
    untagged = not plans and (_json_tags(reply, sources) or _labelled_tags(reply, sources))
    return [untagged] if untagged else plans


def _json_tags(reply: str, sources: Sequence[str]) -> Tags:
    """`{"book": ["query", …], "graph": [{"term": …, "query": …}]}`."""
    value = json_in(reply)
    names = {source.casefold(): source for source in sources}
    found: Tags = []
    for key, said in value.items() if isinstance(value, dict) else ():
        if str(key).casefold() in names:
            items = said if isinstance(said, list) else [said]
            found.append((names[str(key).casefold()], " ; ".join(map(_wire_of, items))))
    return found


def _wire_of(item: object) -> str:
    """A query in JSON as the tags have it: the term first, whatever the order of the keys."""
    if not isinstance(item, dict):
        return str(item)
    plain = {str(key).casefold().rstrip("0123456789"): said for key, said in item.items()}
    said = [plain[key] for key in _KEYS if plain.get(key)]
    return " , ".join(map(str, said or item.values()))


def _labelled_tags(reply: str, sources: Sequence[str]) -> Tags:
    """`**book**: query ; query`, and the lines of a list below it."""
    names, either = _names_of(sources)
    label = re.compile(
        rf"^[\s*_`#>-]*({either})[\s*_`]*[:：][*_`]*[^\S\n]*", re.IGNORECASE | re.MULTILINE
    )
    labels = list(label.finditer(clean_text(reply)))
    found: Tags = []
    for this, following in zip(labels, [*labels[1:], None], strict=False):
        inner = this.string[this.end() : following.start() if following else None]
        found.append((names[this[1].casefold()], inner.split("\n\n")[0]))
    return found


def _names_of(sources: Sequence[str]) -> tuple[dict[str, str], str]:
    """The sources by their names in small letters, and a pattern of any of these."""
    names = {source.casefold(): source for source in sources}
    # Longer names first: a source's name may be a prefix of another's.
    return names, "|".join(map(re.escape, sorted(names, key=len, reverse=True)))


def _tag_contents(reply: str, sources: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """The content of each source's tag, in the order of the reply, and what stands between the tag
    before and it."""
    names, either = _names_of(sources)
    tag = re.compile(rf"[<＜]\s*(/?)\s*({either})\s*(/?)\s*[>＞]", re.IGNORECASE)
    tags = list(tag.finditer(clean_text(reply)))
    for before, this, following in zip([None, *tags], tags, [*tags[1:], None], strict=False):
        source = names.get(this[2].casefold())
        if this[1] or source is None:
            continue
        # Only behind a closing tag are words no query.
        between = this.string[before.end() : this.start()] if before and before[1] else ""
        inner = this.string[this.end() : following.start() if following else None]
        if following is None and not this[3]:
            inner = inner.split("\n\n")[0]  # unclosed: what comes later is talk
        yield source, "" if this[3] else inner, between
