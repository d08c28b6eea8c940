"""What lies outside: encyclopaedias, PubMed and the web, asked only when the settings say so.

`guard` decides which addresses may be called, `net` calls them with bounds and a cache, and
`mediawiki`, `eutils` and `engines` speak their protocols. What they find are documents like
those of a file; `osler.retrieve.web` makes hits of them.
"""
