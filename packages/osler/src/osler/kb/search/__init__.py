"""What searches a knowledge base; `backends` chooses by configuration and by what was built.

One Protocol (`base.SearchBackend`), three engines: `exact` over the SQLite file, `edge` in worker
processes beside it, `remote` on a Qdrant server.
"""
