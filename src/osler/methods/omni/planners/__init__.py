"""Who makes the source plan: one method, one file (Omni-RAG §5.2, App. D.3)."""
