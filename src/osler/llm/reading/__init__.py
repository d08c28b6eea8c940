"""Tolerant readers of what models write: one for each thing that is read, used by every method."""
