"""Indexes over what was extracted: other ways to the chunks that are cited.

KAG's index types (KAG-Thinker §3.4): knowledge units, atomic queries, outlines, summaries and
tables, each with words and vectors of its own, and the graph of names and chunks. What an index
finds is always a chunk.
"""
