"""The notice itself: from the rules that apply to what is said to the reader."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from osler.danger.rules import DangerRules
from osler.types import DangerKind, DangerNotice, Language

ANYWHERE = "any"
"""The region that names no numbers."""
_KINDS: tuple[DangerKind, ...] = ("emergency", "self-harm")

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
    texts: Iterable[str], rules: DangerRules, contacts: Contacts, language: Language
) -> DangerNotice | None:
    """The notice for a person's texts; `None` without danger."""
    matched = [rule for text in texts for rule in rules.match(text)]
    kinds = tuple(kind for kind in _KINDS if any(rule.kind == kind for rule in matched))
    if not kinds:
        return None
    names = tuple(dict.fromkeys(rule.name for rule in matched))
    return DangerNotice(kinds, _write_text(kinds, contacts, language), names, language)


def _write_text(kinds: tuple[DangerKind, ...], contacts: Contacts, language: Language) -> str:
    words = _read_contacts()["words"]
    said = [words[kind][language] for kind in kinds]
    said.append(words["limits"][language])
    text = ("" if language == "zh" else " ").join(said)
    text = text.format(emergency=contacts.emergency[language], crisis=contacts.crisis[language])
    return f"{text} {contacts.note}".strip()


@cache
def _read_contacts() -> dict[str, Any]:
    text = files("osler.danger").joinpath("contacts.toml").read_text(encoding="utf-8")
    return {**tomllib.loads(text)}
