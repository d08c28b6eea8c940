"""The notice to people in danger, as the settings have it; no language model is asked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from osler.danger.notice import Meaning, find_danger, packaged_classifier, regional_contacts
from osler.danger.rules import DangerRules, packaged_rules, read_rules
from osler.settings import Settings
from osler.trace import DangerNoticed, Run
from osler.types import DangerNotice, Question

if TYPE_CHECKING:
    from osler.kb.encoders.network import PieceNetwork


def load_rules(settings: Settings) -> DangerRules:
    """The rules that the settings name. Raises `BadConfig` for a file that is none."""
    chosen = settings.danger.rules
    return packaged_rules() if chosen is None else read_rules(chosen)


def question_meaning(settings: Settings) -> Meaning | None:
    """What the packaged multilingual encoder tells of a question; `None` where the settings name
    another encoder."""
    return _judge_question if settings.embedder.kind == "packaged" else None


def _judge_question(text: str) -> Sequence[float] | None:
    from osler.build.hub import read_tokens

    read = read_tokens(text)
    if read is None or not len(read[1]):
        return None
    heard = [network.judge(read[1]) for network in packaged_meaning()]
    return [sum(map(float, each)) / len(heard) for each in zip(*heard, strict=True)]


@cache
def packaged_meaning() -> tuple[PieceNetwork, ...]:
    """The networks that come with Osler, which are heard together; what comes out of each is by
    kind, as `KINDS`."""
    import numpy as np

    from osler.kb.encoders.network import read_networks

    with as_file(files("osler.danger").joinpath("meaning.npz")) as path, np.load(path) as kept:
        return read_networks(kept)


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
        meaning=question_meaning(settings),
    )


def announce_danger(danger: DangerNotice | None, run: Run) -> None:
    """Makes the notice the run's next event, which is its first one."""
    if danger is not None:
        run.emit(DangerNoticed(danger))
