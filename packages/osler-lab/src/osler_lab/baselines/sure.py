"""SuRe: a summary for each answer that is possible, then their comparison (TC-RAG App. 8.5, 7).

Kim et al. 2024, *SuRe: Summarizing Retrievals using Answer Candidates*, §3.2: candidates from
the passages (Eq. 3), a summary of the passages that speaks for each (Eq. 4), its validity v
(does it support its candidate, Eq. 5), its pairwise rank r (is it more informative than each
other one, Eq. 6); the answer is the candidate of the greatest v + r (Eq. 7).

A pair is asked in both orders and a split verdict counts half, as in the released code, since
a model's choice depends on the order.

Departures: of a question with options the candidates are options. TC-RAG's released code has
neither validity nor ranking.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from osler.errors import MalformedOutput
from osler.llm.reading.answers import answer_words
from osler.llm.reading.debris import without_debris
from osler.llm.reading.verdicts import read_verdict
from osler.methods.single_pass.episode import Episode, EpisodeMethod, match_option
from osler.types import Question

_MARK = re.compile(r"^\s*(?:[(（]?[a-zA-Z0-9][)）]|[0-9]+[.、:：]|[-*•])\s*")
_WHICH = re.compile(r"(?<![\d.])([12])(?![\d.]*\d)")


@dataclass(frozen=True)
class SuRe(EpisodeMethod):
    candidates: int = 2
    """Two are the paper's; up to 5."""

    async def run_episode(self, episode: Episode) -> str:
        await episode.search(episode.question.text)
        named = await self._propose_candidates(episode)
        summaries = [await self._summarise_candidate(episode, name) for name in named]
        valid = [
            await self._is_valid(episode, name, summary)
            for name, summary in zip(named, summaries, strict=True)
        ]
        if named:
            episode.conclude_answer(named[0], summaries[0])
        wins = await self._compare_pairs(episode, summaries)
        best = choose_candidate(valid, wins)
        if named:
            episode.note(
                _describe_ranking(named, valid, rank_scores(len(named), wins), named[best])
            )
            episode.conclude_answer(named[best], summaries[best])
        return "the candidate whose summary is valid and most informative"

    async def _propose_candidates(self, episode: Episode) -> list[str]:
        reply = await episode.ask_text(
            "baselines/sure_candidates", documents=episode.list_documents(), limit=self.candidates
        )
        return read_candidates(reply, episode.question, self.candidates)

    async def _summarise_candidate(self, episode: Episode, candidate: str) -> str:
        reply = await episode.ask_text(
            "baselines/sure_summary", answer=candidate, documents=episode.list_documents()
        )
        return answer_words(reply)

    async def _is_valid(self, episode: Episode, candidate: str, summary: str) -> bool:
        reply = await episode.ask_text(
            "baselines/sure_valid", answer=candidate, text=summary, tokens=16, temperature=0.0
        )
        # The verdict is the word that was asked for, not what its reason says: "True. It does not
        # contradict the passage."
        try:
            return read_verdict(reply)
        except MalformedOutput:
            return False

    async def _compare_pairs(
        self, episode: Episode, summaries: Sequence[str]
    ) -> dict[tuple[int, int], float]:
        """r_pair(k, i) of each ordered pair: 1, 0, or 0.5 when the two prompt orders disagree."""
        wins: dict[tuple[int, int], float] = {}
        for one, two in combinations(range(len(summaries)), 2):
            forth = await self._first_wins(episode, summaries[one], summaries[two])
            back = await self._first_wins(episode, summaries[two], summaries[one])
            # Averaging both orders cancels the model's bias for the first summary.
            wins[one, two] = (forth + (1.0 - back)) / 2
            wins[two, one] = 1.0 - wins[one, two]
        return wins

    async def _first_wins(self, episode: Episode, one: str, two: str) -> float:
        known = [one, two]
        reply = await episode.ask_text(
            "baselines/sure_rank", known=known, tokens=16, temperature=0.0
        )
        named = set(_WHICH.findall(reply))
        return float(named == {"1"}) if len(named) == 1 else 0.5


def read_candidates(text: str, question: Question, most: int) -> list[str]:
    """Reads candidate answers, one per line or separated by commas; with options, the options'
    texts."""
    lines = [part for part in re.split(r"[\n;；]+", without_debris(text)) if part.strip()]
    if len(lines) == 1:
        # A single line may be a comma-separated list.
        lines = re.split(r"[,，、]", lines[0])
    found: list[str] = []
    for raw in lines:
        plain = _MARK.sub("", raw.strip()).rstrip(".。")
        letter = match_option(raw.strip(), question) or match_option(plain, question)
        found.append(question.option_text(letter) if letter else "" if question.options else plain)
    return list(dict.fromkeys(filter(None, found)))[:most]


def rank_scores(count: int, wins: Mapping[tuple[int, int], float]) -> list[float]:
    """Eq. 6: each candidate's sum of pairwise wins."""
    return [sum(wins.get((k, i), 0.0) for i in range(count) if i != k) for k in range(count)]


def choose_candidate(valid: Sequence[bool], wins: Mapping[tuple[int, int], float]) -> int:
    """Eq. 7: the index of the greatest v + r, the first of equals; 0 without candidates."""
    sums = [v + r for v, r in zip(valid, rank_scores(len(valid), wins), strict=True)]
    return sums.index(max(sums)) if sums else 0


def _describe_ranking(
    named: Sequence[str], valid: Sequence[bool], ranked: Sequence[float], best: str
) -> str:
    each = (
        f"{name}: validity {int(v)}, rank {r:g}"
        for name, v, r in zip(named, valid, ranked, strict=True)
    )
    return f"{'; '.join(each)}; chosen: {best}"
