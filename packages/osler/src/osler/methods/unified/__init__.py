"""The one system: KAG-Thinker takes a question apart, TC-RAG's machine solves each lookup, and
Omni-RAG's planner chooses the sources of each search.

It is KAG-Thinker's solver (`osler.methods.kag.solver.Thinker`) with other parts in its places:

| Place | Part here | Without it |
|---|---|---|
| what answers a Retrieval | `depth.MachineDepth` | `osler.methods.kag.depth.DepthSolver` |
| a search | `search.PlannedSearch` | an ordinary retriever |
| a signal of the knowledge boundary | `depth.StateSignal` | the paper's two |

So there is one run, with one trace and one budget, and one list of evidence.
"""
