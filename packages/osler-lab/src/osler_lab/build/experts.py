"""Experts in the place of their rules, as the settings say; and their place in a settings file."""

from __future__ import annotations

import shutil
from pathlib import Path

from osler.errors import BadConfig, translate_os_errors
from osler.kb.encoders.minilm import read_safetensors
from osler.llm.local.weights import MINILM, locate_weights
from osler.retrieve.experts.cards import CARD, open_expert
from osler.retrieve.experts.pair_graph import pair_graph
from osler.settings import Settings
from osler.settings.show import write_keys
from osler_lab.evaluate.trained_on import pass_on

OFF, PACKAGED = "off", "packaged"
SWITCHES = {
    "judge": ("answer", "judge", "judge", "off", "judge_path"),
    "match": ("answer", "judge", "judge", "off", "match_path"),
    "supports": ("answer", "verdicts", "supports", "likelihood", "verdicts_path"),
}
"""For each expert: section and key of its setting, the value that puts it in use, the one that
gives the rule back, and the key of its folder. The judge and the encoder beside it are used
together."""
GRAPH = "model.onnx"


def expert_in_use(settings: Settings, name: str) -> str:
    """How an expert is set: "packaged", its folder, "off", or "" where nothing uses it yet."""
    if name not in SWITCHES:
        return ""
    section, key, _, off, place = SWITCHES[name]
    chosen = getattr(settings, section)
    return OFF if getattr(chosen, key) == off else str(getattr(chosen, place) or PACKAGED)


def export_expert(name: str, folder: Path | None, out: Path) -> list[str]:
    """Copies card and weights, and writes a pair model's merged graph in float32.

    Returns the names of the files. Raises `BadConfig` where `out` exists or cannot be written.
    """
    expert = open_expert(name, folder)
    with translate_os_errors(f"{out} cannot be written", BadConfig, "choose another --out"):
        out.mkdir(parents=True)
        for file in (CARD, *expert.card.weight_files):
            shutil.copyfile(expert.folder / file, out / file)
        pass_on([expert.folder], out)
        if expert.card.family == "pair":
            base = read_safetensors(locate_weights(MINILM))
            graph = pair_graph(base, expert.read_tensors(), exact=True)
            (out / GRAPH).write_bytes(graph)
    return sorted(path.name for path in out.iterdir())


def write_choice(path: Path, name: str, folder: Path | None, *, used: bool) -> str:
    """Puts an expert in the place of its rule, or takes it out, in a settings file.

    Every other line stays as it is. Returns what was set. Raises `BadConfig` for an expert that
    nothing uses yet, and for a file that cannot be written.
    """
    if name not in SWITCHES:
        raise BadConfig(
            f"nothing uses an expert {name!r} yet", fix=f"choose one of {', '.join(SWITCHES)}"
        )
    section, key, on, off, place = SWITCHES[name]
    values = {key: on if used else off, place: str(folder) if used and folder else "none"}
    return f"[{section}] {', '.join(write_keys(path, section, values))}"
