"""Who words an answer: a model that may, quoted sentences otherwise, with cautions around both."""

from __future__ import annotations

from osler.answer.base import Composer
from osler.answer.cautions import Cautious
from osler.answer.extractive import Extractive, Gate, Least
from osler.answer.options import OptionChooser, OptionLetters, OptionTexts
from osler.answer.rewriter import Reread
from osler.answer.written import Written
from osler.app.config import (
    Cot,
    OmniRag,
    Role,
    Settings,
)
from osler.app.wiring.parts import Parts
from osler.llm.core.base import Likelihood, Sampling
from osler.types import Language


def composer(settings: Settings, parts: Parts) -> Composer:
    """Who makes the answer, and tells what must be known of its evidence."""
    rules = settings.answer.cautions
    plain = wording(settings, parts)
    return plain if rules == "none" else Cautious(plain, rules)


def wording(settings: Settings, parts: Parts) -> Composer:
    """Who words the answer: a model that may, else nobody (quotes)."""
    reader = parts.model("reader")
    if writes(settings, "reader"):
        # Where another model steers, its conclusion is only a draft.
        steering: Role = "reader" if isinstance(settings.strategy, OmniRag) else "planner"
        alone = parts.models.get(steering, parts.models["reader"]).model.name == reader.name
        return Written() if alone else Reread(reader, sampling_of(settings))
    return Extractive(
        gate(settings, parts),
        reader if isinstance(reader, Likelihood) else None,
        settings.answer.statements,
        settings.answer.candidates,
        reasoned=isinstance(settings.strategy, Cot),
        options=_options(settings, parts),
    )


def _options(settings: Settings, parts: Parts) -> OptionChooser | None:
    """Who chooses an option; nobody by texts that cannot be scored."""
    reader = parts.models["reader"]
    how = settings.answer.options
    if how != "texts":
        return OptionLetters(reader.model, constrains=reader.constrains, written=how == "written")
    return OptionTexts(reader.model) if isinstance(reader.model, Likelihood) else None


def writes(settings: Settings, role: Role) -> bool:
    """Whether the role's model may word medicine; "auto": never the packaged one."""
    chosen = settings.role(role)
    return chosen.kind != "packaged" if chosen.writes == "auto" else chosen.writes == "yes"


def gate(settings: Settings, parts: Parts) -> Gate:
    """Which passages are evidence for a question."""
    chosen = settings.answer
    least: dict[Language, Least] = {
        "en": Least(chosen.coverage, chosen.relevance),
        "zh": Least(chosen.coverage_zh, chosen.relevance_zh),
    }
    return Gate(parts.coverage, parts.relevance, least)


def sampling_of(settings: Settings) -> Sampling:
    chosen = settings.sampling
    return Sampling(chosen.temperature, chosen.max_tokens, seed=chosen.seed)
