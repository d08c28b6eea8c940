"""The texts' route: questions that chain stated relations, answered step by step from passages."""

from osler.methods.kag.text_route.answering import TextRoute

__all__ = ["TextRoute"]
