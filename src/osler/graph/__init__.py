"""The graph source: concepts, names, definitions and relations in one file (Omni-RAG §3.2)."""
