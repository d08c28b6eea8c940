"""A split never divides a document or a question, and train never sees what is tested on."""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from osler.errors import BadConfig
from osler.train.experts.splits import DataSplit, hash_of, make_split, read_split, write_split


@dataclass(frozen=True)
class Item:
    id: str
    documents: tuple[str, ...] = ()
    held_out: bool = False


items = st.lists(
    st.builds(
        Item,
        st.text("abcdef", min_size=1, max_size=4).map("q:{}".format),
        st.lists(st.integers(0, 12).map("d:{}".format), max_size=3).map(tuple),
        st.booleans(),
    ),
    unique_by=lambda item: item.id,
    max_size=30,
)


@given(items)
def test_what_shares_a_document_is_in_one_part(found: list[Item]) -> None:
    split = make_split(found)
    for one in found:
        for other in found:
            if set(one.documents) & set(other.documents):
                assert split.part_of(one) == split.part_of(other)


@given(items)
def test_a_held_out_item_takes_all_that_it_touches_to_the_test_part(found: list[Item]) -> None:
    split = make_split(found)
    documents = {d for one in found if one.held_out for d in one.documents}
    for one in found:
        if one.held_out or documents & set(one.documents):
            assert split.part_of(one) == "test"


@given(items)
def test_every_item_is_in_exactly_one_part(found: list[Item]) -> None:
    split = make_split(found)
    parts = [split.choose_items(found, part) for part in ("train", "dev", "test")]
    assert sorted(one.id for part in parts for one in part) == sorted(one.id for one in found)


@given(items, st.randoms())
def test_the_order_of_the_items_changes_nothing(found: list[Item], chance: object) -> None:
    shuffled = list(found)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    assert make_split(shuffled).parts == make_split(found).parts


def test_a_chain_of_shared_documents_is_one_component() -> None:
    chain = [Item(f"q{n}", (f"d{n}", f"d{n + 1}"), held_out=n == 0) for n in range(50)]
    assert len(make_split(chain).choose_items(chain, "test")) == 50


def test_the_shares_are_about_what_was_asked() -> None:
    many = [Item(f"q{n}", (f"d{n}",)) for n in range(2_000)]
    split = make_split(many, dev=0.1, test=0.25)
    assert 0.07 < len(split.choose_items(many, "dev")) / 2_000 < 0.13
    assert 0.21 < len(split.choose_items(many, "test")) / 2_000 < 0.29


def test_a_written_split_reads_back_and_holds_no_id(tmp_path: Path) -> None:
    found = [Item("secret question", ("secret page",)), Item("other")]
    split, path = make_split(found), tmp_path / "deep" / "split.json"
    write_split(split, path)
    assert read_split(path) == split
    assert "secret" not in path.read_text()


def test_an_item_that_the_split_divides_is_refused() -> None:
    split = DataSplit({hash_of("q"): "train", hash_of("d"): "test"})
    with pytest.raises(BadConfig, match="not in one part"):
        split.part_of(Item("q", ("d",)))


def test_an_item_with_an_unknown_document_is_refused() -> None:
    with pytest.raises(BadConfig, match="not in one part"):
        DataSplit({hash_of("q"): "train"}).part_of(Item("q", ("new",)))


def test_an_unknown_item_has_no_part() -> None:
    assert DataSplit({}).part_of(Item("q", ("d",))) is None


@pytest.mark.parametrize(
    "text", ["", "[]", '{"train": []}', '{"train": ["a"], "dev": ["a"], "test": []}']
)
def test_a_file_that_is_no_split_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "split.json"
    path.write_text(text)
    with pytest.raises(BadConfig):
        read_split(path)


def test_hashes_stand_in_order_so_that_the_file_tells_nothing_of_the_data_s(tmp_path: Path) -> None:
    many = [Item(f"q{n}") for n in range(30)]
    write_split(make_split(many), tmp_path / "s.json")
    for hashes in json.loads((tmp_path / "s.json").read_text()).values():
        assert hashes == sorted(hashes)
