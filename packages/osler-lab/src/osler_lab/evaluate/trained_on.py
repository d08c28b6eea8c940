"""Questions that a model was trained on, which are excluded from its evaluation.

A file `trained-on.txt` stands beside the card of training records and of tuned models: a digest
of each question's words a line (`datasets.splits.question_digest`). The questions cannot be read
from it, so it may be published with the weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from osler.errors import BadRun, translate_os_errors
from osler_lab.evaluate.datasets.splits import question_digest
from osler_lab.evaluate.record import Sample

TRAINED_ON = "trained-on.txt"
_DIGEST = re.compile(r"[0-9a-f]{16}")


def list_beside(weights: Path) -> Path:
    """Where the list of a folder, or of a single weights file, stands."""
    return weights / TRAINED_ON if weights.is_dir() else weights.with_suffix(f".{TRAINED_ON}")


def write_trained_on(path: Path, digests: Iterable[str]) -> None:
    """Writes the list at `path`, in order and without doubles. Raises `BadRun`."""
    with translate_os_errors(f"{path} cannot be written", BadRun):
        path.write_text("".join(f"{one}\n" for one in sorted({*digests})), encoding="ascii")


def read_trained_on(path: Path) -> frozenset[str]:
    """The digests at `path`; empty where there is no list. Raises `BadRun` for a damaged one."""
    if not path.is_file():
        return frozenset()
    lines = path.read_text(encoding="ascii", errors="replace").split()
    wrong = next((n for n, line in enumerate(lines, 1) if not _DIGEST.fullmatch(line)), 0)
    if wrong:
        raise BadRun(f"{path}:{wrong}: not a digest of a question", fix="copy the file again")
    return frozenset(lines)


def list_questions(weights: Path, texts: Iterable[str]) -> None:
    """Lists beside the weights the questions that they were trained on. Raises `BadRun`."""
    write_trained_on(list_beside(weights), map(question_digest, texts))


def pass_on(sources: Iterable[Path], target: Path) -> None:
    """Writes beside `target` what any of the sources was trained on; nothing for none."""
    known = frozenset[str]().union(*(read_trained_on(list_beside(one)) for one in sources))
    if known:
        write_trained_on(list_beside(target), known)


def count_seen(samples: Sequence[Sample], digests: frozenset[str]) -> int:
    """Number of the samples whose question is among the digests."""
    return len(samples) - len(unseen_samples(samples, digests))


def unseen_samples(samples: Sequence[Sample], digests: frozenset[str]) -> list[Sample]:
    """The samples whose question is not among the digests."""
    return [one for one in samples if question_digest(one.question.text) not in digests]
