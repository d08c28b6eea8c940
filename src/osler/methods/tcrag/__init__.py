"""TC-RAG: a language model controlled by a memory stack and a monitored state value."""
