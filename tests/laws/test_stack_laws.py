"""Laws of the memory stack (TC-RAG §3, §5.1, §5.2)."""

from hypothesis import given
from hypothesis import strategies as st

from osler.methods.tcrag.stack import LARGE, Frame, FrameKind, MemoryStack
from osler.types import Question

QUESTION = Question("q", "Why does the ankle swell?")
KINDS = st.sampled_from(
    [FrameKind.THOUGHT, FrameKind.OBSERVATION, FrameKind.SUMMARY, FrameKind.CONCLUSION]
)
VALUES = st.none() | st.floats(0.01, 1e6)
PUSHES = st.tuples(KINDS, st.text(), VALUES)


def built(pushes: list[tuple[FrameKind, str, float | None]]) -> MemoryStack:
    memory = MemoryStack(QUESTION)
    for kind, text, state in pushes:
        memory.push(kind, text, state=state)
    return memory


@given(st.lists(PUSHES), PUSHES)
def test_pop_undoes_push(
    pushes: list[tuple[FrameKind, str, float | None]], extra: tuple[FrameKind, str, float | None]
) -> None:
    memory = built(pushes)
    before = list(memory.frames)
    memory.push(extra[0], extra[1], state=extra[2])
    memory.pop()
    assert memory.frames == before


@given(st.lists(PUSHES), PUSHES, st.booleans())
def test_only_a_popped_thought_restores_the_state(
    pushes: list[tuple[FrameKind, str, float | None]],
    extra: tuple[FrameKind, str, float | None],
    restore: bool,
) -> None:
    """Line 24: "if old_action is Thought, reset s to the previous state"."""
    memory = built(pushes)
    before = memory.state
    memory.push(extra[0], extra[1], state=extra[2])
    pushed = memory.state
    memory.pop(restore=restore)
    restores = restore and extra[0] is FrameKind.THOUGHT
    assert memory.state == (before if restores else pushed)


@given(st.lists(PUSHES), st.integers(0, 30))
def test_the_query_is_never_popped(
    pushes: list[tuple[FrameKind, str, float | None]], pops: int
) -> None:
    memory = built(pushes)
    popped = [memory.pop() for _ in range(pops)]
    assert memory.frames[0] == Frame(FrameKind.QUERY, QUESTION.text, LARGE)
    assert len(memory) == 1 + max(0, len(pushes) - pops)
    assert popped.count(None) == max(0, pops - len(pushes))


@given(st.lists(PUSHES), KINDS, st.text())
def test_a_frame_without_a_value_carries_the_last_one_on(
    pushes: list[tuple[FrameKind, str, float | None]], kind: FrameKind, text: str
) -> None:
    memory = built(pushes)
    state = memory.state
    memory.push(kind, text)
    assert memory.state == state


@given(st.lists(st.one_of(PUSHES, st.none()), max_size=40))
def test_any_sequence_behaves_like_a_plain_list(
    steps: list[tuple[FrameKind, str, float | None] | None],
) -> None:
    """Differential: a list of kind, text and the value before, and s, kept side by side."""
    memory = MemoryStack(QUESTION)
    model: list[tuple[FrameKind, str, float]] = []
    s = LARGE
    for step in steps:
        if step is None:
            if model and model[-1][0] is FrameKind.THOUGHT:
                s = model[-1][2]
            memory.pop()
            model = model[:-1]
        else:
            kind, text, state = step
            memory.push(kind, text, state=state)
            model = [*model, (kind, text, s)]
            s = s if state is None else state
        assert memory.state == s
    assert [(f.kind, f.text, f.before) for f in memory.frames[1:]] == model
