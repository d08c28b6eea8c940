"""The card of a tuned model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from osler_lab.train.card import render_rows, write_card
from osler_lab.train.tune.loop import ALL

_TASKS = {
    "sft": "supervised fine-tuning (Omni-RAG, Eq. 2)",
    "dpo": "direct preference optimisation (Omni-RAG, Eq. 3-4)",
    "thinker": "supervised fine-tuning on dialogues of several turns (KAG-Thinker, App. 11)",
    "pretrain": "continued pre-training, causal objective (TC-RAG, App. 8.3)",
}


Result = Mapping[str, Any]
"""The contents of `result.json`."""


def write_model_card(folder: Path, result: Result, *, data: str, revision: str) -> None:
    """Writes `README.md` of a tuned model; the folder's name is the model's.

    `data` names what it has learnt, `revision` the commit of its base; empty = none.
    """
    kind, base, lora = result["kind"], result["base"], result["recipe"]["lora"]
    head = {
        "base_model": base,
        "library_name": "peft" if lora else "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["osler", "medical", kind, *(["lora"] if lora else [])],
    }
    what = "a LoRA adapter" if lora else "all weights"
    at = f" at revision {revision}" if revision else ""
    write_card(
        folder,
        head,
        folder.resolve().name,
        f"{what} for {base}{at}, trained by {_TASKS[kind]} with Osler.",
        "## Training",
        render_rows(_card_figures(result, data)),
        "## Use",
        _USE,
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


_USE = """It is a part of a system that finds evidence and cites it. It is made for research and for
health professionals who check what they read. Its own words are not medical advice, and it was
not tested as a medical device. It inherits the limits and the licence of its base model and of
the data it was trained on."""
