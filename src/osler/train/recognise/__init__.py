"""A medical entity recogniser that is trained: data, model, loop, strict F1, linking."""
