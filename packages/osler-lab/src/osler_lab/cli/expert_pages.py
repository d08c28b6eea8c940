"""Experts and their cards as tables. Pure: values in, renderables out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table

from osler.cli.tables import make_table, plain_table, plain_text

if TYPE_CHECKING:
    from osler.retrieve.experts.cards import ExpertCard
    from osler.retrieve.experts.shelf import ShelvedExpert


def experts_page(rows: Iterable[tuple[ShelvedExpert, str]]) -> RenderableType:
    """Name, question, size and use of each expert."""
    table = make_table(("expert", "decides", "kB", "in use"), numeric={"kB"})
    for one, use in rows:
        kilobytes = f"{one.bytes / 1000:,.0f}"
        table.add_row(*map(plain_text, (one.card.name, one.card.question, kilobytes, use or "-")))
    return table if table.row_count else plain_text("no expert comes with this version")


def card_page(expert: ShelvedExpert) -> Group:
    """The card: what it is, what it learnt from, its figures, what it is bad at."""
    card = expert.card
    facts = [
        ("expert", f"{card.name} ({expert.bytes / 1000:,.0f} kB, {card.family})"),
        ("decides", card.question),
        ("instead of", card.replaces),
        ("languages", ", ".join(card.languages)),
        ("base", card.base.partition("@")[0] or "-"),
        ("made by", f"{card.made}, seed {card.seed}, {card.date}"),
        *(("weak", weakness) for weakness in card.weak),
        *((name, f"{value:g}") for name, value in card.parameters.items()),
    ]
    return Group(plain_table(facts), _data_table(card), _figures_table(card))


def _data_table(card: ExpertCard) -> Table:
    columns = ("learnt from", "licence", "train", "dev", "test")
    table = make_table(columns, numeric={"train", "dev", "test"})
    for one in card.data:
        counts = (f"{count:,}" for count in (one.train, one.dev, one.test))
        table.add_row(*map(plain_text, (one.name, one.licence, *counts)))
    return table


def _figures_table(card: ExpertCard) -> Table:
    table = make_table(("on", "measure", "n", "expert", "rule", "gain"), numeric={"n"})
    for one in card.figures:
        rule = f"{one.rule} {one.rule_figure}"
        gain = str(one.gain or "-")
        row = (one.on, one.measure, f"{one.n:,}", str(one.expert), rule, gain)
        table.add_row(*map(plain_text, row))
    return table
