"""Unpacks a GGUF file to a float32 model folder, for training and comparing."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from osler.llm.core.cache import cache_dir, prepare_folder, sha256_of
from osler.llm.transformers.hub import load_pair, silence_transformers


def dense_folder(file: Path, *, cache: Path | None = None) -> Path:
    """Returns the folder in the cache, made the first time, four times the size of 8-bit weights.

    Model, tokenizer and chat template are the file's. Its name bears the file's hash, so
    another file is another folder. It appears whole or not at all. Raises as
    `osler.llm.transformers.hub.load_pair`, and `ModelMissing` when the cache cannot be written.
    """
    folder = (cache or cache_dir()) / f"{file.stem}.dense-{sha256_of(file)[:12]}"
    if folder.is_dir():
        return folder
    pair = load_pair(file, dtype="float32", device="cpu")
    with (
        prepare_folder(folder.parent),
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=".partial-") as scratch,
    ):
        draft = Path(scratch) / folder.name
        with silence_transformers():
            pair.model.save_pretrained(draft)
            pair.tokenizer.save_pretrained(draft)
        try:
            os.rename(draft, folder)
        except OSError:
            # Whoever made the same folder meanwhile made the same files.
            if not folder.is_dir():
                raise
    return folder
