"""The graph's route: questions of several steps answered by the concept graph, without a model."""

from osler.methods.kag.graph_route.answering import GRAPH_SETS, GraphRoute, GraphSets

__all__ = ["GRAPH_SETS", "GraphRoute", "GraphSets"]
