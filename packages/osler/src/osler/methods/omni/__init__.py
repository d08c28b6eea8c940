"""Omni-RAG: a planner chooses the sources and words their queries (the third paper).

`solver.OmniRag` runs three parts in turn (§4.1, §5.1.2): a planner (`planners`) makes a source plan
(`plan`), the planned retriever (`retriever`) sends every source its queries, and the reader
(`reader`) answers from the results. `describe` has the descriptions of sources for planners,
`feedback` the judge of Reflexion and SeRTS, and `dossier` the plans stored in files.
"""
