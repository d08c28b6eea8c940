"""What holds for every language model: Protocols, calls within a budget, spans, grammars."""
