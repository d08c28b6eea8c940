"""The teacher of the judge and of `match`: a larger encoder that reads question and sentence
together, tuned on the judge's labels.

It scores every sentence of every case, and of searches for questions that nobody labelled; two
small models learn from its logits. A teacher's weights are in no part of what they become.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError, ModelMissing
from osler.jobs.runner import Progress
from osler.llm.core.cache import write_whole
from osler.llm.transformers.hub import (
    import_extra,
    open_model,
    open_tokenizer,
    weights_fingerprint,
)
from osler.retrieve.asked import QuestionReader
from osler.retrieve.experts.judge import JudgedText
from osler.retrieve.experts.pair_graph import PairInput
from osler.train.experts.judge_cases import JudgedCase
from osler.train.experts.row_training import train_rows
from osler.train.experts.students import PairModel
from osler.train.experts.tuned_models import Machine, RowRecipe

if TYPE_CHECKING:
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]

TEACHER = "teacher"
TAUGHT = "taught.npz"
_CASES_TOGETHER = 32
"""Cases that are scored between two signs of progress."""


@dataclass(frozen=True, slots=True)
class TeacherRecipe(RowRecipe):
    """What a teacher's weights depend on, beside the data."""

    steps: int = 1_000
    rows: int = 24
    texts: int = 6
    rate: float = 3e-5
    dropout: float = 0.1
    seeds: int = 3
    """Teachers whose logits are averaged, one to three, each of its own seed."""


class TeacherPieces:
    """The pieces of a model's own tokenizer, as `TextPieces`."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = open_tokenizer(folder)
        self.first: int = self._tokenizer.cls_token_id
        self.last: int = self._tokenizer.sep_token_id
        self.padding: int = self._tokenizer.pad_token_id
        self.further = self._tokenizer.num_special_tokens_to_add(pair=True) - 3
        """Marks between two texts, beyond the one that BERT has."""

    def piece_ids(self, text: str) -> list[int]:
        """The pieces alone, however many."""
        return list(self._tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])


class TeacherModel(PairModel):
    """A larger encoder, all of which is tuned, and a head."""

    def __init__(self, folder: Path, recipe: TeacherRecipe, machine: Machine) -> None:
        if not list(folder.glob("*.safetensors")):
            raise ModelMissing(f"{folder} holds no *.safetensors", fix="give an encoder's folder")
        encoder = open_model("AutoModel", folder, dtype="float32", device="cpu")
        for one in encoder.modules():
            if isinstance(one, import_extra("torch").nn.Dropout):
                one.p = recipe.dropout
        super().__init__(encoder, recipe, machine)
        self.words = self._pieces = TeacherPieces(folder)
        self.padding = self._pieces.padding

    def read_pair(self, question: str, text: JudgedText) -> PairInput:
        """As the judge reads, with as many marks between as the model knows."""
        ids = super().read_pair(question, text).ids
        at = ids.index(self._pieces.last)
        ids = ids[:at] + (self._pieces.last,) * self._pieces.further + ids[at:]
        return PairInput(ids, (0,) * len(ids))

    def _run_encoder(self, ids: Any, segments: Any, mask: Any) -> Any:
        return self.encoder(input_ids=ids, attention_mask=mask)

    def score_cases(self, cases: Sequence[JudgedCase], progress: Progress | None) -> Floats:
        """Logits of all texts of all cases, one after the other."""
        import numpy as np

        torch = import_extra("torch")
        reader = QuestionReader()
        self.encoder.train(mode=False)
        found = [np.zeros(0, np.float32)]
        for begin in range(0, len(cases), _CASES_TOGETHER):
            some = cases[begin : begin + _CASES_TOGETHER]
            asked = [(reader.read(one.question).full, one.texts) for one in some]
            with torch.no_grad():
                pairs = [(question, text) for question, texts in asked for text in texts]
                found.append(self.score_pairs(pairs).cpu().numpy())
            if progress is not None:
                progress("reading with the teacher", begin + len(some), len(cases))
        return np.concatenate(found)


@dataclass(frozen=True)
class Teacher:
    """A larger encoder's folder, and how it is tuned."""

    folder: Path
    """With config.json, tokenizer.json and safetensors: no pickle is read."""
    recipe: TeacherRecipe = field(default_factory=TeacherRecipe)

    def teach_cases(
        self,
        cases: Sequence[JudgedCase],
        work: Path,
        machine: Machine,
        progress: Progress | None = None,
    ) -> list[JudgedCase]:
        """The cases with the mean of the teachers' logits.

        Each teacher is trained once in `work`, where its logits are kept. Raises `ModelError`
        where what is kept is of other data or of another encoder.
        """
        import numpy as np

        mark = self._mark_data(cases)
        seeds = range(self.recipe.seed, self.recipe.seed + self.recipe.seeds)
        kept = [
            self._keep_scores(cases, mark, work / f"{TEACHER}-{seed}", seed, machine, progress)
            for seed in seeds
        ]
        scores = iter(np.mean(kept, axis=0).tolist())
        return [replace(one, taught=tuple(next(scores) for _ in one.texts)) for one in cases]

    def _mark_data(self, cases: Sequence[JudgedCase]) -> str:
        digest = sha256(weights_fingerprint(self.folder).encode())
        for one in cases:
            texts = [text.to_line() for text in one.texts]
            digest.update(json.dumps([one.question, one.source, texts, one.worth]).encode())
        return digest.hexdigest()

    def _keep_scores(
        self,
        cases: Sequence[JudgedCase],
        mark: str,
        work: Path,
        seed: int,
        machine: Machine,
        progress: Progress | None,
    ) -> Floats:
        import numpy as np

        path = work / TAUGHT
        if path.is_file():
            with np.load(path) as found:
                if str(found["data"]) != mark:
                    raise ModelError(f"{path} is of other data", fix="choose another --work folder")
                scores: Floats = found["scores"]
                return scores
        recipe = replace(self.recipe, seed=seed, seeds=1)
        labelled = [one for one in cases if one.worth]
        model = TeacherModel(self.folder, recipe, machine)
        train_rows(model, labelled, work, progress=progress, keep_each=100)
        scores = model.score_cases(cases, progress)
        with write_whole(path) as draft, draft.open("wb") as out:
            np.savez(out, data=mark, scores=scores)
        return scores
