"""Source Planning Optimisation (Omni-RAG §4.2): the training data of a planner.

| Module | Does |
|---|---|
| `case` | a question with its gold answer and gold documents; the split into parts |
| `explore` | proposes queries a source and searches them (§4.2.1) |
| `wording` | queries made of the question's own words, without a model |
| `judge` | says which queries found what supports the gold answer, and what that costs (§4.2.2) |
| `units` | cuts documents into units for a judge, so that nothing is judged twice |
| `signals` | the other signals: gold documents, the reader's improvement, rerank scores |
| `pairs` | positive and negative plans (§4.2.3) |
| `recipe` | selects the records that are written: the ablations |
| `agree` | compares a judge with another, or with people (Table 9) |
| `job` | explores and judges many cases, resumed, on many processes and hosts |
"""
