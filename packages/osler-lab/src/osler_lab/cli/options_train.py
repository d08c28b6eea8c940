"""Options of `osler train …`: what several of its commands have, and what takes long to say."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from osler.cli.options import Data

HeldOut = Annotated[
    float, typer.Option(min=0, max=0.9, help="Share of the questions that are held out.")
]

# Of jobs that explore, judge and teach

JobFolder = Annotated[
    Path, typer.Option("--log-dir", help="Folder of the job; it is also the checkpoint.")
]


@dataclass(frozen=True)
class WorkerOptions:
    """Who does the work of a job: this process, or several on its folder."""

    jobs: Annotated[
        int, typer.Option(min=1, max=256, help="Concurrent questions in each worker.")
    ] = 1
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes, or tasks of a Ray cluster, on one folder."),
    ] = None
    on: Annotated[str, typer.Option(help="Where workers run: processes or ray (extra ray).")] = (
        "processes"
    )


# Of explore


@dataclass(frozen=True)
class CaseOptions:
    """The questions that are explored."""

    questions: Annotated[
        Path | None,
        typer.Option(
            help="Questions as JSON Lines: question, answer, and options, documents (ids), task,"
            " id where there are any."
        ),
    ] = None
    tasks: Annotated[
        str | None,
        typer.Option(help='Data sets to use instead, as for `osler eval run`: "bioasq".'),
    ] = None
    data: Data = None
    part: Annotated[
        str, typer.Option(help="train, held-out or all; by a hash of the question's words.")
    ] = "train"
    held_out: HeldOut = 0.2
    limit: Annotated[int | None, typer.Option(min=1, help="Most questions.")] = None


Queries = Annotated[
    int, typer.Option(min=1, max=20, help="Queries per source (Omni-RAG App. A.1).")
]

# Of judge

SupportBy = Annotated[
    str | None,
    typer.Option(
        help="gold: known gold documents; model: the prompt of Omni-RAG E.4 (role judge);"
        " improvement: of the reader; rerank: a score over a threshold."
    ),
]
Unit = Annotated[
    str,
    typer.Option(
        help="What a model judges at once: list (ten documents, each once however many"
        " queries found it) or set (a query's documents, as in the paper)."
    ),
]
Least = Annotated[
    float | None,
    typer.Option(help="Threshold of rerank (2.3)."),
]
JudgeOf = Annotated[
    str | None, typer.Option("--ablation", help='A judge of an ablation, as in "judges:rafe".')
]

# Of make

JudgedFolder = Annotated[
    Path, typer.Option("--log-dir", help="Folder that was explored and judged.")
]
Records = Annotated[Path, typer.Option(help="Folder for data.jsonl and its card, README.md.")]
JudgedBy = Annotated[
    str,
    typer.Option(
        "--judge", help="Which judge, by the beginning of its name, if there are several."
    ),
]
Ablation = Annotated[
    str | None,
    typer.Option(help='A row of a training ablation, as in "data-ratio:0.25" or FILE.toml:ROW.'),
]
CountOnly = Annotated[bool, typer.Option("--dry-run", help="Count, and write nothing.")]


@dataclass(frozen=True)
class SelectionOptions:
    """Selection of the judged questions that become records, and their form."""

    ratio: Annotated[float, typer.Option(min=0.001, max=1, help="Share of the questions.")] = 1.0
    without_task: Annotated[
        list[str] | None, typer.Option(help="Leave a task out; repeatable.")
    ] = None
    without_source: Annotated[
        list[str] | None, typer.Option(help="Leave a source out of prompts and plans; repeatable.")
    ] = None
    queries: Annotated[
        int,
        typer.Option(min=1, max=20, help="Most queries per source in one plan; 3 in the paper."),
    ] = 3
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same plans.")] = 0
    longest: Annotated[
        int, typer.Option(min=1, help="Tokens of prompt and plan; longer records are left out.")
    ] = 4096


# Of thinker-data


@dataclass(frozen=True)
class TaughtOptions:
    """The questions that are taught."""

    tasks: Annotated[
        str | None,
        typer.Option(help='Data sets, as for `osler eval run`: "nq=FILE"; none = only write.'),
    ] = None
    data: Data = None
    part: Annotated[
        Literal["train", "held-out", "all"],
        typer.Option(help="Which part of the questions to use, split by a hash of their words."),
    ] = "train"
    held_out: HeldOut = 0.2
    limit: Annotated[int | None, typer.Option(min=1, help="Most questions of each data set.")] = (
        None
    )


@dataclass(frozen=True)
class TeachingOptions:
    """What the planner does with each question, and who judges it."""

    stage: Annotated[
        Literal["logical-form", "deep-search", "thinker"],
        typer.Option(help="Plans; single-hop searches; or the whole way to the answer."),
    ] = "thinker"
    boundary: Annotated[
        Literal["both", "twice", "none"],
        typer.Option(
            help="What the reader knows: by both signals; confirmed twice (medical); not asked."
        ),
    ] = "both"
    inspect: Annotated[
        Literal["rules", "model", "both", "none"],
        typer.Option(help="Who judges quality: rules, the role judge, one after the other."),
    ] = "rules"
    grade: Annotated[
        bool,
        typer.Option("--grade", help="Let the model in the role judge grade what no formula can."),
    ] = False
    restructure: Annotated[
        bool, typer.Option(help="Have reasons reworded as thoughts, a call for each search.")
    ] = True
    rounds: Annotated[
        int, typer.Option(min=1, max=100, help="Tries of each question by this teacher.")
    ] = 3


DataSet = Annotated[
    Path | None, typer.Option("--out", help="Write the data set of what was kept here.")
]

# Of tune and export

TrainingData = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="Folder with data.jsonl, or the file, as `train make` writes it. For pretrain texts,"
        " as [NAME=]FILE.txt|.md|.jsonl, a folder of such, or kb:SOURCE.",
    ),
]
Result = Annotated[
    Path, typer.Option("--out", "-o", help="Folder of the result and its checkpoints.")
]
Base = Annotated[
    str | None,
    typer.Option(help="Model folder, GGUF file or OWNER/MODEL@COMMIT; else the packaged one."),
]


@dataclass(frozen=True)
class TuningOptions:
    """The weights that are trained and how; the paper's values where none are given."""

    base: Base = None
    epochs: Annotated[
        float | None, typer.Option(help="Passes over the data; the paper's by default.")
    ] = None
    learning_rate: Annotated[
        float | None,
        typer.Option("--learning-rate", help="Peak learning rate; the paper's by default."),
    ] = None
    batch: Annotated[int | None, typer.Option("--batch", help="Samples per step.")] = None
    micro: Annotated[
        int | None, typer.Option(help="Samples worked on at once: less memory, the same result.")
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", help="Most tokens of a sample; pretrain: of a window."),
    ] = None
    layers: Annotated[
        int | None, typer.Option(help="LoRA beside so many layers only, from the last.")
    ] = None
    rank: Annotated[int | None, typer.Option(help="Rank of the LoRA matrices.")] = None
    seed: Annotated[
        int | None, typer.Option(help="Seed of the sample order and of fresh weights.")
    ] = None
    save_every: Annotated[
        int | None, typer.Option("--save-every", help="Steps between checkpoints.")
    ] = None
    threads: Annotated[
        int | None, typer.Option(help="Processor threads; by default those free.")
    ] = None
    precision: Annotated[
        Literal["auto", "float32", "mixed", "bfloat16"],
        typer.Option(help="Precision of weights and products."),
    ] = "auto"
    recompute: Annotated[
        bool, typer.Option("--recompute", help="Less memory, a third more time.")
    ] = False
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Count samples, tokens and steps; nothing is written."),
    ] = False
