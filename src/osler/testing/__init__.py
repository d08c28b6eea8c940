"""Test doubles and kits, also for strategies, models and retrievers of your own.

| Module | Holds |
|---|---|
| `conformance` | kits of tests that every retriever, scorer, model and solver must pass |
| `scripted` | models, retrievers and an encoder that answer what a test says |
| `tiny` | language models and encoders of a few thousand weights, with real files |
| `replay` | recorded servers: a kit is run against one, and later against its recording |
| `servers`, `loopback` | HTTP servers that misbehave as a test says; a fake network and clock |
| `served` | a real Osler server in a thread, over a small knowledge base |
| `browsing` | the page of that server in a real browser |
| `stores` | small knowledge bases and log folders |
| `derivations` | random texts of a grammar, for property tests |
| `waiting` | waiting for another thread or task, without a sleep |
| `cpu_time` | how much work a call is, as the processor counts it |
"""
