"""A GGUF file as a model folder: the packaged one, once, in the cache."""

from __future__ import annotations

from pathlib import Path

import pytest
from wide_weights import wide_gguf

from conformance import LanguageModelKit, LikelihoodKit
from osler.errors import ModelMissing
from osler.llm.core.base import LanguageModel, Likelihood, Message, Sampling
from osler.llm.local.gguf_files import default_gguf
from osler.llm.local.model import LlamaCpp
from osler.llm.transformers.model import TransformersModel, open_transformers
from osler_lab.train.tune.model import dense_folder

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def folder() -> Path:
    try:
        return dense_folder(default_gguf())
    except ModelMissing as error:
        pytest.skip(f"the packaged model is not there: {error}")


@pytest.fixture(scope="module")
def packaged(folder: Path) -> TransformersModel:
    return open_transformers(folder, dtype="float32", device="cpu", context=2048)


class TestPackagedWeights(LanguageModelKit, LikelihoodKit):
    @pytest.fixture
    def model(self, packaged: TransformersModel) -> LanguageModel:
        return packaged

    @pytest.fixture
    def scorer(self, packaged: TransformersModel) -> Likelihood:
        return packaged


def test_the_folder_is_made_once(folder: Path) -> None:
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert dense_folder(default_gguf()) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    assert not list(folder.parent.glob(".partial-*"))


@pytest.mark.model
async def test_the_same_words_come_from_both_engines(packaged: TransformersModel) -> None:
    """Template, tokens and weights are the file's, and in float32 so are the greedy words."""
    asked = [Message("user", "What is the capital of France?")]
    greedy = Sampling(temperature=0.0, max_tokens=8)
    embedded = LlamaCpp(wide_gguf(), name="packaged", context=512)
    one, other = await packaged.complete(asked, greedy), await embedded.complete(asked, greedy)
    assert one.text == other.text
    assert one.usage.prompt_tokens == other.usage.prompt_tokens


def test_what_is_no_gguf_leaves_nothing_behind(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF and no more")
    with pytest.raises(ModelMissing, match="does not load"):
        dense_folder(broken, cache=tmp_path / "cache")
    assert not list(tmp_path.glob("cache/*"))
