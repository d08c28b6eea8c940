"""Settings of the server: its address and its limits."""

from __future__ import annotations

from pydantic import Field

from osler.settings.fields import Names, OptionalPlace, Real, SettingsSection, SourceNames, Whole


class ServeSettings(SettingsSection):
    host: str = Field(default="127.0.0.1", min_length=1, max_length=255)
    """Address to listen on; one that others can reach needs a key first (`osler serve key add`)."""
    port: Whole = Field(default=8642, ge=0, le=65_535, description="0 = one that is free.")
    hosts: Names = ()
    """Names under which others call the server; its own address and loopback are always among
    them."""
    runs: Whole = Field(default=4, ge=1, le=10_000, description="Runs worked on at once.")
    waiting: Whole = Field(default=64, ge=0, le=100_000)
    """Runs that may wait; more are rejected (503)."""
    patients: bool = False
    """Whether MCP, on this machine alone, has a tool that reads records of `emr`."""
    sources: Names = ("public",)
    """Sources that callers on this machine find without a key: names, or "public" (all that are not
    private). A key has its own (`osler serve key add --source`)."""
    failed_keys: Whole = Field(default=10, ge=1, le=1_000_000)
    """Failed tries of one key from one address in a minute (429); ten times as many of all keys."""
    searches: Whole = Field(default=4, ge=1, le=1_000, description="Searches at once.")
    searches_waiting: Whole = Field(default=64, ge=0, le=100_000)
    """Searches that may wait; more are rejected."""
    caller_runs: Whole = Field(default=64, ge=1, le=100_000)
    """Unfinished runs of one caller, where the key says nothing else (429)."""
    caller_minute: Whole = Field(default=6_000, ge=1, le=1_000_000)
    """Requests of one caller in a minute, where the key says nothing else (429)."""
    run_seconds: Real = Field(default=600.0, gt=0, le=86_400)
    """Wall-clock seconds of one run, at most."""
    drain_seconds: Real = Field(default=30.0, ge=0, le=3_600)
    """Seconds that running work has to finish after a SIGTERM."""
    body_kib: Whole = Field(default=256, ge=1, le=65_536)
    """Kibibytes of one request, at most (413)."""
    uploads: SourceNames = ()
    """Sources into which documents may be sent over HTTP; none by default. Name one in
    access.private too, if only keys with that source are to find it."""
    upload_mib: Whole = Field(default=32, ge=1, le=1_024)
    """Mebibytes of a file that is sent, at most (413)."""
    client_seconds: Real = Field(default=10.0, gt=0, le=3_600)
    """How long a client may take to send a request, or leave a reply unread."""
    connections: Whole = Field(default=1_024, ge=1, le=100_000)
    """Connections at once; more get 503."""
    hook_rules: OptionalPlace = None
    """A file of rules of your own for CDS Hooks, in place of the packaged sample."""
    hook_clients: OptionalPlace = None
    """A JSON file of the record systems whose signed requests (JWT) are taken: their public keys
    by issuer, or the address of these (JWKS)."""
    launch_servers: OptionalPlace = None
    """A JSON file of the record systems that may open Osler with a patient (SMART App Launch), by
    the address of their FHIR server."""
    fhir_servers: Names = ()
    """Addresses of FHIR servers from which a CDS Hooks service may read what a request did not
    bring, with the token that the request gives for it."""
