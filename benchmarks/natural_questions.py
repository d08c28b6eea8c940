"""Questions in people's own wording, each beside simple rules: right, first right, refused, sure.

    python benchmarks/natural_questions.py --data DATA --homes FOLDER --log-dir LOG --half dev

A stopped run goes on in its log. `--fit FOLDER` fits the judge's card in that folder on the log of
the halves dev and seen.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from pathlib import Path

from natural.asking import WAYS, NaturalLog, NaturalTrial
from natural.fitting import fit_card
from natural.questions import SETS, NaturalPlaces
from natural.tables import measure_ways

from osler.settings import load

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--log-dir", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="data sets and corpora")
    parser.add_argument("--homes", type=Path, required=True, help="knowledge bases, made if absent")
    parser.add_argument("--benchmarks", type=Path, default=HERE)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=[*SETS])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["default", "cosine", "bm25"])
    parser.add_argument(
        "--half",
        choices=("dev", "seen", "test"),
        default="dev",
        help="dev may be tuned on; seen chooses; test is asked once, for what is reported",
    )
    parser.add_argument("--limit", type=int, help="most questions of each set")
    parser.add_argument("--fit", type=Path, help="folder of the judge's card")
    given = parser.parse_args()
    log = NaturalLog(given.log_dir)
    if given.fit is None:
        chosen = load({}, cwd=Path.cwd(), env=os.environ).settings
        places = NaturalPlaces(given.data, given.benchmarks, given.homes)
        keeps_weighed = given.half != "test"
        asked = (places, log, given.half, given.limit, keeps_weighed)
        trial = NaturalTrial(*asked, chosen.answer, chosen.model)
        asyncio.run(trial.run(given.sets, given.ways, _print_progress))
    else:
        fit_card(
            given.fit, [row for n in given.sets for h in ("dev", "seen") for row in log.read(n, h)]
        )
    rows = [row for n in given.sets for row in log.read(n, given.half) if row.way in given.ways]
    print(json.dumps({"half": given.half, "rows": measure_ways(rows)}, indent=1))


def _print_progress(stage: str, done: int, total: int | None) -> None:
    print(f"{stage}: {done} of {total}", file=sys.stderr)


if __name__ == "__main__":
    main()
