"""The embedded model: llama.cpp in this process, and the packaged weights."""
