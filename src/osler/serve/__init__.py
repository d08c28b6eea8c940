"""Doors to one event stream: the native API, the OpenAI-compatible endpoint, MCP.

No door has logic of its own: a run is started and watched at the `desk`, a search is the
shelf's (`osler.app.wiring.ResourceCache`), and what is said is what the library says. Needs the extra
`serve`; nothing here is imported before `osler serve` or `osler mcp` asks for it.
"""
