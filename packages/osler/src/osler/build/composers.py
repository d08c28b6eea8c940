"""Builds answer composers: a model where it may write, quoted sentences otherwise, and cautions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from osler.answer import Composer
from osler.answer.cautions import CautiousComposer, CurrentComposer, InstructionCautiousComposer
from osler.answer.confirming import StatementChecker
from osler.answer.extractive import ExtractiveComposer
from osler.answer.gate import JUDGED, EvidenceGate, read_fits
from osler.answer.options import OptionChooser, OptionLetters, OptionTexts, VerdictChooser
from osler.answer.picking import SHOWN, QuotePicker
from osler.answer.references import ReferenceCheckingComposer
from osler.answer.written import Rewriter, WrittenComposer
from osler.build import Parts, roles_of
from osler.build.online_sources import online_names
from osler.errors import BadConfig, ModelError
from osler.llm.core.ask import Speaker
from osler.llm.core.base import Likelihood, Sampling
from osler.retrieve.experts.cards import open_expert
from osler.retrieve.experts.judge import JUDGE
from osler.retrieve.experts.supporting import SUPPORTS, SupportsExpert
from osler.retrieve.instructions import BLANK
from osler.settings import OmniRagSettings, Role, Settings
from osler.sources.catalogue import trust_of
from osler.types import Hit


def build_composer(settings: Settings, parts: Parts) -> Composer:
    """Builds the composer of answers, with the cautions about its evidence."""
    plain = ReferenceCheckingComposer(answer_wording(settings, parts))
    cautious = plain if settings.answer.cautions == "none" else CautiousComposer(plain)
    clean = InstructionCautiousComposer(cautious)
    one: Composer = clean
    if settings.answer.consistent:
        from osler.answer.consistency import ConsistentComposer

        # An online source is asked once for a question.
        local = [name for name in parts.sources if name not in online_names(settings)]
        search = parts.retriever("consistent", tuple(local)) if local else None
        one = ConsistentComposer(clean, trust_of, search)
    return CurrentComposer(one) if settings.retrieve.policy != "none" else one


def answer_wording(settings: Settings, parts: Parts) -> Composer:
    """Builds the composer: a model where its role may write, else quoted sentences."""
    reader = parts.model_for("reader")
    if may_write(settings, "reader"):
        # Where another model steers, its conclusion is only a draft.
        steering: Role = "reader" if isinstance(settings.strategy, OmniRagSettings) else "planner"
        alone = parts.models.get(steering, parts.models["reader"]).model.name == reader.name
        uncited = settings.answer.uncited
        drops, checker = partial(_drops_uncited, uncited), _statement_checker(settings, parts)
        written = WrittenComposer(drops, keeps_akin=uncited == "auto", checker=checker)
        return written if alone else Rewriter(reader, sampling_of(settings), written)
    return ExtractiveComposer(
        evidence_gate(settings, parts),
        reader if isinstance(reader, Likelihood) else None,
        settings.answer.statements,
        options=_option_chooser(settings, parts),
        order=parts.order,
        nearest=settings.answer.nearest,
        verdicts=_verdict_chooser(settings, parts),
        picker=_quote_picker(settings, parts),
    )


def _drops_uncited(how: str, hits: Sequence[Hit]) -> bool:
    """Whether a model's sentences must be borne out by these hits to be shown."""
    if how == "auto":
        return any(trust_of(hit.passage.source) == 1 or BLANK in hit.passage.text for hit in hits)
    return how == "drop"


def _quote_picker(settings: Settings, parts: Parts) -> QuotePicker | None:
    """Builds the picker of quotes, where the settings want one. Raises `BadConfig`."""
    if settings.answer.judge != "model":
        return None
    return QuotePicker(_own_speaker(settings, parts, "judge", "judge"))


def _statement_checker(settings: Settings, parts: Parts) -> StatementChecker | None:
    """Builds the checker of statements, where the settings want one. Raises `BadConfig`."""
    if settings.answer.confirm != "model":
        return None
    return StatementChecker(_own_speaker(settings, parts, "confirm", "words"))


def _own_speaker(settings: Settings, parts: Parts, setting: str, instead: str) -> Speaker:
    """The reader's model, which must be the user's own. Raises `BadConfig`."""
    if settings.model_for("reader").kind == "packaged":
        raise BadConfig(
            f'answer.{setting} = "model" needs a model of your own: the packaged one understands'
            " too little",
            fix=f'name one under [model], or set answer.{setting} = "{instead}"',
        )
    reader = parts.models["reader"]
    return Speaker(reader.model, "reader", sampling_of(settings), reader.constrains)


def _option_chooser(settings: Settings, parts: Parts) -> OptionChooser | None:
    """Builds the chooser of options; `None` where the reader cannot score their texts."""
    reader = parts.models["reader"]
    how = settings.answer.options
    if how != "texts":
        return OptionLetters(reader.model, constrains=reader.constrains, written=how == "written")
    return OptionTexts(reader.model) if isinstance(reader.model, Likelihood) else None


def _verdict_chooser(settings: Settings, parts: Parts) -> VerdictChooser | None:
    """Builds the chooser among yes, no and maybe; `None` = the likelihood of options decides."""
    chosen = settings.answer
    if chosen.verdicts == "likelihood":
        return None
    try:
        expert = SupportsExpert(open_expert(SUPPORTS, chosen.verdicts_path))
    except ModelError as error:
        return VerdictChooser(None, parts.relevance, str(error))
    return VerdictChooser(expert, parts.relevance)


def may_write(settings: Settings, role: Role) -> bool:
    """Whether the role's model may word medicine; "auto": never the packaged one."""
    chosen = settings.model_for(role)
    return chosen.kind != "packaged" if chosen.writes == "auto" else chosen.writes == "yes"


def note_roles(settings: Settings) -> tuple[str, ...]:
    """The strategy's roles whose model may not word medicine: what they write are notes."""
    return tuple(str(role) for role in roles_of(settings) if not may_write(settings, role))


def evidence_gate(settings: Settings, parts: Parts) -> EvidenceGate:
    """Builds the gate that decides which sentences are evidence for a question."""
    chosen, fitted = settings.answer, settings.calibration
    plain = EvidenceGate(
        parts.relevance,
        parts.coverage,
        meaning=parts.meaning,
        kinds=parts.kinds,
        label_sections=parts.label_sections,
        faults=parts.faults,
        answers=chosen.answers_from,
        nearest=chosen.nearest_from,
        judged=SHOWN if chosen.judge == "model" else JUDGED,
    )
    if parts.judge is None:
        return plain
    try:
        card = open_expert(JUDGE, chosen.judge_path).card
        fits = read_fits(card)
    except ModelError as error:
        return replace(plain, faults=(*plain.faults, str(error)))
    gate = replace(plain, judge=parts.judge, match=parts.match, fits=fits, identity=card.identity)
    if fitted.sureness is None or fitted.sureness_model != gate.identity:
        return gate
    return replace(gate, answers=max(gate.answers, fitted.sureness))


def sampling_of(settings: Settings) -> Sampling:
    chosen = settings.sampling
    return Sampling(chosen.temperature, chosen.max_tokens, seed=chosen.seed)
