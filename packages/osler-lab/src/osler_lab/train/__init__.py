"""Training data and training. Gold answers are known here and in `osler_lab.evaluate` alone.

| Module | Has |
|---|---|
| `record` | the records that a trainer reads, as a folder with its card |
| `ablations` | the papers' training ablations as data |
| `spo` | Source Planning Optimisation (Omni-RAG §4.2): explore, judge, pairs |
| `thinker` | KAG-Thinker's trajectories, and the framework that evaluates them (App. 9, 10) |
| `tune` | SFT, DPO, pre-training with adapters, GGUF files; needs torch (extra `train`) |

| Model | Learns from | Trained by |
|---|---|---|
| Omni-RAG's planner | plans that found support for gold answers (`spo`) | SFT, then DPO |
| KAG-Thinker | kept trajectories of a teacher (`thinker`) | SFT over all turns |
| TC-RAG's base model | texts of the knowledge base and others (`tune.corpus`) | pre-training |

A planner from questions to a served model: `osler train explore`, `judge`, `make sft` and
`make dpo`, `sft`, `dpo`, then `merge` or `gguf`. Each step is a folder that the next one reads;
a step that was stopped goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from osler.errors import BadConfig

Name = TypeVar("Name", bound=str)


def choose_named(word: str, known: Sequence[Name], what: str) -> Name:
    """Returns the known name equal to `word`. Raises `BadConfig`, which lists them."""
    for name in known:
        if name == word:
            return name
    raise BadConfig(f"there is no {what} {word!r}", fix=f"choose one of {', '.join(known)}")
