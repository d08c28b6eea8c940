"""The methods that the papers compare with, on equal terms: same models, searches and budget.

Every method is a loop over an `episode.Episode`, which asks the model, searches, numbers passages
and ends the run. The docstring of each method names its paper and all departures from it;
`methods.toml` has its needs, its cost and the origins of its default settings.

| Module | Methods |
|---|---|
| `single_pass` | the model alone, chain of thought |
| `fixed_schedule` | retrieve and read; a search every n tokens, or every sentence |
| `flare`, `dragin` | a search where the model is uncertain; both use `continuation` |
| `ircot`, `react`, `search_o1`, `protocols` | searches within the reasoning |
| `chain_of_note`, `chain_of_knowledge`, `sure`, `self_rag` | weighing what was found |
| `hykge`, `hipporag`, `pike_rag`, `kag_static` | graphs, tags and plans over passages |
| `medrag` | medical retrieval and follow-up questions |
| `adaptive` | one of three methods, by the question's complexity |

`table` loads `methods.toml`.
"""
