"""Omni-RAG: a planner chooses the sources and words their queries (the third paper).

`solver.OmniRag` runs three parts in turn (§4.1, §5.1.2): a planner (`planners`) makes a source plan
(`plan`), the planned retriever (`retriever`) sends every source its queries, and the reader answers
from the results. `dossier` has the plans stored in files.
"""
