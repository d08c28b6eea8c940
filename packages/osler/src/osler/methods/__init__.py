"""Methods: the three papers, the system that unites them, and the methods they compare with.

| Package | Method |
|---|---|
| `tcrag` | TC-RAG: a memory stack and a monitored state value control the model |
| `kag` | KAG-Thinker: logical forms, solved in depth within the knowledge boundary |
| `omni` | Omni-RAG: a planner chooses the sources and words their queries |
| `unified` | KAG-Thinker decomposes, TC-RAG's machine solves, Omni-RAG plans the searches |
| `baselines` | the methods of other papers, on the same models, searches and budget |

Every method is a `osler.trace.Solver`: a question and a run go in, a solution comes out, and a
spent budget is a result, not an error. The three papers' packages do not import each other; a test
holds that. `PAPERS.md` maps each section of the papers to a name here and to the test that holds
it, and lists all departures with their reasons.
"""
