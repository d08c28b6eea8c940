"""Reports of conversations: turns, threads, the list of what was asked, what an answer changed."""

from __future__ import annotations

from typing import Literal

from osler.reports import RunStarted, Status
from osler.reports.knowledge import ResponseModel


class StandaloneView(ResponseModel):
    """A question made to stand alone; edit it and give it as `standalone`."""

    standalone: str
    rewritten_by: str
    """rule, model or user; empty where it stood alone."""


class TurnView(StandaloneView):
    n: int
    run_id: str
    question: str
    created: str


class ThreadView(ResponseModel):
    thread_id: str
    created: str
    turns: list[TurnView]
    outdated: bool
    """Whether the last answer is of another state of the knowledge base than the present one."""


class ThreadList(ResponseModel):
    threads: list[ThreadView]
    """The newest first, each with its first question alone."""


class ConversationView(ResponseModel):
    """A conversation, or a question that stands alone: one line of a reader's list."""

    id: str
    """Of the thread, or of the run."""
    kind: Literal["thread", "run"]
    title: str
    """The reader's, else the first question."""
    created: str
    status: Status
    """Of the last run."""
    strategy: str
    turns: int
    last_run: str
    pinned: bool


class ConversationList(ResponseModel):
    conversations: list[ConversationView]
    """The first page has the pinned ones first, whatever their age; then those last asked in."""
    next: str | None
    """Give it as `before` to read on."""


class FollowUpList(ResponseModel):
    questions: list[str]
    """To be asked as they are: each names a section that a search has found."""


class TurnStarted(RunStarted):
    """A run that answers a turn."""

    turn: TurnView


class ChangeView(ResponseModel):
    """What differs between two answers to one question."""

    question: str
    before: str
    """Run of the earlier answer."""
    after: str
    new_statements: list[str]
    gone_statements: list[str]
    new_passages: list[str]
    """Ids of passages that only the later answer cites, or of which it quotes other words."""
    gone_passages: list[str]
    grounding: list[str]
    """Before and after."""


class ChangeList(ResponseModel):
    changes: list[ChangeView]
    """In the order of the turns; a question that was asked once has none."""
