"""Hyper-parameters of tuning: the papers', and defaults for what they leave open.

Omni-RAG (App. D.4) gives batch, peak learning rate and epochs of SFT and DPO and says LoRA;
KAG-Thinker (App. 11, Table 14) and TC-RAG (App. 8.3) train all weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from osler.errors import BadConfig

Schedule = Literal["linear", "cosine", "constant"]
Precision = Literal["auto", "float32", "mixed", "bfloat16"]
"""mixed: float32 numbers whose products are made in bfloat16 where the processor can."""


@dataclass(frozen=True, slots=True)
class LoraSettings:
    """Low-rank adapters beside every linear layer. The papers give neither rank nor scale."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0
    top: int | None = None
    """Only so many layers, from the last; `None` = all. The others are only read."""


@dataclass(frozen=True, slots=True)
class TuningRecipe:
    """Raises `BadConfig` for a number out of its range."""

    learning_rate: float
    """The peak."""
    epochs: float
    batch: int = 64
    """Samples an optimizer's step, over all micro-batches."""
    micro: int = 4
    """Samples that are worked on at once: memory, not the result, depends on it."""
    max_tokens: int = 2048
    """Tokens of a sample, prompt and answer together."""
    warmup: float = 0.1
    """Share of the steps in which the learning rate rises."""
    schedule: Schedule = "cosine"
    weight_decay: float = 0.0
    clip: float = 1.0
    """Norm above which a gradient is shortened."""
    seed: int = 0
    lora: LoraSettings | None = LoraSettings()
    """`None` trains all weights."""
    beta: float = 0.1
    """Scale of DPO's reward (Eq. 4); the paper does not give it."""
    precision: Precision = "auto"
    recompute: bool = False
    """Activations are made twice and not kept: less memory, a third more time."""
    save_every: int = 10
    """Steps between two checkpoints."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "epochs", "batch", "micro", "max_tokens", "clip", "beta"):
            if getattr(self, name) <= 0:
                raise BadConfig(f"{name} is {getattr(self, name)}", fix=f"set {name} above 0")
        if not 0 <= self.warmup < 1:
            raise BadConfig(f"warmup is {self.warmup}", fix="set warmup from 0 to below 1")
        # A step's last micro-batch would be smaller, and the Trainer counts whole ones.
        if self.batch % self.micro and self.batch > self.micro:
            raise BadConfig(
                f"a batch of {self.batch} cannot be worked on by {self.micro}",
                fix="set micro to a divisor of batch",
            )

    @property
    def accumulate(self) -> int:
        """Micro-batches an optimizer's step."""
        return max(1, self.batch // self.micro)

    @property
    def row(self) -> int:
        """Samples of a micro-batch."""
        return min(self.micro, self.batch)

    def with_changes(self, **changes: Any) -> TuningRecipe:
        """This recipe with what is given; `None` leaves a number as it is."""
        return replace(self, **{name: v for name, v in changes.items() if v is not None})


OMNI_SFT = TuningRecipe(learning_rate=2.5e-4, epochs=5)
"""Omni-RAG, App. D.4."""
OMNI_DPO = TuningRecipe(learning_rate=5e-6, epochs=3)
"""Omni-RAG, App. D.4."""
THINKER = TuningRecipe(
    learning_rate=5e-6,
    epochs=5,
    micro=1,
    max_tokens=16_384,
    warmup=0.06,
    schedule="linear",
    seed=1024,
    lora=None,
    recompute=True,
)
"""KAG-Thinker, App. 11, Table 14."""
PRETRAIN = TuningRecipe(learning_rate=1e-4, epochs=1, micro=4, max_tokens=1024, lora=None)
"""TC-RAG, App. 8.3: one epoch at 1e-4; the rest is not given."""
