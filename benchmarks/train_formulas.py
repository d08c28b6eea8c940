"""Fits the networks that tell which formula a question asks for and which input its pieces tell.

    python benchmarks/train_formulas.py      writes packages/osler/…/kag/formulas/pieces.npz

Card. Questions: `benchmarks/formulas/train`, 3,213 lines by eight hands that saw the list of the
formulas and no code, marked by them: what tells which input, and what is asked for; a sixth asks
for no formula's value. No patient in them is real. `first-*` to `seventh-*` are never trained on.
Encoder: multilingual-e5-small, as it is. Six minutes on two cores; needs torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from piece_network import Fitting, fit_network, name_layer
from torch.nn import functional

from osler.build.hub import load_e5
from osler.kb.encoders.network import describe_pieces
from osler.llm.core.cache import cache_dir
from osler.methods.kag import formulas
from osler.methods.kag.formulas import FORMULAS, ChoiceInput
from osler.methods.kag.formulas import pieces as read
from osler.methods.kag.formulas.targets import prepare_text

TRAIN = Path(__file__).parent / "formulas" / "train"
TARGET = Path(formulas.__file__).with_name("pieces.npz")
IDS = (read.NONE, *FORMULAS)
INPUTS = sorted({each.name for formula in FORMULAS.values() for each in formula.inputs})
NAMES = (read.NOTHING, read.ASKED, *INPUTS)
VALUES = tuple(
    sorted(
        {
            f"{each.name}={choice}"
            for formula in FORMULAS.values()
            for each in formula.inputs
            if isinstance(each, ChoiceInput)
            for choice in each.choices
        }
    )
)
LISTED = ("ids", "names", "values")
FORMULA_FITTING = Fitting(units=96, epochs=20, batch=32)
HIDDEN, EPOCHS, BATCH, RATE, DROPPED, SMOOTHED = 192, 14, 256, 2e-3, 0.3, 0.02
VALUE_WEIGHT = 0.7
_MARK = re.compile(r"\[([a-z0-9_]+)(=[^:\]]+?|[+?-])?\s*: ?([^\[\]]*)\]")


@dataclass(frozen=True)
class Marked:
    """A question as it is read, and of its marks name, value, start and end."""

    hand: str
    formula: str
    text: str
    marks: tuple[tuple[str, str, int, int], ...]
    places: list[tuple[int, int]]
    states: Any

    def label_pieces(self) -> Iterator[tuple[int, int]]:
        """Of each piece the place of its name in `NAMES`, and of its value in `VALUES` or -1."""
        for start, end in self.places:
            name, value = 0, -1
            for marked, told, first, last in self.marks:
                if min(end, last) - max(start, first) >= max(1, (end - start) / 2):
                    name = NAMES.index(read.ASKED if marked == "ask" else marked)
                    full = f"{marked}{told}"
                    value = VALUES.index(full) if full in VALUES else -1
            yield name, value


def read_marked(hand: str, line: str) -> Marked:
    formula, _, question = line.partition("\t")
    text, marks, at = "", [], 0
    for match in _MARK.finditer(question):
        text += prepare_text(question[at : match.start()])
        start = len(text)
        text += prepare_text(match[3])
        marks.append((match[1], match[2] or "", start, len(text)))
        at = match.end()
    text += prepare_text(question[at:])
    places, states = load_e5(cache_dir()).read_tokens(text)
    return Marked(hand, formula, text, tuple(marks), places, states)


def read_train() -> list[Marked]:
    return [
        read_marked(path.name.partition("-")[0], line)
        for path in sorted(TRAIN.glob("*.tsv"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]


def describe(states: Any) -> Any:
    around = np.broadcast_to(states.mean(axis=0), states.shape)
    return np.concatenate([describe_pieces(states), around], axis=1)


def fit_tagger(questions: Sequence[Marked]) -> dict[str, Any]:
    """The layers of the network of pieces, as they are kept."""
    torch.manual_seed(0)
    inputs = np.concatenate([describe(each.states) for each in questions])
    labels = [label for each in questions for label in each.label_pieces()]
    names, values = (torch.tensor(column) for column in zip(*labels, strict=True))
    mean, spread = inputs.mean(axis=0), inputs.std(axis=0) + 1e-4
    inputs = torch.from_numpy((inputs - mean) / spread)
    hidden = torch.nn.Linear(inputs.shape[1], HIDDEN)
    ends = torch.nn.Linear(HIDDEN, len(NAMES)), torch.nn.Linear(HIDDEN, len(VALUES))
    layers = (hidden, *ends)
    optimiser = torch.optim.AdamW(
        [one for layer in layers for one in layer.parameters()], lr=RATE, weight_decay=1e-2
    )
    for epoch in range(EPOCHS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - epoch / EPOCHS)
        for some in torch.randperm(len(names)).split(BATCH):
            seen = functional.dropout(inputs[some], 0.1)
            active = functional.dropout(torch.relu(hidden(seen)), DROPPED)
            loss = functional.cross_entropy(ends[0](active), names[some], label_smoothing=SMOOTHED)
            told = values[some] >= 0
            if told.any():
                of_value = functional.cross_entropy(ends[1](active[told]), values[some][told])
                loss = loss + VALUE_WEIGHT * of_value
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    weights, bias = _arrays(hidden)
    weights = weights / spread[:, None]
    return {
        **name_layer("hidden", weights, bias - mean @ weights),
        **name_layer("to_names", *_arrays(ends[0])),
        **name_layer("to_values", *_arrays(ends[1])),
    }


def _arrays(layer: torch.nn.Linear) -> tuple[Any, Any]:
    return layer.weight.detach().numpy().T, layer.bias.detach().numpy()


def write_networks(questions: Sequence[Marked]) -> None:
    """Fits both and writes them where they are read."""
    states = [each.states for each in questions]
    asked = [IDS.index(each.formula) for each in questions]
    network = fit_network(states, asked, np.ones(len(questions)), FORMULA_FITTING)
    arrays: dict[str, Any] = {
        **{name: np.array(each) for name, each in zip(LISTED, (IDS, NAMES, VALUES), strict=True)},
        **network.name_arrays("formulas"),
        **fit_tagger(questions),
    }
    np.savez_compressed(TARGET, **arrays)


if __name__ == "__main__":
    write_networks(read_train())
