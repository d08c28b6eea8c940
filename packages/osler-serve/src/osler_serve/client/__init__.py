"""Osler's HTTP API for Python programs, and retrievers for other libraries.

Replies are models of `osler_serve.replies`, as the server makes them.

| Module | Holds |
|---|---|
| `calls` | the operations, written once for both clients; what they find, made flat |
| `http_client` | `Client` and `AsyncClient` |
| `health` | the journey of `osler deploy check` |
| `langchain`, `llama_index`, `haystack` | retrievers; each needs the extra of its name |
"""

from osler_serve.client.http_client import AsyncClient, Client, ServerRefused

__all__ = ["AsyncClient", "Client", "ServerRefused"]
