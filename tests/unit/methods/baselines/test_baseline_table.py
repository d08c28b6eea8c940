"""The tables of the documentation are those of the code, and the code keeps to them."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

from osler.settings import STRATEGIES
from osler.settings.plugins import SINGLE_PASS, MethodFacts, methods_by_kind
from osler_lab.baselines.build import BASELINES, METHOD_CLASSES
from osler_lab.baselines.settings import read_facts

DOCS = Path(__file__).parents[4] / "docs"
OWN = {"tc-rag", "kag-thinker", "omni-rag", "unified", "auto"}
"""Strategies that are no baselines."""
METHODS = (*SINGLE_PASS, *(methods_by_kind()[kind] for kind in read_facts()))
SETTINGS = {
    kind: [name for name in section.model_fields if name != "kind"]
    for kind, section in STRATEGIES.items()
}


def render_methods_table() -> str:
    """The first table of docs/guide/baselines.md."""
    rows = ["| `--strategy` | Method | Needs of the model | Calls | At most | Differs |"]
    rows.append("|---|---|---|---|--:|---|")
    rows += [
        f"| `{m.kind}` | {m.paper} | {m.needs} | {m.calls} | {m.most} | {m.differs} |"
        for m in METHODS
    ]
    return "\n".join(rows)


def render_sources_table(settings: Mapping[str, Sequence[str]]) -> str:
    """The first table of docs/papers/baselines.md; `settings`: names of each method's settings.

    A setting that is neither recalled nor ours was found in the method's source.
    """
    rows = [
        "| `--strategy` | Looked up in | Found there | Recalled | Ours |",
        "|---|---|---|---|---|",
    ]
    for m in METHODS:
        found = [name for name in settings[m.kind] if name not in (*m.recalled, *m.ours)]
        columns = (_quote_names(names) for names in (found, m.recalled, m.ours))
        rows.append(f"| `{m.kind}` | {m.source} | {' | '.join(columns)} |")
    return "\n".join(rows)


def _quote_names(settings: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in settings) or "-"


def test_the_page_holds_the_tables_as_the_code_has_them() -> None:
    guide, values = (DOCS / name / "baselines.md" for name in ("guide", "papers"))
    assert render_methods_table() in guide.read_text(encoding="utf-8")
    assert render_sources_table(SETTINGS) in values.read_text(encoding="utf-8")


def test_every_baseline_that_can_be_set_stands_in_it_once() -> None:
    kinds = [method.kind for method in METHODS]
    assert sorted(kinds) == sorted(set(STRATEGIES) - OWN)
    assert set(BASELINES) <= set(kinds)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.kind)
def test_every_default_has_one_origin(method: MethodFacts) -> None:
    named = [*method.recalled, *method.ours]
    assert len(named) == len(set(named))
    assert set(named) <= set(SETTINGS[method.kind])
    found = set(SETTINGS[method.kind]) - set(named)
    assert bool(found) <= (method.source not in ("-", "no values"))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.kind)
def test_baseline_table_has_no_open_entries(method: MethodFacts) -> None:
    assert all(getattr(method, name) for name in ("paper", "needs", "calls", "most", "differs"))


@pytest.mark.parametrize("kind", BASELINES)
def test_a_setting_has_the_default_of_the_method_it_sets(kind: str) -> None:
    section = BASELINES[kind]
    known = [f for f in fields(METHOD_CLASSES[section]) if f.default not in (MISSING, None)]
    defaults = {f.name: f.default for f in known}
    for name in defaults.keys() & section.model_fields.keys():
        assert section.model_fields[name].default == defaults[name], name
