"""Evaluation: data sets, measures, runs, judges, reports and studies.

Gold answers are known here and in `osler_lab.train` alone. A solver is handed `Sample.question`;
the gold answer stands beside it and meets the answer only in the record.

Running:

| Module | Has |
|---|---|
| `labeled_questions` | question files of the user's own |
| `datasets` | published data sets, each read from its native files |
| `trained_on`, `searches` | what a model was trained on; what a sample's searches found |
| `experiments`, `descriptions` | the papers' experiments as data; how such files are read |
| `plan` | the plan of a log folder: data, strategies, seed |
| `runner` | tries every sample under every strategy, resumed |
| `record` | a question with its gold answer, and the record of trying it |
| `measuring` | a solver measured in one call: `osler_lab.measure_solver` |
| `log` | the log folder: records and traces, shared by processes and hosts |
| `merge` | several log folders as one |

Measuring:

| Module | Has |
|---|---|
| `metrics` | measures with exact definitions |
| `measures` | measures of a report, by name |
| `intervals`, `statistics` | confidence intervals; paired tests with Holm's correction |
| `compare` | two strategies, or two logs, on the same samples |
| `judges`, `judged` | models as judges; their judgements over a log folder |
| `agreement`, `ratings` | judges against people; people's ratings as a table |
| `guarantee` | a threshold with a bound on the share of wrong answers above it |
| `report` | a log folder as Markdown |
| `scoreboard` | scores of every strategy on the same questions, as a page |
| `figures` | drawings of these and of the studies |

Studies of the papers:

| Module | Repeats |
|---|---|
| `sigma` | TC-RAG §6.5: sensitivity to the threshold, Fig. 3 |
| `attacks` | TC-RAG App. 8.6: noise in what a tool returns, Table 3 |
| `planning` | Omni-RAG §5.5, App. A.1 and B: source plans |
"""
