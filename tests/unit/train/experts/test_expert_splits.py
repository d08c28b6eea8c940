"""A split that divides a document or a question is refused."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from osler.errors import BadConfig
from osler.train.experts.splits import DataSplit, hash_of, read_split


@dataclass(frozen=True)
class Item:
    id: str
    documents: tuple[str, ...] = ()


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
