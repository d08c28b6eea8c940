"""Omni-RAG: which source is asked, and in which words (the third paper)."""
