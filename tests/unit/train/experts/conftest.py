"""What tests of the experts' training share."""

from pathlib import Path

import pytest

_MARKS = ("<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>", ".", "?", ":")
_WORDS = (
    "how is treated with what treats it rare in asthma colchicine does drops gout help an attack"
    " relieves scurvy steroids uveitis"
)


@pytest.fixture(scope="session")
def tiny_teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small MPNet of random weights, in a folder as `transformers` reads it."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("teacher")
    vocabulary = {word: at for at, word in enumerate((*_MARKS, *_WORDS.split()))}
    transformers.MPNetTokenizer(vocab=vocabulary).save_pretrained(folder)
    config = transformers.MPNetConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
    )
    transformers.MPNetModel(config).save_pretrained(folder)
    return folder
