"""What the interfaces share: settings, and the work that one command or request asks for.

| Module | Does |
|---|---|
| `config` | reads settings from flags, environment, files and presets, and shows them |
| `wiring` | builds models, knowledge bases and strategies from settings |
| `runs` | answers one question, keeps the run, replays it |
| `evaluation` | tries strategies on data sets that no model in use was trained on |
| `tasks` | data sets by name |
| `stored_plans` | source plans that are made once and read by any reader |
| `studies`, `plans` | the papers' studies: noise attacks, sigma, what each source is worth |
| `calibrate` | fits TC-RAG's sigma and KAG-Thinker's tau to a model |
| `doctor` | checks settings, files and models, and what strategies they serve |

Only these modules, `serve` and `cli` read settings; all other rooms take values.
"""
