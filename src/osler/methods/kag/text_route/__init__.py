"""The texts' route: questions that chain stated relations, answered step by step from passages."""

from osler.methods.kag.text_route.answering import TextRoute
from osler.methods.kag.text_route.depth import SpanFirst
from osler.methods.kag.text_route.facts import FactFinder

__all__ = ["FactFinder", "SpanFirst", "TextRoute"]
