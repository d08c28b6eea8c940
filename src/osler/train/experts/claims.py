"""Yes/no questions with the evidence that a search finds for them, for `supports`.

The knowledge base has BioASQ's gold snippets and PubMedQA's abstracts, the authors' conclusions
under their heading, as PubMed prints them. Each question is searched among all of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.evaluate.datasets.base import json_records, read_json
from osler.jobs.runner import Progress
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.retrieve.experts.cues import measure_cues
from osler.retrieve.experts.supporting import PASSAGES, VERDICTS, read_evidence
from osler.retrieve.hybrid import HybridRetriever
from osler.retrieve.relevance import EncoderRelevance
from osler.text import one_line
from osler.train.experts.pair_questions import (
    BIOASQ_FILES,
    PUBMEDQA,
    PUBMEDQA_FILES,
    PairQuestion,
    find_data_file,
    read_pair_questions,
)
from osler.types import Hit

if TYPE_CHECKING:
    from osler.retrieve.experts.cues import Row

CONCLUSION = "CONCLUSION"


@dataclass(frozen=True, slots=True)
class FoundClaim:
    """A question with the cues of the evidence that was found for it."""

    claim: PairQuestion
    whole: Row
    """From a base of whole abstracts."""
    unconcluded: Row
    """Without what stands under an abstract's heading of the conclusion."""


def read_claims(data: Path) -> list[PairQuestion]:
    """The questions of all sets below `data` that are answered by yes, no or maybe."""
    return [one for one in read_pair_questions(data) if one.verdict in VERDICTS]


def offers_maybe(claim: PairQuestion) -> bool:
    """Whether "maybe" is an answer in the question's set; BioASQ has yes and no."""
    return claim.source == PUBMEDQA


def open_claim_base(
    data: Path, folder: Path, encoder: Encoder, progress: Progress | None = None
) -> KnowledgeBase:
    """The knowledge base that the questions are searched in; a stopped build goes on."""
    path = folder / "kb"
    if not path.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        texts, draft = folder / "passages.jsonl", folder / "kb.partial"
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in _passage_records(data))
        texts.write_text("".join(lines), encoding="utf-8")
        with KnowledgeBase.create(draft) as kb:
            kb.add([texts], source="research")
        draft.rename(path)
    kb = KnowledgeBase.open(path)
    kb.build(encoder, progress=progress)
    return kb


def _passage_records(data: Path) -> Iterator[Mapping[str, object]]:
    """BioASQ's snippets and PubMedQA's sections, without any question or title."""
    seen: set[tuple[str, str]] = set()
    for pmid, section, text in (*_bioasq_sections(data), *_pubmedqa_sections(data)):
        if text and (pmid, text) not in seen:
            seen.add((pmid, text))
            id = f"pubmed_{pmid}_{len(seen)}"
            yield {"id": id, "title": "", "content": text, "PMID": pmid, "section": section}


def _bioasq_sections(data: Path) -> Iterator[tuple[str, str, str]]:
    for path in filter(None, (find_data_file(data, name) for name in BIOASQ_FILES)):
        for row in json_records(path, "questions"):
            for one in row.data.get("snippets") or ():
                yield _pmid_of(one), "", one_line(str(one.get("text") or ""))


def _pmid_of(snippet: Mapping[str, Any]) -> str:
    return str(snippet.get("document") or "").rpartition("/")[2]


def _pubmedqa_sections(data: Path) -> Iterator[tuple[str, str, str]]:
    for path in filter(None, (find_data_file(data, name) for name in PUBMEDQA_FILES)):
        for pmid, record in read_json(path).items():
            for section, text in zip(record["LABELS"], record["CONTEXTS"], strict=True):
                yield str(pmid), str(section), one_line(text)
            yield str(pmid), CONCLUSION, one_line(str(record.get("LONG_ANSWER") or ""))


def find_claims(
    kb: KnowledgeBase,
    encoder: Encoder,
    claims: Sequence[PairQuestion],
    progress: Progress | None = None,
) -> list[FoundClaim]:
    """Each question with the evidence that the hybrid search finds."""
    return asyncio.run(_find_claims(kb, encoder, claims, progress))


async def _find_claims(
    kb: KnowledgeBase, encoder: Encoder, claims: Sequence[PairQuestion], progress: Progress | None
) -> list[FoundClaim]:
    searcher, relevance = HybridRetriever(kb, encoder), EncoderRelevance(encoder)
    found = []
    for number, claim in enumerate(claims, 1):
        # Some more, so that as many are left without the conclusions.
        hits = await searcher.search(claim.text, k=PASSAGES + 4)
        whole, bare = [
            measure_cues(
                claim.text,
                await read_evidence(claim.text, some, relevance),
                maybe=offers_maybe(claim),
            )
            for some in (hits, [hit for hit in hits if not _is_conclusion(hit)])
        ]
        found.append(FoundClaim(claim, whole, bare))
        if progress is not None:
            progress("searching", number, len(claims))
    return found


def _is_conclusion(hit: Hit) -> bool:
    return hit.passage.locator.section == CONCLUSION
