"""Trains a recogniser of medical names: a token classifier on a pretrained encoder.

    python research/experts/train_recogniser.py TEXTS.jsonl --out KB/recogniser [--encoder FOLDER]

A line of TEXTS is `{"text": …, "entities": [{"start", "end", "type"}]}`, ends exclusive; CMeEE's
`start_idx` and `end_idx`, whose end is inclusive, are read as well. Of names within each other the
longest is learnt. Without `--encoder`, a folder as `transformers` reads it, the packaged English
encoder is tuned. A share of the texts is held out, and strict F1 (start, end and type) printed. In
the folder `recogniser` of a knowledge base it links queries with the concept graph.

    PYTHONPATH=benchmarks python research/experts/train_recogniser.py --folds 5

measures it on the hundred sentences of `benchmarks/linking`, each found by a model of the others.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from judge_models import open_tunable_encoder

from osler.kb.encoders.minilm import MAX_TOKENS
from osler.llm.local.weights import MINILM_TOKENIZER, locate_weights
from osler.retrieve.graph_mentions import NamedEntity, TokenClassifier

HELD_OUT = 0.15
_UNLEARNT = -100
"""The tag of padding, which torch's loss leaves out."""


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text with its entities."""

    text: str
    entities: tuple[NamedEntity, ...] = ()


def read_marked(path: Path) -> list[MarkedText]:
    """Reads marked texts, one JSON object a line."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [MarkedText(row["text"], tuple(map(_read_entity, row["entities"]))) for row in rows]


def _read_entity(row: Mapping[str, Any]) -> NamedEntity:
    if "start_idx" in row:
        return NamedEntity(row["start_idx"], row["end_idx"] + 1, row["type"])
    return NamedEntity(row["start"], row["end"], row["type"])


def train_recogniser(
    texts: Sequence[MarkedText],
    out: Path,
    encoder: Path | None = None,
    *,
    epochs: int = 20,
    batch: int = 16,
    rate: float = 2e-4,
    seed: int = 0,
) -> TokenClassifier:
    """Tunes the encoder to mark each word of these texts, and writes the model to `out`."""
    torch.manual_seed(seed)
    types = sorted({entity.type for one in texts for entity in one.entities})
    model, tokenizer = _open_encoder(encoder, ["O", *(f"{x}-{y}" for y in types for x in "BI")])
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    examples = [_tag_pieces(one, tokenizer, model.config.label2id) for one in texts]
    chance, fill = random.Random(seed), torch.nn.utils.rnn.pad_sequence
    model.train()
    for _ in range(epochs):
        chance.shuffle(examples)
        for start in range(0, len(examples), batch):
            ids, tags = zip(*examples[start : start + batch], strict=True)
            labels = fill(tags, batch_first=True, padding_value=_UNLEARNT)
            padded = fill(ids, batch_first=True, padding_value=tokenizer.pad_token_id)
            mask = fill([torch.ones_like(one) for one in ids], batch_first=True)
            optimizer.zero_grad()
            model(input_ids=padded, attention_mask=mask, labels=labels).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, error_if_nonfinite=True)
            optimizer.step()
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return TokenClassifier(out)


def _open_encoder(encoder: Path | None, tags: Sequence[str]) -> tuple[Any, Any]:
    """The encoder with a head for these tags, and its tokenizer."""
    labels = {"id2label": dict(enumerate(tags)), "label2id": {tag: n for n, tag in enumerate(tags)}}
    if encoder is not None:
        load = transformers.AutoModelForTokenClassification.from_pretrained
        tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
        return load(encoder, use_safetensors=True, **labels), tokenizer
    packaged = open_tunable_encoder()
    packaged.config.update(labels)
    model = transformers.BertForTokenClassification(packaged.config)
    model.bert.load_state_dict(packaged.state_dict())
    file = str(locate_weights(MINILM_TOKENIZER))
    names = {f"{mark}_token": f"[{mark.upper()}]" for mark in ("pad", "cls", "sep", "unk")}
    return model, transformers.PreTrainedTokenizerFast(
        tokenizer_file=file, model_max_length=MAX_TOKENS, **names
    )


def _tag_pieces(one: MarkedText, tokenizer: Any, tags: Mapping[str, int]) -> tuple[Any, Any]:
    """Ids of the pieces, and of the tag of each."""
    read = tokenizer(one.text, truncation=True, return_offsets_mapping=True)
    found = ["O"] * len(read["input_ids"])
    for entity in sorted(one.entities, key=lambda e: e.end - e.start):
        for at, (start, end) in enumerate(read["offset_mapping"]):
            if entity.start <= start < end <= entity.end:
                found[at] = f"{'B' if start == entity.start else 'I'}-{entity.type}"
    return torch.tensor(read["input_ids"]), torch.tensor([tags[tag] for tag in found])


def strict_f1(found: Sequence[Sequence[NamedEntity]], gold: Sequence[MarkedText]) -> float:
    """Micro F1 of all texts: an entity counts when start, end and type are right."""
    pairs = [(set(some), set(one.entities)) for some, one in zip(found, gold, strict=True)]
    total = sum(len(some) + len(wanted) for some, wanted in pairs)
    return 2 * sum(len(some & wanted) for some, wanted in pairs) / total if total else 0.0


def measure_folds(count: int, encoder: Path | None, epochs: int) -> None:
    """Prints strict F1 on the sentences of `benchmarks/linking`, by language."""
    from link_mentions import sentences

    every = sentences()
    random.Random(0).shuffle(every)
    marked = [
        MarkedText(one.text, tuple(NamedEntity(a, b, "name") for a, b, _ in one.mentions))
        for one in every
    ]
    found: list[list[NamedEntity]] = [[] for _ in every]
    for n in range(count):
        learnt = [one for at, one in enumerate(marked) if at % count != n]
        with tempfile.TemporaryDirectory() as folder:
            made = train_recogniser(learnt, Path(folder), encoder, epochs=epochs)
        for at in range(n, len(every), count):
            found[at] = made.find_entities(marked[at].text)
    for language in ("en", "zh"):
        own = [at for at, one in enumerate(every) if one.language == language]
        f1 = strict_f1([found[at] for at in own], [marked[at] for at in own])
        print(f"{language}: strict F1 {f1:.3f}, n {sum(len(marked[at].entities) for at in own)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path, nargs="?")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--encoder", type=Path)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--folds", type=int, help="measure on the sentences of the benchmarks")
    given = parser.parse_args()
    if given.folds:
        measure_folds(given.folds, given.encoder, given.epochs)
        return
    # By distinct text: a duplicate on both sides would be measured on what was learnt.
    texts = list({one.text: one for one in read_marked(given.texts)}.values())
    random.Random(0).shuffle(texts)
    held_out = texts[: round(len(texts) * HELD_OUT)]
    learnt = texts[len(held_out) :]
    made = train_recogniser(learnt, given.out, given.encoder, epochs=given.epochs)
    f1 = strict_f1([made.find_entities(one.text) for one in held_out], held_out)
    print(f"strict F1 {f1:.3f} on {len(held_out)} texts held out")


if __name__ == "__main__":
    main()
