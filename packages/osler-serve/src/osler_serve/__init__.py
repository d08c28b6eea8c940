"""The HTTP server: the native API, the OpenAI-compatible endpoint, MCP and the page.

| Module | Holds |
|---|---|
| `app`, `transport`, `middleware` | the application, bounded uvicorn, checks of each request |
| `state` | what all endpoints share: settings, caches, ledger, run manager |
| `upload_queue`, `ops.upload_worker` | what is sent: whose turn it is, who reads it |
| `api`, `threads`, `uploads`, `feedback`, `exports`, `evaluations`, `page` | endpoints |
| `chat` | OpenAI's interface |
| `tools`, `reading_tools`, `formula_tools`, `scoped_mcp`, `mcp_tasks` | MCP |
| `clinic` | CDS Hooks |
| `run_manager`, `admission`, `run_views` | runs: started, admitted, shown and streamed |
| `ledger`, `keys` | whose run it was; keys and callers |
| `schemas`, `chat_wire` | requests |
| `replies`, `evaluation_replies` | what they are answered with |
| `choices`, `problems` | what a request may choose, and how it is refused |
| `metrics`, `otel` | Prometheus counts and OpenTelemetry spans |

No endpoint has logic of its own: the run manager starts and follows every run, and searches go
through the resource cache of `osler.build`. Needs the extra `serve`; nothing here is imported
before `osler serve` or `osler mcp` asks for it.
"""
