"""Experts: small trained parts that decide better than a rule, run by ONNX Runtime or numpy.

| Module | Has |
|---|---|
| `cards` | the experts that come with Osler and a user's own, checked against their cards |
| `pair_graph` | the pair model as an ONNX graph: packaged encoder, its packed changes, head |
| `judge` | `judge`: does this sentence, where it stands, answer this question? |
| `cues` | what a sentence says by its words: negation, hedges, directions |
| `supporting` | `supports`: does this evidence say yes, no, or nothing of it? |

They are trained in `research/experts`. An expert replaces a rule only where a setting names it.
"""
