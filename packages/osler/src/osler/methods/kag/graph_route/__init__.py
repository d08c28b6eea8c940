"""The graph's route: questions of several steps answered by the concept graph, without a model."""

GRAPH_SETS = "graph-sets"
"""Name of `answering.GraphSets` among the retrievers of a run, and so on its tape."""
