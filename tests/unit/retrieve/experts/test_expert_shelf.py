"""Cards, and experts that are refused before they can be used."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
from expert_folders import write_safetensors, write_shards

from osler.errors import ModelError, ModelMissing
from osler.kb.encoders.minilm import read_safetensors
from osler.retrieve.experts import cards
from osler.retrieve.experts.cards import (
    BASE,
    CARD,
    WEIGHTS,
    ExpertCard,
    ExpertData,
    ExpertFigure,
    MeasuredFigure,
    open_expert,
    packaged_experts,
    packaged_folder,
    read_card,
    render_card,
)
from osler.retrieve.experts.judge import MatchEncoder


def card_of(**changes: object) -> ExpertCard:
    figure = MeasuredFigure(value=0.9, low=0.85, high=0.94)
    card = ExpertCard(
        name="tiny",
        question='Does "this" answer?',
        family="linear",
        replaces="the rule",
        languages=("en",),
        made="osler experts train tiny",
        seed=3,
        date="2026-01-02",
        split="0" * 64,
        weights="0" * 64,
        weak=("all of it", "维生素"),
        features=("one", "two"),
        parameters={"slope": 1.5},
        data=(ExpertData(name="set", licence="MIT", train=3, dev=2, test=1),),
        figures=(
            ExpertFigure(
                on="test", measure="accuracy", n=4, expert=figure, rule="cosine", rule_figure=figure
            ),
        ),
    )
    return card.model_copy(update=changes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "tiny"
    place.mkdir()
    write_safetensors({"weights": np.ones((1, 2), np.float16)}, place / WEIGHTS)
    sha256 = hashlib.sha256((place / WEIGHTS).read_bytes()).hexdigest()
    (place / CARD).write_text(render_card(card_of(weights=sha256)), encoding="utf-8")
    return place


def rewrite(folder: Path, **changes: object) -> None:
    card = read_card(folder).model_copy(update=changes)
    (folder / CARD).write_text(render_card(card), encoding="utf-8")


def test_a_card_reads_back_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / CARD).write_text(render_card(card_of()), encoding="utf-8")
    assert read_card(tmp_path) == card_of()


def test_weights_read_back_as_they_were_written(tmp_path: Path) -> None:
    tensors: dict[str, np.ndarray] = {
        "b": np.arange(6, dtype=np.float32).reshape(2, 3),
        "a": np.array([0.5, -2.0], np.float16),
    }
    write_safetensors(tensors, tmp_path / "w.safetensors")
    found = read_safetensors(tmp_path / "w.safetensors")
    assert found.keys() == tensors.keys()
    for name, one in tensors.items():
        np.testing.assert_array_equal(found[name], one)
        assert found[name].dtype == one.dtype


def test_an_expert_that_is_as_its_card_says_is_opened(folder: Path) -> None:
    opened = open_expert("tiny", folder)
    assert opened.bytes == (folder / WEIGHTS).stat().st_size
    assert opened.read_tensors()["weights"].tolist() == [[1.0, 1.0]]


def test_an_expert_is_checked_once_for_each_state_of_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[Path] = []

    def count_card(place: Path) -> ExpertCard:
        checked.append(place)
        return read_card(place)

    monkeypatch.setattr(cards, "read_card", count_card)
    assert open_expert("tiny", folder) == open_expert("tiny", folder)
    assert checked == [folder]
    rewrite(folder, weak=("poetry",))
    assert open_expert("tiny", folder).card.weak == ("poetry",)
    (folder / WEIGHTS).write_bytes(b"damaged since")
    with pytest.raises(ModelError, match="is not what its card names"):
        open_expert("tiny", folder)


def test_weights_that_were_cut_short_are_refused(folder: Path) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(content[:-1])
    with pytest.raises(ModelError, match=r"is not what its card names.*retrain it"):
        open_expert("tiny", folder)


def test_weights_of_another_training_are_refused(folder: Path) -> None:
    write_safetensors({"weights": np.zeros((1, 2), np.float16)}, folder / WEIGHTS)
    with pytest.raises(ModelError, match="is not what its card names"):
        open_expert("tiny", folder)


def test_every_one_of_several_weights_files_is_checked(tmp_path: Path) -> None:
    tensors = {name: np.full((40,), value, np.float32) for value, name in enumerate("abc")}
    first, *further = write_shards(tensors, tmp_path / "tiny", most=600)
    card = card_of(weights=first, further=tuple(further))
    (tmp_path / "tiny" / CARD).write_text(render_card(card), encoding="utf-8")
    opened = open_expert("tiny", tmp_path / "tiny")
    assert opened.read_tensors().keys() == tensors.keys()
    files = sorted((tmp_path / "tiny").glob("*.safetensors"))
    assert [one.name for one in files] == ["weights-2.safetensors", WEIGHTS]
    assert max(one.stat().st_size for one in files) <= 600
    assert opened.bytes == sum(one.stat().st_size for one in files)
    (tmp_path / "tiny" / "weights-2.safetensors").write_bytes(b"damaged")
    with pytest.raises(ModelError, match=r"weights-2.safetensors is not what its card names"):
        open_expert("tiny", tmp_path / "tiny")


def test_absent_weights_are_named_with_what_makes_them(folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    with pytest.raises(ModelMissing, match="retrain it"):
        open_expert("tiny", folder)


def test_an_expert_of_another_base_encoder_is_refused(folder: Path) -> None:
    rewrite(folder, base=BASE.replace("@", "@f"))
    with pytest.raises(ModelError, match="another revision than the packaged encoder"):
        open_expert("tiny", folder)
    rewrite(folder, base=BASE)
    assert open_expert("tiny", folder).card.base == BASE


def test_another_expert_s_folder_is_refused(folder: Path) -> None:
    with pytest.raises(ModelError, match="holds the expert 'tiny', not 'judge'"):
        open_expert("judge", folder)


@pytest.mark.parametrize("text", ["", "name = 3", "[broken", 'name = "tiny"\nunknown = 1'])
def test_a_card_that_cannot_be_read_is_an_error_with_its_place(folder: Path, text: str) -> None:
    (folder / CARD).write_text(text)
    with pytest.raises(ModelError, match="is not a card of an expert"):
        open_expert("tiny", folder)


def test_an_unknown_expert_is_missing() -> None:
    with pytest.raises(ModelMissing, match="there is no expert 'nobody'"):
        open_expert("nobody")


def test_packaged_experts_are_whole_small_and_say_what_they_are_worth() -> None:
    found = packaged_experts()
    assert [one.card.name for one in found] == sorted(one.card.name for one in found)
    for one in found:
        assert one.bytes <= 4_500_000
        for file in one.card.weight_files:
            assert (one.folder / file).stat().st_size <= 1_000_000
        assert one.card.weak
        assert one.card.data
        assert one.card.figures, "an expert without figures beside its rule is not shipped"
        assert {one.rule for one in one.card.figures} != {""}
    assert sum(one.bytes for one in found) <= 15_000_000
    assert packaged_folder().name == "experts"


def test_an_expert_of_another_family_is_no_encoder() -> None:
    with pytest.raises(ModelError, match="is not an encoder"):
        MatchEncoder(open_expert("judge"))
