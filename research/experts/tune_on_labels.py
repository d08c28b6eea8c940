"""Tunes the experts `judge` and `match` further on questions over drugs' labels.

    PYTHONPATH=benchmarks python research/experts/tune_on_labels.py --data FOLDER --work FOLDER \\
        --out FOLDER

`label_texts` has 204 labels that six hands wrote from general knowledge, each with twelve
questions as consumers type them and the sentences that answer. Half of a step's questions are of
these; on the other half, the labelled questions that the experts learnt from before, they are held
to their own logits. They begin where they stand in the package. `--data` and what is made in
`--work` are as in `train_judge.py`. A step of 16 questions takes four to six seconds of two cores.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import judge_rows
import torch
from expert_folders import write_shards
from expert_sets import LABELLED, SEARCHED, JudgedCase, open_texts, read_cases
from judge_models import JUDGE, MATCH, JudgeModel, MatchModel, measure_loss
from judge_rows import JudgeRow, JudgeSampler

from osler.retrieve.experts.cards import CARD, open_expert, render_card
from osler.retrieve.experts.judge import JudgedText
from osler.retrieve.experts.pair_graph import HEAD_BIAS, HEAD_WEIGHT, unpack_deltas
from osler_lab.evaluate.datasets.splits import question_digest
from osler_lab.evaluate.trained_on import list_beside, read_trained_on, write_trained_on

TEXTS = Path(__file__).with_name("label_texts")
FILED = "filed"
"""Name of the set of these questions."""
MIX = {FILED: 0.5, LABELLED: 0.15, SEARCHED: 0.35}
RECIPES: Mapping[str, tuple[int, float]] = {"judge": (130, 1.2e-4), "match": (150, 1e-4)}
"""Steps and learning rate of each."""
ROWS = 16
"""Questions of a step."""
_KEPT = 0.25
"""Weight of the old questions' labels beside the logits that they are held to."""


def read_filed(folder: Path = TEXTS) -> Iterator[JudgedCase]:
    """The questions of the files, each with all sentences of its label.

    Lines: "D TAB title", "S TAB number TAB section TAB sentence", "Q TAB question TAB numbers".
    """
    for path in sorted(folder.glob("*.tsv")):
        title, said = "", list[tuple[str, str, str]]()
        for line in path.read_text(encoding="utf-8").splitlines():
            what, *rest = line.split("\t")
            if what == "D":
                title, said = rest[0], []
            elif what == "S":
                said.append((rest[0], rest[1], rest[2]))
            else:
                right = rest[1].replace(",", " ").split()
                texts = tuple(_place_sentence(title, said, at) for at in range(len(said)))
                worth = tuple(float(number in right) for number, _, _ in said)
                yield JudgedCase(rest[0], FILED, texts, worth, f"{FILED}:{title}")


def _place_sentence(title: str, said: Sequence[tuple[str, str, str]], at: int) -> JudgedText:
    _, section, sentence = said[at]
    near = [said[n] if 0 <= n < len(said) else ("", "", "") for n in (at - 1, at + 1)]
    before, after = (text if own == section else "" for _, own, text in near)
    return JudgedText(sentence, f"{title} > {section}", before, after)


@dataclass(frozen=True)
class LabelTuning:
    """A model that begins as it is packaged, and itself as it was."""

    model: JudgeModel | MatchModel
    cases: Sequence[JudgedCase]

    def run(self, steps: int, rate: float, log: Path) -> None:
        model = self.model
        kept = copy.deepcopy(model.encoder).eval(), copy.deepcopy(model.head)
        sampler = JudgeSampler(self.cases, ROWS, model.recipe.texts, vary=model.varies)
        groups = [{**group, "lr": rate} for group in model.parameters()]
        optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
        tensors = [one for group in groups for one in group["params"]]
        warm = max(1, steps // 20)
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda at: min((at + 1) / warm, (steps - at) / max(1, steps - warm))
        )
        model.encoder.train()
        with log.open("w", encoding="utf-8") as lines:
            for step in range(steps):
                drawn = self._draw_step(sampler, random.Random(f"0:{step}"))
                new = [row for row, is_new in drawn if is_new]
                old = self._hold([row for row, is_new in drawn if not is_new], *kept)
                loss = self._measure(new, 1.0) + self._measure(old, _KEPT)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(tensors, 1.0, error_if_nonfinite=True)
                optimizer.step()
                schedule.step()
                lines.write(json.dumps({"step": step + 1, "loss": round(loss.item(), 4)}) + "\n")

    def _draw_step(
        self, sampler: JudgeSampler, chance: random.Random
    ) -> list[tuple[JudgeRow, bool]]:
        sets = chance.choices([*sampler.by_set], [MIX[one] for one in sampler.by_set], k=ROWS)
        return [
            (sampler.draw_row(chance.choice(sampler.by_set[one]), chance), one == FILED)
            for one in sets
        ]

    def _hold(self, rows: list[JudgeRow], encoder: Any, head: Any) -> list[JudgeRow]:
        """The rows with the logits that the model gave them before."""
        own = self.model.encoder, self.model.head
        self.model.encoder, self.model.head = encoder, head
        try:
            with torch.no_grad():
                taught = self.model.score_rows(rows).tolist() if rows else []
        finally:
            self.model.encoder, self.model.head = own
        return [replace(row, taught=tuple(one)) for row, one in zip(rows, taught, strict=True)]

    def _measure(self, rows: list[JudgeRow], hard: float) -> Any:
        if not rows:
            return torch.zeros(())
        pairs = self.model.head is not None
        loss = measure_loss(self.model.score_rows(rows), rows, hard, pairs=pairs)
        return loss * len(rows) / ROWS


def tune_expert(name: str, cases: Sequence[JudgedCase], out: Path, steps: int = 0) -> None:
    """Writes the folder `name` into `out`: weights, card and the questions it has learnt from."""
    shipped = open_expert(name)
    made = JudgeModel if name == "judge" else MatchModel
    model = made(JUDGE if name == "judge" else MATCH, "cpu")
    model.in_bfloat16 = True
    load_shipped(model, shipped.read_tensors())
    judge_rows.MIX = {one: (share, share) for one, share in MIX.items()}
    usual, rate = RECIPES[name]
    LabelTuning(model, cases).run(steps or usual, rate, out / f"{name}.jsonl")
    folder = out / name
    first, *further = write_shards(model.export_deltas(), folder)
    card = shipped.card.model_copy(update={"weights": first, "further": tuple(further)})
    (folder / CARD).write_text(render_card(card), encoding="utf-8")
    known = read_trained_on(list_beside(shipped.folder))
    new = {question_digest(one.question) for one in cases if one.source == FILED}
    write_trained_on(list_beside(folder), known | new)


def load_shipped(model: JudgeModel | MatchModel, tensors: Any) -> None:
    """Adds what an expert has learnt to a model that is the bare encoder."""
    changes = unpack_deltas(tensors)
    with torch.no_grad():
        for name, one in model.tuned():
            one.add_(torch.tensor(changes[name]))
        if model.head is not None:
            weight, bias = (torch.tensor(tensors[key]).float() for key in (HEAD_WEIGHT, HEAD_BIAS))
            model.head.weight.copy_(weight)
            model.head.bias.copy_(bias)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name in ("--data", "--work", "--out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument(
        "--names", nargs="+", choices=("judge", "match"), default=["judge", "match"]
    )
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with open_texts(given.data, given.work) as kb:
        old = [one for one in read_cases(given.data, kb, "train") if one.source in MIX]
    for name in given.names:
        tune_expert(name, [*old, *read_filed()], given.out)


if __name__ == "__main__":
    main()
