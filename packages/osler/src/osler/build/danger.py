"""The notice to people in danger, as the settings have it; no language model is asked."""

from __future__ import annotations

from collections.abc import Sequence

from osler.danger.notice import Encode, Vector, find_danger, packaged_classifier, regional_contacts
from osler.danger.rules import DangerRules, packaged_rules, read_rules
from osler.errors import ModelError
from osler.settings import Settings
from osler.trace import DangerNoticed, Run
from osler.types import DangerNotice, Language, Question


def load_rules(settings: Settings) -> DangerRules:
    """The rules that the settings name. Raises `BadConfig` for a file that is none."""
    chosen = settings.danger.rules
    return packaged_rules() if chosen is None else read_rules(chosen)


def question_encoder(settings: Settings) -> Encode | None:
    """The packaged encoders, which the search loads too; `None` where the settings name others."""
    return _encode_question if settings.embedder.kind == "packaged" else None


def _encode_question(text: str, language: Language) -> Vector | None:
    from osler.build.hub import open_e5, open_minilm
    from osler.llm.core.cache import cache_dir

    try:
        encoder = (open_e5 if language == "zh" else open_minilm)(cache_dir())
        vector: Vector = encoder.encode([text], kind="query")[0].tolist()
    except ModelError:
        # The search names what is not installed; the notice goes by rules and words until then.
        return None
    return vector


def danger_notice(
    settings: Settings, question: Question, earlier: Sequence[str] = ()
) -> DangerNotice | None:
    """The first words to the reader; `earlier` is what they wrote before in a conversation.

    `None` without danger, or with the notice off. Raises `BadConfig` as `load_rules`.
    """
    chosen = settings.danger
    if chosen.notice == "off":
        return None
    contacts = regional_contacts(
        chosen.region, emergency=chosen.emergency, crisis=chosen.crisis, note=chosen.note
    )
    texts = (*earlier, question.text)
    classifier = packaged_classifier() if chosen.classifier == "on" else None
    return find_danger(
        texts,
        load_rules(settings),
        contacts,
        question.language,
        classifier,
        # Rules that a hospital wrote are its own decision.
        overrules=chosen.rules is None,
        encode=question_encoder(settings),
    )


def announce_danger(danger: DangerNotice | None, run: Run) -> None:
    """Makes the notice the run's next event, which is its first one."""
    if danger is not None:
        run.emit(DangerNoticed(danger))
