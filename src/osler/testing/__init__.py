"""Test doubles and kits, also for strategies, models and retrievers of your own.

| Module | Holds |
|---|---|
| `conformance` | kits of tests that every retriever, scorer, model and solver must pass |
| `scripted` | models, retrievers and an encoder that answer what a test says |
| `servers` | HTTP servers that misbehave as a test says, and a clock that no sleep waits for |
| `served` | a real Osler server in a thread, over a small knowledge base |
| `browsing` | the page of that server in a real browser |
| `stores` | small knowledge bases and log folders |
| `derivations` | random texts of a grammar, for property tests |
| `waiting` | waiting for another thread or task, without a sleep |
"""
