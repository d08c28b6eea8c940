"""Language models on torch and transformers: trainable, and they show their attention."""
