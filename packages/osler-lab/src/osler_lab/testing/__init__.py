"""Test doubles for strategies of your own: `scripted` models, retrievers and an encoder."""
