"""Doubles and conformance kits for tests; no other layer imports this package."""
