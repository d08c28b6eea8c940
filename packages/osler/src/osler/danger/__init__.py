"""People in danger first: recognises questions about emergencies and self-harm.

The rules stand in `rules.toml`, the numbers to call in `contacts.toml`; no model is asked. What is
found is said before anything else, and the answer follows as usual (docs/guide/danger.md).
"""
