"""The sample knowledge base as package data; `README.md` describes its files."""
