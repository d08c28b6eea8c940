"""The one line while a run works."""

from __future__ import annotations

import io
from dataclasses import dataclass

from osler.cli.run_output import WaitingLine, first_step
from osler.cli.words import LANGUAGE
from osler.settings import Settings
from osler.trace import Event, PassagesOrdered, PlannedQuery, Retrieved, Searched, SourcesPlanned


@dataclass
class Watch:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def waiting(watch: Watch, *, terminal: bool) -> tuple[WaitingLine, io.StringIO]:
    out = io.StringIO()
    return WaitingLine(out, terminal, ("opening the model", "a search"), clock=watch), out


def test_a_terminal_sees_the_step_its_seconds_and_what_is_next() -> None:
    watch = Watch()
    line, out = waiting(watch, terminal=True)
    line.show()
    assert out.getvalue() == "", "a short run needs no line"
    watch.now += 3
    line.turn_to(Searched("q", 4, ("book", "wiki")))
    assert out.getvalue().endswith("searching book, wiki, 3 s; next: reading what is found")
    watch.now += 1
    line.show()
    assert out.getvalue().endswith("searching book, wiki, 4 s; next: reading what is found")
    line.close()
    assert out.getvalue().endswith("\x1b[2K"), "the line is gone when the answer comes"


def test_probing_a_model_server_is_said_while_it_lasts() -> None:
    served = {"kind": "openai", "url": "http://127.0.0.1:9/v1", "name": "m"}
    step, then = first_step(Settings.model_validate({"model": served}))
    assert step == "asking the model server at http://127.0.0.1:9/v1 what it can do"
    assert then == "reading the question"
    assert "server" not in first_step(Settings())[0]


def test_the_first_step_is_told_in_the_language_of_the_command_line() -> None:
    """Before the first event: on a slow machine it stands for many seconds."""
    kept = LANGUAGE.set("zh")
    try:
        watch = Watch()
        line = WaitingLine(io.StringIO(), True, first_step(Settings()), clock=watch)
        watch.now += 12
        assert line.line == "正在打开知识库和模型，12 秒；接下来：正在读问题"
    finally:
        LANGUAGE.reset(kept)


def test_a_pipe_gets_a_line_every_ten_seconds() -> None:
    watch = Watch()
    line, out = waiting(watch, terminal=False)
    for second in range(25):
        watch.now = 100.0 + second
        line.show()
    line.close()
    assert out.getvalue().splitlines() == [
        "opening the model, 10 s; next: a search",
        "opening the model, 20 s; next: a search",
    ]


def test_events_without_a_step_of_their_own_keep_the_one_before() -> None:
    line, _ = waiting(Watch(), terminal=False)
    events: list[tuple[Event, str]] = [
        (SourcesPlanned((PlannedQuery("book", 0, "x"),), "fixed"), "planned what to ask of book"),
        (Searched("x", 4, ("a", "b", "c", "d")), "searching a, b, c and 1 more"),
        (Retrieved("x", ()), "nothing found there"),
        (PassagesOrdered(("book:a", "wiki:b")), "reading 2 passages of book, wiki"),
    ]
    for event, step in events:
        line.turn_to(event)
        assert line.now[0] == step


def test_control_characters_of_a_model_do_not_reach_the_terminal() -> None:
    line, _ = waiting(Watch(), terminal=True)
    line.now = ("step 1: \x1b[2J", "")
    assert "\x1b" not in line.line
