"""KAG-Thinker: a question taken apart into logical forms, each solved in depth."""
