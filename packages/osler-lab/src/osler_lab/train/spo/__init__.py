"""Source Planning Optimisation (Omni-RAG §4.2): the training data of a planner.

| Module | Does |
|---|---|
| `explore` | proposes queries a source to questions with gold answers, and searches them (§4.2.1) |
| `judge` | says which queries found what supports the gold answer (§4.2.2): a model, or a signal |
| `recipe` | positive and negative plans (§4.2.3), and which records are written: the ablations |
| `job` | explores and judges many cases, resumed, on many processes and hosts |
"""
