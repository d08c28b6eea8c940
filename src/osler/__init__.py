"""Osler answers medical questions from evidence, and knows when it does not know."""
