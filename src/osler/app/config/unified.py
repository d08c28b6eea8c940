"""The unified system's settings: each part on, off, or another one in its place.

What a part is set by bears the name that it has in the part's own strategy.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from osler.app.config.fields import RealLimit, SettingsSection, ShareLimit, Whole


class UnifiedSettings(SettingsSection):
    """A question taken apart; each lookup solved by a memory stack; each search planned."""

    kind: Literal["unified"] = "unified"
    decompose: bool = Field(
        default=True,
        description="KAG-Thinker takes the question apart; false: the question is one step.",
    )
    machine: bool = Field(
        default=True,
        description="TC-RAG's machine solves each lookup; false: KAG-Thinker's own searches.",
    )
    planner: Literal[
        "auto", "original", "query2doc", "prompting", "reflexion", "serts", "trained", "off"
    ] = Field(
        default="auto",
        description="Who plans the sources of each search, as for omni-rag; off: the ordinary"
        " search of all sources (of TC-RAG one for each kind of source).",
    )
    boundary: Literal["all", "both", "self-check", "likelihood", "state", "none"] = Field(
        default="all",
        description="What must hold for the model's own answer to stand: self-check, least"
        " probability (these are both), the state value below sigma, all of them; none:"
        " everything is looked up.",
    )
    tau: ShareLimit = Field(
        default=None,
        description='Least probability of a token inside the box; "none" = as for kag-thinker.',
    )
    metric: Literal["cppl", "uct", "off"] = Field(
        default="cppl", description="State value of the machine and of the boundary."
    )
    sigma: RealLimit = Field(
        default=None,
        description='A step\'s conclusion, or an own answer, stands below it; "none" = as for'
        " tc-rag.",
    )
    max_loop: Whole = Field(
        default=8, ge=1, le=1_000, description="Actions of the machine for one step, at most."
    )
    backtrack: bool = Field(default=True, description="False: the ablation without Backtrack.")
    summary: bool = Field(default=True, description="False: the ablation without Summary.")
    visible: bool = Field(default=False, description="Also show the state value to the model.")
    moves: Literal["auto", "any", "guided"] = Field(
        default="auto", description="Which actions the machine is offered, as for tc-rag."
    )
    short: bool = Field(
        default=True,
        description="A step's conclusion is also said in a few words, for later steps to be asked"
        " with: a call more a step; never where answers are quoted.",
    )
    k: Whole = Field(
        default=5, ge=1, le=200, description="Passages that one search gives to the model."
    )
    turns: Whole = Field(
        default=10, ge=1, le=100, description="Searches for one step without the machine, at most."
    )
    retriever: Literal["hybrid", "text"] = Field(
        default="hybrid",
        description="hybrid: the graph can be asked by a step's logical form as well; text: not.",
    )
    formulas: bool = Field(
        default=True, description="Try a verified formula before a program; false: programs only."
    )
    queries: Whole = Field(
        default=3, ge=1, le=20, description="Queries for a source in one plan, at most."
    )
    query_k: Whole = Field(
        default=10, ge=1, le=200, description="Passages that one planned query finds."
    )
    per_source: Whole = Field(
        default=5, ge=1, le=200, description="Passages of one source in one search, at most."
    )
    order: Literal["plan", "coverage"] = Field(
        default="coverage",
        description="Which k passages of a planned search are read: those that hold the most of"
        " what is looked for; or, plan, the first of each query in turn.",
    )
    rounds: Whole = Field(
        default=8, ge=1, le=100, description="Plans that reflexion and serts try."
    )
    width: Whole = Field(default=3, ge=1, le=20, description="Children of a node of serts.")
    judged: Whole = Field(
        default=5, ge=1, le=200, description="Passages of one query that a judge of plans reads."
    )
