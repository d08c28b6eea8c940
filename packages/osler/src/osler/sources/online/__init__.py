"""Online services: encyclopaedias, PubMed and web search, used only when the settings say so.

| module          | holds                                                                  |
|-----------------|------------------------------------------------------------------------|
| `client`        | `OnlineClient`: cached, rate-limited, retried GET, bounded in size     |
| `address_guard` | the transport that refuses addresses in private networks               |
| `cache`         | replies and passages on disk                                           |
| `services`      | MediaWiki, PubMed through E-utilities, SearXNG and Bing Web Search v7  |

What a service finds are `Document`s like those of a file; `osler.retrieve.web` makes hits of
them.

The rules of every call, which `client` and `address_guard` enforce:

* Nothing is called unless the settings switch the service on. With `net.offline` only the
  cache answers, and what is not in it raises `Offline`.
* Only http and https, only public addresses (hosts of the user's own network must be named in
  `net.private_hosts`), and the connection goes to the very address that was checked.
* Keys are never part of a cache key, a message, a stored address or a redirect to another
  host.
* A reply has at most so many bytes after decompression, seconds, redirects and retries
  (`ReplyLimits`); services that ask for a rate get it (`TokenBucket`).
* Every failure is a `SourceUnavailable` with a `fix`, so that a run can go on without the
  service.

A page that was cited must open again later: `ReplyCache` keeps the passages that were found
longer than the replies that they came from.

To add a service, write a class with `name` and `find(query, k=…)` that calls
`OnlineClient.get`, and name it in the settings of online sources (`osler.settings`).

From Python:

    import asyncio
    from osler.sources.online.client import OnlineClient
    from osler.sources.online.services import MediaWikiService

    service = MediaWikiService(OnlineClient())
    print(asyncio.run(service.find("aspirin", k=3)))
"""
