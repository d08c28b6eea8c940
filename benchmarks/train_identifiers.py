"""Trains the network that reads the pieces of a line for identifiers; writes `tokens.npz`.

    python benchmarks/train_identifiers.py

Card. Sentences: `*-train.txt`, `*-dev.txt` and `*-traps.txt` of `benchmarks/identifiers`, by a
dozen hands, and those of `tests/fixtures/phi` that the rules were written against; no person,
number or address in them is real. `*-test.txt`, `*-later.txt`, `*-last.txt` and `unseen_three_*`
are never trained on. Encoder: multilingual-e5-small, as it is. Both languages together, one hidden
layer of 96, dropout .3, 14 epochs, seed 0; weights in 8 bits with a scale for each unit. Four
minutes on two cores; needs torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from identifier_sentences import read_sentence

from osler.build.hub import load_e5
from osler.kb.encoders.network import describe_pieces
from osler.llm.core.cache import cache_dir
from osler_serve.clinic.identifiers import tokens

HERE = Path(__file__).parent / "identifiers"
NOTES = Path(__file__).parents[1] / "tests" / "fixtures" / "phi"
SETS = [
    *(
        HERE / f"{language}-{part}.txt"
        for language in ("zh", "en")
        for part in ("train", "dev", "traps")
    ),
    *(NOTES / f"{name}{language}.txt" for language in ("zh", "en") for name in ("", "unseen_two_")),
]
SAME = {"ADDRESS": "PLACE", "HOSPITAL": "PLACE", "EMAIL": "PHONE", "URL": "PHONE"}
HIDDEN, EPOCHS, BATCH, RATE, DROPPED = 96, 14, 256, 2e-3, 0.3
Rows = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]


def label_piece(start: int, end: int, marked: list[tuple[str, int, int]]) -> tuple[int, float]:
    """The kind of what at least half of the piece belongs to, and whether it counts."""
    kind, weight = 0, 1.0
    for name, first, last in marked:
        if min(end, last) - max(start, first) >= max(1, (end - start) / 2):
            if name == "MAYBE":
                weight = 0.0
            else:
                kind = 1 + tokens.KINDS.index(SAME.get(name, name))
    return kind, weight


def read_rows(path: Path) -> Rows:
    """Of each piece of a file's lines: what the encoder says, its kind, whether it counts."""
    pieces, kinds, weights = [], [], []
    for line in path.read_text(encoding="utf-8").splitlines():
        text, marked = read_sentence(line)
        places, states = load_e5(cache_dir()).read_tokens(text)
        pieces.append(describe_pieces(states))
        for start, end in places:
            kind, weight = label_piece(start, end, marked)
            kinds.append(kind)
            weights.append(weight)
    return np.concatenate(pieces), np.array(kinds), np.array(weights, np.float32)


def fit_layers(rows: Rows, seed: int = 0) -> tuple[torch.nn.Linear, torch.nn.Linear]:
    """The two layers, for inputs as they come."""
    torch.manual_seed(seed)
    pieces, kinds, weights = rows
    mean, spread = pieces.mean(0), pieces.std(0) + 1e-6
    hidden = torch.nn.Linear(pieces.shape[1], HIDDEN)
    outer = torch.nn.Linear(HIDDEN, 1 + len(tokens.KINDS))
    drop = torch.nn.Dropout(DROPPED)
    net = torch.nn.Sequential(drop, hidden, torch.nn.ReLU(), drop, outer)
    x, y = torch.from_numpy((pieces - mean) / spread), torch.from_numpy(kinds)
    counts = torch.from_numpy(weights)
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-4)
    for epoch in range(EPOCHS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - epoch / EPOCHS)
        for some in torch.randperm(len(y)).split(BATCH):
            each = torch.nn.functional.cross_entropy(net(x[some]), y[some], reduction="none")
            optimiser.zero_grad()
            ((each * counts[some]).sum() / len(some)).backward()
            optimiser.step()
        print(f"epoch {epoch + 1} of {EPOCHS}", flush=True)
    with torch.no_grad():
        hidden.weight /= torch.from_numpy(spread)
        hidden.bias -= hidden.weight @ torch.from_numpy(mean)
    return hidden, outer


def main() -> None:
    each = [read_rows(path) for path in SETS]
    pieces, kinds, weights = (np.concatenate(parts) for parts in zip(*each, strict=True))
    print(f"{len(pieces)} pieces", flush=True)
    kept: dict[str, Any] = {}
    for name, layer in zip(("hidden", "outer"), fit_layers((pieces, kinds, weights)), strict=True):
        weight = layer.weight.detach().numpy().T
        scale = np.abs(weight).max(axis=0) / 127
        kept |= {
            name: np.rint(weight / scale).astype(np.int8),
            f"{name}_scale": scale.astype(np.float32),
            f"{name}_bias": layer.bias.detach().numpy(),
        }
    np.savez_compressed(Path(tokens.__file__).with_name("tokens.npz"), **kept)


if __name__ == "__main__":
    main()
