"""Test doubles and kits for strategies, models and retrievers of your own.

| Module | Holds |
|---|---|
| `conformance` | kits of tests that every retriever, scorer, model and solver must pass |
| `scripted` | models, retrievers and an encoder that answer what a test says |
"""
