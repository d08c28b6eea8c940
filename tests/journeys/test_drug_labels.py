"""Drug labels, from openFDA's download to an answer, and two of them side by side."""

import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Osler = Callable[..., "subprocess.CompletedProcess[str]"]
WARFARIN, APIXABAN = "0000aaaa-0000-0000-0000-000000000001", "0000aaaa-0000-0000-0000-000000000002"


def label(set_id: str, names: str, version: int, **sections: str) -> dict[str, Any]:
    generic, brand = names.split("/")
    return {
        **{name: [text] for name, text in sections.items()},
        "set_id": set_id,
        "version": str(version),
        "effective_time": f"202{version}0401",
        "openfda": {"generic_name": [generic], "brand_name": [brand]},
    }


OLD = label(
    *(WARFARIN, "WARFARIN SODIUM/Coumadin", 1),
    overdosage="10 OVERDOSAGE Vitamin K2 reverses the effect of warfarin.",
)
NEW = label(
    *(WARFARIN, "WARFARIN SODIUM/Coumadin", 2),
    overdosage="10 OVERDOSAGE Vitamin K1 by mouth or by vein reverses the effect of warfarin.",
    pregnancy="8.1 Pregnancy Warfarin crosses the placenta and harms the fetus.",
)
OTHER = label(
    *(APIXABAN, "APIXABAN/Eliquis", 3),
    overdosage="10 OVERDOSAGE Activated charcoal reduces the absorption of apixaban.",
)


@pytest.fixture(scope="module")
def base(osler: Osler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base of a download in two parts; the second brings an earlier version."""
    folder = tmp_path_factory.mktemp("labels")
    for part, results in enumerate(([NEW, OTHER], [OLD]), 1):
        page = {"meta": {"terms": "https://open.fda.gov/terms/"}, "results": results}
        name = f"drug-label-000{part}-of-0002.json"
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            archive.writestr(name, json.dumps(page))
    kb = tmp_path_factory.mktemp("base") / "kb"
    added = osler("--kb", str(kb), "kb", "add", str(folder), "--source", "label")
    assert added.returncode == 0, added.stderr
    assert "a newer version is there" in added.stdout + added.stderr
    assert osler("--kb", str(kb), "kb", "build").returncode == 0
    return kb


def test_an_answer_cites_the_section_of_the_latest_version(osler: Osler, base: Path) -> None:
    asked = osler("--kb", str(base), "ask", "What reverses too much Coumadin?", "--json")
    assert asked.returncode == 0, asked.stderr
    first = json.loads(asked.stdout)["evidence"][0]
    passage = first["passage"]
    assert "Vitamin K1" in first["quote"]
    assert passage["title"] == "Warfarin sodium (Coumadin)"
    assert passage["locator"]["section"] == "Overdosage"
    assert passage["locator"]["code"] == f"SPL:{WARFARIN} version 2"
    assert passage["locator"]["year"] == 2022


def test_two_labels_stand_side_by_side_verbatim(osler: Osler, base: Path) -> None:
    words = ("kb", "get", "--label", "coumadin", "--label", "apixaban", "--section", "overdos")
    shown = osler("--kb", str(base), *words)
    assert shown.returncode == 0, shown.stderr
    for said in (f"SPL:{WARFARIN}", "effective 2022-04-01", "Vitamin K1 by mouth", "charcoal"):
        assert said in shown.stdout
    told = json.loads(osler("--kb", str(base), *words, "--json").stdout)
    assert told["headings"] == ["Overdosage"]
    texts = [one["sections"]["Overdosage"][0]["text"] for one in told["labels"]]
    assert texts == [NEW["overdosage"][0][14:], OTHER["overdosage"][0][14:]]


def test_a_name_without_a_label_and_a_name_with_an_id_are_refused(osler: Osler, base: Path) -> None:
    unknown = osler("--kb", str(base), "kb", "get", "--label", "aspirin")
    assert unknown.returncode != 0
    assert "no label names 'aspirin'" in unknown.stderr
    both = osler("--kb", str(base), "kb", "get", "label:x#0", "--label", "aspirin")
    assert both.returncode == 2
