"""The card of a tuned model: a README.md in the hub's form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osler.llm.core.cache import write_whole

_TASKS = {
    "sft": "supervised fine-tuning (Omni-RAG, Eq. 2)",
    "dpo": "direct preference optimisation (Omni-RAG, Eq. 3-4)",
    "thinker": "supervised fine-tuning on dialogues of several turns (KAG-Thinker, App. 11)",
    "pretrain": "continued pre-training, causal objective (TC-RAG, App. 8.3)",
}


@dataclass(frozen=True, slots=True)
class TunedModelCard:
    """Facts of a tuned model."""

    kind: str
    base: str
    revision: str | None
    adapter: bool
    data: str
    data_sha256: str
    samples: int
    long: int
    recipe: dict[str, Any]
    steps: int
    loss: tuple[float, float]
    perplexity: tuple[float, float] | None = None


def write_card(folder: Path, card: TunedModelCard) -> Path:
    """Writes `README.md`; the folder's name is the model's."""
    path = folder / "README.md"
    with write_whole(path) as draft:
        draft.write_text(card_text(folder.resolve().name, card), encoding="utf-8")
    return path


def card_text(name: str, card: TunedModelCard) -> str:
    """Renders front matter, how the model was made, and what it is not for."""
    tags = ["osler", "medical", card.kind] + (["lora"] if card.adapter else [])
    front = {
        "base_model": card.base,
        "library_name": "peft" if card.adapter else "transformers",
        "pipeline_tag": "text-generation",
        "tags": tags,
    }
    # JSON is YAML; one key per line keeps it readable.
    head = "\n".join(f"{key}: {json.dumps(value)}" for key, value in front.items())
    rows = "\n".join(f"| {key} | {value} |" for key, value in _card_figures(card))
    return _PAGE.format(
        head=head,
        name=name,
        task=_TASKS[card.kind],
        base=card.base + (f" at revision {card.revision}" if card.revision else ""),
        what="a LoRA adapter" if card.adapter else "all weights",
        rows=rows,
    )


def _card_figures(card: TunedModelCard) -> list[tuple[str, object]]:
    recipe, lora = card.recipe, card.recipe.get("lora")
    rows: list[tuple[str, object]] = [
        ("data", f"{card.data}, sha256 {card.data_sha256[:16]}"),
        ("samples", f"{card.samples}, and {card.long} left out for their length"),
        ("steps", card.steps),
        ("loss, first step and last", f"{card.loss[0]:.4f}, {card.loss[1]:.4f}"),
    ]
    if card.perplexity:
        before, after = card.perplexity
        rows.append(("perplexity, before and after", f"{before:.2f}, {after:.2f}"))
    keys = ("learning_rate", "schedule", "warmup", "epochs", "batch", "weight_decay", "clip")
    rows += [(key.replace("_", " "), recipe[key]) for key in (*keys, "max_tokens", "seed")]
    if lora:
        rows.append(("LoRA", f"rank {lora['rank']}, alpha {lora['alpha']}"))
    if card.kind == "dpo":
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
