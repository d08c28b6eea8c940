"""Measures with exact definitions; each is held to an independent implementation by a test."""
