"""The notice to people in danger, as the settings have it; no model and no source is asked."""

from __future__ import annotations

from collections.abc import Sequence

from osler.danger.notice import find_danger, packaged_classifier, regional_contacts
from osler.danger.rules import DangerRules, packaged_rules, read_rules
from osler.settings import Settings
from osler.trace import DangerNoticed, Run
from osler.types import DangerNotice, Question


def load_rules(settings: Settings) -> DangerRules:
    """The rules that the settings name. Raises `BadConfig` for a file that is none."""
    chosen = settings.danger.rules
    return packaged_rules() if chosen is None else read_rules(chosen)


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
    )


def announce_danger(danger: DangerNotice | None, run: Run) -> None:
    """Makes the notice the run's next event, which is its first one."""
    if danger is not None:
        run.emit(DangerNoticed(danger))
