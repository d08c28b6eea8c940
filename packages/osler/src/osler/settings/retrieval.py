"""Settings of search: how many passages, how rankings are fused, what may be found."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from osler.settings.fields import (
    Names,
    Real,
    SettingsSection,
    Whole,
    Year,
    split_list,
)


class RetrieveSettings(SettingsSection):
    k: Whole = Field(default=10, ge=1, le=200)
    """Passages a search gives (Omni-RAG §5.1.2)."""
    rrf_k: Whole = Field(default=10, ge=0, le=10_000)
    """Reciprocal rank fusion: score = weight / (rrf_k + rank)."""
    dense_weight: Real = Field(default=1.0, ge=0, le=100, description="Weight of the vector index.")
    lexical_weight: Real = Field(default=0.7, ge=0, le=100, description="Weight of the word index.")
    depth: Whole = Field(default=64, ge=1, le=10_000)
    """Candidates that each index hands to the fusion."""
    entry_least: Real = Field(default=0.0, ge=0, le=1)
    """Least cosine of an entry of the indexes of knowledge units, questions and the rest (KAG keeps
    those above 0.7, by its own encoder)."""
    year_from: Year = None
    """Only documents from this year on, or "none"."""
    year_to: Year = None
    """Only documents up to this year, or "none"."""
    languages: Annotated[tuple[Literal["en", "zh"], ...], BeforeValidator(split_list)] = ()
    """Only passages in these languages; empty = all."""
    kinds: Names = ()
    """Only these publication types, as "Review,Meta-Analysis"; empty = all."""
    retracted: bool = False
    """Also find what was retracted."""
    policy: Literal["clinical", "none"] = "clinical"
    """clinical: what was retracted, or replaced by a later issue of its work that was found too, is
    no evidence, and the answer says so; none: it is quoted with a caution."""
    instructions: Literal["blank", "keep"] = "blank"
    """Handling of instructions to a program within passages: blank takes them out
    before a model reads them, and the answer says so."""
    trust: Whole = Field(default=1, ge=1, le=5)
    """Only documents of at least this trust (5 = guideline)."""

    @model_validator(mode="after")
    def _check_weights(self) -> RetrieveSettings:
        if self.dense_weight == self.lexical_weight == 0:
            raise ValueError("dense_weight and lexical_weight cannot both be 0")
        return self
