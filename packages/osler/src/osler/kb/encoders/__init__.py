"""Encoders of texts to vectors: MiniLM on ONNX, hub models, and embedding servers."""
