"""The card of a tuned model: a README.md in the hub's form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from osler.llm.core.cache import write_whole
from osler_lab.train.tune.loop import ALL

_TASKS = {
    "sft": "supervised fine-tuning (Omni-RAG, Eq. 2)",
    "dpo": "direct preference optimisation (Omni-RAG, Eq. 3-4)",
    "thinker": "supervised fine-tuning on dialogues of several turns (KAG-Thinker, App. 11)",
    "pretrain": "continued pre-training, causal objective (TC-RAG, App. 8.3)",
}


Result = Mapping[str, Any]
"""The contents of `result.json`."""


def write_card(folder: Path, result: Result, *, data: str, revision: str) -> None:
    """Writes `README.md` of a tuned model; the folder's name is the model's.

    `data` names what it has learnt, `revision` the commit of its base; empty = none.
    """
    text = card_text(folder.resolve().name, result, data, revision)
    with write_whole(folder / "README.md") as draft:
        draft.write_text(text, encoding="utf-8")


def card_text(name: str, result: Result, data: str, revision: str) -> str:
    """Renders front matter, how the model was made, and what it is not for."""
    kind, base, lora = result["kind"], result["base"], result["recipe"]["lora"]
    front = {
        "base_model": base,
        "library_name": "peft" if lora else "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["osler", "medical", kind, *(["lora"] if lora else [])],
    }
    # JSON is YAML; one key per line keeps it readable.
    head = "\n".join(f"{key}: {json.dumps(value)}" for key, value in front.items())
    rows = "\n".join(f"| {key} | {value} |" for key, value in _card_figures(result, data))
    return _PAGE.format(
        head=head,
        name=name,
        task=_TASKS[kind],
        base=base + (f" at revision {revision}" if revision else ""),
        what="a LoRA adapter" if lora else "all weights",
        rows=rows,
    )


def _card_figures(result: Result, data: str) -> list[tuple[str, object]]:
    recipe, tuned = result["recipe"], result["tuned"]
    rows: list[tuple[str, object]] = [
        ("data", f"{data}, sha256 {result['data_sha256'][:16]}"),
        ("samples", f"{result['samples']}, and {len(result['long'])} left out for their length"),
        ("steps", tuned["steps"]),
        ("loss, first step and last", f"{tuned['first']:.4f}, {tuned['last']:.4f}"),
    ]
    if tuned["perplexity"]:
        before, after = (figures[ALL] for figures in tuned["perplexity"])
        rows.append(("perplexity, before and after", f"{before:.2f}, {after:.2f}"))
    keys = ("learning_rate", "schedule", "warmup", "epochs", "batch", "weight_decay", "clip")
    rows += [(key.replace("_", " "), recipe[key]) for key in (*keys, "max_tokens", "seed")]
    if lora := recipe["lora"]:
        rows.append(("LoRA", f"rank {lora['rank']}, alpha {lora['alpha']}"))
    if result["kind"] == "dpo":
        rows.append(("beta", recipe["beta"]))
    return rows


_PAGE = """---
{head}
---

# {name}

{what} for {base}, trained by {task} with Osler.

## Training

| | |
|---|---|
{rows}

## Use

It is a part of a system that finds evidence and cites it. It is made for research and for
health professionals who check what they read. Its own words are not medical advice, and it was
not tested as a medical device. It inherits the limits and the licence of its base model and of
the data it was trained on.
"""
