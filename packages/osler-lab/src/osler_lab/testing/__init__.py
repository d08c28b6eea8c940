"""Test doubles and kits for strategies, models and retrievers of your own.

| Module | Holds |
|---|---|
| `conformance` | kits of tests that every retriever, scorer, model and solver must pass |
| `scripted` | models, retrievers and an encoder that answer what a test says |
| `servers` | HTTP servers that misbehave as a test says, and a clock that no sleep waits for |
| `mannered` | a model server with the manners (`manners`) of servers that are about |
| `derivations` | random texts of a grammar, for property tests |
"""
