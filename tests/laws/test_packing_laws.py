"""Laws of a corpus: nothing is lost in packing, and weights are the shares that were asked for."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from osler_lab.train.tune.corpus import split_pieces
from osler_lab.train.tune.encode import (
    MixedWindows,
    PackedWindows,
    deal_quotas,
    mix_windows,
    pack_windows,
)

END = 0
TEXTS = st.lists(st.lists(st.integers(1, 2**32 - 1), max_size=12), max_size=12)
COUNTS = st.lists(st.integers(1, 40), min_size=1, max_size=5)
WEIGHT = st.floats(0.01, 100)


@given(TEXTS, st.integers(2, 9))
def test_every_token_and_every_end_is_learnt_once_and_in_order(
    texts: list[list[int]], size: int
) -> None:
    windows = pack_windows("a", texts, end=END, size=size)
    learnt = [
        token
        for n in range(len(windows))
        for token, on in zip(windows[n].tokens, windows[n].learns, strict=True)
        if on
    ]
    assert learnt == [token for text in texts for token in (*text, END)]


@given(TEXTS, st.integers(2, 9))
def test_windows_are_full_but_the_last_and_each_begins_where_one_ended(
    texts: list[list[int]], size: int
) -> None:
    windows = pack_windows("a", texts, end=END, size=size)
    made = [windows[n] for n in range(len(windows))]
    assert all(len(window) == size for window in made[:-1])
    assert all(2 <= len(window) <= size for window in made)
    assert all(b.tokens[0] == a.tokens[-1] for a, b in pairwise(made))
    assert not any(window.learns[0] for window in made)


@given(st.data(), COUNTS, st.integers(0, 9))
def test_weights_give_the_shares_asked_for(
    data: st.DataObject, counts: list[int], seed: int
) -> None:
    weights = data.draw(st.lists(WEIGHT, min_size=len(counts), max_size=len(counts)))
    places = mix_windows(counts, weights, seed)
    assert len(places) == sum(counts)
    had = Counter(source for source, _ in places)
    for source, weight in enumerate(weights):
        assert abs(had[source] - len(places) * weight / sum(weights)) < 1


@given(st.data(), COUNTS, st.integers(0, 9))
def test_windows_of_a_source_are_read_as_often_as_each_other_or_once_more(
    data: st.DataObject, counts: list[int], seed: int
) -> None:
    weights = data.draw(st.lists(WEIGHT, min_size=len(counts), max_size=len(counts)))
    had = Counter(mix_windows(counts, weights, seed))
    for source, count in enumerate(counts):
        times = [had[source, n] for n in range(count)]
        assert max(times) - min(times) <= 1
    assert mix_windows(counts, weights, seed) == mix_windows(counts, weights, seed)


@given(COUNTS)
def test_without_weights_every_window_is_read_once(counts: list[int]) -> None:
    had = Counter(mix_windows(counts, None, 0))
    assert had == Counter((s, n) for s, count in enumerate(counts) for n in range(count))


@given(st.lists(st.tuples(st.integers(0, 40), WEIGHT), min_size=1, max_size=6))
def test_quotas_come_to_the_whole(parts: list[tuple[int, float]]) -> None:
    counts, weights = [c for c, _ in parts], [w for _, w in parts]
    dealt = deal_quotas(counts, weights)
    assert sum(dealt) == sum(counts)
    assert min(dealt) >= 0


@given(st.text(alphabet="a贫 \n", max_size=200), st.integers(1, 30))
def test_pieces_of_a_text_are_the_text(text: str, most: int) -> None:
    cut = list(split_pieces(text, most))
    assert "".join(cut) == text
    assert all(len(piece) <= most for piece in cut)


def test_a_mixture_is_a_sequence_of_windows() -> None:
    one, other = (
        pack_windows("a", [[1, 2, 3]], end=END, size=3),
        pack_windows("b", [[4]], end=END, size=3),
    )
    assert isinstance(one, PackedWindows)
    mixed = MixedWindows((one, other), ((0, 1), (1, 0), (0, 0)))
    assert [window.id for window in mixed] == ["a.1", "b.0", "a.0"]
    assert [window.tokens for window in mixed[1:]] == [(END, 4, END), (END, 1, 2)]
