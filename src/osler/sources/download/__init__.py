"""Corpora and ontologies that a user may download: what, from where, under which terms.

`recipes` are data (`recipes.toml`), `listing` finds the files of a recipe, `download` fetches one
file so that it can be interrupted, and `job` does a whole recipe.
"""
