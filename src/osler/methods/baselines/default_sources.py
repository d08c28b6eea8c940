"""Where each method's default values come from: a comparison is worth its weakest baseline.

A value was either looked up in what its authors published, or is recalled from their paper
without having been compared again, or is a choice of ours where they give none. What one of the
three papers says of how it ran a method goes before the method's own. A test holds that every
setting of every method stands here once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DefaultSource:
    kind: str
    """As `strategy.kind` has it."""
    source: str
    """Where values were looked up."""
    found: tuple[str, ...] = ()
    """Settings whose defaults stand there."""
    recalled: tuple[str, ...] = ()
    """Settings whose defaults are the paper's from memory."""
    ours: tuple[str, ...] = ()
    """Settings for which the authors give nothing, or nothing that fits."""


_DRAGIN = "DRAGIN's released settings for 2WikiMultihopQA"
_KAG_THINKER = "KAG-Thinker §4.1 (k)"
_NONE = "-"

ORIGINS: tuple[DefaultSource, ...] = (
    DefaultSource("direct", "no values"),
    DefaultSource("cot", "no values"),
    DefaultSource("rag", "Omni-RAG §5.1.2", ("k",)),
    DefaultSource(
        "fl-rag", f"{_DRAGIN}; FLARE's released script (length)", ("k", "window", "length")
    ),
    DefaultSource(
        "fs-rag",
        f"{_DRAGIN}; TC-RAG's released code (sentences)",
        ("k", "sentences", "look_ahead"),
    ),
    DefaultSource(
        "flare",
        "released settings for 2WikiMultihopQA",
        ("k", "theta", "beta", "query", "look_ahead"),
        (),
        ("rounds",),
    ),
    DefaultSource(
        "dragin",
        _DRAGIN,
        ("k", "threshold", "scaled", "words", "look_ahead"),
        (),
        ("rounds",),
    ),
    DefaultSource(
        "dragin-entropy",
        _DRAGIN,
        ("k", "words", "look_ahead"),
        (),
        ("threshold", "rounds"),
    ),
    DefaultSource("chain-of-note", _NONE, (), ("k",)),
    DefaultSource(
        "chain-of-knowledge",
        "released code for MedMCQA",
        ("k", "samples", "temperature", "rationales"),
    ),
    DefaultSource("sure", "released code", ("k", "candidates")),
    DefaultSource("hykge", "released example settings", ("k", "hops"), (), ("candidates",)),
    DefaultSource("react", "released code for HotpotQA", ("steps",), (), ("k",)),
    DefaultSource(
        "self-rag",
        "released code and its instructions, short form",
        ("k", "threshold", "relevance", "support", "utility", "beam", "segments"),
        (),
        ("form",),
    ),
    DefaultSource("adaptive-rag", "released code, as run with GPT-3.5", ("k", "several")),
    DefaultSource(
        "ircot",
        f"{_KAG_THINKER}; released code and its settings for HotpotQA",
        ("k", "steps", "passages", "reader"),
    ),
    DefaultSource(
        "search-o1", f"{_KAG_THINKER}; released code, one hop", ("k", "searches", "refine")
    ),
    DefaultSource("r1-gen", "no values"),
    DefaultSource("search-r1", f"{_KAG_THINKER}; the paper (turns)", ("k", "turns")),
    DefaultSource("zero-search", f"{_KAG_THINKER}; released training commands", ("k", "turns")),
    DefaultSource("step-search", f"{_KAG_THINKER}; released training script", ("k", "turns")),
    DefaultSource("research", _KAG_THINKER, ("k",), (), ("turns",)),
    DefaultSource(
        "hipporag",
        "released settings",
        ("k", "triples", "passage_weight", "damping"),
        (),
        ("depth",),
    ),
    DefaultSource(
        "pike-rag",
        "released settings for HotpotQA",
        ("k", "steps", "likeness", "candidates"),
        (),
        ("proposals", "atoms"),
    ),
    DefaultSource("kag-static", "released settings for HotpotQA", ("k",), (), ("tasks",)),
    DefaultSource("medrag", "released code", ("k", "rrf_k")),
    DefaultSource("i-medrag", "released code", ("k", "rrf_k", "rounds", "queries")),
)


def render_sources_table() -> str:
    """The table as it stands in docs/guide/baselines.md."""
    rows = [
        "| `--strategy` | Looked up in | Found there | Recalled | Ours |",
        "|---|---|---|---|---|",
    ]
    rows += [
        f"| `{o.kind}` | {o.source} | {_setting_names(o.found)} | {_setting_names(o.recalled)} | {_setting_names(o.ours)} |"
        for o in ORIGINS
    ]
    return "\n".join(rows)


def _setting_names(settings: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in settings) or "-"
