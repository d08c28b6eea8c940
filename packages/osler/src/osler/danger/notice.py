"""Builds the notice from the rules that apply."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from osler.danger.classifier import KINDS as _KINDS
from osler.danger.classifier import DangerClassifier
from osler.danger.rules import DangerRules
from osler.text import has_cjk, read_packaged_table
from osler.types import DangerKind, DangerNotice, Language

ANYWHERE = "any"
"""The region that names no numbers."""

# "And in pregnancy?": three words after the preposition are too few for a classifier of n-grams,
# which takes them for the end of an emergency. Rules read them as they read everything.
_ADDITION = re.compile(
    r"(?:and|but|what about|how about)\s+(?:in|for|with|during|after|before|at)\s+"
    r"(?:\w+\s+){0,2}\w+\s*\?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{4}")

_Words = dict[Language, str]


@dataclass(frozen=True, slots=True)
class Contacts:
    """Emergency contacts, worded to follow "call"."""

    emergency: _Words
    crisis: _Words
    note: str = ""
    """A place's own text, which ends the notice in every language."""


def region_names() -> tuple[str, ...]:
    return tuple(_read_contacts()["regions"])


def regional_contacts(
    region: str, *, emergency: str = "", crisis: str = "", note: str = ""
) -> Contacts:
    """The numbers of a region; those given take their place. Raises `KeyError`."""
    known = _read_contacts()["regions"][region]
    return Contacts(
        {"en": emergency, "zh": emergency} if emergency else known["emergency"],
        {"en": crisis, "zh": crisis} if crisis else known["crisis"],
        note,
    )


def find_danger(
    texts: Iterable[str],
    rules: DangerRules,
    contacts: Contacts,
    language: Language,
    classifier: DangerClassifier | None = None,
    *,
    overrules: bool = False,
) -> DangerNotice | None:
    """The notice for a person's texts; `None` without danger.

    What the rules find counts, and what the `classifier` makes of it and finds by itself; with
    `overrules` it may switch a rule off.
    """
    signs: dict[str, DangerKind] = {}
    for text in texts:
        signs |= find_signs(text, rules, classifier, overrules=overrules)
    kinds = tuple(kind for kind in _KINDS if kind in signs.values())
    if not kinds:
        return None
    return DangerNotice(kinds, _write_text(kinds, contacts, language), tuple(signs), language)


def find_signs(
    text: str, rules: DangerRules, classifier: DangerClassifier | None, *, overrules: bool
) -> dict[str, DangerKind]:
    """The kind of danger by the name of each rule that applies, the classifier's included."""
    matched = {rule.name: rule.kind for rule in rules.match(text)}
    if classifier is None or _says_too_little(text):
        return matched
    return classifier.weigh_signs(text, matched, overrules=overrules)


def _says_too_little(text: str) -> bool:
    """An addition, or figures without a word ("BMI of 80 kg and 1.75 m?")."""
    figures = re.search(r"\d", text) and not has_cjk(text) and not _WORD.search(text)
    return bool(figures or _ADDITION.fullmatch(text.strip()))


def _write_text(kinds: tuple[DangerKind, ...], contacts: Contacts, language: Language) -> str:
    words = _read_contacts()["words"]
    said = [words[kind][language] for kind in kinds]
    said.append(words["limits"][language])
    text = ("" if language == "zh" else " ").join(said)
    text = text.format(emergency=contacts.emergency[language], crisis=contacts.crisis[language])
    return f"{text} {contacts.note}".strip()


@cache
def _read_contacts() -> dict[str, Any]:
    return read_packaged_table(__package__, "contacts.toml")
