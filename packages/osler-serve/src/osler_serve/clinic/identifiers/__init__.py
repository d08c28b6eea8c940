"""Finds what identifies a person in a clinical text, by rules and a network, and takes it out.

| Module | Holds |
|---|---|
| `found` | the spans, how overlapping ones are settled, and the words of other texts |
| `english`, `chinese` | the rules of one language; those of both are in `removal` |
| `places` | hospitals, schools, employers, wards and streets by their names |
| `tokens` | all kinds, by a small network over what the multilingual encoder says of each piece |
| `removal` | the text without them: marks in their place, dates moved |

What they find and miss: docs/guide/security.md.
"""
