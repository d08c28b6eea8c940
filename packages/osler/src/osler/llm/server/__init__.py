"""Language models and scorers behind any server that speaks the OpenAI interface."""
