"""What chunks say, taken out of them: entities, relations, knowledge points, tables, outlines.

Two ways with one result: a model under a schema (`model`), and names and patterns without
one (`dictionary`). Each item is anchored in its chunk and stored beside it (`store`), so
that it opens and goes with it; `publish` keeps the concept graph in step.
"""
