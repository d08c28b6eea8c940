"""Data sets, measures and experiments. Only here and in training is a gold answer known."""
