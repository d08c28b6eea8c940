"""What TC-RAG's machine is made of, and the values that the paper gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Self

from osler.answer import Composer
from osler.answer.written import WrittenComposer
from osler.llm.core.base import LanguageModel, Likelihood, Sampling
from osler.methods.tcrag import actions
from osler.methods.tcrag.conversation import Template
from osler.methods.tcrag.monitor import SIGMA, Metric, Monitor, make_monitor
from osler.methods.tcrag.moves import AnyMove, Moves
from osler.methods.tcrag.steps import ActionReader
from osler.methods.tcrag.tools import ALL_RAG, SearchTool, Tool
from osler.types import Retriever


@dataclass(frozen=True)
class MachineParts:
    """The parts of a `TuringMachine`, and its options."""

    model: LanguageModel
    """Writes the actions."""
    tools: tuple[Tool, ...]
    monitor: Monitor
    composer: Composer
    moves: Moves
    sigma: float
    max_loop: int = 8
    argument: bool = True
    """Whether the model writes the tool's query; else the question itself is asked."""
    constrained: bool = False
    """Whether the engine takes a grammar."""
    read: ActionReader = actions.parse_action
    """Parser of replies, by the dialect; all are in `tcrag.actions`."""
    summariser: LanguageModel | None = None
    """Model that writes summaries; `None` = the acting model, in its action, as in the paper."""
    basis: str = ""
    """Origin of sigma, shown with the reason for halting; empty for a configured one."""
    note: str = ""
    """A note on sigma, emitted before the first step."""
    longest: int = 600
    """Characters of an action's text under a grammar; a third of it in Chinese, which is denser."""
    template: Template = "line"
    """How tools are described to the model."""
    exhausted: Literal["draft", "top"] = "draft"
    """What a run without a sure conclusion returns: the last Thought or Summary, or, as in line
    31, the top of the stack whatever it is."""
    closes: bool = False
    """Whether a run whose steps are spent asks for a Conclusion before it ends, and one ends whose
    model has said twice that the same evidence does not answer."""
    search_first: bool = False
    """Whether the question itself is looked up before the model is asked for its first action."""
    fresh: bool = False
    """Whether a search shows only passages that memory lacks (`ToolCall.fresh`)."""
    sampling: Sampling = field(default_factory=Sampling)

    @classmethod
    def from_model(
        cls, model: LanguageModel, retriever: Retriever, *, metric: Metric | None = None
    ) -> Self:
        """Makes the machine of the paper, with one tool that searches and one model for all else.

        Every action at every step (Algorithm 1), sigma as in App. 8.5, 8 steps as in the released
        code; the model words the answer, and its sentences are held against the passages. `metric`
        is the state value; `None`: cppl where the model scores given texts, else uct, for which it
        must tell the log-probabilities of its replies. Other values: `dataclasses.replace`. Raises
        `CapabilityMissing` for cppl of a model that scores nothing.

            >>> import asyncio, osler
            >>> from osler_lab.testing.scripted import ScriptedModel, ScriptedRetriever
            >>> text = "Warfarin is stopped five days before surgery."
            >>> found = osler.Passage("notes:warfarin#0", text, "notes", "Warfarin")
            >>> replies = ["Tool_Use: ALL_RAG\\nTool_Input: warfarin", f"Conclusion: {text} [1]"]
            >>> model, retriever = ScriptedModel(replies), ScriptedRetriever({"warfarin": [found]})
            >>> machine = osler.TuringMachine.from_model(model, retriever)
            >>> question = osler.parse_question("When is warfarin stopped before surgery?")
            >>> solution = asyncio.run(machine.solve(question, osler.Run()))
            >>> solution.answer.text, solution.why
            ('Warfarin is stopped five days before surgery. [1]', 'cppl 2 < sigma 10')
        """
        chosen: Metric = metric or ("cppl" if isinstance(model, Likelihood) else "uct")
        return cls(
            model,
            (SearchTool(ALL_RAG, retriever),),
            make_monitor(chosen, model),
            WrittenComposer(),
            AnyMove(frozenset({ALL_RAG})),
            sigma=SIGMA[chosen],
            exhausted="top",
        )
