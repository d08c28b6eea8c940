"""Yes/no questions with the evidence that a search finds for them, for `supports`.

The knowledge base has BioASQ's gold snippets and PubMedQA's abstracts, the authors' conclusions
under their heading, as PubMed prints them. Each question is searched among all of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import MalformedSource
from osler.evaluate.datasets.base import json_records, read_json
from osler.jobs.runner import Progress
from osler.kb.base import KnowledgeBase
from osler.kb.encoders.base import Encoder
from osler.retrieve.experts.cues import CuedSentence, measure_cues
from osler.retrieve.experts.supporting import PASSAGES, VERDICTS, Verdict, read_evidence
from osler.retrieve.hybrid import HybridRetriever
from osler.retrieve.relevance import EncoderRelevance
from osler.text import one_line
from osler.train import choose_named
from osler.train.experts.pair_questions import (
    BIOASQ,
    BIOASQ_FILES,
    PUBMEDQA,
    PUBMEDQA_FILES,
    find_data_file,
)
from osler.train.experts.searches import RememberedRelevance
from osler.types import Hit

if TYPE_CHECKING:
    from osler.retrieve.experts.cues import Row

CONCLUSION = "CONCLUSION"


@dataclass(frozen=True, slots=True)
class ClaimQuestion:
    """A yes/no question and the right verdict."""

    id: str
    """As the same question's in `pair_questions`, so that one split serves both."""
    text: str
    source: str
    documents: tuple[str, ...]
    verdict: Verdict
    held_out: bool = False

    @property
    def offers_maybe(self) -> bool:
        """Whether "maybe" is an answer in the question's set; BioASQ has yes and no."""
        return self.source == PUBMEDQA


@dataclass(frozen=True)
class FoundClaim:
    """A question with the evidence that was found for it."""

    claim: ClaimQuestion
    whole: tuple[CuedSentence, ...]
    """From a base of whole abstracts."""
    unconcluded: tuple[CuedSentence, ...]
    """Without what stands under an abstract's heading of the conclusion."""

    @cached_property
    def row(self) -> Row:
        """The cues of the whole evidence."""
        return self._measure(self.whole)

    @cached_property
    def unconcluded_row(self) -> Row:
        """The cues of the evidence without the conclusions."""
        return self._measure(self.unconcluded)

    def _measure(self, evidence: Sequence[CuedSentence]) -> Row:
        return measure_cues(self.claim.text, evidence, maybe=self.claim.offers_maybe)


def read_claims(data: Path) -> list[ClaimQuestion]:
    """Reads all sets that are somewhere below `data`. Raises `MalformedSource` for none."""
    found = [*bioasq_claims(data), *pubmedqa_claims(data)]
    if not found:
        raise MalformedSource(
            f"{data} holds no yes/no question of BioASQ or PubMedQA",
            fix="name their folder with --data",
        )
    return found


def bioasq_claims(data: Path) -> list[ClaimQuestion]:
    """BioASQ's yes/no questions that have gold snippets."""
    found = []
    path = find_data_file(data, "bioasq_yesno_golden.json")
    for row in json_records(path, "questions") if path else ():
        snippets: Sequence[Mapping[str, Any]] = row.data.get("snippets") or ()
        exact = row.texts_of("exact_answer")
        if not snippets or not exact or exact[0].lower() not in ("yes", "no"):
            continue
        documents = tuple(dict.fromkeys(f"PMID:{_pmid_of(one)}" for one in snippets))
        verdict = choose_named(exact[0].lower(), VERDICTS, "verdict")
        id, text = f"{BIOASQ}:{row.text_of('id')}", one_line(row.text_of("body"))
        found.append(ClaimQuestion(id, text, BIOASQ, documents, verdict))
    return found


def pubmedqa_claims(data: Path) -> list[ClaimQuestion]:
    """PubMedQA's labelled questions."""
    found = []
    for name, held_out in PUBMEDQA_FILES.items():
        path = find_data_file(data, name)
        for pmid, record in (read_json(path) if path else {}).items():
            word = str(record.get("final_decision") or "").lower()
            if word in VERDICTS:
                verdict = choose_named(word, VERDICTS, "verdict")
                id, text = f"{PUBMEDQA}:{pmid}", one_line(record["QUESTION"])
                found.append(
                    ClaimQuestion(id, text, PUBMEDQA, (f"PMID:{pmid}",), verdict, held_out)
                )
    return found


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
    claims: Sequence[ClaimQuestion],
    progress: Progress | None = None,
) -> list[FoundClaim]:
    """Each question with the evidence that the hybrid search finds."""
    return asyncio.run(_find_claims(kb, encoder, claims, progress))


async def _find_claims(
    kb: KnowledgeBase, encoder: Encoder, claims: Sequence[ClaimQuestion], progress: Progress | None
) -> list[FoundClaim]:
    searcher = HybridRetriever(kb, encoder)
    # The same sentences are read with the conclusions and without.
    relevance = RememberedRelevance(EncoderRelevance(encoder))
    found = []
    for number, claim in enumerate(claims, 1):
        # Some more, so that as many are left without the conclusions.
        hits = await searcher.search(claim.text, k=PASSAGES + 4)
        rest = [hit for hit in hits if not _is_conclusion(hit)]
        whole = await read_evidence(claim.text, hits, relevance)
        unconcluded = await read_evidence(claim.text, rest, relevance)
        found.append(FoundClaim(claim, tuple(whole), tuple(unconcluded)))
        if progress is not None:
            progress("searching", number, len(claims))
    return found


def _is_conclusion(hit: Hit) -> bool:
    return hit.passage.locator.section == CONCLUSION
