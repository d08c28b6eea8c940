"""The methods that the papers compare with, on equal terms: same models, searches and budget.

Every method is a loop over an `episode.Episode`, which asks the model, searches, numbers passages
and ends the run. The docstring of each module names the papers and all departures from them;
`methods.toml` has its needs, its cost and the origins of its default settings.

| Module | Methods |
|---|---|
| `growing` | a search every n tokens or every sentence; FLARE and IRCoT, where one is needed |
| `dragin` | a search where the model is uncertain and looks back at its words |
| `acting` | ReAct, Search-o1 and trained protocols: searches within the reasoning |
| `weighing`, `chain_of_knowledge`, `self_rag` | weighing what was found |
| `indexing` | HippoRAG 2 and PIKE-RAG: graphs and tags over passages, or over the whole `corpus` |
| `decomposing` | MedRAG with follow-up questions; KAG 0.8's static plan |
"""
