"""Settings of each strategy, and their defaults.

A default from a paper says where. Further strategies come from other packages: `plugins`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Union, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from osler.methods.omni.plan import PlannerName
from osler.methods.tcrag.stack import Metric
from osler.settings.fields import RealLimit, SettingsSection, ShareLimit, Whole, split_list
from osler.settings.plugins import PluginSettings, find_plugins

_PASSAGES = Field(default=5, ge=1, le=200, description="Passages a search gives to the model.")


class DirectSettings(SettingsSection):
    """The model alone, without evidence."""

    kind: Literal["direct"] = "direct"


class CotSettings(SettingsSection):
    """The model alone, step by step."""

    kind: Literal["cot"] = "cot"


class RagSettings(SettingsSection):
    """One search, then the answer."""

    kind: Literal["rag"] = "rag"
    k: Whole = Field(default=10, ge=1, le=200)
    """Passages that are read (Omni-RAG §5.1.2)."""


# pydantic orders fields by base class: `kind` stands in the first one to come first everywhere.
class StrategySection(SettingsSection):
    """A strategy's settings: `kind` comes first, the fields that strategies share after it."""

    kind: str


class MachineFields(StrategySection):
    """The memory stack and its monitor: TC-RAG, and the machine of the unified system."""

    metric: Literal["auto", Metric] = "auto"
    """State value: conditional perplexity (cppl, Eq. 4), uncertainty (uct, Eq. 5), or none (off);
    auto: cppl where the planner's model scores given texts, else uct where it tells the
    log-probabilities of its replies, else off. sureness (ours, of quoted answers): how likely the
    evidence does not answer, by the expert judge; its sigma is 0.5."""
    sigma: RealLimit = None
    """A conclusion stands below it; "none" = 10 for cppl, 20 for uct (TC-RAG App. 8.5), or what was
    fitted to the packaged model."""
    max_loop: Whole = Field(default=8, ge=1, le=1_000)
    """Actions, at most (Alg. 1, line 4; the value is that of the released code)."""
    backtrack: bool = True
    """False: the ablation without Backtrack."""
    summary: bool = True
    """False: the ablation without Summary."""
    moves: Literal["auto", "any", "guided"] = "auto"
    """any: every action at every step, as in the paper; guided: only those that fit the memory, for
    small models; auto: guided where the model does not word answers."""
    exhausted: Literal["draft", "top"] = "draft"
    """What is answered from when no conclusion was sure: the last Thought or Summary, or the top of
    the stack whatever it is (Alg. 1, line 31)."""
    search_first: bool = False
    """The question itself is looked up before the model is asked for its first action, where the
    model words its queries: a call less; false: the model begins, as in the paper."""
    fresh: bool = True
    """A further search reads passages that no earlier one has brought, where the model words its
    queries; false: the best again, read or not, as in the papers."""


class ThinkerFields(StrategySection):
    """Logical forms and the knowledge boundary: KAG-Thinker, and the unified system."""

    decompose: bool = True
    """False: the question itself is the only step (an ablation)."""
    tau: ShareLimit = None
    """Least probability of a token inside the box; "none" = as calibrated, else 0.5 (the paper
    gives no value)."""
    retriever: Literal["hybrid", "text"] = "hybrid"
    """hybrid: the graph source is asked by logical form as well (KAG-Thinker §3.4); text: by words
    alone, as all others (§4.1)."""
    turns: Whole = Field(default=10, ge=1, le=100)
    """Searches for one sub-question, at most (the released code)."""
    fresh: bool = True
    """A further search reads passages that no earlier one has brought, where the model words its
    queries; false: the best again, read or not, as in the papers."""
    formulas: bool = True
    """A verified formula answers a question for its value before any plan, and is tried before a
    program; false: programs only, as the paper."""
    graph_sets: bool = True
    """A question of several steps that the concept graph answers whole is answered by it, with sets
    and without a model; false: it is planned as any other, as in the paper."""
    own_search: Whole = Field(default=10, ge=0, le=200)
    """Passages that a search of the question itself adds to what the steps have found; 0: none, as
    in the paper."""


class PlannerFields(StrategySection):
    """Source plans: Omni-RAG, and the searches of the unified system."""

    queries: Whole = Field(default=3, ge=1, le=20)
    """Queries for a source, at most (Omni-RAG §4.1)."""
    per_source: Whole = Field(default=10, ge=1, le=200)
    """Passages that are read for each source asked: fused, the best of all sources together; turns,
    at most so many of each. Of one source as many as rag reads."""
    rounds: Whole = Field(default=8, ge=1, le=100)
    """Plans that reflexion and serts try (App. D.3)."""


def _known_tool(name: str) -> str:
    from osler.methods.tcrag.tools import DESCRIPTIONS, UNIFIED, registered_tools

    known = [*(tool for tool in DESCRIPTIONS if tool not in UNIFIED), *registered_tools()]
    if name not in known:
        raise ValueError(f"{name!r} is not a tool; known: {', '.join(known)}")
    return name


ToolName = Annotated[str, AfterValidator(_known_tool)]
"""A tool of `osler.methods.tcrag.tools`, or one that `register_tool` was given."""


class TcRagSettings(MachineFields):
    """A memory stack whose state value says when a conclusion may stand."""

    kind: Literal["tc-rag"] = "tc-rag"
    k: Whole = _PASSAGES
    tools: Annotated[tuple[ToolName, ...], BeforeValidator(split_list)] = ()
    """The tools that are offered; empty = a search for each kind of source and for the concept
    graph. The released code's helpers are offered only when named (HYPOTHESIS_OUTPUT, MEDICAL_NER,
    KNOWLEDGE_ORGANIZE, FILTER)."""
    dialect: Literal["tolerant", "paper", "released"] = "tolerant"
    """How replies are read: tolerant, tags and tool calls in any dress, several actions in one
    reply; paper, its tags, one action a reply; released, by the rules of the authors' program
    (Action, Action Input, Final Answer), which describes tools with their parameters."""


class KagThinkerSettings(ThinkerFields):
    """A question taken apart into logical forms, each solved in depth."""

    kind: Literal["kag-thinker"] = "kag-thinker"
    boundary: Literal["both", "self-check", "likelihood", "none"] = "both"
    """What must hold for the model's own answer to stand (KAG-Thinker §3.2); none: everything is
    looked up."""
    k: Whole = Field(default=3, ge=1, le=200)
    """Passages of one search (KAG-Thinker §4.1)."""
    dialogue: Literal["calls", "checkpoint", "trained"] = "calls"
    """How the model is spoken to: each prompt as a call of its own, for any model; or one growing
    dialogue, for a model that was trained on it: checkpoint, the authors', or trained, one taught
    with Osler's own data."""
    plans: Literal["auto", "model"] = "auto"
    """model: what no rule reads is planned by the model, as in the paper; auto: only where the
    model words answers, else it is searched as it stands, since a small model's plans find
    less."""
    forms: str = ""
    """A plan that is run as it stands, in the notation that runs show: a step and its action on two
    lines; empty: the planner makes one."""
    search_url: str = ""
    """The search server of the released code, as "http://HOST:12356", whose /search is asked in
    place of the knowledge base; empty: the knowledge base."""


class OmniRagSettings(PlannerFields):
    """A plan says which source is asked, and in which words; one reading answers."""

    kind: Literal["omni-rag"] = "omni-rag"
    planner: Literal["auto", PlannerName] = "auto"
    """Who plans (Omni-RAG App. D.3); trained: the planner's model as it was trained (an adapter,
    say); auto: prompting, but original where the planner's model may not word medicine."""
    k: Whole = Field(default=10, ge=1, le=200)
    """Passages that one query finds (Omni-RAG §5.1.2)."""
    order: Literal["fused", "turns"] = "fused"
    """Reading order of all queries' results: fused, a single fused ranking by meaning and by words;
    turns, the first of every query, then the second."""
    follow: Whole = Field(default=0, ge=0, le=10)
    """Further plans, at most: the reader, shown what was found, answers or plans what is still
    missing; for questions of several steps, whose second step the first one names. 0: none, as in
    the paper."""


class UnifiedSettings(MachineFields, ThinkerFields, PlannerFields):
    """A question taken apart; each lookup solved by a memory stack; each search planned."""

    kind: Literal["unified"] = "unified"
    machine: bool = True
    """TC-RAG's machine solves each lookup; false: KAG-Thinker's own searches."""
    planner: Literal["auto", PlannerName, "off"] = "auto"
    """Who plans the sources of each search, as for omni-rag; off: the ordinary search of all
    sources (of TC-RAG one for each kind of source)."""
    boundary: Literal["all", "both", "self-check", "likelihood", "state", "none"] = "all"
    """What must hold for the model's own answer to stand: self-check, least probability (these are
    both), the state value below sigma, all of them; none: everything is looked up."""
    short: bool = True
    """A step's conclusion is said in a few words where later steps are asked with it: a call more
    where the model concludes at length; never where answers are quoted."""
    last_deduce: bool = False
    """A Deduce that ends a plan is asked for by itself, as in KAG-Thinker; false: the answer, which
    is asked with the same facts, concludes in its place where the model words it: a call less."""
    search_first: bool = True
    """A step's own question is looked up before its machine is asked, as KAG-Thinker does (§3.1.2):
    a call less a step; false: the machine begins, as in TC-RAG."""
    k: Whole = Field(default=5, ge=1, le=200)
    """Passages that one search gives to the model."""


class AutoSettings(SettingsSection):
    """The cheapest method for each question, by what is asked; the run says which and why."""

    kind: Literal["auto"] = "auto"
    k: Whole = Field(default=10, ge=1, le=200)
    """Passages of a search."""


OwnStrategy = (
    DirectSettings
    | CotSettings
    | RagSettings
    | TcRagSettings
    | KagThinkerSettings
    | OmniRagSettings
    | UnifiedSettings
    | AutoSettings
)
_KINDS: tuple[type[SettingsSection], ...] = (*get_args(OwnStrategy), *find_plugins())
if TYPE_CHECKING:
    Strategy = OwnStrategy | PluginSettings
else:
    Strategy = Annotated[Union[_KINDS], Field(discriminator="kind")]  # noqa: UP007
USUAL_STRATEGY = "auto"
"""Where none is named: on the cost-quality front of docs/scoreboard.md."""
STRATEGIES: dict[str, type[SettingsSection]] = {
    kind.model_fields["kind"].default: kind for kind in _KINDS
}
