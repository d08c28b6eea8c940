"""What searches a knowledge base; `backends` chooses by configuration and by what was built.

One Protocol (`base.SearchBackend`), two engines: `exact` over the SQLite file, `edge` in worker
processes beside it.
"""
